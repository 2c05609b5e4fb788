"""The common protocol: full rollouts from fixed prompts, the same for every method (docs/metrics.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fr3e.algorithm.advantage import centred
from fr3e.algorithm.diagnostics import token_weighted_mean
from fr3e.config.training import ProbeConfig, RolloutConfig
from fr3e.engine.local.batching import BatchingGenerator
from fr3e.engine.local.problems import Problem
from fr3e.errors import UserError
from fr3e.evaluation.prompts import render
from fr3e.exploration.records import Prompt, Request


@dataclass(frozen=True, slots=True)
class Probe:
    """The first problems, by id, of the training set and of each probed benchmark."""

    prompts: dict[str, list[Prompt]]
    settings: ProbeConfig
    rollout: RolloutConfig
    seed: str

    def run(self, batching: BatchingGenerator, update: int) -> dict[str, float]:
        """Columns probe/<benchmark>/accuracy, entropy and advantage (means over tokens, nats), length (tokens), truncated (share)."""
        import asyncio

        async def measure(name: str, prompt: Prompt) -> tuple[str, list[Any], list[Any]]:
            request = Request(
                prompt_uid=prompt.uid,
                context_ids=prompt.token_ids,
                n=self.settings.samples,
                max_tokens=self.rollout.max_total_tokens,
                draw=f"{self.seed}/probe/{name}/{prompt.uid}/update{update}",
                temperature=self.rollout.temperature,
            )
            completions = await batching(request)
            verdicts = await asyncio.gather(*(batching.graded(prompt, c.token_ids) for c in completions))
            return name, completions, verdicts

        async def everything() -> list[tuple[str, list[Any], list[Any]]]:
            pairs = [(name, prompt) for name, prompts in self.prompts.items() for prompt in prompts]
            return await asyncio.gather(*(measure(name, prompt) for name, prompt in pairs))

        results = batching.run(everything(), update)
        columns: dict[str, float] = {}
        for name in self.prompts:
            problems = [
                ([float(bool(v)) for v in verdicts], [len(c.token_ids) for c in found])
                for n, found, verdicts in results
                if n == name
            ]
            completions = [c for n, found, _ in results if n == name for c in found]
            verdicts = [v for n, _, found in results if n == name for v in found]
            columns |= {
                f"probe/{name}/accuracy": float(np.mean([bool(v) for v in verdicts])),
                f"probe/{name}/entropy": float(np.mean(np.concatenate([c.entropies for c in completions]))),
                f"probe/{name}/length": float(np.mean([len(c.token_ids) for c in completions])),
                f"probe/{name}/truncated": float(np.mean([not c.finished for c in completions])),
                f"probe/{name}/advantage": token_weighted_mean(
                    [centred(np.array(rewards), std_norm=False) for rewards, _ in problems],
                    [lengths for _, lengths in problems],
                ),
            }
        return columns


def probe_prompts(
    name: str, problems: Sequence[Problem], count: int, template: str, tokenizer: Any, longest: int
) -> list[Prompt]:
    """Prompts of the first `count` problems by id that have at most `longest` tokens; none at all is a `UserError` that
    names the benchmark."""
    found: list[Prompt] = []
    lengths: list[int] = []
    for problem in sorted(problems, key=lambda p: p.id):
        ids = render(template, problem.question, tokenizer)[1]
        lengths.append(len(ids))
        if len(ids) <= longest:
            found.append(Prompt(problem.id, tuple(ids), problem.gold))
        if len(found) == count:
            break
    if not found:
        raise UserError(
            f"rollout.max_prompt_tokens: no prompt of the probed benchmark {name!r} has at most {longest} tokens, its "
            f"shortest has {min(lengths)}; raise it, or probe another (probe.benchmarks)"
        )
    return found
