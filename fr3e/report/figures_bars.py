"""Bars of the headline accuracies: AIME24 avg@32 where the scenario has it, else every benchmark."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot
from matplotlib.figure import Figure

from fr3e.config.plans import ReportPlan
from fr3e.report import published, style
from fr3e.report.results import gather
from fr3e.report.runs import method_title

COLUMNS = ["model", "method", "benchmark", "protocol", "value", "low", "high", "seeds", "problems", "published"]
HATCHES = {"base": "", "fr3e": "", "grpo_pp": "////"}
PAPER_MARKS = {"fr3e": "D", "grpo_pp": "s"}


def bar_benchmarks(plan: ReportPlan) -> list[str]:
    """AIME24 alone where the scenario has it, as in the paper; else all benchmarks."""
    return ["aime24"] if "aime24" in plan.benchmarks else list(plan.benchmarks)


def bars_table(plan: ReportPlan) -> pd.DataFrame:
    """Accuracy (0-1) per model, method and benchmark under its headline protocol, with the paper's where it is shown.

    Columns: model, method, benchmark, protocol, value, low, high, seeds, problems, published; what has neither run nor
    been published has no row.
    """
    results, rows = gather(plan), []
    for model, title in plan.models.items():
        paper = published.of_model(title) if plan.report.published else {}
        for benchmark in bar_benchmarks(plan):
            for method in ["base", *plan.methods]:
                result = results.get((model, method, benchmark))
                printed = paper.get(method, {}).get(benchmark)
                if result is None and printed is None:
                    continue
                row = {
                    "model": model,
                    "method": method,
                    "benchmark": benchmark,
                    "protocol": plan.benchmarks[benchmark].protocols[0],
                    "published": np.nan if printed is None else printed / 100,
                }
                if result is not None:
                    estimate = result.estimate(plan.report.confidence, plan.report.bootstrap_draws)
                    row |= estimate._asdict() | {"seeds": len(result.seeds), "problems": len(result.ids)}
                rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def draw_bars(table: pd.DataFrame, plan: ReportPlan) -> Figure:
    """Groups of bars: models for AIME24, else benchmarks (a row per model); whiskers are the interval,
    an open mark the paper's value, its shape and edge colour the method's.
    """
    benchmarks, methods = bar_benchmarks(plan), ["base", *plan.methods]
    if len(benchmarks) == 1:
        rows = [("", [(model, benchmarks[0], title) for model, title in plan.models.items()])]
    else:
        rows = [
            (title, [(model, name, plan.benchmarks[name].title) for name in benchmarks])
            for model, title in plan.models.items()
        ]
    width = max(len(groups) for _, groups in rows)
    figure, grid = pyplot.subplots(
        len(rows), 1, squeeze=False, figsize=(max(5.2, 1.15 * width + 0.8), 2.5 * len(rows) + 0.3)
    )
    for axes, (title, groups) in zip(grid[:, 0], rows, strict=True):
        name = plan.benchmarks[benchmarks[0]].title if len(benchmarks) == 1 else title
        draw_groups(axes, table, groups, methods)
        axes.set_title(f"{name} ({protocols(plan, benchmarks)})")
    handles = {t: h for axes in grid[:, 0] for h, t in zip(*axes.get_legend_handles_labels(), strict=True)}
    if handles:
        figure.legend(handles.values(), handles, loc="outside upper center", ncols=min(3, len(handles)), handlelength=2)
    return figure


def protocols(plan: ReportPlan, benchmarks: list[str]) -> str:
    """The protocols behind the bars in words."""
    words = []
    for name in dict.fromkeys(plan.benchmarks[b].protocols[0] for b in benchmarks):
        protocol = plan.evaluation.protocols[name]
        if protocol.temperature == 0:
            words.append("greedy")
        else:
            words.append(f"avg@{protocol.samples}, T = {protocol.temperature:g}, top-p = {protocol.top_p:g}")
    return "; ".join(words)


def draw_groups(axes: Any, table: pd.DataFrame, groups: list[tuple[str, str, str]], methods: list[str]) -> None:
    """One group of bars per (model, benchmark); what has not run is written where its bar would stand."""
    wide = 0.8 / len(methods)
    seen: set[str] = set()
    for g, (model, benchmark, _) in enumerate(groups):
        for m, method in enumerate(methods):
            found = table[(table.model == model) & (table.benchmark == benchmark) & (table.method == method)]
            x = g + (m - (len(methods) - 1) / 2) * wide
            row = found.iloc[0] if len(found) else None
            draw_bar(axes, row, method, x=x, width=wide * 0.92, methods=methods, seen=seen)
    axes.set_xticks(range(len(groups)), [title for _, _, title in groups])
    axes.set_xlim(-0.55, len(groups) - 0.45)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("accuracy")
    axes.yaxis.set_major_formatter(style.PERCENT)
    axes.grid(axis="x", visible=False)


def draw_bar(
    axes: Any, row: pd.Series | None, method: str, *, x: float, width: float, methods: list[str], seen: set[str]
) -> None:
    """One method's bar; `seen` holds what the legend already names."""
    if row is None or not np.isfinite(row.value):
        axes.text(x, 0.01, "not run", rotation=90, ha="center", va="bottom", fontsize=6, color="#777777")
    else:
        color = "#B5B5B5" if method == "base" else style.look(method, methods)["color"]
        label = "Base model" if method == "base" else style.label(method, int(row.seeds))
        hatch = HATCHES.get(method, "..")
        axes.bar(x, row.value, width, color=color, hatch=hatch, edgecolor="white", linewidth=0,
                 label=None if method in seen else label)  # fmt: skip
        seen.add(method)
        if np.isfinite(row.low):
            spread = [[max(0.0, row.value - row.low)], [max(0.0, row.high - row.value)]]
            axes.errorbar(x, row.value, yerr=spread, color="#222222", capsize=2, linewidth=0.9)
        box = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.6}
        axes.text(x, 0.012, f"{100 * row.value:.1f}", ha="center", va="bottom", fontsize=5.6, bbox=box)
    if row is not None and np.isfinite(row.published):
        label = f"{method_title(method)}, paper"
        edge = style.look(method, methods)["color"]
        axes.plot(x, row.published, marker=PAPER_MARKS.get(method, "o"), mfc="white", mec=edge, mew=1.3, ls="none", ms=4.6,
                  zorder=4, label=None if label in seen else label)  # fmt: skip
        seen.add(label)
