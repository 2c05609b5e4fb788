"""State values and alpha (Eq. 13-14): worked example, range, predecessors, the released variants."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fr3e.algorithm.modulation import alphas, deltas, previous_values, sharpen, shuffle
from fr3e.algorithm.values import delta_standard_error, state_value
from fr3e.config.training import Fr3eConfig

M = 8
values = st.lists(st.integers(0, M).map(lambda s: s / M), min_size=1, max_size=9)


def test_worked_example() -> None:
    # Successes of M = 8: t2 3, t4 5, t6 6, t8 2; the first state has no predecessor.
    assert [state_value([1.0] * s + [0.0] * (8 - s)) for s in (3, 5, 6, 2)] == [0.375, 0.625, 0.750, 0.250]
    # K = 2: alpha_2 = exp(-.25).
    assert alphas([0.375, 0.625], Fr3eConfig())[1:] == pytest.approx([0.7788], abs=5e-5)
    # K = 4: exp(-.25), exp(-.125), exp(.5).
    expected = [1.0, 0.7788, 0.8825, 1.6487]
    assert alphas([0.375, 0.625, 0.750, 0.250], Fr3eConfig()) == pytest.approx(expected, abs=5e-5)


def test_a_state_without_continuations_has_no_value() -> None:
    with pytest.raises(ValueError, match="no value"):
        state_value([])


def slow_alpha(values_S, settings):
    """Eq. 14 state by state, as the released code and the paper word it."""
    surviving = settings.prev_value == "surviving"
    last, raw = None, []
    for value in values_S:
        gone = surviving and value in (0.0, 1.0)
        if gone:
            raw.append(0.0)
        elif last is None:
            raw.append(1 - value if settings.root_alpha == "one_minus_v" else 0.0)
        else:
            raw.append(value - last)
        if not gone:
            last = value
    p = settings.sharpen_power
    total = sum(abs(d) ** p for d in raw if d) if p else 0
    if total:
        raw = [(1 if d > 0 else -1 if d < 0 else 0) * abs(d) ** p / total for d in raw]
    result = [1 / math.exp(d) for d in raw]
    change = {"amplify_only": lambda a: max(1, a), "brake_only": lambda a: min(1, a), "none": lambda a: 1.0}
    return [change.get(settings.alpha_mode, lambda a: a)(a) for a in result]


@given(
    values_S=values,
    root=st.sampled_from(["one", "one_minus_v"]),
    prev=st.sampled_from(["true", "surviving"]),
    power=st.sampled_from([0.0, 1.0, 1.5]),
    mode=st.sampled_from(["paper", "none", "amplify_only", "brake_only", "shuffled"]),
)
def test_alpha_equals_the_slow_reference_and_stays_in_range(values_S, root, prev, power, mode) -> None:
    settings = Fr3eConfig(root_alpha=root, prev_value=prev, sharpen_power=power, alpha_mode=mode)
    alpha_S = alphas(values_S, settings)
    assert alpha_S == pytest.approx(slow_alpha(values_S, settings), rel=1e-12)
    assert all(math.exp(-1) - 1e-12 <= alpha <= math.e + 1e-12 for alpha in alpha_S)
    if mode == "amplify_only":
        assert min(alpha_S) >= 1
    if mode == "brake_only":
        assert max(alpha_S) <= 1


@given(values)
def test_progress_brakes_and_loss_amplifies(values_S) -> None:
    alpha_S = alphas(values_S, Fr3eConfig())
    for before, value, alpha in zip(values_S, values_S[1:], alpha_S[1:], strict=False):
        assert (alpha < 1) == (value > before)
        assert (alpha > 1) == (value < before)


def test_the_value_of_a_filtered_state_is_kept_for_its_successor() -> None:
    # V = .5, 1 (filtered), .25: true predecessor 1, alpha = exp(.75); the released code compares with .5, alpha = exp(.25).
    assert previous_values([0.5, 1.0, 0.25], Fr3eConfig()) == [None, 0.5, 1.0]
    assert alphas([0.5, 1.0, 0.25], Fr3eConfig())[2] == pytest.approx(math.exp(0.75))
    surviving = Fr3eConfig(prev_value="surviving")
    assert previous_values([0.5, 1.0, 0.25], surviving) == [None, 0.5, 0.5]
    assert alphas([0.5, 1.0, 0.25], surviving)[2] == pytest.approx(math.exp(0.25))


def test_released_root_and_single_survivor() -> None:
    # The released code sets delta_0 = 1 - V_0: V_0 = .25 gives exp(-.75).
    released = Fr3eConfig(root_alpha="one_minus_v", prev_value="surviving", sharpen_power=1.5)
    assert alphas([0.25], Fr3eConfig(root_alpha="one_minus_v"))[0] == pytest.approx(math.exp(-0.75))
    # One surviving state and sharpening: delta = 1 whatever V is, alpha = 1/e = .368.
    for value in (0.125, 0.5, 0.875):
        assert alphas([0.0, value, 1.0], released)[1] == pytest.approx(math.exp(-1))


def test_sharpening_without_any_difference_is_no_nan() -> None:
    assert sharpen([0.0, 0.0], 1.5) == [0.0, 0.0]
    # .25^1.5 = .125, .5^1.5 = .3536: shares .2612 and .7388.
    assert sharpen([0.25, -0.5], 1.5) == pytest.approx([0.2612, -0.7388], abs=1e-4)
    assert deltas([0.5, 0.5], [None, 0.5], Fr3eConfig(sharpen_power=1.5)) == [0.0, 0.0]


@given(st.dictionaries(st.text("ab", min_size=1, max_size=5), st.floats(0.4, 2.7), max_size=12), st.text(max_size=3))
def test_shuffling_deals_out_the_same_alphas_whatever_the_order(alpha_of, seed) -> None:
    dealt = shuffle(alpha_of, seed)
    assert sorted(dealt.values()) == sorted(alpha_of.values())
    assert dealt == shuffle(dict(reversed(alpha_of.items())), seed)


def test_standard_error_of_a_difference() -> None:
    # sqrt(2 * .5 * .5 / 16) = .177, and .354 at M = 4.
    assert delta_standard_error(0.5, 0.5, 16, 16) == pytest.approx(0.1768, abs=1e-4)
    assert delta_standard_error(0.5, 0.5, 4, 4) == pytest.approx(0.3536, abs=1e-4)
