"""Drawing of curve figures and of the heat map; what is drawn comes from figures_data."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fr3e.report import style
from fr3e.report.curves import AXES, AXIS_LABEL
from fr3e.report.figures_data import COMMON, LOGGED, Panel
from fr3e.report.runs import method_title


def draw_curves(table: pd.DataFrame, models: Mapping[str, str], methods: list[str], panels: Sequence[Panel]) -> Figure:
    """One model: a row per panel, a column per x axis. Several: a row per panel and x axis, a column per model.

    An absent model's panels say "not run", a column that its runs do not have "not logged".
    """
    single = len(models) == 1
    rows = [(panel, axis) for panel in panels for axis in ((None,) if single else AXES)] or [(None, None)]
    columns = [(model, axis) for model in models for axis in (AXES if single else (None,))]
    size = (style.PANEL_WIDTH * len(columns), style.PANEL_HEIGHT * len(rows) + 0.35)
    figure, grid = pyplot.subplots(len(rows), len(columns), squeeze=False, figsize=size)
    drawn: dict[str, Any] = {}
    for r, (panel, row_axis) in enumerate(rows):
        for c, (model, column_axis) in enumerate(columns):
            axes, axis = grid[r][c], row_axis or column_axis
            if panel is None:
                style.not_run(axes, models[model])
                continue
            part = table[(table.model == model) & (table.protocol == panel.protocol) & (table.axis == axis)]
            title = panel.title if single else f"{models[model]}: {panel.title}"
            if part.empty:
                reason = "not logged" if (table.model == model).any() else "not run"
                style.not_run(axes, title if axis == AXES[0] else "", reason)
                continue
            for method in methods:
                line = part[part.method == method]
                if not line.empty:
                    drawn.setdefault(*draw_line(axes, line, method, methods))
            if axis == AXES[0]:
                axes.set_title(title, size=None if single else 7.5)
            if c == 0:
                axes.set_ylabel(panel.ylabel)
            finish(axes, panel, str(axis), part)
    for pair in list(grid) if single else zip(*(grid[start::2].reshape(-1) for start in (0, 1)), strict=False):
        share_y(pair)
    if drawn:
        figure.legend(list(drawn.values()), list(drawn), loc="outside upper center", ncols=len(drawn))
    return figure


def finish(axes: Any, panel: Panel, axis: str, part: pd.DataFrame) -> None:
    """Labels, ticks and range of one panel; a thin line at 0 where values change sign.

    The range follows the lines with as much again on either side: an interval over three seeds may be so wide that it
    would press the lines flat. Where a band leaves the panel, the CSV has its bounds.
    """
    axes.set_xlabel(AXIS_LABEL[axis])
    if panel.share:
        axes.yaxis.set_major_formatter(style.PERCENT)
    axes.xaxis.set_major_locator(style.whole_numbers())
    if axis == "tokens":
        axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: short(count)))
    drawn = part[["mean", "raw"]].to_numpy(float)
    low, high = float(np.nanmin(drawn)), float(np.nanmax(drawn))
    reach = (high - low) or abs(high) or 1.0
    bounds = part[["low", "high"]].to_numpy(float)
    widest = (low, high) if np.isnan(bounds).all() else (np.nanmin(bounds), np.nanmax(bounds))
    bottom, top = max(low - reach, min(low, widest[0])), min(high + reach, max(high, widest[1]))
    margin = 0.05 * ((top - bottom) or reach)
    axes.set_ylim(bottom - margin, top + margin)
    if low < 0 < high:
        axes.axhline(0, color="#999999", linewidth=0.7, zorder=0)


def draw_line(axes: Any, line: pd.DataFrame, method: str, methods: list[str]) -> tuple[str, Any]:
    """One mean line with markers, its raw values behind it and, with two seeds or more, its band. (label, handle)."""
    look = style.look(method, methods)
    x, mean = line.x.to_numpy(float), line["mean"].to_numpy(float)
    every = max(1, len(x) // 8)
    (handle,) = axes.plot(x, mean, markevery=every, label=method, **look)
    if line.window.iloc[0] > 1:
        axes.plot(x, line.raw, color=look["color"], linewidth=0.5, alpha=0.45)
    if line.low.notna().any():
        axes.fill_between(x, line.low, line.high, color=look["color"], alpha=0.16, linewidth=0)
    return style.label(method, int(line.seeds.iloc[0])), handle


def share_y(panels: Sequence[Any]) -> None:
    """The two x axes of one panel have one y range, so that they can be compared."""
    shown = [axes for axes in panels if axes.lines]
    if shown:
        low, high = min(axes.get_ylim()[0] for axes in shown), max(axes.get_ylim()[1] for axes in shown)
        for axes in shown:
            axes.set_ylim(low, high)


def draw_heat(table: pd.DataFrame, models: Mapping[str, str], methods: list[str]) -> Figure:
    """Fig. 9: a row per model and protocol, a column per method; colour is the share of groups."""
    rows = [(model, protocol) for model in models for protocol in (LOGGED, COMMON)]
    size = (style.PANEL_WIDTH * len(methods) + 0.7, (style.PANEL_HEIGHT + 0.4) * len(rows))
    figure, grid = pyplot.subplots(len(rows), len(methods), squeeze=False, figsize=size)
    top = float(table.share.quantile(0.995)) if len(table) else 1.0
    mesh = None
    for r, (model, protocol) in enumerate(rows):
        for c, method in enumerate(methods):
            axes = grid[r][c]
            part = table[(table.model == model) & (table.protocol == protocol) & (table.method == method)]
            what = "state groups, as logged" if protocol == LOGGED else "root groups of equal size, common protocol"
            title = method_title(method) if len(models) == 1 else f"{models[model]}, {method_title(method)}"
            if part.empty:
                style.not_run(axes, f"{title}\n{what}")
                continue
            mesh = draw_mesh(axes, part, top)
            least, most = int(part.seeds.min()), int(part.seeds.max())
            seeds = f"{least} to {most} seeds" if least < most else "one seed" if most == 1 else f"{most} seeds"
            axes.set_title(f"{title} ({seeds})\n{what}", pad=4, size=7.5)
            axes.set_xlabel("update")
            axes.set_ylabel(f"successes of {int(part.of.iloc[0])}")
    if mesh is not None:
        bar = {
            "format": style.PERCENT,
            "extend": "max",
            "pad": 0.015,
            "aspect": 35,
            "shrink": 1 if len(rows) < 3 else 0.4,
        }
        figure.colorbar(mesh, ax=grid, label="share of groups", **bar)
    return figure


def draw_mesh(axes: Any, part: pd.DataFrame, top: float) -> Any:
    """Successes x update as cells, with generated tokens along the upper edge."""
    cells = part.pivot(index="successes", columns="last_update", values="share")
    spans = part.groupby("last_update").first()
    starts, ends = spans.first_update.to_numpy(float), spans.index.to_numpy(float)
    # A span without groups in any seed leaves a gap, not a stretched neighbour.
    mesh = None
    for run in np.split(np.arange(len(ends)), np.flatnonzero(starts[1:] > ends[:-1] + 1) + 1):
        edges = np.append(starts[run] - 0.5, ends[run[-1]] + 0.5)
        values = cells.to_numpy(float)[:, run]
        mesh = axes.pcolormesh(edges, np.arange(len(cells) + 1) - 0.5, values, vmin=0, vmax=top)
    axes.grid(False)
    axes.xaxis.set_major_locator(style.whole_numbers())
    axes.yaxis.set_major_locator(style.whole_numbers())
    tokens = spans.tokens.to_numpy(float)
    if len(ends) > 1 and (np.diff(tokens) > 0).all():
        upper = axes.secondary_xaxis(
            "top", functions=(lambda u: np.interp(u, ends, tokens), lambda t: np.interp(t, tokens, ends))
        )
        ticks = style.whole_numbers(4).tick_values(tokens[0], tokens[-1])
        ticks = ticks[(ticks >= tokens[0]) & (ticks <= tokens[-1])]
        upper.set_xticks(ticks, [short(t) for t in ticks])
        upper.tick_params(labelsize=6, length=2, pad=1)
    return mesh


def short(count: float) -> str:
    """1234567 as "1.2M"; counts of tokens on a narrow axis."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(count) >= size:
            return f"{count / size:.3g}{letter}"
    return f"{count:.3g}"
