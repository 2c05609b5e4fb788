"""Table 1: models x methods x benchmarks with intervals, the paired difference, and the paper's numbers beside ours."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fr3e.config.plans import ReportPlan, load_report_plan
from fr3e.evaluation.statistics import Difference, Estimate, holm, mean_interval, paired_difference
from fr3e.files import write_text
from fr3e.report import published, tables
from fr3e.report.results import Results, gather, over_benchmarks
from fr3e.report.runs import method_title

AVERAGE = "average"
COLUMNS = [
    *("model", "title", "method", "benchmark", "quantity", "status", "value", "low", "high", "p", "p_holm", "bold"),
    *("n", "k", "protocol", "temperature", "top_p", "seeds", "verdicts"),
]
NOT_RUN, NOT_PUBLISHED = "not run", "not published"
LOPSIDED = (
    0.15  # bounds are printed, not ±, where one arm of an interval is longer than the other by this share of both
)


@dataclass
class Entry:
    """One cell with its facts, in per cent; `quantity` is score, difference, published, published_difference or ours_minus_published.

    `expected_seeds` is how many seeds the plan asks for; fewer in `seeds` makes the cell partial.
    """

    model: str
    method: str
    benchmark: str
    quantity: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_holm: float = math.nan
    bold: bool = False
    n: int | None = None
    seeds: tuple[int | None, ...] = ()
    expected_seeds: int = 0
    files: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """ok, partial (some seeds are missing), not run, or for the paper's numbers not published."""
        if math.isnan(self.value):
            # A difference that has our files but no value lacks the paper's number.
            return NOT_PUBLISHED if self.quantity.startswith("published") or self.files else NOT_RUN
        return "partial" if len(self.seeds) < self.expected_seeds else "ok"


def write_table1(plan: Path, out: Path) -> None:
    """Write `out`/table1.{csv,md,tex,html} from a resolved report.yaml and the verdict files it names.

    Every number is recomputed from verdicts. Cells of what has not run say "not run"; an average exists only where all
    benchmarks ran. Raises `UserError` for a broken plan or verdicts file.
    """
    resolved = load_report_plan(plan)
    results = gather(resolved)
    entries = compute(resolved, results)
    table = layout(resolved, results, entries)
    write_text(out / "table1.csv", to_frame(resolved, entries).to_csv(index=False, lineterminator="\n"))
    write_text(out / "table1.md", tables.markdown(table))
    write_text(out / "table1.tex", tables.latex(table))
    write_text(out / "table1.html", tables.page(table))


def compute(plan: ReportPlan, results: Results) -> list[Entry]:
    """All cells of the table, model by model: scores, the paired difference and, where asked for, the published values."""
    entries = []
    for model, title in plan.models.items():
        for method in ["base", *plan.methods]:
            entries += _scores(plan, results, model, method)
        differences = _differences(plan, results, model)
        entries += differences
        if plan.report.published:
            entries += _published(plan, model, title, entries)
    return entries


def _scores(plan: ReportPlan, results: Results, model: str, method: str) -> list[Entry]:
    confidence, draws = plan.report.confidence, plan.report.bootstrap_draws
    expected = sum(1 for e in plan.evaluated if e.model == model and e.method == method)
    row = []
    for benchmark in plan.benchmarks:
        entry = Entry(model, method, benchmark, "score", expected_seeds=expected)
        if result := results.get((model, method, benchmark)):
            _fill(entry, result.estimate(confidence, draws))
            entry.n, entry.seeds, entry.files = len(result.ids), result.seeds, result.files
        row.append(entry)
    average = Entry(model, method, AVERAGE, "score", expected_seeds=expected)
    if (blocks := over_benchmarks(results, model, method, list(plan.benchmarks))) is not None:
        _fill(average, mean_interval(blocks, confidence, draws))
        _inherit(average, row)
    return [*row, average]


def _differences(plan: ReportPlan, results: Results, model: str) -> list[Entry]:
    first, second = plan.report.comparison
    confidence, draws = plan.report.confidence, plan.report.bootstrap_draws
    label = f"{first}-{second}"
    row = []
    for benchmark in plan.benchmarks:
        entry = Entry(model, label, benchmark, "difference")
        one, two = results.get((model, first, benchmark)), results.get((model, second, benchmark))
        if one and two:
            _fill(entry, paired_difference([one.values_NP], [two.values_NP], confidence, draws))
            entry.n, entry.files = len(one.ids), one.files + two.files
            entry.seeds = one.seeds if len(one.seeds) <= len(two.seeds) else two.seeds
        row.append(entry)
    for entry, adjusted in zip(row, holm([entry.p for entry in row]), strict=True):
        entry.p_holm = adjusted
    average = Entry(model, label, AVERAGE, "difference")
    blocks = [over_benchmarks(results, model, method, list(plan.benchmarks)) for method in (first, second)]
    if blocks[0] is not None and blocks[1] is not None:
        _fill(average, paired_difference(blocks[0], blocks[1], confidence, draws))
        _inherit(average, row)
    return [*row, average]


def _published(plan: ReportPlan, model: str, title: str, entries: list[Entry]) -> list[Entry]:
    cells = published.of_model(title)
    cells = {method: row for method, row in cells.items() if any(name in row for name in plan.benchmarks)}
    if set(plan.benchmarks) != set(published.load()["problems"]):
        # The printed average is over the paper's eight; over other columns it would be compared with another number.
        cells = {method: {k: v for k, v in row.items() if k != AVERAGE} for method, row in cells.items()}
    columns = [*plan.benchmarks, AVERAGE]
    methods = [name for name in plan.methods if name in cells]
    added = [
        Entry(model, method, column, "published", value=cells[method].get(column, math.nan))
        for method in methods
        for column in columns
    ]
    first, second = plan.report.comparison
    if first in cells and second in cells:
        for column in columns:
            value = cells[first].get(column, math.nan) - cells[second].get(column, math.nan)
            added.append(Entry(model, f"{first}-{second}", column, "published_difference", value=value))
    scores = {(e.method, e.benchmark): e for e in entries if (e.model, e.quantity) == (model, "score")}
    for method in methods:
        for column in columns:
            ours, value = scores[method, column], cells[method].get(column, math.nan)
            entry = Entry(model, method, column, "ours_minus_published", n=ours.n, seeds=ours.seeds, files=ours.files)
            entry.value, entry.low, entry.high = ours.value - value, ours.low - value, ours.high - value
            added.append(entry)
    return added


def _fill(entry: Entry, estimate: Estimate | Difference) -> None:
    entry.value, entry.low, entry.high = (100 * bound for bound in estimate[:3])
    if isinstance(estimate, Difference):
        entry.p, entry.bold = estimate.p, estimate.excludes_zero


def _inherit(average: Entry, row: Iterable[Entry]) -> None:
    parts = list(row)
    average.n = sum(entry.n or 0 for entry in parts)
    average.seeds = tuple(seed for seed in parts[0].seeds if all(seed in entry.seeds for entry in parts))
    average.files = tuple(path for entry in parts for path in entry.files)


def to_frame(plan: ReportPlan, entries: list[Entry]) -> pd.DataFrame:
    """table1.csv: one row per cell, values in per cent, the verdict files of each joined by ';'."""
    rows: list[dict[str, Any]] = []
    for entry in entries:
        known = entry.benchmark != AVERAGE
        protocol = plan.benchmarks[entry.benchmark].protocols[0] if known else None
        settings = plan.evaluation.protocols[protocol] if protocol else None
        rows.append(
            {name: getattr(entry, name) for name in COLUMNS if hasattr(entry, name)}
            | {
                "title": plan.models[entry.model],
                "k": settings.samples if settings else None,
                "protocol": protocol,
                "temperature": settings.temperature if settings else None,
                "top_p": settings.top_p if settings else None,
                "seeds": ";".join(str(seed) for seed in entry.seeds if seed is not None),
                "verdicts": ";".join(entry.files),
            }
        )
    frame = pd.DataFrame(rows, columns=COLUMNS)
    numbers = ["value", "low", "high"]
    frame[numbers] = frame[numbers].round(4)
    return frame.astype({"n": "Int64", "k": "Int64"})


def layout(plan: ReportPlan, results: Results, entries: list[Entry]) -> tables.Table:
    """The table for people: columns are benchmarks with n, k and T, rows are grouped by model."""
    columns = [*plan.benchmarks, AVERAGE]
    by_row: dict[tuple[str, str, str], dict[str, Entry]] = {}
    for entry in entries:
        by_row.setdefault((entry.model, entry.method, entry.quantity), {})[entry.benchmark] = entry
    groups = []
    for model, title in plan.models.items():
        rows = []
        for (owner, method, quantity), cells in by_row.items():
            if owner == model:
                derived = quantity not in ("score", "published")
                rows.append(
                    tables.Row(_label(plan, method, quantity, cells), [_cell(cells[name]) for name in columns], derived)
                )
        groups.append((title, rows))
    return tables.Table(
        title="Table 1.",
        caption=_caption(plan),
        corner="",
        columns=[_column(plan, results, name) for name in plan.benchmarks] + [tables.Column("Average")],
        groups=groups,
        notes=_notes(plan),
    )


def _label(plan: ReportPlan, method: str, quantity: str, cells: dict[str, Entry]) -> str:
    if quantity in ("difference", "published_difference"):
        first, second = map(method_title, plan.report.comparison)
        return f"{first} − {second}" + (", paper" if quantity == "published_difference" else "")
    name = method_title(method)
    if quantity == "published":
        return f"{name}, paper"
    if quantity == "ours_minus_published":
        return f"{name}, ours − paper"
    expected = next(iter(cells.values())).expected_seeds
    return name if method == "base" else f"{name} ({expected} seed{'s' if expected != 1 else ''})"


def _cell(entry: Entry) -> tables.Cell:
    if math.isnan(entry.value):
        return tables.Cell("–" if entry.status == NOT_PUBLISHED else NOT_RUN, muted=True)
    if entry.quantity == "published":
        return tables.Cell(f"{entry.value:.1f}")
    if entry.quantity != "score":
        spread = "" if math.isnan(entry.low) else f"[{signed(entry.low)}, {signed(entry.high)}]"
        mark = tables.ONE_SEED if spread and entry.quantity == "difference" and len(entry.seeds) < 2 else ""
        return tables.Cell(signed(entry.value), spread + mark, entry.bold, title=_tooltip(entry))
    spread = _spread(entry)
    if entry.status == "partial":
        spread += f" ({len(entry.seeds)} of {entry.expected_seeds} seeds)"
    return tables.Cell(f"{entry.value:.1f}", spread, title=_tooltip(entry))


def _spread(entry: Entry) -> str:
    """Half the interval's width, or its bounds where they are lopsided: 0.0 ± 3.6 would promise negative scores."""
    below, above = entry.value - entry.low, entry.high - entry.value
    if math.isnan(below):
        return ""
    if abs(above - below) > LOPSIDED * (above + below) and above + below >= 1:
        return f"[{entry.low:.1f}, {entry.high:.1f}]"
    return f"±{(above + below) / 2:.1f}"


def signed(value: float) -> str:
    """One decimal with its sign, a real minus; what rounds to zero has none."""
    text = f"{value:+.1f}".replace("-", "−")
    return "0.0" if text[1:] == "0.0" else text


def _tooltip(entry: Entry) -> str:
    parts = [f"{entry.value:.2f}"]
    if not math.isnan(entry.low):
        parts.append(f"interval {entry.low:.2f} to {entry.high:.2f}")
    if not math.isnan(entry.p):
        holm_part = "" if math.isnan(entry.p_holm) else f", Holm {entry.p_holm:.3g}"
        parts.append(f"p {entry.p:.3g}{holm_part}")
    return "; ".join(parts)


def _column(plan: ReportPlan, results: Results, name: str) -> tables.Column:
    benchmark = plan.benchmarks[name]
    protocol = plan.evaluation.protocols[benchmark.protocols[0]]
    known = next((len(result.ids) for (_, _, other), result in results.items() if other == name), None)
    if known is None:
        known = benchmark.family.problems if benchmark.family else published.load()["problems"].get(name)
    greedy = protocol.temperature == 0
    how = "greedy" if greedy else f"avg@{protocol.samples}"
    sampling = "T=0" if greedy else f"T={protocol.temperature:g}, top-p {protocol.top_p:g}"
    return tables.Column(benchmark.title, [f"n={known or '?'}, k={protocol.samples}", how, sampling])


def _caption(plan: ReportPlan) -> str:
    first, second = map(method_title, plan.report.comparison)
    return (
        f"Per cent right on each benchmark, scenario {plan.scenario}: mean over training seeds ± half the width of the "
        f"{plan.report.confidence:.0%} interval; {first} − {second} paired by problem, in points, bold only where its "
        f"interval excludes 0. The last checkpoint is scored, fixed in advance; at most {plan.evaluation.max_tokens} "
        "tokens per response."
    )


def _notes(plan: ReportPlan) -> list[str]:
    confidence = plan.report.confidence
    count = len(plan.benchmarks)
    notes = [
        "n problems, k samples per problem. The bounds stand in brackets where an interval is lopsided.",
        f"Intervals: bootstrap over problems and training seeds ({plan.report.bootstrap_draws} draws); Wilson for a "
        "single greedy run, and over the problems where none or all are solved. With one seed an interval says nothing "
        "about other seeds.",
        tables.ONE_SEED_NOTE,
        tables.NO_INTERVAL_NOTE,
        f"{count} comparisons per model: at {confidence:.0%} about {count * (1 - confidence):.1f} of them exclude 0 by "
        "chance where there is no difference; table1.csv has Holm-adjusted p-values.",
        "Average: unweighted mean over the benchmarks, only where all of them ran.",
    ]
    if plan.report.published:
        notes.append(f"Paper: {published.load()['source']}. Its intervals, seeds, temperature and top-p are not given.")
    return notes
