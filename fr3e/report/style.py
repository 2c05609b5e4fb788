"""How figures look: one style file, a colour, dash and marker per method that survive grey print, and three outputs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fr3e.errors import UserError
from fr3e.files import replacing, write_text
from fr3e.report.runs import ROOT, method_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = Path("config/paper.mplstyle")
PANEL_WIDTH, PANEL_HEIGHT = 3.3, 1.9
PERCENT = FuncFormatter(lambda share, _: f"{100 * share:.3g}%")
# Dark and light differ in grey; dashes and markers differ without any tone at all.
LOOKS: dict[str, dict[str, Any]] = {
    "fr3e": {"color": "#00559B", "linestyle": "-", "marker": "o"},
    "grpo_pp": {"color": "#E58A00", "linestyle": (0, (5, 2)), "marker": "s"},
    "base": {"color": "#777777", "linestyle": ":", "marker": "D"},
}
SPARE = [
    {"color": "#009E73", "linestyle": "-.", "marker": "^"},
    {"color": "#CC79A7", "linestyle": (0, (1, 1)), "marker": "v"},
    {"color": "#56B4E9", "linestyle": (0, (3, 1, 1, 1)), "marker": "P"},
    {"color": "#444444", "linestyle": (0, (7, 3)), "marker": "X"},
    {"color": "#D55E00", "linestyle": (0, (4, 1, 1, 1)), "marker": "<"},
    {"color": "#7B5EA7", "linestyle": (0, (2, 2)), "marker": ">"},
]


def look(method: str, methods: list[str]) -> dict[str, Any]:
    """Colour, dash and marker of a method; the same in every figure of a report."""
    if method in LOOKS:
        return LOOKS[method]
    others = [name for name in methods if name not in LOOKS]
    return SPARE[others.index(method) % len(SPARE)]


def whole_numbers(ticks: int = 6) -> MaxNLocator:
    """Ticks at round whole numbers."""
    return MaxNLocator(ticks, integer=True, steps=[1, 2, 5, 10])


def label(method: str, seeds: int) -> str:
    """Legend entry that says how many seeds stand behind the line."""
    return f"{method_title(method)} ({'one seed' if seeds == 1 else f'{seeds} seeds'})"


def style_file() -> Path:
    """config/paper.mplstyle, of the working folder or of the checkout."""
    for folder in (Path(), ROOT):
        if (folder / STYLE).is_file():
            return folder / STYLE
    raise UserError(f"{STYLE}: no such file; run from the repository root")


def not_run(axes: Any, title: str = "", reason: str = "not run") -> None:
    """An empty panel that says why it is empty."""
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, size=7.5)
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_facecolor("#F3F3F3")
    axes.text(0.5, 0.5, reason, transform=axes.transAxes, ha="center", va="center", color="#666666", size=11)


def save(figure: "Figure", data: pd.DataFrame, folder: Path, name: str) -> None:
    """Write <name>.pdf (vector, fonts embedded), <name>.png (200 dpi) and <name>.csv with the plotted data.

    No date goes into the files: the same data give the same bytes.
    """
    from matplotlib import pyplot

    # Laid out once instead of at each of four draws; without the context savefig would bring the layout engine back.
    with pyplot.rc_context({"figure.constrained_layout.use": False}):
        if (engine := figure.get_layout_engine()) is not None:
            engine.execute(figure)
            figure.set_layout_engine(None)
        with replacing(folder / f"{name}.pdf") as path:
            figure.savefig(path, format="pdf", metadata={"CreationDate": None})
        with replacing(folder / f"{name}.png") as path:
            figure.savefig(path, format="png", dpi=200, metadata={"Software": None})
    pyplot.close(figure)
    write_text(folder / f"{name}.csv", data.to_csv(index=False, float_format="%.6g"))
