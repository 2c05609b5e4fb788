"""First Return (paper, section 4.1): full rollouts of a prompt, their grading, and the choice of base trajectories."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fr3e.algorithm.seeds import generator
from fr3e.config.training import Fr3eConfig
from fr3e.exploration.records import Completion, Floats, Means, Prompt, Request, Rollout


@dataclass(frozen=True, slots=True, eq=False)
class FirstReturn:
    """A prompt after stage one: its first rollouts and the tokens of context that caches saved."""

    prompt: Prompt
    rollouts: tuple[Rollout, ...]
    cached: int

    def dropped(self, settings: Fr3eConfig) -> str | None:
        """Why the prompt leaves before stage two: `all_correct`, `all_wrong` (by first_filter) or `no_base`; else None."""
        if not self.rollouts:
            return None
        right = sum(rollout.reward for rollout in self.rollouts)
        if settings.first_filter != "none" and right == len(self.rollouts):
            return "all_correct"
        if settings.first_filter == "degenerate" and right == 0:
            return "all_wrong"
        return "no_base" if settings.base_select == "one_correct" and right == 0 else None


async def first_return(prompt: Prompt, means: Means) -> FirstReturn:
    """Sample `first_n` full rollouts from the old policy and grade them; with first_n = 0 nothing is sampled."""
    settings = means.settings
    if settings.fr3e.first_n == 0:
        return FirstReturn(prompt, (), 0)
    request = Request(
        prompt_uid=prompt.uid,
        context_ids=prompt.token_ids,
        n=settings.fr3e.first_n,
        max_tokens=settings.rollout.max_total_tokens,
        draw=f"{means.seed}/{prompt.uid}/first",
        temperature=settings.rollout.temperature,
    )
    completions = await ask(request, means)
    rollouts = await graded(prompt, completions, means)
    return FirstReturn(prompt, rollouts, sum(completion.cached_tokens for completion in completions))


async def ask(request: Request, means: Means) -> list[Completion]:
    """Generate, and refuse what no engine may give: another number of completions, arrays of another length than the ids
    (`ValueError`), or NaN among log-probs and entropies (`FloatingPointError`)."""
    completions = await means.generate(request)
    where = f"update {means.update}, prompt {request.prompt_uid}, draw {request.draw}"
    if len(completions) != request.n:
        raise ValueError(f"{where}: {request.n} completions were asked for, {len(completions)} came")
    for completion in completions:
        length = len(completion.token_ids)
        if length > request.max_tokens or any(len(a) != length for a in (completion.logprobs, completion.entropies)):
            raise ValueError(
                f"{where}: {length} tokens of at most {request.max_tokens} with {len(completion.logprobs)} log-probs "
                f"and {len(completion.entropies)} entropies"
            )
        if np.isnan(completion.logprobs).any() or np.isnan(completion.entropies).any():
            raise FloatingPointError(f"{where}: NaN among the log-probs or entropies that the policy gave")
    return completions


async def graded(
    prompt: Prompt,
    completions: Sequence[Completion],
    means: Means,
    *,
    base: Rollout | None = None,
    prefix_len: int = 0,
) -> tuple[Rollout, ...]:
    """Completions of one state as graded rollouts: prefix (the base's own ids, log-probs, entropies) + continuation.

    The whole response is graded, or the continuation alone with `reward.scope: continuation`.
    """
    responses = [(base.response_ids[:prefix_len] if base else ()) + c.token_ids for c in completions]
    texts = responses if means.settings.reward.scope == "full" else [completion.token_ids for completion in completions]
    verdicts = await asyncio.gather(*(means.grade(prompt, ids) for ids in texts))
    return tuple(
        Rollout(
            response_ids=response,
            logprobs=_joined(base and base.logprobs, prefix_len, completion.logprobs),
            entropies=_joined(base and base.entropies, prefix_len, completion.entropies),
            prefix_len=prefix_len,
            finished=completion.finished,
            verdict=verdict,
            topk_entropies=completion.topk_entropies if base is None else None,
        )
        for response, completion, verdict in zip(responses, completions, verdicts, strict=True)
    )


def _joined(prefix: Floats | None, length: int, continuation: Floats) -> Floats:
    continuation = np.asarray(continuation, dtype=np.float32)
    return continuation if prefix is None or length == 0 else np.concatenate([prefix[:length], continuation])


def select_bases(first: FirstReturn, settings: Fr3eConfig, seed: str | int) -> tuple[int, ...]:
    """Indices of the base trajectories among the first rollouts, drawn at random among equals (`base_select`).

    With first_n = 0 there are none. A prompt that `FirstReturn.dropped` names should not come here.
    """
    if not first.rollouts:
        return ()
    order = generator(seed, first.prompt.uid, "base").permutation(len(first.rollouts)).tolist()
    right = [index for index in order if first.rollouts[index].reward > 0]
    wrong = [index for index in order if first.rollouts[index].reward == 0]
    match settings.base_select:
        case "one_correct_else_wrong":
            return tuple((right or wrong)[:1])
        case "correct_and_wrong":
            return tuple(right[:1] + wrong[:1])
        case "one_correct":
            return tuple(right[:1])
        case "all":
            return tuple(range(len(first.rollouts)))
        case _:
            return tuple(order[:1])
