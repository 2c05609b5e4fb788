"""Accuracy of every arm against the tokens it generated."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from fr3e.config.plans import ReportPlan
from fr3e.report.runs import method_title
from fr3e.report.style import LOOKS, PANEL_WIDTH, SPARE, not_run, save, style_file

if TYPE_CHECKING:
    from fr3e.report.arms import Arm

COLUMNS = ["model", "subject", "method", "seeds", "tokens", "accuracy", "low", "high"]
ACROSS = 2
HEIGHT = 3.0


def draw(plan: ReportPlan, arms: Sequence["Arm"], out: Path) -> None:
    """Write `out`/arms_tokens.{pdf,png,csv}: for each model a panel per subject, one point per arm at its last update.

    Across, the tokens generated in training (mean over seeds); up, the accuracy of arms.csv's average with its interval.
    The compared methods stand in every panel, the arms of other subjects in grey behind.
    """
    from matplotlib import pyplot

    data = points(plan, arms)
    panels = [(model, subject) for model in plan.models for subject in _subjects(plan, data, model)]
    rows = -(-len(panels) // ACROSS)
    with pyplot.style.context(style_file()):
        figure, grid = pyplot.subplots(
            rows, ACROSS, figsize=(PANEL_WIDTH * ACROSS, HEIGHT * rows), squeeze=False, sharex=True, sharey=True
        )
        for axes, panel in zip(grid.flat, [*panels, *[None] * (rows * ACROSS - len(panels))], strict=True):
            if panel is None:
                axes.set_visible(False)
                continue
            model, subject = panel
            title = subject[:1].upper() + subject[1:]
            title = title if len(plan.models) == 1 else ": ".join(filter(None, [plan.models[model], title]))
            of_model = data[data["model"] == model]
            if of_model.empty:
                not_run(axes, title)
                continue
            _panel(axes, of_model, subject, plan.report.comparison)
            axes.set_title(title)
        for axes in grid[:, 0]:
            axes.set_ylabel("accuracy, per cent")
        save(figure, data, out, "arms_tokens")


def points(plan: ReportPlan, arms: Sequence["Arm"]) -> pd.DataFrame:
    """One row per arm that has run: tokens, accuracy in per cent with its interval."""
    rows = [
        {
            "model": arm.model,
            "subject": "" if arm.method in plan.report.comparison else plan.subjects.get(arm.method, "other"),
            "method": arm.method,
            "seeds": len([seed for seed in arm.seeds if seed is not None]),
            "tokens": arm.costs["tokens_total"].value,
            **dict(zip(("accuracy", "low", "high"), (100 * bound for bound in arm.average), strict=True)),
        }
        for arm in arms
        if arm.method != "base"
    ]
    return pd.DataFrame(rows, columns=COLUMNS).dropna(subset=["tokens", "accuracy"])


def _subjects(plan: ReportPlan, data: pd.DataFrame, model: str) -> list[str]:
    """The subjects of a model's arms in the plan's order; one empty subject where no arm but the compared has run."""
    there = set(data.loc[data["model"] == model, "subject"]) - {""}
    ordered = [plan.subjects.get(arm, "other") for arm in [*plan.methods, *plan.arms]]
    return [subject for subject in dict.fromkeys(ordered) if subject in there] or [""]


def _panel(axes: Any, data: pd.DataFrame, subject: str, comparison: Sequence[str]) -> None:
    """The compared methods and the subject's arms in colour, best first in the legend; all others in grey."""
    shown = data["subject"].isin([subject, ""])
    axes.scatter(data.loc[~shown, "tokens"], data.loc[~shown, "accuracy"], s=9, color="#C8C8C8", lw=0)
    # Where the looks are used up they come again, hollow.
    spare = cycle([*SPARE, *(look | {"hollow": True} for look in SPARE)])
    looks = {row["method"]: LOOKS.get(row["method"]) or next(spare) for row in data[shown].to_dict("records")}
    for row in data[shown].sort_values("accuracy", ascending=False).to_dict("records"):
        look = looks[row["method"]]
        spread = [[row["accuracy"] - row["low"]], [row["high"] - row["accuracy"]]]
        axes.errorbar(
            row["tokens"],
            row["accuracy"],
            yerr=spread,
            fmt=look["marker"],
            color=look["color"],
            mfc="white" if look.get("hollow") else look["color"],
            ms=5 if row["method"] in comparison else 4.5,
            elinewidth=0.8,
            label=f"{method_title(row['method'])}  {row['accuracy']:.1f}",
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(_round_ticks())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tokens, _: f"{tokens / 1e6:g} M"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("tokens generated in training")
    axes.tick_params(labelbottom=True)
    # Beside the dearest arm, whose interval may reach down to the axis.
    axes.legend(loc="lower right", bbox_to_anchor=(0.94, 0.0), fontsize=6.5, handletextpad=0.2, labelspacing=0.3)


def _round_ticks() -> Any:
    from matplotlib.ticker import LogLocator

    return LogLocator(subs=(1.0, 2.0, 5.0))
