"""Filtering, accumulation and mini-batches; the metrics that derive from groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fr3e.algorithm.advantage import advantages
from fr3e.algorithm.diagnostics import (
    advantage_metrics,
    chain_metrics,
    group_metrics,
    length_reward_covariance,
    noise_share,
    successes_histogram,
    trained_metrics,
)
from fr3e.algorithm.filtering import full, minibatches, select, trainable
from fr3e.config.training import AccumulationConfig, AdvantageConfig, Fr3eConfig
from tests.algorithm import slow_references
from tests.made_groups import group, random_groups

ADV = AdvantageConfig()


def test_degenerate_groups_are_rejected_unless_plain_grpo_wants_them() -> None:
    groups = [group([1, 1]), group([0, 0], state=1), group([1, 0], state=2)]
    assert [g.state for g in trainable(groups, AccumulationConfig(), ADV)] == [2]
    assert len(trainable(groups, AccumulationConfig(reject_degenerate=False), ADV)) == 3


def test_with_a_shared_baseline_a_group_counts_as_degenerate_by_its_prompt() -> None:
    # All right itself, but the prompt's mean is .75: A = .25, a gradient.
    assert [g.state for g in trainable([group([1, 1], scope=(0.75, 0.5))], AccumulationConfig(), ADV)] == [0]
    assert trainable([group([1, 1], scope=(1.0, 0.0))], AccumulationConfig(), ADV) == []


def test_value_differences_train_the_bases_alone() -> None:
    base = group([1], first_return=True, chains=(((0, 0.25),),))
    groups = [group([1, 0]), base]
    assert trainable(groups, AccumulationConfig(), AdvantageConfig(estimator="value_difference")) == [base]
    assert trainable(groups, AccumulationConfig(), ADV) == groups[:1]


@given(
    count=st.integers(0, 12),
    wanted=st.integers(1, 8),
    overflow=st.sampled_from(["carry", "drop"]),
    order=st.randoms(use_true_random=False),
)
def test_selection_does_not_depend_on_arrival(count, wanted, overflow, order) -> None:
    pool = [group([1, 0], uid=f"p{i}", born=i % 3) for i in range(count)]
    accum = AccumulationConfig(groups_per_update=wanted, overflow=overflow)
    expected = select(pool, accum, "s")
    order.shuffle(pool)
    got = select(pool, accum, "s")
    assert got == expected
    names = [g.uid for part in (got.trained, got.carried, got.dropped) for g in part]
    assert sorted(names) == sorted(g.uid for g in pool)
    assert len(got.trained) == min(count, wanted)
    assert full(pool, accum) == (count >= wanted)
    assert not (got.dropped if overflow == "carry" else got.carried)


def test_carry_takes_the_oldest_and_drop_draws_by_seed() -> None:
    pool = [group([1, 0], uid=f"p{i}", born=2 - (i == 7)) for i in range(8)]
    carried = select(pool, AccumulationConfig(groups_per_update=3), "s")
    assert [g.uid for g in carried.trained] == ["p7/b0s0", "p0/b0s0", "p1/b0s0"]
    draws = {
        tuple(g.uid for g in select(pool, AccumulationConfig(groups_per_update=3, overflow="drop"), s).trained)
        for s in "abcdefgh"
    }
    assert len(draws) > 4
    with pytest.raises(ValueError, match="one uid"):
        select([pool[0], pool[0]], AccumulationConfig(), "s")


@given(count=st.integers(1, 20), parts=st.integers(1, 5))
def test_minibatches_share_the_groups_evenly(count, parts) -> None:
    groups = [group([1, 0], uid=f"p{i}") for i in range(count)]
    if count < parts:
        with pytest.raises(ValueError, match="mini-batches"):
            minibatches(groups, parts, "s")
        return
    dealt = minibatches(groups, parts, "s")
    assert sorted(g.uid for part in dealt for g in part) == sorted(g.uid for g in groups)
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
    assert dealt == minibatches(groups[::-1], parts, "s")


def test_counts_before_filtering() -> None:
    states = [
        group([1, 1, 1, 1]),
        group([0, 0, 0, 0], uid="p1"),
        group([1, 0, 0, 1], uid="p2"),
        group([1, 1, 1, 0], state=1, prefix=3),
    ]
    assert group_metrics(states) == {
        "groups/all_right": 1,
        "groups/all_wrong": 1,
        "groups/mixed": 2,
        "successes": [1, 0, 1, 1, 1],
        "successes_root": [1, 0, 1, 0, 1],
    }
    assert group_metrics([]) == {"groups/all_right": 0, "groups/all_wrong": 0, "groups/mixed": 0, "successes": []}
    # Budgets can give groups of different sizes: 1 of 2 counts with 2 of 4.
    assert group_metrics([group([1, 0]), group([1, 1, 1, 1])])["successes"] == [0, 0, 1, 0, 1]


@given(
    st.lists(
        st.sampled_from([1, 2, 4, 8]).flatmap(lambda m: st.lists(st.sampled_from([0, 1]), min_size=m, max_size=m)),
        max_size=9,
    )
)
def test_successes_equal_the_slow_reference(rewards) -> None:
    assert successes_histogram([group(r) for r in rewards]) == slow_references.successes_histogram(rewards)


def test_values_along_the_chain() -> None:
    # V: .5 -> 1 -> .25 of one base, and a root at 0. Deltas .5 and -.75, standard deviation .625.
    # Standard errors: sqrt(.25/4 + 0) = .25 and sqrt(0 + .1875/4) = .2165.
    states = [group([1, 1, 0, 0]), group([1] * 4, state=1), group([1, 0, 0, 0], state=2), group([0] * 4, uid="p1")]
    metrics = chain_metrics(states)
    assert metrics["value/state0"] == 0.25
    assert metrics["value_count/state0"] == 2
    assert metrics["value/state2"] == 0.25
    assert metrics["delta_std"] == pytest.approx(0.625)
    assert metrics["delta_noise"] == pytest.approx((0.25 + 0.21651) / 2, abs=1e-5)
    assert "delta_std" not in chain_metrics([group([1, 0])])


def test_noise_share() -> None:
    # Deltas +-.5: variance .25. SE .25: share .0625 / .25.
    assert noise_share([0.5, -0.5], [0.25, 0.25]) == 0.25
    assert noise_share([0.5, -0.5], [9.0, 9.0]) == 1.0
    assert noise_share([0.5, 0.5], [0.1, 0.1]) is None


def test_pure_noise_has_a_noise_share_near_one() -> None:
    """States of one true value: what V_j - V_{j-1} varies by is its standard error."""
    rng = np.random.default_rng(0)
    states = [
        group(rng.integers(0, 2, 16).astype(float).tolist(), uid=f"p{p}", state=j) for p in range(300) for j in range(2)
    ]
    metrics = chain_metrics(states)
    assert metrics["delta_noise"] ** 2 / metrics["delta_std"] ** 2 == pytest.approx(1.0, abs=0.15)


def test_what_was_trained() -> None:
    # Lengths 2 and 6, rewards 1 and 0: Cov = mean(Lr) - mean(L) mean(r) = 1 - 2 = -1.
    trained = group([1, 0], lengths=[2, 6])
    assert length_reward_covariance(trained.rollouts) == -1.0
    metrics = trained_metrics([trained], prefix_loss=False)
    assert metrics["length/trained"] == 4.0
    # Entropies t / 10: (.1 + .2) + (.1 + .. + .6) = 2.4 over 8 tokens.
    assert metrics["entropy/trained"] == pytest.approx(0.3)
    with_prefix = group([1, 0], lengths=[2, 6], prefix=3)
    assert trained_metrics([with_prefix], False)["length/full"] == 7.0
    assert trained_metrics([], False) == {}


def test_advantage_columns() -> None:
    groups = random_groups(1)
    results = advantages(groups, Fr3eConfig(), ADV, "u")
    metrics = advantage_metrics(groups, results, prefix_loss=False)
    assert metrics["advantage/mean"] == pytest.approx(0.0, abs=1e-12)
    assert sum(metrics["alpha/histogram"]) == len(groups)
    assert metrics["alpha/min"] >= np.exp(-1)
    lengths = np.concatenate([[r.continuation_len for r in g.rollouts] for g in groups])
    expected = np.average(np.concatenate([r.modulated for r in results]), weights=lengths)
    assert metrics["advantage_token/mean"] == pytest.approx(expected)
    # The histogram holds the whole range of alpha, [1/e, e].
    ends = [group([1, 0], uid=f"p{i}", alpha=a) for i, a in enumerate((np.exp(-1), np.e))]
    histogram = advantage_metrics(ends, advantages(ends, Fr3eConfig(), ADV, "u"), False)["alpha/histogram"]
    assert (histogram[0], histogram[-1], sum(histogram)) == (1, 1, 2)
