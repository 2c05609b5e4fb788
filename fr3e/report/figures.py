"""The paper's figures and our diagnostics, from the runs' own records: PDF, PNG and CSV of each."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fr3e.config.plans import ReportPlan, load_report_plan
from fr3e.progress import track
from fr3e.report.names import FIGURES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "write_figures"]


def write_figures(plan: Path, out: Path) -> None:
    """Write <out>/<name>.{pdf,png,csv} for every name in `FIGURES`; what has not run says so in its panel.

    Raises `UserError` for a missing or broken plan, metrics row or style file.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from fr3e.report import style

    resolved = load_report_plan(plan)
    with pyplot.style.context(style.style_file()):
        drawn = set()
        for name, figure, data in track(draw_all(resolved), "figures", total=len(FIGURES)):
            style.save(figure, data, out, name)
            drawn.add(name)
    assert drawn == set(FIGURES), f"FIGURES and draw_all differ: {drawn ^ set(FIGURES)}"


def draw_all(plan: ReportPlan) -> Iterator[tuple[str, "Figure", "pd.DataFrame"]]:
    """(name, figure, plotted data) of every figure, one at a time."""
    import pandas as pd

    from fr3e.report import diagnostics, figures_bars, figures_curves, figures_data, figures_states, figures_tokens
    from fr3e.report.runs import load_runs

    runs, models, methods = load_runs(plan), list(plan.models), plan.methods
    level = plan.report.confidence
    titles = {name: benchmark.title for name, benchmark in plan.benchmarks.items()}
    for name, panels in figures_data.curve_panels(runs, titles).items():
        table = figures_data.curve_table(runs, models, methods, panels, level)
        yield name, figures_curves.draw_curves(table, plan.models, methods, panels), table

    heat = figures_data.heat_table(runs, models, methods)
    yield "fig9_heatmap", figures_curves.draw_heat(heat, plan.models, methods), heat

    tokens = figures_tokens.tokens_table(runs, models, plan.report.comparison[0])
    yield "fig2_tokens", figures_tokens.draw_tokens(tokens, plan.models), tokens

    bars = figures_bars.bars_table(plan)
    yield "headline_bars", figures_bars.draw_bars(bars, plan), bars

    exploring = [
        method
        for method in methods
        if any(row.get("anchor/histogram") for run in runs if run.method == method for row in run.updates)
    ]
    values = diagnostics.values_table(runs, models, methods, level)
    yield "values_by_state", figures_states.draw_values(values, plan.models, methods), values
    alpha = diagnostics.alpha_table(runs, models, methods)
    yield "alpha_histogram", figures_states.draw_alpha(alpha, plan.models, exploring), alpha
    positions, commonest = diagnostics.anchor_tables(runs, models, exploring)
    anchors = pd.concat([positions.assign(kind="position"), commonest.assign(kind="token")], ignore_index=True)
    yield "anchor_positions", figures_states.draw_anchors(positions, commonest, plan.models, exploring), anchors
