"""Curves, smoothing, bands."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fr3e.report.curves import Curve, band, column, curve, mean_interval, smoothed, window_of
from fr3e.report.runs import Run


def run_of(rows: list[dict[str, float]]) -> Run:
    return Run("m-fr3e-s0", "m", "fr3e", 0, Path("nowhere"), tuple(rows), None, None)


def test_a_curve_leaves_out_rows_without_the_value_and_puts_the_first_probe_at_zero_tokens() -> None:
    run = run_of(
        [{"update": 0, "a": 1.0}, {"update": 1, "tokens_total": 5}, {"update": 2, "tokens_total": 9, "a": 2.0}]
    )
    by_update, by_token = curve(run, column("a"), "updates"), curve(run, column("a"), "tokens")
    assert by_update.x.tolist() == [0, 2]
    assert by_token.x.tolist() == [0, 9]
    assert by_token.y.tolist() == [1.0, 2.0]


def test_the_interval_is_students_t() -> None:
    # 1, 2, 6: mean 3, sd sqrt((4 + 1 + 9) / 2) = 2.6458; t(.975, 2) = 4.3027; half-width 4.3027 * 2.6458 / sqrt(3) = 6.5724
    mean, low, high = mean_interval(np.array([1.0, 2.0, 6.0]))
    assert mean == pytest.approx(3.0)
    assert high - mean == pytest.approx(6.5724, abs=1e-4)
    assert mean - low == pytest.approx(6.5724, abs=1e-4)


def test_one_seed_has_no_interval() -> None:
    mean, low, high = mean_interval(np.array([[1.0, 2.0]]))
    assert mean.tolist() == [1.0, 2.0]
    assert np.isnan(low).all()
    assert np.isnan(high).all()


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=60), st.integers(0, 5))
def test_smoothing_is_the_mean_of_a_symmetric_window(values: list[float], half: int) -> None:
    y = np.array(values)
    fast = smoothed(y, 2 * half + 1)
    for i in range(len(y)):
        reach = min(half, i, len(y) - 1 - i)
        assert fast[i] == pytest.approx(np.mean(y[i - reach : i + reach + 1]), abs=1e-9)


def test_probes_are_not_smoothed_and_updates_are_over_a_tenth() -> None:
    assert window_of(6) == 1
    assert window_of(50) == 5
    assert window_of(200) == 21


def test_seeds_are_averaged_where_all_have_data() -> None:
    # Seeds reach 10 and 8 tokens: the common range is 2 to 8, and y = x and y = x + 2 have the mean x + 1.
    one = Curve(np.array([0.0, 10.0]), np.array([0.0, 10.0]))
    two = Curve(np.array([2.0, 8.0]), np.array([4.0, 10.0]))
    line = band([one, two], "tokens")
    assert line is not None
    assert (line.x[0], line.x[-1]) == (2.0, 8.0)
    assert line.mean == pytest.approx(line.x + 1)
    assert line.seeds == 2


def test_updates_keep_their_own_points() -> None:
    seeds = [Curve(np.array([0.0, 10.0, 20.0]), np.array([0.0, s, 4.0])) for s in (1.0, 3.0)]
    line = band(seeds, "updates")
    assert line is not None
    assert line.x.tolist() == [0, 10, 20]
    assert line.mean.tolist() == [0.0, 2.0, 4.0]


def test_only_smoothed_bands_differ_from_the_raw_mean() -> None:
    zigzag = Curve(np.arange(30.0), np.arange(30) % 2 * 1.0)
    plain, smooth = band([zigzag], "updates"), band([zigzag], "updates", smooth=True)
    assert plain.window == 1
    assert plain.mean.tolist() == plain.raw.tolist() == zigzag.y.tolist()
    assert smooth.window == 3
    assert smooth.raw.tolist() == zigzag.y.tolist()
    assert smooth.mean[10] == pytest.approx(2 / 3)


def test_no_data_gives_no_band() -> None:
    assert band([Curve(np.empty(0), np.empty(0))], "updates") is None
