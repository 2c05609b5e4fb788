"""The paper's claims, judged by the rules of docs/claims.md, which were fixed before the runs."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fr3e.config.plans import Evaluated, ReportPlan
from fr3e.evaluation.statistics import paired_difference
from fr3e.report.arms import averaged
from fr3e.report.cost_data import welch
from fr3e.report.curves import Value, column, mean_interval
from fr3e.report.figures_data import group_share, root_share, root_size
from fr3e.report.results import Results, gather, over_benchmarks
from fr3e.report.runs import Run, method_title, of

CLEAR, LEANING, ABSENT = "clear", "leaning", "absent"
REPRODUCED, PARTLY, NOT, NOT_ATTEMPTED = "reproduced", "partly", "not reproduced", "not attempted"
STATUSES = (REPRODUCED, PARTLY, NOT, NOT_ATTEMPTED)
ZERO = 1e-6
COHERENT = "the paper defines no measure of coherence, and we know of none that needs no human or model judge"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number that should be above 0, with its interval (NaN without one) and what it is of."""

    what: str
    value: float
    low: float
    high: float
    scale: float = 1.0
    unit: str = ""

    @property
    def outcome(self) -> str:
        """clear, leaning or absent (docs/claims.md)."""
        if self.low > 0:
            return CLEAR
        return LEANING if self.value > 0 else ABSENT

    def __str__(self) -> str:
        numbers = signed(self.scale * self.value)
        if not np.isfinite(self.low):
            numbers += " (no interval)"
        elif self.low < self.high:
            numbers += f" [{signed(self.scale * self.low)}, {signed(self.scale * self.high)}]"
        return f"{self.what}: {numbers}{' ' + self.unit if self.unit else ''}"


def signed(value: float) -> str:
    """Three significant digits with a sign, a true minus."""
    return f"{value:+.3g}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim's status with the comparisons it rests on, or the reason why none was made."""

    id: str
    status: str
    comparisons: tuple[Comparison, ...]
    reason: str = ""


def status(comparisons: Sequence[Comparison]) -> str:
    """The word for a claim (docs/claims.md); no comparison is "not attempted"."""
    outcomes = [comparison.outcome for comparison in comparisons]
    if not outcomes:
        return NOT_ATTEMPTED
    if all(outcome == CLEAR for outcome in outcomes):
        return REPRODUCED
    return PARTLY if CLEAR in outcomes or ABSENT not in outcomes else NOT


def judge(plan: ReportPlan, runs: Sequence[Run]) -> list[Judged]:
    """All claims, in the order of docs/claims.md; `runs` are the training runs of the compared methods."""
    results = gather(plan)
    arms = gather(with_arms(plan, ("random_anchors", "no_alpha")))
    benchmarks = list(plan.benchmarks)
    first, second = plan.report.comparison
    size = root_size(runs)

    def share(kind: str) -> dict[str, Value]:
        return {
            "state groups, as logged": lambda row: group_share(row, kind),
            f"root groups of {size}": lambda row: root_share(row, size, kind == "all_right"),
        }

    entropy = {"trained tokens": column("entropy/trained"), "full rollouts": column("probe/train/entropy")}
    length = {"trained rows": column("length/full"), "full rollouts": column("probe/train/length")}
    made: dict[str, list[Comparison]] = {
        "accuracy": accuracy(plan, results, benchmarks, first, second),
        "aime24": accuracy(plan, results, ["aime24"], first, second) if "aime24" in benchmarks else [],
        "entropy": late(plan, runs, entropy, unit="nat"),
        "length": late(plan, runs, length, unit="tokens"),
        "advantage": advantage(plan, runs),
        "all_wrong": late(plan, runs, share("all_wrong"), sign=-1, scale=100, unit="points"),
        "all_right": late(plan, runs, share("all_right"), scale=100, unit="points"),
        "buckets": buckets(plan, runs),
        "zero_mean": zero_mean(plan, runs),
        "anchors": accuracy(plan, arms, averaged(plan), first, "random_anchors"),
        "alpha": accuracy(plan, arms, averaged(plan), first, "no_alpha"),
        "coherent": [],
    }
    reasons = {
        "aime24": "" if "aime24" in benchmarks else "the scenario has no AIME24",
        "coherent": COHERENT,
        "anchors": "the arm random_anchors has not run",
        "alpha": "the arm no_alpha has not run",
    }
    fallback = "the runs it needs have not run"
    return [
        Judged(name, status(found), tuple(found), "" if found else reasons.get(name) or fallback)
        for name, found in made.items()
    ]


def with_arms(plan: ReportPlan, arms: Sequence[str]) -> ReportPlan:
    """The plan with evaluations of further arms that lie in the results folder beside those it names."""
    known = {entry.tag for entry in plan.evaluated}
    found = []
    for model in plan.models:
        for arm in arms:
            for folder in sorted(Path(plan.results, "evaluation").glob(f"{model}-{arm}-s*")):
                seed = folder.name.removeprefix(f"{model}-{arm}-s")
                if folder.name not in known and seed.isdigit():
                    run = f"{plan.results}/runs/{folder.name}"
                    found.append(
                        Evaluated(tag=folder.name, model=model, method=arm, seed=int(seed), folder=str(folder), run=run)
                    )
    return plan.model_copy(update={"evaluated": [*plan.evaluated, *found]})


def accuracy(plan: ReportPlan, results: Results, benchmarks: list[str], first: str, second: str) -> list[Comparison]:
    """Paired difference of the mean accuracy over `benchmarks`, per model that ran both.

    With one seed on a side the bootstrap is over problems alone and says nothing of another training run: no interval.
    """
    made = []
    for model, title in plan.models.items():
        one = over_benchmarks(results, model, first, benchmarks)
        two = over_benchmarks(results, model, second, benchmarks)
        if one is None or two is None:
            continue
        found = paired_difference(one, two, plan.report.confidence, plan.report.bootstrap_draws)
        what = f"{title}, {method_title(first)} − {method_title(second)}"
        several = min(len(one[0]), len(two[0])) > 1
        bounds = (found.low, found.high) if several else (math.nan, math.nan)
        made.append(Comparison(what, found.value, *bounds, 100, "points"))
    return made


def late_mean(run: Run, value: Value) -> float | None:
    """Mean of a value over the second half of the updates; None where it was not logged there."""
    last = run.rows[-1]["update"]
    found = [y for row in run.rows if row["update"] > last / 2 and (y := value(row)) is not None]
    return float(np.mean(found)) if found else None


def late(
    plan: ReportPlan,
    runs: Sequence[Run],
    values: Mapping[str, Value],
    *,
    sign: int = 1,
    scale: float = 1.0,
    unit: str = "",
) -> list[Comparison]:
    """First minus second method (or, with sign -1, the reverse) of each late mean, per model."""
    made = []
    for what, value in values.items():
        made += between(
            plan, runs, what, lambda run, value=value: late_mean(run, value), sign=sign, scale=scale, unit=unit
        )
    return made


def between(
    plan: ReportPlan,
    runs: Sequence[Run],
    what: str,
    measure: Callable[[Run], float | None],
    *,
    sign: int = 1,
    scale: float = 1.0,
    unit: str = "",
) -> list[Comparison]:
    """Welch comparison over seeds of one measure of a run between the two compared methods, per model."""
    made = []
    names = plan.report.comparison if sign > 0 else plan.report.comparison[::-1]
    for model, title in plan.models.items():
        one, two = (
            np.asarray([v for run in of(runs, model, name) if (v := measure(run)) is not None]) for name in names
        )
        if len(one) and len(two):
            label = f"{title}, {what}, {method_title(names[0])} − {method_title(names[1])}"
            made.append(Comparison(label, *welch(one, two, plan.report.confidence), scale, unit))
    return made


def advantage(plan: ReportPlan, runs: Sequence[Run]) -> list[Comparison]:
    """Size and spread over updates of the token-weighted mean of A'."""

    def means(run: Run) -> np.ndarray:
        return np.asarray([row["advantage_token/mean"] for row in run.updates if "advantage_token/mean" in row])

    def size(run: Run) -> float | None:
        found = means(run)
        return abs(float(found.mean())) if len(found) else None

    def spread(run: Run) -> float | None:
        found = means(run)
        return float(found.std(ddof=1)) if len(found) > 1 else None

    distance = between(plan, runs, "distance of the mean from 0", size, sign=-1)
    return distance + between(plan, runs, "spread over updates", spread, sign=-1)


def success_rate(row: Mapping[str, object], name: str) -> float | None:
    """Mean success rate of a row's groups from their histogram."""
    counts = row.get(name)
    if not isinstance(counts, list) or not sum(counts):
        return None
    return float(np.dot(counts, np.arange(len(counts)))) / (sum(counts) * (len(counts) - 1))


def buckets(plan: ReportPlan, runs: Sequence[Run]) -> list[Comparison]:
    """Rise of the success rate from the first to the last fifth of the updates, under the first method."""
    made = []
    first = plan.report.comparison[0]
    for model, title in plan.models.items():
        for what, name in (("state groups", "successes"), ("root groups", "successes_root")):
            rises = [r for run in of(runs, model, first) if (r := rise(run, name)) is not None]
            if rises:
                interval = mean_interval(np.asarray(rises), plan.report.confidence)
                made.append(Comparison(f"{title}, {what}, last − first fifth", *map(float, interval), 100, "points"))
    return made


def rise(run: Run, name: str) -> float | None:
    """Mean success rate in the last fifth of the updates minus that in the first; None with fewer than five updates."""
    rates = [rate for row in run.updates if (rate := success_rate(row, name)) is not None]
    fifth = len(rates) // 5
    return float(np.mean(rates[-fifth:]) - np.mean(rates[:fifth])) if fifth else None


def zero_mean(plan: ReportPlan, runs: Sequence[Run]) -> list[Comparison]:
    """Room below 1e-6 of the largest sequence mean of A', over all updates and seeds; exact, so without an interval."""
    made = []
    for model, title in plan.models.items():
        means = [
            abs(row["advantage/mean"])
            for run in of(runs, model, plan.report.comparison[0])
            for row in run.updates
            if "advantage/mean" in row
        ]
        if means:
            room = ZERO - max(means)
            made.append(Comparison(f"{title}, 1e-6 − largest |mean| ({max(means):.1e})", room, room, room))
    return made
