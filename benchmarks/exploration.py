"""The exploration's own time: everything but generation, grading and update, per prompt.

    python benchmarks/exploration.py [--length 27] [--prompts 32]

Completions and verdicts are made beforehand, so that what is timed is base choice, anchors, states, values, alpha, groups,
selection, advantages and metrics. `share` is that time against the seconds that a step of the demo takes for the same
prompts (`seconds/generate + seconds/grade + seconds/update` of metrics.jsonl), given by --step.
"""

import argparse
import asyncio
import time

import numpy as np

from fr3e.algorithm.advantage import advantages
from fr3e.algorithm.diagnostics import update_metrics
from fr3e.algorithm.filtering import select, trainable
from fr3e.config import TrainingConfig
from fr3e.exploration import explore_round
from fr3e.exploration.records import Completion, Prompt, Request
from fr3e.grading.verdict import Verdict


class Ready:
    """A generator whose completions were made beforehand: only slices are cut."""

    def __init__(self, length: int, m: int) -> None:
        rng = np.random.default_rng(0)
        self.ids = [tuple(rng.integers(2, 200, length).tolist()) for _ in range(m)]
        self.values = [rng.random(length).astype(np.float32) for _ in range(m)]

    async def __call__(self, request: Request) -> list[Completion]:
        t = min(request.max_tokens, len(self.ids[0]))
        return [
            Completion(self.ids[i][:t], -self.values[i][:t], self.values[i][:t], finished=True)
            for i in range(request.n)
        ]


async def grade(prompt: Prompt, response_ids: tuple[int, ...]) -> Verdict:
    """Right or wrong by the response's last token and the prompt, at no cost."""
    return RIGHT if (response_ids[-1] + len(prompt.uid)) % 2 else WRONG


RIGHT, WRONG = Verdict("correct", None, "made"), Verdict("wrong", None, "made")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=40, help="tokens of a response")
    parser.add_argument("--prompts", type=int, default=16, help="prompts of an update")
    parser.add_argument("--anchors", type=int, default=3)
    parser.add_argument("--rollouts", type=int, default=8)
    parser.add_argument("--step", type=float, default=None, help="seconds of a step without exploration")
    options = parser.parse_args()
    settings = TrainingConfig.model_validate(
        {
            "rollout": {"max_total_tokens": options.length},
            "fr3e": {"num_anchors": options.anchors, "rollouts_per_state": options.rollouts, "first_filter": "none"},
        }
    )
    prompts = [Prompt(f"0-{i}", (1, 2, 3), "1") for i in range(options.prompts)]
    ready = Ready(options.length, max(options.rollouts, settings.fr3e.first_n))
    best = float("inf")
    for _ in range(7):
        start = time.process_time()
        found = asyncio.run(
            explore_round(
                prompts, settings, ready, grade, special_ids=frozenset({0}), token_text=chr, seed="b", update=1
            )
        )
        pool = [g for e in found for g in trainable(e.groups, settings.accum, settings.adv)]
        selection = select(pool, settings.accum, "b")
        results = advantages(selection.trained, settings.fr3e, settings.adv, "b")
        update_metrics(found, selection, results, settings.fr3e, token_text=chr, carried_in=0, rounds=1)
        best = min(best, time.process_time() - start)
    rollouts = sum(e.cost.rollouts_first + e.cost.rollouts_explore for e in found)
    print(
        f"{options.prompts} prompts, {rollouts} rollouts: {best * 1e3:.1f} ms, {best / options.prompts * 1e3:.2f} ms a prompt"
    )
    if options.step:
        print(f"share of a step of {options.step} s: {best / (options.step + best):.1%}")


if __name__ == "__main__":
    main()
