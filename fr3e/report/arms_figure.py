"""Accuracy of every arm against the tokens it generated."""

from pathlib import Path
from typing import Any

import pandas as pd

from fr3e.config.plans import ReportPlan
from fr3e.report.curves import Band, band, column, curve
from fr3e.report.runs import Run
from fr3e.report.style import LOOKS, PANEL_HEIGHT, PANEL_WIDTH, SPARE, label, not_run, save, style_file


def draw(plan: ReportPlan, runs: list[Run], methods: list[str], out: Path) -> None:
    """Write `out`/arms_tokens.{pdf,png,csv}: one row of panels per model, one panel per probed benchmark.

    Each line is the mean over seeds of `probe/<b>/accuracy` against `tokens_total`; bands for the compared
    methods only: with more of them nothing can be told apart (the CSV has all).
    """
    from matplotlib import pyplot

    names = probed(plan, runs)
    data: list[pd.DataFrame] = []
    with pyplot.style.context(style_file()):
        figure, grid = pyplot.subplots(
            len(plan.models),
            max(1, len(names)),
            figsize=(PANEL_WIDTH * max(1, len(names)), (PANEL_HEIGHT + 0.5) * len(plan.models) + 0.6),
            squeeze=False,
            sharey="row",
        )
        for axes_row, (model, title) in zip(grid, plan.models.items(), strict=True):
            for axes, name in zip(axes_row, names or [""], strict=True):
                if name:
                    data += _panel(axes, plan, [run for run in runs if run.model == model], methods, name)
                if not axes.lines:
                    not_run(axes)
                axes.set_title(f"{title}: {plan.benchmarks[name].title}" if name else title)
            axes_row[0].set_ylabel("accuracy, per cent")
        handles = {
            text: line for axes in grid.flat for line, text in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        if handles:
            figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
        columns = ["model", "benchmark", "method", "seeds", "tokens", "mean", "low", "high"]
        save(figure, pd.concat(data) if data else pd.DataFrame(columns=columns), out, "arms_tokens")


def probed(plan: ReportPlan, runs: list[Run]) -> list[str]:
    """Benchmarks that the runs probe, in the plan's order."""
    there = {key.split("/")[1] for run in runs for row in run.rows for key in row if key.startswith("probe/")}
    return [name for name in plan.benchmarks if name in there]


def _panel(axes: Any, plan: ReportPlan, runs: list[Run], methods: list[str], name: str) -> list[pd.DataFrame]:
    """Lines of one model's runs on one benchmark, and the numbers behind them."""
    frames = []
    for method in methods:
        chosen = [run for run in runs if run.method == method]
        curves = [curve(run, column(f"probe/{name}/accuracy"), "tokens") for run in chosen]
        line = band(curves, "tokens", plan.report.confidence)
        if line is None or not len(line.x):
            continue
        style = _look(method, methods)
        axes.plot(line.x, 100 * line.mean, label=label(method, line.seeds), **style)
        if method in plan.report.comparison and line.seeds > 1:
            axes.fill_between(line.x, 100 * line.low, 100 * line.high, color=style["color"], alpha=0.15, lw=0)
        frames.append(_frame(line, chosen[0].model, name, method))
    if frames:
        axes.set_xlabel("generated tokens")
        axes.set_xlim(left=0)
    return frames


def _look(method: str, methods: list[str]) -> dict[str, Any]:
    """As in other figures, but a table of arms may be longer than the list of looks: then dashes shift against colours."""
    if method in LOOKS:
        return LOOKS[method]
    turn, place = divmod([name for name in methods if name not in LOOKS].index(method), len(SPARE))
    return SPARE[place] | {name: SPARE[(place + turn) % len(SPARE)][name] for name in ("linestyle", "marker")}


def _frame(line: Band, model: str, name: str, method: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "model": model,
            "benchmark": name,
            "method": method,
            "seeds": line.seeds,
            "tokens": line.x,
            "mean": line.mean,
            "low": line.low,
            "high": line.high,
        }
    )
