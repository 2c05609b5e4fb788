"""Scores and intervals against worked numbers, slow references and simulations."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fr3e.evaluation import statistics

# Two problems, four samples: 3 of 4 and 1 of 4 right.
WORKED = [[1, 1, 0, 1], [0, 0, 1, 0]]
arrays = st.integers(1, 6).flatmap(
    lambda samples: st.lists(st.lists(st.integers(0, 1), min_size=samples, max_size=samples), min_size=1, max_size=6)
)


def test_worked_scores():
    # avg@4 = (3/4 + 1/4) / 2. pass@2: 1 - C(1,2)/C(4,2) = 1 and 1 - C(3,2)/C(4,2) = 1 - 3/6, mean 3/4.
    assert statistics.avg_at_k(WORKED) == 0.5
    assert statistics.pass_at_k(WORKED, 1) == pytest.approx(0.5)
    assert statistics.pass_at_k(WORKED, 2) == pytest.approx(0.75)
    assert statistics.pass_at_k(WORKED, 4) == 1.0
    assert statistics.accuracy([[1], [0], [0], [1]]) == 0.5


@given(arrays)
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(correct):
    samples = len(correct[0])
    for k in range(1, samples + 1):
        subsets = list(itertools.combinations(range(samples), k))
        expected = np.mean([np.mean([any(row[i] for i in subset) for subset in subsets]) for row in correct])
        assert statistics.pass_at_k(correct, k) == pytest.approx(expected)


@given(arrays)
def test_pass_at_k_grows_with_k_from_avg(correct):
    values = [statistics.pass_at_k(correct, k) for k in range(1, len(correct[0]) + 1)]
    assert values[0] == pytest.approx(statistics.avg_at_k(correct))
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(values))


def test_pass_at_k_of_many_samples_does_not_overflow():
    correct = np.zeros((1, 1024), dtype=int)
    correct[0, :3] = 1
    expected = 1 - math.comb(1021, 512) / math.comb(1024, 512)
    assert statistics.pass_at_k(correct, 512) == pytest.approx(expected, rel=1e-9)


def test_nothing_solved_is_not_certainty():
    # 3 seeds, 50 problems, all 0: every resample is 0. Wilson over the problems: z^2 / (n + z^2) = 3.8415 / 53.8415.
    estimate = statistics.mean_interval([np.zeros((3, 50))], draws=200)
    assert estimate == pytest.approx((0.0, 0.0, 3.8415 / 53.8415), abs=1e-5)
    everything = statistics.mean_interval([np.ones((3, 50))], draws=200)
    assert everything == pytest.approx((1.0, 50 / 53.8415, 1.0), abs=1e-5)
    # A resample of the average over benchmarks has width as long as one of them has.
    mixed = np.tile([0.0, 1.0], (3, 25))
    assert statistics.mean_interval([np.zeros((3, 50)), mixed], draws=200).low > 0


def test_wilson_by_its_formula():
    # Wilson 1927: centre (p + z^2/2n) / (1 + z^2/n), half z sqrt(p(1-p)/n + z^2/4n^2) / (1 + z^2/n); 25 of 40.
    z, p, n = 1.959963984540054, 25 / 40, 40
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    assert statistics.wilson(25, 40) == pytest.approx((p, centre - half, centre + half))
    assert statistics.wilson(0, 40).low == 0.0


def test_bootstrap_over_problems_matches_the_standard_error():
    # One seed, 400 problems at p = 1/4: half-width of a 95 % interval is about 1.96 sqrt(.25 * .75 / 400) = .0424.
    values = np.repeat([1.0, 0.0, 0.0, 0.0], 100)[None]
    estimate = statistics.mean_interval([values])
    assert estimate.value == 0.25
    assert (estimate.high - estimate.low) / 2 == pytest.approx(0.0424, abs=0.002)


def slow_bootstrap(first, second, draws, rng):
    """The definition, one draw at a time: problems per benchmark, seeds of either method, averaged over benchmarks."""
    drawn = []
    for _ in range(draws):
        seeds = [rng.integers(0, len(group[0]), len(group[0])) for group in (first, second)]
        means = [[], []]
        for one, two in zip(first, second, strict=True):
            problems = rng.integers(0, one.shape[1], one.shape[1])
            for place, (block, chosen) in enumerate(zip((one, two), seeds, strict=True)):
                means[place].append(block[np.ix_(chosen, problems)].mean())
        drawn.append(np.mean(means[0]) - np.mean(means[1]))
    return np.quantile(drawn, [0.025, 0.975])


def test_two_level_bootstrap_against_the_slow_definition():
    rng = np.random.default_rng(7)
    difficulty = [rng.random(30), rng.random(50)]
    first = [(rng.random((3, len(d))) < d).astype(float) + 0.1 * np.arange(3)[:, None] for d in difficulty]
    second = [(rng.random((2, len(d))) < d).astype(float) for d in difficulty]
    fast = statistics.paired_difference(first, second, draws=20_000)
    low, high = slow_bootstrap(first, second, 4000, rng)
    assert fast.low == pytest.approx(low, abs=0.012)
    assert fast.high == pytest.approx(high, abs=0.012)


def test_seed_spread_widens_the_interval():
    steady = np.tile(np.repeat([1.0, 0.0], 50), (3, 1))
    bumpy = np.stack([np.ones(100), np.repeat([1.0, 0.0], 50), np.zeros(100)])
    narrow, wide = (statistics.mean_interval([values]) for values in (steady, bumpy))
    assert narrow.value == wide.value == 0.5
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_pairing_removes_the_spread_between_problems():
    # Second is first plus .1 on every problem: the difference is .1 exactly, however uneven the problems are.
    values = np.random.default_rng(0).random((1, 200))
    difference = statistics.paired_difference([values + 0.1], [values])
    assert difference[:3] == pytest.approx((0.1, 0.1, 0.1))
    assert difference.excludes_zero and difference.p == pytest.approx(2 / 10_001)


@pytest.mark.parametrize(("first", "second"), [((3, 50), (3, 50)), ((2, 50), (3, 50)), ((1, 50), (1, 50))])
@pytest.mark.parametrize("score", [0.0, 0.1, 1.0])
def test_the_same_score_everywhere_gives_no_interval(first, second, score):
    found = statistics.paired_difference([np.full(first, score)], [np.full(second, score)], draws=500)
    assert abs(found.value) < 1e-12 and np.isnan(found.low) and np.isnan(found.high) and found.p == 1.0


def test_no_difference_is_not_claimed():
    values = np.random.default_rng(0).random((3, 50))
    difference = statistics.paired_difference([values], [values])
    assert difference.value == 0.0 and not difference.excludes_zero and difference.p > 0.5


@given(st.integers(0, 2**32 - 1))
def test_difference_is_antisymmetric_and_centred(seed):
    rng = np.random.default_rng(seed)
    one, two = rng.random((1, 12)), rng.random((1, 12))
    ab = statistics.paired_difference([one], [two], draws=200)
    ba = statistics.paired_difference([two], [one], draws=200)
    assert ab.value == pytest.approx(-ba.value)
    assert (ab.low, ab.high) == pytest.approx((-ba.high, -ba.low))
    assert ab.low - 1e-12 <= one.mean() - two.mean() <= ab.high + 1e-12


def test_average_of_benchmarks_weighs_them_equally():
    # 10 problems all right and 1000 all wrong: the average is 1/2, not 10/1010.
    assert statistics.mean_interval([np.ones((1, 10)), np.zeros((1, 1000))], draws=100).value == 0.5


def test_the_same_call_gives_the_same_interval():
    values = [np.random.default_rng(0).random((3, 40))]
    assert statistics.mean_interval(values) == statistics.mean_interval(values)
    assert statistics.mean_interval(values, seed=1) != statistics.mean_interval(values, seed=0)


def test_one_problem_has_no_interval():
    estimate = statistics.mean_interval([[[1.0]]])
    assert estimate.value == 1.0 and math.isnan(estimate.low)
    assert not statistics.paired_difference([[[1.0]]], [[[0.0]]]).excludes_zero


def test_holm_worked():
    # Sorted .01 .02 .03 .04 times 4 3 2 1 = .04 .06 .06 .04, made monotone: .04 .06 .06 .06.
    assert statistics.holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert statistics.holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    adjusted = statistics.holm([0.01, float("nan")])
    assert adjusted[0] == 0.01 and math.isnan(adjusted[1])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: statistics.avg_at_k([1, 0, 1]), "shape"),
        (lambda: statistics.avg_at_k(np.zeros((0, 4))), "nothing to score"),
        (lambda: statistics.avg_at_k([[0, 2]]), "only 0 and 1"),
        (lambda: statistics.avg_at_k([[0, 0.5]]), "only 0 and 1"),
        (lambda: statistics.accuracy([[0, 1]]), "one sample per problem"),
        (lambda: statistics.pass_at_k([[0, 1]], 3), "at least 3"),
        (lambda: statistics.pass_at_k([[0, 1]], 0), "at least 0"),
        (lambda: statistics.wilson(5, 4), "5 right"),
        (lambda: statistics.mean_interval([[1.0, 0.0]]), "seeds x problems"),
        (lambda: statistics.mean_interval([]), "seeds x problems"),
        (lambda: statistics.mean_interval([np.zeros((2, 4)), np.zeros((3, 4))]), "different numbers of seeds"),
        (lambda: statistics.paired_difference([np.zeros((2, 4))], [np.zeros((2, 5))]), "not paired"),
    ],
)
def test_wrong_shapes_raise(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.slow
def test_coverage_of_the_interval():
    """With 10 seeds and 200 problems at least 90 of 100 nominal 95 % intervals hold the truth (docs/evaluation.md)."""
    rng = np.random.default_rng(3)
    hits = 0
    for trial in range(100):
        ability, difficulty = rng.normal(0, 0.3, 10), rng.normal(0, 1.5, 200)
        chance = 1 / (1 + np.exp(difficulty[None] - ability[:, None]))
        estimate = statistics.mean_interval([(rng.random((10, 200)) < chance).astype(float)], draws=1000, seed=trial)
        hits += estimate.low <= 0.5 <= estimate.high
    assert hits >= 90
