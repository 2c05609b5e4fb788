"""The ablation table: every arm's accuracy, what it cost, and its paired difference to the two controls."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fr3e.config.plans import ReportPlan, load_report_plan
from fr3e.evaluation.statistics import Difference, Estimate, holm, mean_interval, paired_difference
from fr3e.files import write_text
from fr3e.report import tables
from fr3e.report.arms_figure import draw
from fr3e.report.results import Results, gather, over_benchmarks
from fr3e.report.runs import Run, load_runs, method_title, of
from fr3e.report.table1 import signed

CONTROLS = ("grpo_pp", "random_anchors")
COLUMNS = ["model", "method", "quantity", "benchmark", "value", "low", "high", "p", "p_holm", "seeds", "verdicts"]
NOTHING = Estimate(math.nan, math.nan, math.nan)


@dataclass
class Arm:
    """One row: `average` over the in-distribution benchmarks, a score per benchmark, costs, differences to the controls.

    `paired_seeds` is the smaller number of seeds behind each difference.
    """

    model: str
    method: str
    seeds: tuple[int | None, ...]
    average: Estimate
    scores: dict[str, Estimate]
    costs: dict[str, Estimate]
    differences: dict[str, Difference]
    paired_seeds: dict[str, int]
    files: dict[str, tuple[str, ...]]


def write_arms(plan: Path, out: Path) -> None:
    """Write `out`/arms.{csv,md,html} and `out`/arms_tokens.{pdf,png,csv} from a resolved report.yaml with arms.

    Accuracy comes from verdict files, cost from trained.json. Arms that have not run say so. Raises `UserError` for a broken plan, verdicts or metrics file.
    """
    resolved = load_report_plan(plan)
    methods = [*resolved.methods, *resolved.arms]
    runs = load_runs(resolved, methods)
    arms = compute(resolved, gather(resolved), runs)
    table = layout(resolved, arms)
    write_text(out / "arms.csv", to_frame(resolved, arms).to_csv(index=False, lineterminator="\n"))
    write_text(out / "arms.md", tables.markdown(table))
    write_text(out / "arms.html", tables.page(table))
    draw(resolved, arms, out)


def averaged(plan: ReportPlan) -> list[str]:
    """The benchmarks of the average: those drawn like the training problems, or all where none is marked so."""
    return [name for name, benchmark in plan.benchmarks.items() if benchmark.in_distribution] or list(plan.benchmarks)


def compute(plan: ReportPlan, results: Results, runs: list[Run]) -> list[Arm]:
    """One `Arm` for each model and method that the plan evaluates, in table order; Holm over a control's comparisons."""
    planned = {(entry.model, entry.method) for entry in plan.evaluated}
    arms = [
        _arm(plan, results, runs, model, method)
        for model in plan.models
        for method in ["base", *plan.methods, *plan.arms]
        if (model, method) in planned
    ]
    return arms


def _arm(plan: ReportPlan, results: Results, runs: list[Run], model: str, method: str) -> Arm:
    confidence, draws = plan.report.confidence, plan.report.bootstrap_draws
    names = averaged(plan)
    blocks = over_benchmarks(results, model, method, names)
    found = {name: results.get((model, method, name)) for name in plan.benchmarks}
    differences, paired_seeds = {}, {}
    for control in CONTROLS:
        other = over_benchmarks(results, model, control, names)
        if method not in (control, "base") and blocks is not None and other is not None:
            differences[control] = paired_difference(blocks, other, confidence, draws)
            paired_seeds[control] = min(len(blocks[0]), len(other[0]))
    ran = [result for result in found.values() if result is not None]
    return Arm(
        model=model,
        method=method,
        seeds=max((result.seeds for result in ran), key=len, default=()),
        average=NOTHING if blocks is None else mean_interval(blocks, confidence, draws),
        scores={n: NOTHING if result is None else result.estimate(confidence, draws) for n, result in found.items()},
        costs=_costs([run for run in of(runs, model, method) if run.trained is not None]),
        differences=differences,
        paired_seeds=paired_seeds,
        files={name: result.files for name, result in found.items() if result is not None},
    )


def _costs(runs: list[Run]) -> dict[str, Estimate]:
    """Prompts per update (metrics.jsonl), tokens and seconds of training (trained.json) of whole runs."""
    prompts = [float(np.mean([row.get("prompts/sampled", 0) for row in run.updates])) for run in runs]
    trained = {name: [float((run.trained or {})[name]) for run in runs] for name in ("tokens_total", "seconds")}
    return {name: _range(values) for name, values in ({"prompts": prompts} | trained).items()}


def _range(values: list[float]) -> Estimate:
    """Mean over seeds, with the smallest and the largest."""
    return Estimate(float(np.mean(values)), min(values), max(values)) if values else NOTHING


def to_frame(plan: ReportPlan, arms: list[Arm]) -> pd.DataFrame:
    """arms.csv: tidy, accuracies and differences in per cent, tokens and seconds as they are (mean, least, most)."""
    frame = pd.DataFrame([row for arm in arms for row in _rows(plan, arm)], columns=COLUMNS)
    for control in CONTROLS:
        for model in frame["model"].unique():
            family = (frame["quantity"] == f"minus_{control}") & (frame["model"] == model)
            frame.loc[family, "p_holm"] = holm(frame.loc[family, "p"].astype(float).tolist())
    return frame


def _rows(plan: ReportPlan, arm: Arm) -> Iterator[dict[str, Any]]:
    common = {
        "model": arm.model,
        "method": arm.method,
        "seeds": ";".join(str(seed) for seed in arm.seeds if seed is not None),
    }
    shown = {"average": averaged(plan)} | {name: [name] for name in plan.benchmarks}

    def row(quantity: str, benchmark: str, estimate: Estimate | Difference, scale: float) -> dict[str, Any]:
        value, low, high = (round(scale * bound, 4) for bound in estimate[:3])
        return common | {
            "quantity": quantity,
            "benchmark": benchmark,
            "value": value,
            "low": low,
            "high": high,
            "p": estimate.p if isinstance(estimate, Difference) else math.nan,
            "verdicts": ";".join(path for name in shown.get(benchmark, ()) for path in arm.files.get(name, ())),
        }

    yield row("accuracy", "average", arm.average, 100)
    for name, estimate in arm.scores.items():
        yield row("accuracy", name, estimate, 100)
    for control, difference in arm.differences.items():
        yield row(f"minus_{control}", "average", difference, 100)
    for name, estimate in arm.costs.items():
        yield row(name, "", estimate, 1)


def layout(plan: ReportPlan, arms: list[Arm]) -> tables.Table:
    """The table for people."""
    names = averaged(plan)
    kind = "in-distribution" if any(benchmark.in_distribution for benchmark in plan.benchmarks.values()) else "all"
    columns = [
        tables.Column("Average", [f"{len(names)} {kind}"]),
        *(tables.Column(f"− {method_title(control)}", ["of the average, points"]) for control in CONTROLS),
        *(tables.Column(benchmark.title) for benchmark in plan.benchmarks.values()),
        tables.Column("Prompts", ["per update"]),
        tables.Column("Tokens", ["generated, M"]),
        tables.Column("Seconds", ["wall time"]),
    ]
    groups = [(title, [_table_row(arm) for arm in arms if arm.model == model]) for model, title in plan.models.items()]
    return tables.Table(
        title="Ablations.",
        caption=(
            f"Per cent right, scenario {plan.scenario}, mean over seeds with the {plan.report.confidence:.0%} interval; "
            "differences are paired by problem and bold only where their interval excludes 0. Prompts, tokens and seconds are "
            "training's, means over seeds; probes are not counted in tokens."
        ),
        corner="Arm",
        columns=columns,
        groups=groups,
        notes=_notes(plan, arms),
    )


def _table_row(arm: Arm) -> tables.Row:
    seeds = len([seed for seed in arm.seeds if seed is not None])
    label = method_title(arm.method) + (f" ({seeds} seed{'s' if seeds != 1 else ''})" if seeds else "")
    cells = [_score(arm.average), *(_difference(arm, control) for control in CONTROLS)]
    cells += [_score(estimate) for estimate in arm.scores.values()]
    cells += [
        _cost_cell(arm, "prompts", 1, ".1f"),
        _cost_cell(arm, "tokens_total", 1e6, ".2f"),
        _cost_cell(arm, "seconds", 1, ".0f"),
    ]
    return tables.Row(label, cells)


def _score(estimate: Estimate) -> tables.Cell:
    if math.isnan(estimate.value):
        return tables.Cell("not run", muted=True)
    value, low, high = (100 * bound for bound in estimate)
    spread = "" if math.isnan(low) else f"[{low:.1f}, {high:.1f}]"
    return tables.Cell(f"{value:.1f}", spread)


def _difference(arm: Arm, control: str) -> tables.Cell:
    if arm.method in (control, "base"):
        return tables.Cell("–", muted=True)
    difference = arm.differences.get(control)
    if difference is None:
        return tables.Cell("not run", muted=True)
    spread = "" if math.isnan(difference.low) else f"[{signed(100 * difference.low)}, {signed(100 * difference.high)}]"
    if spread and arm.paired_seeds[control] < 2:
        spread += tables.ONE_SEED
    return tables.Cell(signed(100 * difference.value), spread, bold=difference.excludes_zero)


def _cost_cell(arm: Arm, name: str, unit: float, form: str) -> tables.Cell:
    estimate = arm.costs[name]
    if arm.method == "base":
        return tables.Cell("–", muted=True)
    if math.isnan(estimate.value):
        return tables.Cell("not run", muted=True)
    return tables.Cell(format(estimate.value / unit, form), title=f"{estimate.low:g} to {estimate.high:g}")


def _notes(plan: ReportPlan, arms: list[Arm]) -> list[str]:
    count = sum(len(arm.differences) for arm in arms)
    notes = [
        f"{count} comparisons: at {plan.report.confidence:.0%} about {count * (1 - plan.report.confidence):.1f} would "
        "exclude 0 by chance; arms.csv has p-values adjusted by Holm within a control and model.",
        f"Intervals: bootstrap over problems and seeds, {plan.report.bootstrap_draws} draws; Wilson for a single greedy run.",
        tables.ONE_SEED_NOTE,
        tables.NO_INTERVAL_NOTE,
    ]
    return notes + [f"{method_title(name)}: {question}" for name, question in plan.questions.items()]
