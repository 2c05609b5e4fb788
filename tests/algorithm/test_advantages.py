"""Advantages: zero sums, the covariance expression, scopes, std, shuffled and released alphas, value differences."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fr3e.algorithm.advantage import advantages, centred, moments, value_differences
from fr3e.algorithm.diagnostics import covariance_expression, token_weighted_mean
from fr3e.algorithm.released import balanced, donors
from fr3e.config.training import AdvantageConfig, Fr3eConfig
from tests.made_groups import group, random_groups, rollout

FR3E, ADV = Fr3eConfig(), AdvantageConfig()


def lengths_of(groups):
    return [[r.continuation_len for r in g.rollouts] for g in groups]


def test_worked_group() -> None:
    # V = 3/8, alpha = exp(-.25): right ones have A = .625, A' = .4868; wrong ones -.375 and -.2921.
    (result,) = advantages([group([1, 1, 1, 0, 0, 0, 0, 0], alpha=math.exp(-0.25))], FR3E, ADV, "u")
    assert result.raw.tolist() == [0.625] * 3 + [-0.375] * 5
    assert result.modulated == pytest.approx([0.4868] * 3 + [-0.2921] * 5, abs=1e-4)
    assert result.per_token(0, 3) == pytest.approx([0.4868] * 3, abs=1e-4)


def test_std_is_the_unbiased_one() -> None:
    # r = (1, 0, 0, 0): mean .25, variance (.5625 + 3 * .0625) / 3 = .25, std .5.
    (result,) = advantages([group([1, 0, 0, 0])], FR3E, AdvantageConfig(std_norm=True), "u")
    assert result.raw == pytest.approx(np.array([0.75, -0.25, -0.25, -0.25]) / (0.5 + 1e-6))
    assert moments([1.0]) == (1.0, 0.0)


@pytest.mark.parametrize("std_norm", [False, True])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_group_of_one_or_of_equal_rewards_has_no_advantage(std_norm: bool, reward: float) -> None:
    for rewards in ([reward], [reward] * 5):
        (result,) = advantages([group(rewards, alpha=2.0)], FR3E, AdvantageConfig(std_norm=std_norm), "u")
        assert result.modulated.tolist() == [0.0] * len(rewards)


@given(seed=st.integers(0, 10_000), std_norm=st.booleans(), shuffled=st.booleans())
def test_every_group_sums_to_zero_before_and_after_alpha(seed, std_norm, shuffled) -> None:
    groups = random_groups(seed)
    fr3e = Fr3eConfig(alpha_mode="shuffled" if shuffled else "paper")
    for result in advantages(groups, fr3e, AdvantageConfig(std_norm=std_norm), "u"):
        assert abs(result.raw.sum()) < 1e-6
        assert abs(result.modulated.sum()) < 1e-6
        assert result.alpha.min() == result.alpha.max()


@given(st.integers(0, 10_000))
def test_the_token_mean_is_the_covariance_expression(seed) -> None:
    groups = random_groups(seed)
    results = advantages(groups, FR3E, ADV, "u")
    lengths = lengths_of(groups)
    tokens = [
        a
        for g, r in zip(groups, results, strict=True)
        for m, x in enumerate(g.rollouts)
        for a in r.per_token(m, x.continuation_len)
    ]
    expected = covariance_expression([g.alpha for g in groups], [r.raw for r in results], lengths)
    assert np.mean(tokens) == pytest.approx(expected, abs=1e-12)
    assert token_weighted_mean([r.modulated for r in results], lengths) == pytest.approx(expected, abs=1e-12)


def test_the_token_mean_vanishes_for_equal_lengths_and_is_negative_when_wrong_answers_are_longer() -> None:
    # A = (.5, -.5); lengths (2, 6): token mean (2 * .5 - 6 * .5) / 8 = -.25; M Cov(L, A) / sum L = 2 * (-1) / 8.
    (result,) = advantages([group([1, 0], lengths=[2, 6])], FR3E, ADV, "u")
    assert token_weighted_mean([result.modulated], [[2, 6]]) == -0.25
    assert covariance_expression([1.0], [result.raw], [[2, 6]]) == -0.25
    assert token_weighted_mean([result.modulated], [[4, 4]]) == 0.0


@given(seed=st.integers(0, 10_000), order=st.randoms(use_true_random=False), ranks=st.sampled_from([0, 1, 2, 8]))
def test_results_do_not_depend_on_the_order_of_groups_to_the_bit(seed, order, ranks) -> None:
    for mode in ("paper", "shuffled"):
        fr3e = Fr3eConfig(alpha_mode=mode, released_row_permutation=ranks)
        groups = random_groups(seed)
        expected = {g.uid: r for g, r in zip(groups, advantages(groups, fr3e, ADV, "u"), strict=True)}
        order.shuffle(groups)
        for g, r in zip(groups, advantages(groups, fr3e, ADV, "u"), strict=True):
            assert np.array_equal(r.modulated, expected[g.uid].modulated)


def test_prompt_scope_shares_one_baseline_that_each_group_carries() -> None:
    # Rewards of two states of one prompt: (1, 0) and (1, 1): mean 3/4. A: (.25, -.75), (.25, .25); the sum over both is 0.
    scope = moments([1.0, 0.0, 1.0, 1.0])
    groups = [group([1, 0], scope=scope), group([1, 1], state=1, scope=scope)]
    first, second = advantages(groups, FR3E, AdvantageConfig(group="prompt"), "u")
    assert first.raw.tolist() == [0.25, -0.75]
    assert second.raw.tolist() == [0.25, 0.25]
    # Alone the second gives the same: nothing is looked up in its sister.
    assert advantages(groups[1:], FR3E, AdvantageConfig(group="prompt"), "u")[0].raw.tolist() == [0.25, 0.25]


def test_shuffled_alphas_are_those_of_the_update() -> None:
    groups = random_groups(3)
    fr3e = Fr3eConfig(alpha_mode="shuffled")
    dealt = [float(r.alpha[0]) for r in advantages(groups, fr3e, ADV, "u")]
    assert sorted(dealt) == sorted(g.alpha for g in groups)
    assert dealt != [g.alpha for g in groups]
    assert dealt != [float(r.alpha[0]) for r in advantages(groups, fr3e, ADV, "v")]


def test_full_rollouts_take_no_part_in_shuffling() -> None:
    """They form no state: their alpha is 1 whatever is dealt out, and none of the states gets it."""
    states = [group([1, 0], alpha=2.0, state=1), group([1, 0], alpha=0.5, state=2)]
    first = group([1, 0], first_return=True)
    fr3e = Fr3eConfig(alpha_mode="shuffled", train_first_rollouts=True)
    for seed in "abcdefgh":
        dealt = [float(r.alpha[0]) for r in advantages([*states, first], fr3e, ADV, seed)]
        assert sorted(dealt[:2]) == [0.5, 2.0] and dealt[2] == 1.0
        assert dealt[:2] == [float(r.alpha[0]) for r in advantages(states, fr3e, ADV, seed)]


def slow_value_differences(chain, reward, length):
    """The value of the last state at or before each token, taken from the value of the next state or the reward."""
    result = []
    for t in range(length):
        before = [v for k, v in chain if k <= t]
        after = [v for k, v in chain if k > t]
        result.append((after[0] if after else reward) - before[-1] if before else 0.0)
    return result


@given(
    ks=st.sets(st.integers(0, 11), min_size=1, max_size=5),
    length=st.integers(12, 15),
    reward=st.sampled_from([0.0, 1.0]),
    data=st.data(),
)
def test_value_differences_equal_the_slow_reference_and_telescope(ks, length, reward, data) -> None:
    values = data.draw(st.lists(st.floats(0, 1), min_size=len(ks), max_size=len(ks)))
    chain = list(zip(sorted(ks), values, strict=True))
    advantage_T = value_differences(chain, reward, length)
    assert advantage_T.tolist() == slow_value_differences(chain, reward, length)
    ends = [*sorted(ks), length]
    firsts = advantage_T[ends[:-1]]
    assert firsts.sum() == pytest.approx(reward - values[0])


def test_value_differences_of_a_base() -> None:
    # States at 0 (V .25) and 2 (V .75), reward 1, 5 tokens: .5 on two tokens, .25 on three.
    base = group([1], first_return=True, chains=(((0, 0.25), (2, 0.75)),))
    (result,) = advantages([base], FR3E, AdvantageConfig(estimator="value_difference"), "u")
    assert result.per_token(0, 5).tolist() == [0.5, 0.5, 0.25, 0.25, 0.25]
    assert result.alpha.tolist() == [1.0]
    assert base.informative
    flat = group([1], first_return=True, chains=(((0, 1.0), (2, 1.0)),))
    assert not flat.informative


@given(st.lists(st.integers(1, 500), max_size=60), st.integers(1, 9))
def test_balancing_is_a_permutation_with_equal_shares(lengths, ranks) -> None:
    order = balanced(lengths, ranks)
    assert sorted(order) == list(range(len(lengths)))
    if ranks == 1:
        assert order == list(range(len(lengths)))
    if ranks > 1 and lengths and len(lengths) % ranks == 0:
        size = len(lengths) // ranks
        sums = [sum(lengths[i] for i in order[r * size : (r + 1) * size]) for r in range(ranks)]
        assert max(sums) - min(sums) <= max(lengths)
    taken = donors(lengths, ranks)
    assert sorted(taken) == list(range(len(lengths)))
    assert all(order[taken[row]] == row for row in range(len(lengths)))


def test_the_released_permutation_mixes_states_and_breaks_the_zero_sum() -> None:
    groups = random_groups(5, prompts=6, states=4, m=8)
    released = {"root_alpha": "one_minus_v", "prev_value": "surviving", "sharpen_power": 1.5}
    honest = advantages(groups, Fr3eConfig(**released, released_row_permutation=1), ADV, "u")
    faulty = advantages(groups, Fr3eConfig(**released, released_row_permutation=8), ADV, "u")
    assert all(np.array_equal(h.raw, f.raw) for h, f in zip(honest, faulty, strict=True))
    assert max(abs(h.modulated.sum()) for h in honest) < 1e-12
    assert max(abs(f.modulated.sum()) for f in faulty) > 0.05
    assert max(len(set(f.alpha.tolist())) for f in faulty) > 1


def test_on_one_rank_the_released_alphas_are_those_of_the_states() -> None:
    """The chunks are then whole states: the released computation gives Eq. 14 over the surviving ones."""
    from fr3e.algorithm.modulation import alphas
    from fr3e.algorithm.released import permuted_alphas

    rewards = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]]
    settings = Fr3eConfig(root_alpha="one_minus_v", sharpen_power=1.5, released_row_permutation=1)
    groups = [group(r, state=j) for j, r in enumerate(rewards)]
    raw = [centred(np.array([x.reward for x in g.rollouts]), False) for g in groups]
    found = [a.tolist() for a in permuted_alphas(groups, raw, settings)]
    assert found == [[alpha] * 4 for alpha in alphas([0.25, 0.5, 0.75], settings)]


def test_an_empty_response_has_an_advantage_and_no_tokens() -> None:
    empty = rollout(0.0, continuation=0)
    (result,) = advantages([group([1, 0], lengths=[3, 0])], FR3E, ADV, "u")
    assert result.per_token(1, len(empty.response_ids)).tolist() == []
    assert result.modulated.tolist() == [0.5, -0.5]
