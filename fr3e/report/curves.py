"""From metrics rows to a mean curve with its band over seeds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fr3e.report.runs import Row, Run

Axis = Literal["updates", "tokens"]
Value = Callable[[Row], float | None]
Array = NDArray[np.float64]
AXES: tuple[Axis, ...] = ("updates", "tokens")
AXIS_LABEL = {"updates": "update", "tokens": "generated tokens"}


@dataclass(frozen=True, slots=True)
class Curve:
    """One run's curve: x [N] rising, y [N]."""

    x: Array
    y: Array


@dataclass(frozen=True, slots=True)
class Band:
    """Mean over seeds and its interval, all [N]; `low` and `high` are NaN with one seed.

    `mean` and its interval are of smoothed seeds, `raw` is the unsmoothed mean; `window` is 1 where nothing is smoothed.
    """

    x: Array
    mean: Array
    low: Array
    high: Array
    raw: Array
    seeds: int
    window: int


def column(name: str) -> Value:
    """A value function that reads one metrics column; None where the column is absent."""
    return lambda row: None if row.get(name) is None else float(row[name])


def curve(run: Run, value: Value, axis: Axis) -> Curve:
    """`value` of each row against updates or generated tokens; rows without a value are left out.

    The probe before training has no tokens_total: nothing had been generated.
    """
    points = [
        (row["update"] if axis == "updates" else row.get("tokens_total", 0), y)
        for row in run.rows
        if (y := value(row)) is not None
    ]
    table = np.asarray(points, dtype=float).reshape(-1, 2)
    return Curve(table[:, 0], table[:, 1])


def mean_interval(values: Array, confidence: float = 0.95) -> tuple[Array, Array, Array]:
    """Mean over axis 0 [S, ...] and its Student-t interval; with S = 1 the interval is NaN.

    With three seeds the half-width is 4.30 sd / sqrt(3): wide, but what three runs support.
    """
    values = np.asarray(values, dtype=float)
    seeds = values.shape[0]
    mean = values.mean(axis=0)
    if seeds < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    half = stats.t.ppf(0.5 + confidence / 2, seeds - 1) * values.std(axis=0, ddof=1) / np.sqrt(seeds)
    return mean, mean - half, mean + half


def grid(curves: Sequence[Curve], axis: Axis) -> Array:
    """Points where all seeds are compared: their common updates, or as many even steps in tokens as the longest has."""
    first, last = max(c.x[0] for c in curves), min(c.x[-1] for c in curves)
    if axis == "updates":
        points = np.unique(np.concatenate([c.x for c in curves]))
        return points[(points >= first) & (points <= last)]
    if last < first:
        return np.empty(0)
    return np.linspace(first, last, max(len(c.x) for c in curves))


def window_of(points: int) -> int:
    """Width of the moving mean: a tenth of the curve, odd; curves of fewer than 20 points stay as they are."""
    return 1 if points < 20 else max(1, points // 10) | 1


def smoothed(y: Array, window: int) -> Array:
    """Centred moving mean of y [N]; the window shrinks evenly on both sides near the ends, so no value is shifted."""
    if window == 1:
        return y
    half = window // 2
    total = np.concatenate([[0.0], np.cumsum(y)])
    index = np.arange(len(y))
    reach = np.minimum(half, np.minimum(index, len(y) - 1 - index))
    return (total[index + reach + 1] - total[index - reach]) / (2 * reach + 1)


def band(curves: Sequence[Curve], axis: Axis, confidence: float = 0.95, *, smooth: bool = False) -> Band | None:
    """Mean and interval over seeds on the common range of x, each seed interpolated linearly; None without data.

    With `smooth` each seed is smoothed over `window_of` its points before the interval is taken, since what differs
    between seeds is the course of training, not the noise of one update.
    """
    curves = [c for c in curves if len(c.x)]
    if not curves:
        return None
    x = grid(curves, axis)
    window = window_of(max(len(c.x) for c in curves)) if smooth else 1
    mean, low, high = mean_interval(np.stack([np.interp(x, c.x, smoothed(c.y, window)) for c in curves]), confidence)
    raw = np.mean([np.interp(x, c.x, c.y) for c in curves], axis=0)
    return Band(x, mean, low, high, raw, len(curves), window)
