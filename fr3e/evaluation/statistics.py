"""Scores and their uncertainty: pure functions of 0/1 arrays.

Shapes: N training seeds, P problems, G samples of one problem; `correct_PG` is one model, `correct_NPG` several seeds of
one method on the same problems in the same order. Values lie between 0 and 1.

Uncertainty over problems and seeds is the pigeonhole bootstrap (Owen 2007, doi:10.1214/07-AOAS122): seeds and problems are
resampled independently of each other, because every seed answers the same problems. The samples of a problem stay
together, so its mean counts as one observation (Miller 2024, arXiv:2411.00640, clustered errors). scipy.stats.bootstrap
does the resampling: it is handed the *indices* of seeds and of problems as separate unpaired samples. Seeds of two methods
are resampled apart, since equal numbers give the runs nothing in common; problems are shared, which is the pairing.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Array = NDArray[np.float64]
SAME = 1e-12  # largest difference that summation in another order makes of equal scores
BATCH_ELEMENTS = 2_000_000  # resampled values held at a time (16 MB)


class Estimate(NamedTuple):
    """A value with the bounds of its interval; NaN bounds where no interval exists (fewer than two problems)."""

    value: float
    low: float
    high: float


class Difference(NamedTuple):
    """First minus second, its interval (NaN bounds without one), and the two-sided bootstrap p-value of 'no difference'."""

    value: float
    low: float
    high: float
    p: float

    @property
    def excludes_zero(self) -> bool:
        """True when the whole interval lies on one side of 0; NaN bounds never do."""
        return self.low > 0 or self.high < 0


def runs(correct: ArrayLike) -> Array:
    """The array as [N, P, G]: one seed's [P, G] becomes [1, P, G]. Other shapes, empty ones and values but 0 and 1 raise ValueError."""
    array = np.asarray(correct, dtype=np.float64)
    if array.ndim not in (2, 3):
        raise ValueError(f"expected problems x samples, or seeds x problems x samples; found shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"nothing to score: shape {array.shape}")
    if not np.isin(array, (0.0, 1.0)).all():
        raise ValueError("expected only 0 and 1")
    return array if array.ndim == 3 else array[None]


def accuracy(correct: ArrayLike) -> float:
    """Share of right answers with exactly one sample per problem: [P, 1] or [N, P, 1]; more samples raise ValueError."""
    array = runs(correct)
    if array.shape[2] != 1:
        raise ValueError(f"accuracy is for one sample per problem, found {array.shape[2]}; use avg_at_k")
    return float(array.mean())


def avg_at_k(correct: ArrayLike) -> float:
    """avg@k: mean over problems of the share of right answers among its k = G samples (and over seeds)."""
    return float(runs(correct).mean())


def solved(correct: ArrayLike) -> Array:
    """Share of right samples per seed and problem, [N, P]."""
    return runs(correct).mean(axis=2)


def solved_within(correct: ArrayLike, k: int) -> Array:
    """Unbiased pass@k per seed and problem, [N, P]: 1 - C(G - c, k) / C(G, k) with c right samples of G.

    Chen et al. 2021, arXiv:2107.03374, Eq. 1, in its product form prod_{i=G-c+1}^{G} (1 - k / i), which cannot overflow.
    Raises ValueError unless 1 <= k <= G.
    """
    array = runs(correct)
    samples = array.shape[2]
    if not 1 <= k <= samples:
        raise ValueError(f"pass@{k} needs at least {k} samples per problem, found {samples}")
    by_count = np.ones(samples + 1)  # by_count[c]: chance that k of the samples hold none of the c right ones
    for right in range(1, samples + 1):
        by_count[right] = by_count[right - 1] * max(0.0, 1.0 - k / (samples - right + 1))
    return 1.0 - by_count[array.sum(axis=2).astype(int)]


def pass_at_k(correct: ArrayLike, k: int) -> float:
    """Mean of the unbiased pass@k over problems (and seeds)."""
    return float(solved_within(correct, k).mean())


def wilson(successes: int, problems: int, confidence: float = 0.95) -> Estimate:
    """Wilson's score interval for one greedy run: `successes` right answers out of `problems`."""
    if not 0 <= successes <= problems or problems == 0:
        raise ValueError(f"{successes} right answers of {problems} problems")
    bounds = stats.binomtest(successes, problems).proportion_ci(confidence, method="wilson")
    return Estimate(successes / problems, float(bounds.low), float(bounds.high))


def mean_interval(
    values: Sequence[ArrayLike], confidence: float = 0.95, draws: int = 10_000, seed: int = 0
) -> Estimate:
    """Mean over seeds and problems, averaged over benchmarks, with its bootstrap percentile interval.

    `values` holds one [N, P_b] array per benchmark with the same N seeds in the same order: a draw resamples seeds once
    for all benchmarks, and problems within each. One benchmark is a list of one. Different N raise ValueError.

    One benchmark that nothing or everything solves gets Wilson's bounds over its problems: equal values resampled stay
    equal, and an interval without width would claim certainty.
    """
    blocks = _blocks(values)
    point = float(np.mean([block.mean() for block in blocks]))
    problems = min(block.shape[1] for block in blocks)
    if problems < 2:
        return Estimate(point, float("nan"), float("nan"))
    if len(blocks) == 1 and point in (0.0, 1.0):
        return wilson(round(point * problems), problems, confidence)
    _, low, high = _resampled([blocks], confidence, draws, seed)
    return Estimate(point, low, high)


def paired_difference(
    first: Sequence[ArrayLike],
    second: Sequence[ArrayLike],
    confidence: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
) -> Difference:
    """Mean of `first` minus mean of `second` on the same problems, averaged over benchmarks.

    Each is one array per benchmark, [N_first, P_b] and [N_second, P_b]; N may differ, problems must agree in number and
    order (else ValueError). p is twice the smaller share of draws on either side of 0, with the usual +1 correction.

    Where both have one and the same score on every problem, as where neither solves any, every draw is 0: p is 1 and there
    is no interval, since [0, 0] would claim to know that they are equal.
    """
    one, two = _blocks(first), _blocks(second)
    if [block.shape[1] for block in one] != [block.shape[1] for block in two]:
        raise ValueError(
            f"not paired: problems per benchmark are {[b.shape[1] for b in one]} and {[b.shape[1] for b in two]}"
        )
    point = float(np.mean([a.mean() - b.mean() for a, b in zip(one, two, strict=True)]))
    if min(block.shape[1] for block in one) < 2:
        return Difference(point, float("nan"), float("nan"), float("nan"))
    drawn, low, high = _resampled([one, two], confidence, draws, seed)
    if float(np.abs(drawn).max()) < SAME:
        return Difference(point, float("nan"), float("nan"), 1.0)
    side = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    return Difference(point, low, high, min(1.0, 2 * (side + 1) / (len(drawn) + 1)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the given order; they bound the chance of any false claim in the family.

    NaN (a comparison that has not run) stays NaN and does not count.
    """
    adjusted = [float("nan")] * len(p_values)
    ranked = sorted((p, index) for index, p in enumerate(p_values) if not np.isnan(p))
    running = 0.0
    for rank, (p, index) in enumerate(ranked):
        running = max(running, min(1.0, p * (len(ranked) - rank)))
        adjusted[index] = running
    return adjusted


def _blocks(values: Sequence[ArrayLike]) -> list[Array]:
    blocks = [np.asarray(value, dtype=np.float64) for value in values]
    if not blocks or any(block.ndim != 2 or block.size == 0 for block in blocks):
        raise ValueError(f"expected seeds x problems for each benchmark, found {[block.shape for block in blocks]}")
    if len({block.shape[0] for block in blocks}) != 1:
        raise ValueError(f"benchmarks have different numbers of seeds: {[block.shape[0] for block in blocks]}")
    return blocks


def _resampled(
    groups: Sequence[Sequence[Array]], confidence: float, draws: int, seed: int
) -> tuple[Array, float, float]:
    """Bootstrap distribution [draws] of the first group's mean, less the second's where there is one, and its bounds."""
    sizes = [block.shape[1] for block in groups[0]]
    seeds = [group[0].shape[0] for group in groups]
    # A single seed cannot be resampled (scipy asks for two observations); its interval is over problems alone.
    resampled_seeds = [number for number in seeds if number > 1]

    def statistic(*indices: NDArray[np.int64], axis: int = -1) -> Any:
        del axis  # scipy always hands over the last one
        over_seeds, over_problems = iter(indices[: len(resampled_seeds)]), indices[len(resampled_seeds) :]
        means = []
        for group in groups:
            per_seed = sum(
                np.take(block, picked, axis=1).mean(axis=-1) for block, picked in zip(group, over_problems, strict=True)
            ) / len(group)  # [N, ...]
            if len(per_seed) > 1:
                per_seed = np.take_along_axis(per_seed, np.moveaxis(next(over_seeds), -1, 0), axis=0)
            means.append(per_seed.mean(axis=0))
        return means[0] - means[1] if len(means) == 2 else means[0]

    result = stats.bootstrap(
        [np.arange(number) for number in (*resampled_seeds, *sizes)],
        statistic,
        n_resamples=draws,
        batch=max(1, BATCH_ELEMENTS // (max(sizes) * max(seeds))),
        vectorized=True,
        method="percentile",
        confidence_level=confidence,
        rng=np.random.default_rng(seed),
    )
    bounds = result.confidence_interval
    return result.bootstrap_distribution, float(bounds.low), float(bounds.high)
