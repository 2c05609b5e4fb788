"""What training cost: totals per run from metrics.jsonl and trained.json, and cost to equal accuracy from probe curves."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from fr3e.report.curves import mean_interval
from fr3e.report.runs import Row, Run


@dataclass(frozen=True, slots=True)
class Quantity:
    """One row of the cost table; `of` reads it from one update's metrics, or `of_run` from the whole run."""

    group: str
    name: str
    unit: str
    of: Callable[[Row], float | None] | None = None
    of_run: Callable[[Run], float | None] | None = None


def total(*names: str, minus: str | None = None) -> Callable[[Row], float | None]:
    """Sum of columns, less one; None where none of them is in the row."""

    def read(row: Row) -> float | None:
        found = [float(row[name]) for name in names if row.get(name) is not None]
        return sum(found) - float(row.get(minus, 0.0) if minus else 0.0) if found else None

    return read


def gpu_hours(run: Run) -> float | None:
    """Wall hours of all attempts times GPUs; None without trained.json or on CPU alone."""
    trained = run.trained or {}
    return trained["seconds"] * trained["gpus"] / 3600 if trained.get("gpus") else None


def wall_minutes(run: Run) -> float | None:
    """Wall minutes of the run, attempts added up; from the last row where the run has no trained.json yet."""
    seconds = (run.trained or {}).get("seconds", run.rows[-1].get("seconds"))
    return None if seconds is None else float(seconds) / 60


TOKENS, SEQUENCES, TIME = "Tokens", "Rollouts", "Time"
QUANTITIES = (
    Quantity(TOKENS, "Generated, First Return", "tokens", total("tokens/generated_first")),
    Quantity(TOKENS, "Generated, Explore", "tokens", total("tokens/generated_explore")),
    Quantity(TOKENS, "Generated, in all", "tokens", total("tokens/generated_first", "tokens/generated_explore")),
    Quantity(TOKENS, "Discarded, First Return", "tokens", total("tokens/discarded_first")),
    Quantity(TOKENS, "Discarded, Explore", "tokens", total("tokens/discarded_explore")),
    Quantity(TOKENS, "Discarded, in all", "tokens", total("tokens/discarded")),
    Quantity(TOKENS, "Trained on", "tokens", total("tokens/trained")),
    Quantity(TOKENS, "Prefilled without a cache, First Return", "tokens", total("tokens/prefill_first")),
    Quantity(TOKENS, "Prefilled without a cache, Explore", "tokens", total("tokens/prefill_explore")),
    Quantity(TOKENS, "Prefilled without a cache, in all", "tokens", total("tokens/prefill")),
    Quantity(
        TOKENS, "Prefilled with the cache, in all", "tokens", total("tokens/prefill", minus="tokens/prefill_cached")
    ),
    Quantity(SEQUENCES, "Rollouts, First Return", "sequences", total("rollouts/first")),
    Quantity(SEQUENCES, "Rollouts, Explore", "sequences", total("rollouts/explore")),
    Quantity(SEQUENCES, "Prompts sampled", "prompts", total("prompts/sampled")),
    Quantity(TIME, "Generation", "s", total("seconds/generate")),
    Quantity(TIME, "Grading", "s", total("seconds/grade")),
    Quantity(TIME, "Update", "s", total("seconds/update")),
    Quantity(TIME, "Exploration's own overhead", "s", total("seconds/explore")),
    Quantity(TIME, "Probes", "s", total("seconds/probe")),
    Quantity(TIME, "Checkpoints", "s", total("seconds/checkpoint")),
    Quantity(TIME, "Wall time of the run", "min", of_run=wall_minutes),
    Quantity(TIME, "GPU-hours", "GPU-h", of_run=gpu_hours),
)


def run_total(run: Run, quantity: Quantity) -> float | None:
    """The quantity summed over a run's rows, or read from the run; None where it was never logged."""
    if quantity.of_run is not None:
        return quantity.of_run(run)
    assert quantity.of is not None
    found = [value for row in run.rows if (value := quantity.of(row)) is not None]
    return float(np.sum(found)) if found else None


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean over seeds with its interval (NaN with one seed); `seeds` stand behind it, of `of` that ran."""

    mean: float
    low: float
    high: float
    seeds: int
    of: int


def summarise(values: Sequence[float | None], confidence: float = 0.95) -> Summary | None:
    """Mean and Student-t interval over seeds that have a value; None where none has one.

    Costs are not negative, so the interval ends at 0.
    """
    found = np.asarray([value for value in values if value is not None], dtype=float)
    if not len(found):
        return None
    mean, low, high = mean_interval(found, confidence)
    return Summary(float(mean), float(np.maximum(low, 0)), float(high), len(found), len(values))


def ratio(first: Sequence[float | None], second: Sequence[float | None], confidence: float = 0.95) -> Summary | None:
    """Geometric mean of first over second with Welch's interval on the logarithms (seeds are not paired).

    None unless every seed of both has a positive value: a ratio over the seeds that happened to arrive would flatter
    the slower method. NaN bounds with fewer than two seeds on a side.
    """
    values = [*first, *second]
    if not first or not second or any(value is None or value <= 0 for value in values):
        return None
    one, two = np.log(np.asarray(first, dtype=float)), np.log(np.asarray(second, dtype=float))
    middle, low, high = welch(one, two, confidence)
    return Summary(float(np.exp(middle)), float(np.exp(low)), float(np.exp(high)), len(values), len(values))


def welch(one: np.ndarray, two: np.ndarray, confidence: float = 0.95) -> tuple[float, float, float]:
    """Difference of means, first minus second, with Welch's t interval; NaN bounds with fewer than two values a side."""
    middle = float(one.mean() - two.mean())
    if min(len(one), len(two)) < 2:
        return middle, float("nan"), float("nan")
    if max(float(np.ptp(one)), float(np.ptp(two))) <= 1e-9 * max(1.0, abs(middle)):
        return middle, middle, middle
    with warnings.catch_warnings():
        # One side may be constant to the last bit (a fixed budget); its spread is then 0, which is right.
        warnings.filterwarnings("ignore", message="Precision loss", category=RuntimeWarning)
        found = stats.ttest_ind(one, two, equal_var=False).confidence_interval(confidence)
    return middle, float(found.low), float(found.high)


def first_crossing(x: Sequence[float], y: Sequence[float], target: float) -> float | None:
    """Where a curve first reaches `target`, between two points by a straight line; None when it never does."""
    for i, value in enumerate(y):
        if value >= target:
            if i == 0 or value == y[i - 1]:
                return float(x[i])
            share = (target - y[i - 1]) / (value - y[i - 1])
            return float(x[i - 1] + share * (x[i] - x[i - 1]))
    return None


def probe_points(run: Run, name: str) -> list[tuple[float, float, float]]:
    """(generated tokens, wall seconds, accuracy) at every probe of a benchmark."""
    key = f"probe/{name}/accuracy"
    return [
        (float(row.get("tokens_total", 0)), float(row.get("seconds", 0.0)), float(row[key]))
        for row in run.rows
        if row.get(key) is not None
    ]


def targets(groups: Sequence[Sequence[Run]], name: str, shares: Sequence[float] = (0.5, 0.8, 1.0)) -> list[float]:
    """Accuracies at which methods are compared: shares of the way from the start to the lower of their final means.

    The rule is fixed here, before any result; empty unless every method was probed and improved.
    """
    points = [[probe_points(run, name) for run in runs] for runs in groups]
    if not all(runs and all(len(run) > 1 for run in runs) for runs in points):
        return []
    start = float(np.mean([run[0][2] for runs in points for run in runs]))
    end = min(float(np.mean([run[-1][2] for run in runs])) for runs in points)
    return [start + share * (end - start) for share in shares] if end > start else []


def cost_to(runs: Sequence[Run], name: str, target: float, what: str) -> list[float | None]:
    """Generated tokens or wall seconds at which each run's probe accuracy first reaches `target`."""
    costs: list[float | None] = []
    for run in runs:
        points = probe_points(run, name)
        x = [p[0] if what == "tokens" else p[1] for p in points]
        costs.append(first_crossing(x, [p[2] for p in points], target))
    return costs
