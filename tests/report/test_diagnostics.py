"""Values by state, alpha and its noise, anchors."""

from pathlib import Path

import numpy as np
import pytest

from fr3e.report.diagnostics import alpha_table, anchor_tables, commonest, noise_share, pooled_values, values_table
from fr3e.report.runs import Run, load_runs


def test_values_are_weighted_by_the_states_behind_them() -> None:
    # State 1: (0.2 * 1 + 0.8 * 3) / 4 = 0.65; state 2 has no states in the second row.
    rows = [
        {"value/state1": 0.2, "value_count/state1": 1, "value/state2": 0.5, "value_count/state2": 2},
        {"value/state1": 0.8, "value_count/state1": 3},
    ]
    assert pooled_values(rows) == pytest.approx({1: 0.65, 2: 0.5})


def test_noise_share_is_the_ratio_of_mean_squares() -> None:
    # noise^2: .09, .01 -> mean .05; std^2: .16, .04 -> mean .10; share .5
    rows = [{"delta_noise": 0.3, "delta_std": 0.4}, {"delta_noise": 0.1, "delta_std": 0.2}, {"loss": 1.0}]
    found = noise_share(rows)
    assert found is not None
    assert found.share == pytest.approx(0.5)
    assert noise_share([{"delta_noise": 0.5, "delta_std": 0.1}]).share == 1.0
    assert noise_share([{"loss": 1.0}]) is None


def test_pure_binomial_noise_is_recognised_as_noise() -> None:
    # Both states have the same true value, so all of delta's variance is sampling noise.
    rng, size = np.random.default_rng(0), 16
    values = rng.binomial(size, 0.5, (20_000, 2)) / size
    delta = values[:, 1] - values[:, 0]
    noise = np.sqrt((values * (1 - values) / size).sum(axis=1)).mean()
    share = noise_share([{"delta_noise": float(noise), "delta_std": float(delta.std())}]).share
    assert 0.9 < share <= 1.0


def test_commonest_tokens_are_ranked_over_all_updates() -> None:
    rows = [{"anchor/tokens": {"a": 1, "b": 2}}, {"anchor/tokens": {"a": 3, "c": 2}}, {}]
    assert commonest(rows, 2) == [("a", 4, 0.5), ("b", 2, 0.25)]


def test_tables_of_the_demo(in_demo, demo_plan) -> None:
    runs = load_runs(demo_plan)
    values = values_table(runs, ["toy"], demo_plan.methods, 0.95)
    assert sorted(set(values[values.method == "fr3e"].state)) == [0, 1, 2, 3]
    assert set(values[values.method == "grpo_pp"].state) == {0}
    assert (values.low <= values["mean"]).all()
    alpha = alpha_table(runs, ["toy"], demo_plan.methods)
    assert set(alpha.method) == {"fr3e"}
    assert alpha.share.sum() == pytest.approx(1)
    assert alpha.noise_only.sum() == pytest.approx(1, abs=1e-3)
    # alpha = 1 (the root) falls into one bin, and most of noise lies around it.
    middle = alpha[(alpha.low <= 1) & (alpha.high > 1)]
    assert len(middle) == 1
    assert middle.share.iloc[0] == alpha.share.max()
    positions, tokens = anchor_tables(runs, ["toy"], ["fr3e"])
    assert positions.share.sum() == pytest.approx(1)
    assert positions.high.iloc[-1] == 1.0
    assert len(tokens) == 10


def test_runs_without_states_give_empty_tables() -> None:
    run = Run("t", "toy", "fr3e", 0, Path("nowhere"), ({"update": 1, "loss": 0.1},), None, None)
    assert alpha_table([run], ["toy"], ["fr3e"]).empty
    positions, tokens = anchor_tables([run], ["toy"], ["fr3e"])
    assert positions.empty
    assert tokens.empty
