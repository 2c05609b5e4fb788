"""Cost: totals, ratios, cost to equal accuracy."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fr3e.report.cost import cell, number, write_cost
from fr3e.report.cost_data import Summary, cost_to, first_crossing, gpu_hours, ratio, summarise, targets, total, welch
from fr3e.report.runs import Run, load_runs
from tests.report.synthetic import scenario_plan, write_results


def run_of(points: list[tuple[int, int, float]], trained: dict | None = None) -> Run:
    """A run with a probe accuracy per (update, tokens, accuracy); a second per token."""
    rows = tuple({"update": u, "tokens_total": t, "seconds": t, "probe/chain/accuracy": a} for u, t, a in points)
    return Run("t", "toy", "fr3e", 0, Path("nowhere"), rows, trained, None)


def test_totals_add_columns_and_know_absence_from_zero() -> None:
    read = total("a", "b", minus="c")
    assert read({"a": 3, "b": 4, "c": 2}) == 5
    assert read({"b": 4}) == 4
    assert read({"c": 1}) is None


def test_gpu_hours() -> None:
    assert gpu_hours(run_of([(0, 0, 0.1)], {"seconds": 1800, "gpus": 8})) == 4.0
    assert gpu_hours(run_of([(0, 0, 0.1)], {"seconds": 1800, "gpus": 0})) is None


def test_a_crossing_lies_on_the_straight_line_between_two_probes() -> None:
    # From (10, .2) to (20, .6): .3 is reached a quarter of the way, at 12.5.
    assert first_crossing([0, 10, 20, 30], [0.1, 0.2, 0.6, 0.4], 0.3) == pytest.approx(12.5)
    assert first_crossing([0, 10, 20], [0.5, 0.2, 0.6], 0.4) == 0.0
    assert first_crossing([0, 10], [0.1, 0.2], 0.3) is None
    assert first_crossing([], [], 0.3) is None


def test_targets_go_up_to_the_lower_of_the_two_final_means() -> None:
    one = [run_of([(0, 0, 0.2), (10, 50, 0.8)]), run_of([(0, 0, 0.2), (10, 50, 0.6)])]
    two = [run_of([(0, 0, 0.2), (10, 90, 0.6)])]
    # Starts at .2; final means .7 and .6, the lower is .6: .2 + .5 * .4, .2 + .8 * .4, .6
    assert targets([one, two], "chain") == pytest.approx([0.4, 0.52, 0.6])
    assert targets([one, []], "chain") == []
    assert targets([one, [run_of([(0, 0, 0.2), (10, 90, 0.1)])]], "chain") == []
    # .4 lies a third of the way to .8 and half of the way to .6.
    assert cost_to(one, "chain", 0.4, "tokens") == pytest.approx([50 / 3, 25.0])
    assert cost_to(two, "chain", 0.7, "seconds") == [None]


def test_the_ratio_is_geometric_and_needs_every_seed() -> None:
    # logs of 2, 8 have the mean log 4; of 1, 1 log 1: ratio 4.
    found = ratio([2.0, 8.0], [1.0, 1.0])
    assert found is not None
    assert found.mean == pytest.approx(4.0)
    assert found.low < 4.0 < found.high
    assert ratio([2.0, None], [1.0, 1.0]) is None
    assert ratio([0.0], [1.0]) is None
    assert ratio([], [1.0]) is None


def test_welch_by_hand() -> None:
    # 1, 3 against 0, 0, 3: means 2 and 1; s2/n = 2/2 = 1 and 3/3 = 1; se sqrt 2; df = 4 / (1/1 + 1/2) = 2.6667
    # t(.975, 2.6667) = 3.4206; half-width 3.4206 * 1.4142 = 4.8374
    middle, low, high = welch(np.array([1.0, 3.0]), np.array([0.0, 0.0, 3.0]))
    assert middle == pytest.approx(1.0)
    assert high - middle == pytest.approx(4.8374, abs=2e-3)
    assert middle - low == pytest.approx(high - middle)
    assert math.isnan(welch(np.array([1.0]), np.array([2.0, 3.0]))[1])
    assert welch(np.array([2.0, 2.0]), np.array([1.0, 1.0])) == (1.0, 1.0, 1.0)


def test_numbers_and_cells_for_people() -> None:
    assert [number(v) for v in (0, 0.01234, 7, 789.4, 8207, 45_600, 999_999, 1_234_567, 2.5e9)] == [
        *("0", "0.0123", "7", "789", "8207", "45.6k", "1000k", "1.23M", "2.5G"),
    ]
    assert cell(Summary(5.0, 4.0, 6.0, 3, 3), "not run").spread == "[4, 6]"
    assert cell(Summary(5.0, math.nan, math.nan, 1, 1), "not run").spread == ""
    assert cell(Summary(5.0, 4.0, 6.0, 2, 3), "not run").text == "2 of 3 seeds"
    assert cell(None, "not run").muted
    assert summarise([None, None]) is None
    assert summarise([0.0, 1.0]).low == 0.0
    assert math.isnan(summarise([1.0]).low)


def test_the_files_agree_with_the_metrics(in_demo: Path, demo_plan) -> None:
    write_cost(Path("results/demo/report.yaml"), Path("cost"))
    table = pd.read_csv("cost/cost.csv")
    runs = [run for run in load_runs(demo_plan) if run.method == "fr3e"]
    generated = np.mean([run.rows[-1]["tokens_total"] for run in runs])
    found = table[(table.table == "whole run") & (table.quantity == "Generated, in all") & (table.method == "fr3e")]
    assert found["mean"].iloc[0] == pytest.approx(generated, rel=1e-5)
    assert found.seeds.iloc[0] == 3
    per_update = table[
        (table.table == "per update") & (table.quantity == "Generated, in all") & (table.method == "fr3e")
    ]
    assert per_update["mean"].iloc[0] == pytest.approx(generated / 50, rel=1e-5)
    assert (table.table == "to equal accuracy").any()
    assert "GPU-hours" not in set(table.quantity)
    page = Path("cost/cost.html").read_text(encoding="utf-8")
    assert "<h2>Cost of training</h2>" in page
    assert "No GPU was used" in page
    assert "http" not in page.split("</style>")[1]
    assert "Cost to equal accuracy" in Path("cost/cost.md").read_text(encoding="utf-8")


def test_what_has_not_run_says_so_and_prices_follow_gpu_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = scenario_plan()
    plan = plan.model_copy(update={"report": plan.report.model_copy(update={"gpu_hour_price": 2.5})})
    write_results(tmp_path, plan, skip=tuple(e.tag for e in plan.evaluated if e.method == "grpo_pp"), updates=10)
    trained = tmp_path / "results/demo/runs/toy-fr3e-s0/trained.json"
    for seed in range(3):
        path = trained.parent.parent / f"toy-fr3e-s{seed}" / "trained.json"
        path.write_text(path.read_text(encoding="utf-8").replace('"gpus": 0', '"gpus": 4'), encoding="utf-8")
    write_cost(Path("results/demo/report.yaml"), tmp_path)
    text = Path("cost.md").read_text(encoding="utf-8")
    assert "*not run*" in text
    assert "GRPO++: not run" in text
    table = pd.read_csv("cost.csv")
    hours = table[(table.quantity == "GPU-hours") & (table.table == "whole run")]["mean"].iloc[0]
    price = table[(table.unit == "currency units") & (table.table == "whole run")]["mean"].iloc[0]
    assert price == pytest.approx(2.5 * hours, rel=1e-4)
