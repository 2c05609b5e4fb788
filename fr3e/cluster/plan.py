"""`fr3e plan`: tokens, GPU-hours, wall time and memory of every run of a scenario, before anything is launched.

The model is stated, not learned: an update needs `groups_per_update` mixed groups; a prompt gives one group per state, of
which a share is mixed; a full response has L tokens and a continuation of state j has L (1 - k_j / L). Surplus groups are
carried, so no generation is lost but that of degenerate groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fr3e.cluster.probe import gpus, probed
from fr3e.config import load_scenario, resolve_run, run_ids
from fr3e.config.scenario import PlanningConfig, RunConfig, Scenario, Speed
from fr3e.config.training import TrainingConfig
from fr3e.errors import UserError
from fr3e.files import read_json


@dataclass(frozen=True)
class Update:
    """Expected work of one update: prompts, generated and trained tokens."""

    prompts: float
    generated: float
    trained: float


def expected_update(settings: TrainingConfig, planning: PlanningConfig, arm: str = "") -> Update:
    """Expected prompts and tokens of one update, from the settings and the stated model."""
    fr3e, length = settings.fr3e, planning.response_tokens
    states = int(fr3e.include_root) + fr3e.num_anchors
    # Tokens of one continuation of each state, added up: L for the root, L (1 - k/L) for an anchor's state.
    per_round = length * (int(fr3e.include_root) + fr3e.num_anchors * (1 - planning.anchor_position))
    continuations = {
        "per_state": float(fr3e.rollouts_per_state),
        "per_prompt": fr3e.rollouts_per_state / states,
        "token_matched": fr3e.rollouts_per_state * length / per_round,
    }[fr3e.budget]
    share = planning.mixed_share_of.get(arm, planning.mixed_share)
    mixed = share if settings.accum.reject_degenerate else 1.0
    prompts = settings.accum.groups_per_update / (states * mixed)
    generated = prompts * (fr3e.first_n * length + continuations * per_round)
    trained = settings.accum.groups_per_update * continuations * per_round / states
    return Update(prompts, generated, trained)


def seconds_per_update(run: RunConfig, planning: PlanningConfig, speed: Speed) -> float:
    """Wall seconds of one update with its share of the probes."""
    update = expected_update(run.training, planning, run.arm)
    probe = run.training.probe
    probed = (len(probe.benchmarks) + 1) * probe.problems * probe.samples * planning.response_tokens / probe.every
    work = (update.generated + probed) / speed.generate + update.trained / speed.train
    return work / gpus(run) + planning.overhead_seconds


def evaluation_tokens(scenario: Scenario, planning: PlanningConfig, rows: dict[str, int]) -> float:
    """Generated tokens of one model's evaluation."""
    protocols = scenario.evaluation.protocols
    return sum(
        rows[name] * protocols[protocol].samples * planning.response_tokens
        for name, benchmark in scenario.benchmarks.items()
        for protocol in benchmark.protocols
    )


PUBLISHED_ROWS = {
    "aime24": 30,
    "gsm8k": 1319,
    "math500": 500,
    "minerva_math": 272,
    "gaokao2023en": 385,
    "olympiadbench": 675,
    "college_math": 2818,
    "amc23": 40,
}
SAMPLE_ROWS = {"gsm8k_50": 50}


def _rows(scenario: Scenario) -> dict[str, int]:
    return {
        name: benchmark.family.problems
        if benchmark.family
        else SAMPLE_ROWS.get(benchmark.sample_of or "", PUBLISHED_ROWS.get(name, 0))
        for name, benchmark in scenario.benchmarks.items()
    }


def table(scenario: Scenario, tokens_per_second: float | None = None) -> pd.DataFrame:
    """One row per run: updates, GPUs, prompts, tokens (millions), hours, GPU-hours, memory per GPU where verl runs it.

    Raises `UserError` where the scenario states no planning inputs.
    """
    planning = scenario.planning
    if planning is None:
        raise UserError(
            f"scenario {scenario.scenario}: no `planning` section; it states lengths, shares and speeds (config/paper.yaml has one)"
        )
    evaluated = evaluation_tokens(scenario, planning, _rows(scenario))
    records = []
    for name, (model, arm, seed) in run_ids(scenario).items():
        run = resolve_run(scenario, model, arm, seed)
        if model not in planning.speed:
            raise UserError(f"planning.speed: no entry for model {model!r}; there are: {', '.join(planning.speed)}")
        speed = planning.speed[model]
        if tokens_per_second is not None:
            speed = speed.model_copy(update={"generate": tokens_per_second})
        update, count = expected_update(run.training, planning, run.arm), run.training.optim.updates
        seconds = seconds_per_update(run, planning, speed)
        hours = count * seconds / 3600
        records.append(
            {
                "run": name,
                "GPUs": gpus(run) if run.training.engine == "verl" else 0,
                "updates": count,
                "prompts/update": round(update.prompts, 1),
                "s/update": round(seconds, 2),
                "generated M": round(count * update.generated / 1e6, 2),
                "trained M": round(count * update.trained / 1e6, 2),
                "hours": round(hours, 3),
                "GPU-hours": round(hours * gpus(run), 1) if run.training.engine == "verl" else 0.0,
                "evaluation M": round(evaluated / 1e6, 2),
            }
            | _memory(run)
        )
    return pd.DataFrame(records)


def _memory(run: RunConfig) -> dict[str, str]:
    """Peaks of one GPU in GiB while training and while generating, `!` where they do not fit; `-` for the local engine."""
    if run.training.engine == "local":
        return {"GiB train": "-", "GiB generate": "-"}
    from fr3e.engine.verl.memory import memory_per_gpu

    estimate = memory_per_gpu(run, shape_of(run))
    mark = "" if estimate["fits"] else "!"
    return {
        "GiB train": f"{estimate['peak_training']:.0f}{mark}",
        "GiB generate": f"{estimate['peak_generation']:.0f}{mark}",
    }


def shape_of(run: RunConfig) -> dict[str, int | bool]:
    """Numbers of the base model's config.json: from its folder where there is one, else from the table of known models."""
    from fr3e.engine.verl.memory import QWEN25

    base = run.model.base
    for folder in (run.base, getattr(base, "path", None)):
        if folder and (Path(folder) / "config.json").is_file():
            return read_json(Path(folder) / "config.json")
    known = getattr(base, "id", "")
    if known not in QWEN25:
        raise UserError(
            f"models.{run.model_name}: sizes of {known!r} are not known before it is fetched; set base.path"
        )
    return QWEN25[known]


def plan(
    config: Path, tokens_per_second: float | None = None, probe: Sequence[Path] = (), probe_updates: int = 5
) -> str:
    """The table as text, with where its inputs come from: the scenario, or the first updates of the runs in `probe`."""
    scenario = load_scenario(config)
    if probe:
        scenario = scenario.model_copy(update={"planning": probed(scenario, probe, probe_updates)})
    frame = table(scenario, tokens_per_second)
    assert scenario.planning is not None
    given = f"; generation at {tokens_per_second:g} tokens/s per GPU as given" if tokens_per_second else ""
    totals = f"total: {frame['generated M'].sum():.1f} M tokens generated in training, {frame['evaluation M'].sum():.1f} M in evaluation, {frame['hours'].sum():.2f} h one after another, {frame['GPU-hours'].sum():.0f} GPU-hours"
    return f"{frame.to_string(index=False)}\n{totals}\ninputs: {scenario.planning.source}{given}"
