"""The cost section: what each method spent, per update and in all, and what it spent to reach equal accuracy."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from fr3e.config.plans import ReportPlan, load_report_plan
from fr3e.files import write_text
from fr3e.report import cost_data, pages, tables
from fr3e.report.cost_data import QUANTITIES, Quantity, Summary, ratio, run_total, summarise
from fr3e.report.figures_data import probed
from fr3e.report.runs import Run, hardware_words, load_runs, method_title, of
from fr3e.report.tables import Cell, Column

COLUMNS = ["table", "model", "quantity", "unit", "method", "mean", "low", "high", "seeds", "of_seeds"]
TO_EQUAL = "to equal accuracy"
RESOURCES = {"tokens": "generated tokens", "seconds": "wall seconds"}


def write_cost(plan: Path, out: Path) -> None:
    """Write <out>/cost.{csv,md,html}: per update, in all, the ratio of the compared methods, and cost to equal accuracy.

    Intervals are over seeds. What has not run says "not run". Raises `UserError` for a broken plan or metrics file.
    """
    resolved = load_report_plan(plan)
    ledger = Ledger(resolved, load_runs(resolved))
    made = [ledger.spent(), ledger.equal_accuracy()]
    write_text(out / "cost.csv", pd.DataFrame(ledger.records, columns=COLUMNS).to_csv(index=False, float_format="%.6g"))
    write_text(out / "cost.md", "\n".join(tables.markdown(table) for table in made))
    write_text(out / "cost.html", pages.page("Cost", [pages.body_of(tables.page(table)) for table in made]))


def number(value: float) -> str:
    """A count or a time with about three significant digits: 1.23M, 45.6k, 789, 0.012."""
    size = abs(value)
    for unit, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= unit * (10 if letter == "k" else 1):
            return f"{value / unit:.3g}{letter}" if size < 999.5 * unit else f"{value / unit:.0f}{letter}"
    return f"{value:.0f}" if size >= 1000 else f"{value:.3g}"


def cell(summary: Summary | None, missing: str) -> Cell:
    """Mean with its interval in small print; no interval with one seed, or where all seeds agree."""
    if summary is None:
        return Cell(missing, muted=True)
    if summary.seeds < summary.of:
        return Cell(f"{summary.seeds} of {summary.of} seeds", muted=True, title="only some seeds reached it")
    low, mean, high = (number(value) for value in (summary.low, summary.mean, summary.high))
    return Cell(mean, "" if math.isnan(summary.low) or low == mean == high else f"[{low}, {high}]")


@dataclass
class Ledger:
    """The two cost tables of a plan; every number shown is kept in `records` for the CSV."""

    plan: ReportPlan
    runs: Sequence[Run]
    records: list[dict[str, object]] = field(default_factory=list)

    def keep(self, found: Summary | None, missing: str, **facts: str) -> Cell:
        """The cell of `found`, recorded under `facts` (table, model, quantity, unit, method)."""
        if found is not None:
            low, high = found.low, found.high
            values = {"mean": found.mean, "low": low, "high": high, "seeds": found.seeds, "of_seeds": found.of}
            self.records.append(facts | values)
        return cell(found, missing)

    @property
    def versus(self) -> str:
        """Heading of the ratio."""
        return " / ".join(method_title(method) for method in self.plan.report.comparison)

    def spent(self) -> tables.Table:
        """Per update and in all, with the ratio of the compared methods."""
        pair = list(self.plan.report.comparison)
        methods = [*pair, *(method for method in self.plan.methods if method not in pair)]
        columns = [Column(method_title(m), [scope]) for scope in ("per update", "whole run") for m in methods]
        groups = []
        for model, title in self.plan.models.items():
            for group in dict.fromkeys(quantity.group for quantity in QUANTITIES):
                rows = [
                    tables.Row(f"{quantity.name} ({quantity.unit})", self.quantity_cells(quantity, model, methods))
                    for quantity in quantities(self.plan)
                    if quantity.group == group
                ]
                groups.append((group if len(self.plan.models) == 1 else f"{title}: {group}", rows))
        caption = (
            f"Mean over training seeds ({seed_words(self.plan, self.runs)}); "
            f"brackets: {self.plan.report.confidence:.0%} interval over seeds."
        )
        columns.append(Column(self.versus, ["whole run"]))
        return tables.Table("Cost of training", caption, "Quantity", columns, groups, spent_notes(self.runs))

    def quantity_cells(self, quantity: Quantity, model: str, methods: Sequence[str]) -> list[Cell]:
        """One row: per update, whole run, ratio."""
        level, cells = self.plan.report.confidence, []
        totals = {m: [run_total(run, quantity) for run in of(self.runs, model, m)] for m in methods}
        facts = {"model": model, "quantity": quantity.name}
        for scope in ("per update", "whole run"):
            for method, values in totals.items():
                counts = [len(run.updates) or 1 for run in of(self.runs, model, method)]
                shown = [
                    None if value is None else value / (count if scope == "per update" else 1)
                    for value, count in zip(values, counts, strict=True)
                ]
                missing = "—" if values else "not run"
                found = summarise(shown, level)
                cells.append(self.keep(found, missing, table=scope, unit=quantity.unit, method=method, **facts))
        first, second = self.plan.report.comparison
        found = ratio(totals[first], totals[second], level)
        label = f"{first}/{second}"
        return [*cells, self.keep(found, "—", table="whole run", unit="ratio", method=label, **facts)]

    def equal_accuracy(self) -> tables.Table:
        """Generated tokens and wall seconds at which probe curves first reach the same accuracies."""
        columns = [
            Column(head, [words])
            for words in RESOURCES.values()
            for head in (*(method_title(m) for m in self.plan.report.comparison), self.versus)
        ]
        groups = []
        for model, title in self.plan.models.items():
            pair = [of(self.runs, model, method) for method in self.plan.report.comparison]
            rows = []
            for name in probed([run for runs in pair for run in runs]):
                label = self.plan.benchmarks[name].title if name in self.plan.benchmarks else "training problems"
                for target in cost_data.targets(pair, name):
                    cells = [c for what in RESOURCES for c in self.target_cells(model, pair, name, target, what=what)]
                    rows.append(tables.Row(f"{label}: {100 * target:.1f} %", cells))
            if not rows:
                nothing = [Cell("not run", muted=True)] * len(columns)
                rows = [tables.Row("no probe curves that rise in both methods", nothing)]
            groups.append(("" if len(self.plan.models) == 1 else title, rows))
        caption = (
            "Where probe curves of full rollouts from fixed problems first reach the accuracy; "
            f"brackets: {self.plan.report.confidence:.0%} interval over seeds."
        )
        return tables.Table("Cost to equal accuracy", caption, "Probe and accuracy", columns, groups, EQUAL_NOTES)

    def target_cells(
        self, model: str, pair: Sequence[Sequence[Run]], name: str, target: float, *, what: str
    ) -> Iterator[Cell]:
        """Both methods' cost to `target` in one resource, and their ratio."""
        level = self.plan.report.confidence
        facts = {"table": TO_EQUAL, "model": model, "quantity": f"{what} to {100 * target:.1f} % on {name}"}
        costs = [cost_data.cost_to(runs, name, target, what) for runs in pair]
        for method, found in zip(self.plan.report.comparison, costs, strict=True):
            yield self.keep(summarise(found, level), "not reached", unit=what, method=method, **facts)
        label = "/".join(self.plan.report.comparison)
        yield self.keep(ratio(costs[0], costs[1], level), "—", unit="ratio", method=label, **facts)


def quantities(plan: ReportPlan) -> Iterator[Quantity]:
    """The table's rows; the price where one is configured."""
    yield from QUANTITIES
    price = plan.report.gpu_hour_price
    if price is not None:

        def cost(run: Run) -> float | None:
            hours = cost_data.gpu_hours(run)
            return None if hours is None else hours * price

        yield Quantity(cost_data.TIME, f"Price at {price:g} per GPU-hour", "currency units", of_run=cost)


def seed_words(plan: ReportPlan, runs: Sequence[Run]) -> str:
    """For example "FR3E: 3 seeds, GRPO++: one seed"."""
    words = []
    for method in plan.methods:
        counts = {len(of(runs, model, method)) for model in plan.models} - {0}
        text = "not run" if not counts else " or ".join("one seed" if c == 1 else f"{c} seeds" for c in sorted(counts))
        words.append(f"{method_title(method)}: {text}")
    return ", ".join(words)


SPENT_NOTES = (
    "Discarded: generated but never trained on, that is first rollouts, groups whose rewards are all equal, and dropped"
    " groups.",
    "Prefilled without a cache: context tokens as if each sequence read its own prompt and prefix. With the cache: what"
    " was really read once a shared context counts once.",
    "Groups carried over to a later update count where they were generated. Probes are evaluation and count in time alone.",
    "The ratio is a geometric mean with Welch's interval. — stands where a value is zero or was not logged.",
)
EQUAL_NOTES = (
    "The accuracies are 50, 80 and 100 % of the way from the start to the lower of the two methods' final means.",
    "A run's cost is where its probe curve first reaches the accuracy, by straight lines between probes. A first crossing"
    " profits from noise, in both methods alike. A method some of whose seeds never arrive gets no mean.",
    "Ratios are geometric means with Welch's interval; below 1 the first method is cheaper.",
)


def spent_notes(runs: Sequence[Run]) -> list[str]:
    """Definitions, hardware, attempts."""
    finished = [run.trained for run in runs if run.trained]
    hardware = sorted({hardware_words(trained.get("hardware")) for trained in finished} - {""})
    attempts = sum(int(trained.get("attempts", 1)) for trained in finished)
    unfinished = [run.tag for run in runs if run.trained is None]
    notes = list(SPENT_NOTES)
    if hardware:
        gpus = any(trained.get("gpus") for trained in finished)
        notes.append(f"Hardware: {'; '.join(hardware)}." + ("" if gpus else " No GPU was used, hence no GPU-hours."))
    if finished:
        words = "attempt" if attempts == 1 else "attempts"
        notes.append(f"Finished runs: {len(finished)}, in {attempts} {words}, whose times are added up.")
    if unfinished:
        notes.append(f"Not finished, counted as far as they came: {', '.join(unfinished)}.")
    return notes
