"""Share of the groups an update trains on that come from the update's own policy, by the number of prompts in a round.

    python benchmarks/freshness.py

Groups that an update has no room for are carried, and the oldest are trained first (algorithm/filtering.py). Rounds are whole,
so the more groups a round gives beyond what is needed, the older the groups are that train. Prompts give mixed groups
independently with `planning.mixed_share` of the scenario.
"""

import argparse
from pathlib import Path

import numpy as np

from fr3e.config import load_scenario, resolve_run
from fr3e.config.scenario import RunConfig


def fresh_share(run: RunConfig, mixed_share: float, prompts: int, updates: int) -> float:
    """Mean over `updates` of the share of trained groups that were born in the update."""
    rng = np.random.default_rng(0)
    needed, states = run.training.accum.groups_per_update, 1 + run.training.fr3e.num_anchors
    carried, shares = 0, []
    for _ in range(updates):
        pool = carried
        while pool < needed:
            pool += int(rng.binomial(prompts * states, mixed_share))
        shares.append(max(0, needed - carried) / needed)
        carried = pool - needed
    return float(np.mean(shares))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=Path("config/paper.yaml"))
    parser.add_argument("--updates", type=int, default=200)
    arguments = parser.parse_args()
    scenario = load_scenario(arguments.config)
    assert scenario.planning is not None
    model = next(iter(scenario.models))
    for method in scenario.methods:
        run = resolve_run(scenario, model, method, 0)
        share = scenario.planning.mixed_share_of.get(method, scenario.planning.mixed_share)
        own = run.training.rollout.prompts_per_round
        for prompts in sorted({32, 64, 128, 256, 512, own}):
            found = fresh_share(run, share, prompts, arguments.updates)
            print(f"{method:8} {prompts:4} prompts a round: {found:.0%}{'  <- the scenario' if prompts == own else ''}")


if __name__ == "__main__":
    main()
