"""What the figures show: shares, groups reduced to equal size, tables."""

from itertools import combinations
from math import isnan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.text import Text

from fr3e.report.figures_curves import draw_curves, draw_heat
from fr3e.report.figures_data import (
    COMMON,
    LOGGED,
    curve_panels,
    curve_table,
    duplicate_share,
    filtered_share,
    group_share,
    heat_table,
    prompt_share,
    reduced_histogram,
    reduced_share,
)
from fr3e.report.runs import Run, load_runs


def test_shares_are_of_all_groups_before_filtering() -> None:
    row = {"groups/all_right": 2, "groups/all_wrong": 1, "groups/mixed": 7, "states/duplicate": 5}
    assert group_share(row, "all_wrong") == pytest.approx(0.1)
    assert filtered_share(row) == pytest.approx(0.3)
    assert duplicate_share(row) == pytest.approx(5 / 15)
    assert group_share({}, "all_right") is None
    assert prompt_share({"prompts/sampled": 8, "prompts/all_right": 2}, "all_right") == pytest.approx(0.25)


def test_reducing_four_rollouts_to_two() -> None:
    # One group with 3 of 4 right: of the 6 pairs, 3 are all right, none all wrong, 3 are mixed.
    assert reduced_share([0, 0, 0, 1, 0], 2, right=True) == pytest.approx(3 / 6)
    assert reduced_share([0, 0, 0, 1, 0], 2, right=False) == 0.0
    assert reduced_histogram([0, 0, 0, 1, 0], 2).tolist() == pytest.approx([0, 0.5, 0.5])
    assert reduced_share([0, 0, 0], 2, right=True) is None
    with pytest.raises(ValueError, match="cannot reduce groups of 1 to 2"):
        reduced_share([1, 0], 2, right=True)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=7).filter(any), st.data())
def test_reduction_equals_counting_every_subset(histogram: list[int], data: st.DataObject) -> None:
    n = len(histogram) - 1
    size = data.draw(st.integers(1, n))
    counted = np.zeros(size + 1)
    for right, groups in enumerate(histogram):
        subsets = [sum(chosen) for chosen in combinations([1] * right + [0] * (n - right), size)]
        for successes in subsets:
            counted[successes] += groups / len(subsets)
    assert reduced_histogram(histogram, size) == pytest.approx(counted)
    assert reduced_share(histogram, size, right=True) == pytest.approx(counted[-1] / sum(histogram))
    assert reduced_share(histogram, size, right=False) == pytest.approx(counted[0] / sum(histogram))


def test_a_curve_figure_has_both_protocols_and_both_axes(in_demo, demo_plan) -> None:
    runs = load_runs(demo_plan)
    assert len(runs) == 6
    panels = curve_panels(runs, {"chain": "Chain"})
    table = curve_table(runs, ["toy"], demo_plan.methods, panels["fig3_entropy"], 0.95)
    assert set(table.protocol) == {LOGGED, COMMON}
    assert set(table.axis) == {"updates", "tokens"}
    assert set(table.seeds) == {3}
    probe = table[(table.protocol == COMMON) & (table.axis == "updates") & (table.method == "fr3e")]
    assert probe.x.tolist() == [0, 10, 20, 30, 40, 50]
    values = [
        [row["probe/train/entropy"] for row in run.rows if "probe/train/entropy" in row]
        for run in runs
        if run.method == "fr3e"
    ]
    assert probe["mean"].tolist() == pytest.approx(np.mean(values, axis=0).tolist())
    assert probe.raw.tolist() == probe["mean"].tolist()
    logged = table[(table.protocol == LOGGED) & (table.axis == "updates") & (table.method == "fr3e")]
    assert len(logged) == 50
    assert set(logged.window) == {5}
    raw = np.mean([[row["entropy/trained"] for row in run.updates] for run in runs if run.method == "fr3e"], axis=0)
    assert logged.raw.tolist() == pytest.approx(raw.tolist())
    assert (table.low <= table["mean"]).all()


def test_shares_stay_between_0_and_1_and_one_seed_has_no_band(in_demo, demo_plan) -> None:
    runs = [run for run in load_runs(demo_plan) if run.seed == 0]
    panels = curve_panels(runs, {})["fig7_all_wrong"]
    table = curve_table(runs, ["toy"], demo_plan.methods, panels, 0.95)
    assert table.low.isna().all()
    assert table["mean"].between(0, 1).all()
    assert panels[2].title.endswith("(n = 8)")


def test_models_without_runs_have_no_rows(in_demo, demo_plan) -> None:
    table = curve_table(load_runs(demo_plan), ["absent"], demo_plan.methods, curve_panels([], {})["fig4_length"], 0.95)
    assert table.empty


def test_the_common_protocol_of_advantages_is_that_of_full_rollouts(demo_plan) -> None:
    rows = tuple({"update": u, "advantage_raw_token/mean": 0.1, "probe/train/advantage": -0.2} for u in range(1, 4))
    panels = curve_panels([], {})["fig5_advantage"]
    table = curve_table(
        [Run("t", "toy", "fr3e", 0, Path("nowhere"), rows, None, None)], ["toy"], ["fr3e"], panels, 0.95
    )
    assert set(table[table.protocol == COMMON]["mean"]) == {-0.2}
    assert set(table[table.protocol == "before alpha"]["mean"]) == {0.1}
    # Runs of an older version have no such column; their panel does not say that they have not run.
    old = table[table.protocol != COMMON]
    figure = draw_curves(old, {"toy": "Toy"}, ["fr3e"], panels)
    words = [text.get_text() for text in figure.findobj(Text)]
    assert "not logged" in words and "not run" not in words
    pyplot.close(figure)


def test_heat_map_columns_sum_to_1_and_the_common_rows_have_equal_size(in_demo, demo_plan) -> None:
    heat = heat_table(load_runs(demo_plan), ["toy"], demo_plan.methods)
    sums = heat.groupby(["method", "protocol", "last_update"]).share.sum()
    assert sums.to_numpy() == pytest.approx(np.ones(len(sums)))
    assert set(heat[heat.protocol == COMMON].of) == {8}
    assert set(heat[(heat.protocol == LOGGED) & (heat.method == "grpo_pp")].of) == {16}
    assert not any(isnan(share) for share in heat.share)


def test_long_runs_pool_updates_into_at_most_fifty_spans(demo_plan) -> None:
    # 120 updates in spans of 3; the first span pools counts 1, 2, 3 of one group size: (0 + 2 + 3) right of 6.
    rows = tuple({"update": u, "tokens_total": 10 * u, "successes": [u == 1, u - (u == 1)]} for u in range(1, 121))
    heat = heat_table([Run("t", "toy", "fr3e", 0, Path("nowhere"), rows, None, None)], ["toy"], ["fr3e"])
    assert heat.last_update.nunique() == 40
    first = heat[heat.last_update == 3]
    assert first.first_update.tolist() == [1, 1]
    assert first.share.tolist() == pytest.approx([1 / 6, 5 / 6])
    assert set(first.tokens) == {30}


def test_tokens_of_the_heat_map_are_those_of_all_seeds_and_rise() -> None:
    # Seed 0 is cheap and samples in every update; seed 1 is dear and samples in the odd ones: no update would be left whose
    # mean rose if only the sampling seeds counted (10, 20, 30 against 100, 100, 300).
    every = [{"update": u, "tokens_total": 10 * u, "successes": [1, 1], "successes_root": [1, 1]} for u in (1, 2, 3, 5)]
    every.insert(3, {"update": 4, "tokens_total": 30})
    odd = [{"update": u, "tokens_total": 100 * (u - (u % 2 == 0))} for u in (1, 2, 3, 4, 5)]
    odd = [row | ({"successes": [2, 0], "successes_root": [2, 0]} if row["update"] in (1, 3) else {}) for row in odd]
    runs = [Run("t", "toy", "fr3e", s, Path("nowhere"), tuple(r), None, None) for s, r in enumerate((every, odd))]
    heat = heat_table(runs, ["toy"], ["fr3e"])
    spans = heat[heat.protocol == LOGGED].groupby("last_update").first()
    # Nobody samples in update 4: no column.
    assert spans.index.tolist() == [1, 2, 3, 5]
    assert spans.tokens.tolist() == [55, 60, 165, 275]
    assert spans.seeds.tolist() == [2, 1, 2, 1]
    figure = draw_heat(heat, {"toy": "Toy"}, ["fr3e"])
    axes = figure.axes[0]
    assert "(1 to 2 seeds)" in axes.get_title()
    assert [child for child in axes.child_axes if child.get_xlabel() == "" and len(child.get_xticks())]
    pyplot.close(figure)
