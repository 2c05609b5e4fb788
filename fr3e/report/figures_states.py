"""Drawing of the exploration's diagnostics; what is drawn comes from diagnostics."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot
from matplotlib.figure import Figure

from fr3e.report import style
from fr3e.report.runs import method_title


def per_model(models: Mapping[str, str], columns: int = 1, height: float = 2.4) -> tuple[Figure, Any]:
    """A figure with a row per model."""
    return pyplot.subplots(
        len(models), columns, squeeze=False, figsize=(style.PANEL_WIDTH * 1.25 * columns, height * len(models) + 0.2)
    )


def draw_values(table: pd.DataFrame, models: Mapping[str, str], methods: list[str]) -> Figure:
    """V(S_j) against j: first and last fifth of training side by side, with intervals over seeds."""
    parts = list(dict.fromkeys(table.part)) or ["first fifth", "last fifth"]
    figure, grid = per_model(models, len(parts))
    for r, (model, title) in enumerate(models.items()):
        for c, part in enumerate(parts):
            axes = grid[r][c]
            found = table[(table.model == model) & (table.part == part)]
            name = part if len(models) == 1 else f"{title}, {part}"
            if found.empty:
                style.not_run(axes, name)
                continue
            for shift, method in enumerate(methods):
                line = found[found.method == method]
                if line.empty:
                    continue
                look = style.look(method, methods)
                spread = np.nan_to_num(np.stack([line["mean"] - line.low, line.high - line["mean"]]))
                axes.errorbar(
                    line.state + 0.06 * shift,
                    line["mean"],
                    yerr=spread if spread.any() else None,
                    capsize=2.5,
                    elinewidth=0.9,
                    label=style.label(method, int(line.seeds.max())),
                    **look,
                )
            axes.set_title(f"{name} of the updates" if len(models) == 1 else name)
            axes.set_xlabel("state j (0 = the prompt alone)")
            axes.set_ylabel("mean V(S$_j$)" if c == 0 else "")
            axes.set_ylim(0, 1)
            axes.xaxis.set_major_locator(style.whole_numbers())
            if c == 0:
                axes.legend(loc="upper left")
    return figure


def draw_alpha(table: pd.DataFrame, models: Mapping[str, str], methods: list[str]) -> Figure:
    """Histogram of alpha with the one that sampling noise alone would give."""
    figure, grid = per_model(models, height=2.5)
    for row, (model, title) in zip(grid, models.items(), strict=True):
        axes = row[0]
        found = table[table.model == model]
        if found.empty:
            style.not_run(axes, title)
            continue
        for method in methods:
            part = found[found.method == method]
            if part.empty:
                continue
            edges = np.append(part.low, part.high.iloc[-1])
            look = style.look(method, methods)
            seeds = int(part.seeds.iloc[0])
            axes.stairs(part.share, edges, fill=True, alpha=0.45, color=look["color"], label=style.label(method, seeds))
            axes.stairs(
                part.noise_only, edges, color="#111111", linewidth=1.2, linestyle=(0, (4, 2)), label="noise alone"
            )
            share = part.noise_share.iloc[0]
            axes.text(
                0.985,
                0.6,
                f"at least {share:.0%} of the\nvariance of V$_j$ − V$_{{j-1}}$\nis sampling noise",
                transform=axes.transAxes,
                ha="right",
                va="center",
                fontsize=7.5,
            )
        axes.axvline(1, color="#888888", linewidth=0.7, zorder=0)
        axes.set_xscale("log")
        ticks = [0.4, 0.6, 0.8, 1, 1.25, 1.6, 2, 2.5]
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axes.minorticks_off()
        axes.set_title(title)
        axes.set_xlabel("alpha (log scale; below 1 brakes, above 1 amplifies)")
        axes.set_ylabel("share of trained groups")
        axes.yaxis.set_major_formatter(style.PERCENT)
        axes.legend(loc="upper right")
    return figure


def draw_anchors(
    positions: pd.DataFrame, tokens: pd.DataFrame, models: Mapping[str, str], methods: list[str]
) -> Figure:
    """Where anchors fall in the base trajectory, and which tokens they are."""
    figure, grid = per_model(models, 2, height=2.5)
    for row, (model, title) in zip(grid, models.items(), strict=True):
        where, what = positions[positions.model == model], tokens[tokens.model == model]
        name = "" if len(models) == 1 else f"{title}: "
        if where.empty:
            style.not_run(row[0], f"{name}anchor positions")
        for method in methods:
            part = where[where.method == method]
            if not part.empty:
                look = style.look(method, methods)
                label = style.label(method, int(part.seeds.iloc[0]))
                row[0].stairs(
                    part.share, np.append(part.low, 1.0), fill=True, alpha=0.6, color=look["color"], label=label
                )
                row[0].set_title(f"{name}anchor positions, {label}")
                row[0].axhline(1 / len(part), color="#333333", linewidth=0.9, linestyle=(0, (4, 2)))
                row[0].text(0.99, 1 / len(part), "even", ha="right", va="bottom", fontsize=7, color="#333333")
                row[0].set_xlabel("anchor position / base length")
                row[0].set_ylabel("share of anchors")
                row[0].yaxis.set_major_formatter(style.PERCENT)
        draw_commonest(row[1], what, methods, f"{name}commonest anchor tokens")
    return figure


def draw_commonest(axes: Any, tokens: pd.DataFrame, methods: list[str], title: str) -> None:
    """Horizontal bars of the commonest anchor tokens."""
    methods = [m for m in methods if (tokens.method == m).any()]
    if not methods:
        style.not_run(axes, title)
        return
    part = tokens[tokens.method == methods[0]].iloc[::-1]
    axes.barh(
        [visible(token) for token in part.token], part.share, color=style.look(methods[0], methods)["color"], alpha=0.75
    )
    axes.set_title(f"{title}, {method_title(methods[0])}")
    axes.set_xlabel("share of the anchors counted")
    axes.xaxis.set_major_formatter(style.PERCENT)
    axes.tick_params(axis="y", labelsize=7, labelfontfamily="DejaVu Sans Mono")
    axes.grid(axis="y", visible=False)


def visible(token: str) -> str:
    """A token with its white space made visible, safe for matplotlib's math text."""
    shown = token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")
    return shown.replace("$", r"\$") or "(empty)"
