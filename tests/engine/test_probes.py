"""Both engines' probes say the same of the same rollouts."""

import asyncio

import numpy as np
import pytest

from fr3e.config.training import ProbeConfig, RolloutConfig, TrainingConfig
from fr3e.engine.local.batching import BatchingGenerator
from fr3e.engine.local.probe import Probe
from fr3e.engine.verl.probe import probe_columns, run_probe
from fr3e.exploration.records import Completion, Ids, Prompt, Request
from fr3e.grading.verdict import Verdict

# Two problems, two rollouts each, named by their last token: (tokens, right).
ROLLOUTS = {"p0": [(2, True), (6, False)], "p1": [(4, True), (4, True)]}
PROMPTS = [Prompt(uid, (1, 2), "1") for uid in ROLLOUTS]


def completions(request: Request) -> list[Completion]:
    made = [(length, right) for length, right in ROLLOUTS[request.prompt_uid]]
    return [
        Completion(
            (9,) * (n - 1) + (int(right),), np.zeros(n, np.float32), np.full(n, 0.1 * n, np.float32), finished=n < 6
        )
        for n, right in made
    ]


async def grade(_: Prompt, ids: Ids) -> Verdict:
    return Verdict("correct" if ids[-1] else "wrong", None, "")


async def generate(request: Request) -> list[Completion]:
    return completions(request)


def test_the_engines_probes_agree() -> None:
    settings = TrainingConfig(probe=ProbeConfig(samples=2))
    local = Probe({"train": PROMPTS}, settings.probe, RolloutConfig(), "0")
    one = local.run(BatchingGenerator(lambda requests: [completions(r) for r in requests], grade), 3)

    async def everything() -> list:
        return [await run_probe(p, "train", "d", settings, generate, grade) for p in PROMPTS]

    two = probe_columns(asyncio.run(everything()))
    assert one == pytest.approx(two)
    # p0: A = .5 on 2 tokens, -.5 on 6; p1: 0 on 8: -2 / 16.
    assert one["probe/train/advantage"] == -0.125
    assert one["probe/train/accuracy"] == 0.75
    assert one["probe/train/truncated"] == 0.25
