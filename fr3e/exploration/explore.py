"""One prompt's two phases: First Return, then Entropy-Eliciting Explore from the states of its base trajectories.

The local engine and the rollout worker of the distributed engine run this coroutine unchanged against two protocols,
`Generate` and `Grade`. With first_n = 0 and num_anchors = 0 only the root state is left: GRPO++ with n = M.
"""

import asyncio
from collections.abc import Callable, Sequence

from fr3e.algorithm.anchors import choose_anchors
from fr3e.algorithm.released import donors
from fr3e.algorithm.states import continuation_counts, eligible_tokens, paragraph_starts, prefix_lengths
from fr3e.config.training import Fr3eConfig, TrainingConfig
from fr3e.exploration.first_return import FirstReturn, ask, first_return, graded, select_bases
from fr3e.exploration.groups import base_group, first_return_group, state_groups
from fr3e.exploration.records import Cost, Exploration, Generate, Grade, Means, Prompt, Request, Rollout, StateGroup


async def explore(
    prompt: Prompt,
    settings: TrainingConfig,
    generate: Generate,
    grade: Grade,
    *,
    special_ids: frozenset[int],
    token_text: Callable[[int], str],
    seed: str | int,
    update: int,
) -> Exploration:
    """Everything one prompt gives to update `update`.

    `special_ids` are the tokens that can never be anchors, `token_text` gives the text of one token, `seed` names the
    run. Every draw is keyed by seed, prompt uid and state, so the result depends neither on other prompts nor on timing.

    With `released_row_permutation` rows are permuted inside the prompt here; `explore_round` permutes those of a round.
    """
    return await _alone(prompt, Means(settings, generate, grade, special_ids, token_text, seed, update))


async def _alone(prompt: Prompt, means: Means) -> Exploration:
    first = await first_return(prompt, means)
    (profiles,) = profile_rows([first], means.settings.fr3e.released_row_permutation)
    return await entropy_eliciting_explore(first, profiles, means)


async def explore_round(
    prompts: Sequence[Prompt],
    settings: TrainingConfig,
    generate: Generate,
    grade: Grade,
    *,
    special_ids: frozenset[int],
    token_text: Callable[[int], str],
    seed: str | int,
    update: int,
) -> list[Exploration]:
    """`explore` for all prompts of a round side by side, in the order of `prompts`.

    Only with `released_row_permutation` do prompts wait for each other between the phases, because that fault mixes the
    first rollouts of the whole round.
    """
    means = Means(settings, generate, grade, special_ids, token_text, seed, update)
    ranks = settings.fr3e.released_row_permutation
    if ranks <= 1:
        return list(await asyncio.gather(*(_alone(prompt, means) for prompt in prompts)))
    firsts = await asyncio.gather(*(first_return(p, means) for p in prompts))
    pairs = zip(firsts, profile_rows(firsts, ranks), strict=True)
    return list(await asyncio.gather(*(entropy_eliciting_explore(first, rows, means) for first, rows in pairs)))


def profile_rows(firsts: Sequence[FirstReturn], ranks: int) -> list[tuple[Rollout, ...]]:
    """For each first rollout of each prompt the rollout whose scores choose its anchors.

    It is the rollout itself, unless `ranks` > 1 (`released_row_permutation`) takes it from another row of `firsts`.
    """
    rows = [(first.prompt, rollout) for first in firsts for rollout in first.rollouts]
    lengths = [len(prompt.token_ids) + len(rollout.response_ids) for prompt, rollout in rows]
    donated = iter([rows[donor][1] for donor in donors(lengths, ranks)])
    return [tuple(next(donated) for _ in first.rollouts) for first in firsts]


async def entropy_eliciting_explore(first: FirstReturn, profiles: Sequence[Rollout], means: Means) -> Exploration:
    """Stage two (paper, section 4.2): anchors and states of each base, M continuations of each state, V and alpha.

    `profiles[i]` is the rollout whose scores choose the anchors of first rollout i.
    """
    prompt, settings, fr3e = first.prompt, means.settings, means.settings.fr3e
    cost = _first_cost(first)
    extra = (first_return_group(first, means.update),) if fr3e.train_first_rollouts and first.rollouts else ()
    if reason := first.dropped(fr3e):
        return Exploration(prompt, first.rollouts, (), (), extra, reason, 0, cost)
    chosen = select_bases(first, fr3e, means.seed)
    bases = tuple(first.rollouts[index] for index in chosen)
    anchors = tuple(base_anchors(first.rollouts[i], profiles[i], i, prompt, means) for i in chosen)
    prefixes, duplicates = _prefixes(anchors, fr3e, settings.rollout.max_total_tokens)
    counts = continuation_counts(
        prefixes,
        [len(base.response_ids) for base in bases],
        [len(rollout.response_ids) for rollout in first.rollouts],
        fr3e.budget,
        fr3e.rollouts_per_state,
    )
    sampled = await asyncio.gather(
        *(
            _explore_state(prompt, bases[b] if bases else None, n, b=b, prefix_len=k, means=means, cost=cost)
            for b, (lengths, ns) in enumerate(zip(prefixes, counts, strict=True))
            for k, n in zip(lengths, ns, strict=True)
        )
    )
    groups: tuple[StateGroup, ...] = state_groups(prompt, prefixes, sampled, settings, means.update)
    if settings.adv.estimator == "value_difference":
        extra = (base_group(first, bases, groups, means.update),)
    return Exploration(prompt, first.rollouts, bases, anchors, groups + extra, None, duplicates, cost)


def base_anchors(base: Rollout, profile: Rollout, index: int, prompt: Prompt, means: Means) -> tuple[int, ...]:
    """Anchor positions of one base (Eq. 7), scored by `profile`: the base itself, but for the released code's fault.

    Positions past the end of a shorter profile have no score and are no anchors. A NaN score is a `FloatingPointError`
    that names the prompt.
    """
    settings = means.settings.fr3e
    if settings.num_anchors == 0:
        return ()
    length = min(len(base.response_ids), len(profile.response_ids))
    eligible_T = eligible_tokens(base.response_ids, means.special_ids, means.token_text, settings.exclude_answer_span)
    by_paragraph = settings.anchor_score == "paragraph"
    try:
        return choose_anchors(
            profile.entropies[:length],
            settings,
            eligible_T=eligible_T[:length],
            surprisal_T=-profile.logprobs[:length],
            topk_entropy_T=None if profile.topk_entropies is None else profile.topk_entropies[:length],
            paragraph_starts=paragraph_starts([means.token_text(t) for t in base.response_ids]) if by_paragraph else (),
            seed=f"{means.seed}/{prompt.uid}/first{index}",
        )
    except FloatingPointError as error:
        raise FloatingPointError(f"update {means.update}, prompt {prompt.uid}: {error}") from error


def _prefixes(
    anchors: Sequence[tuple[int, ...]], settings: Fr3eConfig, limit: int
) -> tuple[list[tuple[int, ...]], int]:
    """Prefix lengths of the states of each base, and duplicates left out. Without a base there is the root alone."""
    prefixes, duplicates = [], 0
    for positions in anchors or [()]:
        lengths, left_out = prefix_lengths(
            positions, anchor_in_prefix=settings.anchor_in_prefix, include_root=settings.include_root, limit=limit
        )
        prefixes.append(lengths)
        duplicates += left_out
    return prefixes, duplicates


async def _explore_state(
    prompt: Prompt, base: Rollout | None, n: int, *, b: int, prefix_len: int, means: Means, cost: Cost
) -> tuple[Rollout, ...]:
    """n continuations of one state with their verdicts; prefix and continuation share one token budget."""
    request = Request(
        prompt_uid=prompt.uid,
        context_ids=prompt.token_ids + (base.response_ids[:prefix_len] if base else ()),
        n=n,
        max_tokens=means.settings.rollout.max_total_tokens - prefix_len,
        draw=f"{means.seed}/{prompt.uid}/b{b}k{prefix_len}",
        temperature=means.settings.rollout.temperature,
    )
    completions = await ask(request, means)
    cost.rollouts_explore += n
    cost.context_explore += n * len(request.context_ids)
    cost.generated_explore += sum(len(completion.token_ids) for completion in completions)
    cost.cached += sum(completion.cached_tokens for completion in completions)
    return await graded(prompt, completions, means, base=base, prefix_len=prefix_len)


def _first_cost(first: FirstReturn) -> Cost:
    n = len(first.rollouts)
    return Cost(
        rollouts_first=n,
        generated_first=sum(len(rollout.response_ids) for rollout in first.rollouts),
        context_first=n * len(first.prompt.token_ids),
        cached=first.cached,
    )
