"""The common protocol (docs/metrics.md): full rollouts from fixed prompts, the same for every method and engine."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fr3e.algorithm.advantage import centred
from fr3e.config.training import TrainingConfig
from fr3e.exploration.records import Generate, Grade, Prompt, Request


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Sums over one problem's full rollouts; `advantage` is that of A = r - mean over their tokens."""

    benchmark: str
    rollouts: int
    right: int
    tokens: int
    entropy: float
    truncated: int
    advantage: float


def due(update: int, last: int, every: int) -> bool:
    """True for update 0 (before training), every `every`-th update and the last one."""
    return update % every == 0 or update == last


def probe_uid(update: int, benchmark: str, problem: str) -> str:
    """Name of one problem's probe in the data plane, unique over the run."""
    return f"probe/{update}/{benchmark}/{problem}"


async def run_probe(
    prompt: Prompt, benchmark: str, draw: str, training: TrainingConfig, generate: Generate, grade: Grade
) -> ProbeResult:
    """`probe.samples` full rollouts of one problem at rollout temperature, from the named draw."""
    completions = await generate(
        Request(
            prompt_uid=prompt.uid,
            context_ids=prompt.token_ids,
            n=training.probe.samples,
            max_tokens=training.rollout.max_total_tokens,
            draw=draw,
            temperature=training.rollout.temperature,
        )
    )
    verdicts = await asyncio.gather(*(grade(prompt, completion.token_ids) for completion in completions))
    lengths = np.array([len(completion.token_ids) for completion in completions])
    rewards = np.array([float(bool(verdict)) for verdict in verdicts])
    return ProbeResult(
        benchmark=benchmark,
        rollouts=len(completions),
        right=int(rewards.sum()),
        tokens=int(lengths.sum()),
        entropy=float(sum(completion.entropies.sum() for completion in completions)),
        truncated=sum(not completion.finished for completion in completions),
        advantage=float(np.dot(centred(rewards, std_norm=False), lengths)),
    )


def probe_columns(results: Iterable[ProbeResult]) -> dict[str, float]:
    """The `probe/<b>/...` columns: shares over rollouts, entropy and advantage over tokens."""
    by_benchmark: dict[str, list[ProbeResult]] = defaultdict(list)
    for result in results:
        by_benchmark[result.benchmark].append(result)
    columns = {}
    for name, parts in by_benchmark.items():
        rollouts, tokens = sum(part.rollouts for part in parts), sum(part.tokens for part in parts)
        columns[f"probe/{name}/accuracy"] = sum(part.right for part in parts) / rollouts
        columns[f"probe/{name}/entropy"] = sum(part.entropy for part in parts) / tokens
        columns[f"probe/{name}/length"] = tokens / rollouts
        columns[f"probe/{name}/truncated"] = sum(part.truncated for part in parts) / rollouts
        columns[f"probe/{name}/advantage"] = sum(part.advantage for part in parts) / tokens
    return columns
