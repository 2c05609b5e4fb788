"""Fig. 2 from this work: real base trajectories, each token on a ground as dark as its entropy, anchors framed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps, pyplot
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fr3e.report import style
from fr3e.report.figures_states import visible
from fr3e.report.runs import Run, of

WIDTH = 92  # characters of a line
MOST_TOKENS = 240  # of one trajectory; a longer one is cut, and says so
COLUMNS = ["model", "run", "update", "prompt", "gold", "reward", "position", "token", "entropy", "anchor"]


def chosen_trajectories(runs: Sequence[Run], number: int = 3) -> list[dict[str, Any]]:
    """The trajectories shown: of the first seed's run, one each from the first, middle and last update that kept any.

    The rule is fixed so that nothing is picked for its looks; among an update's trajectories it is the first with anchors.
    """
    for run in sorted(runs, key=lambda run: run.seed):
        rows = [row for row in run.trajectories() if row.get("anchors")]
        if rows:
            updates = sorted({row["update"] for row in rows})
            picked = [updates[round(i * (len(updates) - 1) / max(1, number - 1))] for i in range(number)]
            return [
                {**next(row for row in rows if row["update"] == update), "run": run.tag, "model": run.model}
                for update in dict.fromkeys(picked)
            ]
    return []


def tokens_table(runs: Sequence[Run], models: Sequence[str], method: str) -> pd.DataFrame:
    """One row per token that is drawn: `COLUMNS`, entropy in nats."""
    records = []
    for model in models:
        for row in chosen_trajectories(of(runs, model, method)):
            anchors = set(row["anchors"])
            for position, (token, entropy) in enumerate(zip(row["tokens"], row["entropies"], strict=True)):
                if position >= MOST_TOKENS:
                    break
                records.append(
                    (
                        *(model, row["run"], row["update"], row["prompt"], row["gold"], row["reward"]),
                        *(position, token, entropy, position in anchors),
                    )
                )
    return pd.DataFrame(records, columns=COLUMNS)


def lines(tokens: Sequence[str], width: int = WIDTH) -> list[tuple[int, int]]:
    """(line, column) of each token when set in fixed width; a token is never split, and line feeds do not break."""
    places, line, column = [], 0, 0
    for token in tokens:
        if column and column + len(token) > width:
            line, column = line + 1, 0
        places.append((line, column))
        column += len(token)
    return places


def draw_tokens(table: pd.DataFrame, models: Mapping[str, str]) -> Figure:
    """One block of text per trajectory, under a line that says what it is."""
    blocks = []
    for (model, _, update, _), part in table.groupby(["model", "run", "update", "prompt"], sort=False):
        shown = [visible(token).replace(r"\$", "$") for token in part.token]
        first = part.iloc[0]
        answer = "right" if first.reward > 0 else "wrong"
        head = f"{models[str(model)]}, update {update}: base trajectory ({answer}), {int(part.anchor.sum())} anchors"
        cut = f", first {MOST_TOKENS} tokens" if len(part) >= MOST_TOKENS else ""
        blocks.append((head + cut, part, shown, lines(shown)))
    if not blocks:
        figure, axes = pyplot.subplots(figsize=(2 * style.PANEL_WIDTH, 1.2))
        style.not_run(axes)
        return figure
    heights = [places[-1][0] + 1 + 1.7 for _, _, _, places in blocks]
    widest = max(c + len(s) for _, _, shown, places in blocks for s, (_, c) in zip(shown, places, strict=True))
    wide = max(widest, 64)
    cell = 0.068  # inches of one character
    size = (wide * cell + 0.9, sum(heights) * cell * 2.5 + 0.2)
    figure, (axes, bar) = pyplot.subplots(1, 2, figsize=size, width_ratios=[60, 1])
    axes.set(xlim=(0, wide), ylim=(sum(heights), 0))
    axes.axis("off")
    top = max(float(np.ceil(table.entropy.max() * 10) / 10), 0.1)
    shades = LinearSegmentedColormap.from_list("entropy", ["#FFFFFF", *colormaps["YlOrBr"](np.linspace(0.12, 0.72, 8))])
    norm = Normalize(0, top)
    offset = 0.0
    for (head, part, shown, places), height in zip(blocks, heights, strict=True):
        axes.text(0, offset + 0.75, head, fontsize=8, va="center", color="#333333")
        draw_block(axes, part, shown, places, top=offset + 1.3, shade=lambda h: shades(norm(h)))
        offset += height
    figure.colorbar(ScalarMappable(norm, shades), cax=bar, label="entropy (nat)")
    return figure


def draw_block(
    axes: Any, part: pd.DataFrame, shown: list[str], places: list[tuple[int, int]], *, top: float, shade: Any
) -> None:
    """The tokens of one trajectory; anchors have a dark frame and their number."""
    number = 0
    for (line, column), token, entropy, anchor in zip(places, shown, part.entropy, part.anchor, strict=True):
        y = top + line
        axes.add_patch(Rectangle((column, y + 0.08), len(token), 0.84, facecolor=shade(entropy), linewidth=0, zorder=1))
        axes.text(
            column + len(token) / 2, y + 0.52, token, ha="center", va="center", fontsize=7.6, family="DejaVu Sans Mono",
            parse_math=False,
        )  # fmt: skip
        if anchor:
            number += 1
            axes.add_patch(
                Rectangle(
                    (column, y + 0.04), len(token), 0.92, fill=False, edgecolor="#00305C", linewidth=1.3, zorder=3
                )
            )
            axes.text(column - 0.05, y + 0.1, str(number), fontsize=4.5, ha="right", va="center", color="#00305C")
