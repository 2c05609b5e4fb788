"""A short probe in the place of stated planning inputs: what the first updates of a run say about all of them.

The columns are those of docs/metrics.md; a run that is still going on serves as well as one made for this.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from fr3e.config import resolve_run, run_ids
from fr3e.config.scenario import PlanningConfig, RunConfig, Scenario, Speed
from fr3e.errors import UserError
from fr3e.files import read_jsonl

Row = Mapping[str, Any]


def gpus(run: RunConfig) -> int:
    """GPUs of a run; 1 process for the local engine."""
    shape = run.training.verl
    return shape.nodes * shape.gpus_per_node if run.training.engine == "verl" else 1


def measured(rows: Sequence[Row], run: RunConfig) -> PlanningConfig:
    """Planning inputs out of consecutive rows of `run`'s metrics.jsonl, the first of them with or without update 0.

    Speeds are tokens per second of one GPU, or of the one process of the local engine. Raises `UserError` when the rows hold no generation, no
    update or no group that could be trained on.
    """
    updates = [row for row in rows if row["update"] > 0]
    total = {name: sum(row.get(name, 0) for row in updates) for name in COLUMNS}
    generated = total["tokens/generated_first"] + total["tokens/generated_explore"]
    fr3e = run.training.fr3e
    states = int(fr3e.include_root) + fr3e.num_anchors
    # Groups that passed: trained on now or kept for later, less those of earlier rounds.
    passed = (
        total["groups/trained"]
        + total["groups/dropped"]
        + (updates[-1]["groups/carried_out"] - updates[0]["groups/carried_in"] if updates else 0)
    )
    if not (generated and total["seconds/generate"] and total["seconds/update"] and passed > 0):
        raise UserError(
            f"{run.run}: its first {len(updates)} updates hold no round with a group to train on; let the probe run longer"
        )
    stage = "first" if fr3e.first_n else "explore"
    spent = sum(total[name] for name in ("seconds/generate", "seconds/update", "seconds/probe"))
    anchors = [row["anchor/position"] for row in updates if "anchor/position" in row]
    share = min(1.0, passed / (total["prompts/sampled"] * states))
    return PlanningConfig(
        source=f"measured over {len(updates)} updates of {run.run}",
        response_tokens=total[f"tokens/generated_{stage}"] / total[f"rollouts/{stage}"],
        mixed_share=share,
        mixed_share_of={run.arm: share},
        anchor_position=fmean(anchors) if anchors else 0.0,
        overhead_seconds=max(0.0, _elapsed(rows) - spent) / len(updates),
        speed={
            run.model_name: Speed(
                generate=generated / total["seconds/generate"] / gpus(run),
                train=total["tokens/trained"] / total["seconds/update"] / gpus(run),
            )
        },
    )


COLUMNS = (
    *("tokens/generated_first", "tokens/generated_explore", "tokens/trained", "rollouts/first", "rollouts/explore"),
    *("groups/trained", "groups/dropped", "prompts/sampled"),
    *("seconds/generate", "seconds/update", "seconds/probe"),
)


def _elapsed(rows: Sequence[Row]) -> float:
    """Wall seconds of the updates: `seconds` counts from the run's beginning, row 0 holds what came before the first."""
    return float(rows[-1]["seconds"]) - float(rows[0]["seconds"] if rows[0]["update"] == 0 else 0.0)


def probed(scenario: Scenario, folders: Sequence[Path], updates: int) -> PlanningConfig:
    """Planning inputs from the first `updates` updates of the run folders, each named as one of the scenario's runs.

    Lengths, positions and overheads are means over the folders, speeds over those of a model, mixed shares over those of an
    arm; what no folder can tell, such as another model's speed, stays as the scenario states it.
    """
    known = run_ids(scenario, list(dict.fromkeys(scenario.methods + scenario.arms)))
    found: list[tuple[str, str, PlanningConfig]] = []
    for folder in folders:
        if folder.name not in known:
            raise UserError(
                f"--probe {folder}: {folder.name!r} is no run of this scenario; its runs: {', '.join(known)}"
            )
        metrics = folder / "metrics.jsonl"
        if not metrics.is_file():
            raise UserError(f"--probe {folder}: no metrics.jsonl; give the folder of a run that has made some updates")
        rows = [row for row in read_jsonl(metrics) if row["update"] <= updates]
        model, arm, seed = known[folder.name]
        found.append((model, arm, measured(rows, resolve_run(scenario, model, arm, seed))))
    every = [planning for _, _, planning in found]
    positions = [planning.anchor_position for planning in every if planning.anchor_position]
    stated = scenario.planning
    speeds = dict(stated.speed) if stated else {}
    for model in {model for model, _, _ in found}:
        of_model = [planning.speed[model] for m, _, planning in found if m == model]
        speeds[model] = Speed(
            generate=fmean(speed.generate for speed in of_model), train=fmean(speed.train for speed in of_model)
        )
    shares = dict(stated.mixed_share_of) if stated else {}
    for arm in {arm for _, arm, _ in found}:
        shares[arm] = fmean(planning.mixed_share for _, a, planning in found if a == arm)
    return PlanningConfig(
        source=f"measured over the first {updates} updates of {', '.join(folder.name for folder in folders)}",
        response_tokens=fmean(planning.response_tokens for planning in every),
        mixed_share=stated.mixed_share if stated else fmean(planning.mixed_share for planning in every),
        mixed_share_of=shares,
        anchor_position=fmean(positions) if positions else stated.anchor_position if stated else 0.0,
        overhead_seconds=fmean(planning.overhead_seconds for planning in every),
        speed=speeds,
    )
