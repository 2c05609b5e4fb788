"""Claims are judged by the rules of docs/claims.md."""

import re
from math import nan
from pathlib import Path

import pytest

from fr3e.report.claims import (
    NOT,
    NOT_ATTEMPTED,
    PARTLY,
    REPRODUCED,
    Comparison,
    judge,
    late_mean,
    rise,
    status,
    success_rate,
    zero_mean,
)
from fr3e.report.curves import column
from fr3e.report.runs import ROOT, Run, load_runs
from tests.report.conftest import write_evaluations
from tests.report.synthetic import scenario_plan, write_results

CLEAR = Comparison("", 2.0, 1.0, 3.0)
LEANING = Comparison("", 2.0, -1.0, 5.0)
ABSENT = Comparison("", -1.0, -3.0, 1.0)
ONE_SEED = Comparison("", 2.0, nan, nan)


def run_of(rows: list[dict]) -> Run:
    return Run("t", "toy", "fr3e", 0, Path("nowhere"), tuple(rows), None, None)


@pytest.mark.parametrize(
    ("comparisons", "word"),
    [
        ([], NOT_ATTEMPTED),
        ([CLEAR, CLEAR], REPRODUCED),
        ([CLEAR, LEANING], PARTLY),
        ([CLEAR, ABSENT], PARTLY),
        ([LEANING, LEANING], PARTLY),
        ([LEANING, ABSENT], NOT),
        ([ABSENT], NOT),
        ([ONE_SEED], PARTLY),
        ([Comparison("", 0.0, 0.0, 0.0)], NOT),
    ],
)
def test_the_word_for_a_claim(comparisons: list[Comparison], word: str) -> None:
    assert status(comparisons) == word


def test_the_document_and_the_code_name_the_same_claims(in_demo: Path, demo_plan) -> None:
    text = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    ids = [found for found in re.findall(r"^\| ([a-z0-9_]+) \|", text, re.MULTILINE) if found != "id"]
    assert ids == [item.id for item in judge(demo_plan, load_runs(demo_plan))]


def test_late_is_the_second_half_of_the_updates() -> None:
    rows = [{"update": u, "a": float(u)} for u in range(11)]
    # Updates 6 to 10 of 10: mean 8.
    assert late_mean(run_of(rows), column("a")) == 8.0
    assert late_mean(run_of(rows), column("b")) is None


def test_success_rate_and_its_rise() -> None:
    # 1 group with 0 of 2, 3 with 2 of 2: (0 + 6) / (4 * 2) = .75
    assert success_rate({"successes": [1, 0, 3]}, "successes") == pytest.approx(0.75)
    assert success_rate({"successes": [0, 0, 0]}, "successes") is None
    rows = [{"update": u, "successes": [10 - u, u]} for u in range(1, 11)]
    # Ten updates: fifths are updates 1-2 (rates .1, .2) and 9-10 (.9, 1.0).
    assert rise(run_of(rows), "successes") == pytest.approx(0.95 - 0.15)
    assert rise(run_of(rows[:4]), "successes") is None


def test_zero_mean_allows_rounding_only(demo_plan) -> None:
    assert zero_mean(demo_plan, [run_of([{"update": 1, "advantage/mean": -3e-8}])])[0].outcome == "clear"
    assert zero_mean(demo_plan, [run_of([{"update": 1, "advantage/mean": 2e-6}])])[0].outcome == "absent"


def judged(folder: Path, rates: dict[str, float]) -> dict[str, str]:
    plan = scenario_plan()
    write_results(folder, plan, updates=10)
    write_evaluations(folder, plan, rates)
    return {item.id: item.status for item in judge(plan, load_runs(plan))}


def test_a_large_difference_is_reproduced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = judged(tmp_path, {"fr3e": 0.9, "grpo_pp": 0.5})
    assert found["accuracy"] == REPRODUCED
    assert found["aime24"] == NOT_ATTEMPTED
    assert found["coherent"] == NOT_ATTEMPTED
    assert found["anchors"] == NOT_ATTEMPTED


@pytest.mark.parametrize("seeds", [{"fr3e": 1, "grpo_pp": 1}, {"fr3e": 3, "grpo_pp": 1}])
def test_one_seed_of_a_method_is_never_reproduced(
    seeds: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = scenario_plan()
    kept = [entry for entry in plan.evaluated if (entry.seed or 0) < seeds.get(entry.method, 1)]
    plan = plan.model_copy(update={"evaluated": kept})
    write_results(tmp_path, plan, updates=10)
    write_evaluations(tmp_path, plan, {"fr3e": 0.9, "grpo_pp": 0.5})
    accuracy = judge(plan, load_runs(plan))[0]
    assert (accuracy.id, accuracy.status, accuracy.comparisons[0].outcome) == ("accuracy", PARTLY, "leaning")
    assert "no interval" in str(accuracy.comparisons[0])


def test_the_opposite_difference_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert judged(tmp_path, {"fr3e": 0.5, "grpo_pp": 0.9})["accuracy"] == NOT


def test_arms_beside_the_plan_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = scenario_plan()
    write_results(tmp_path, plan, updates=10)
    write_evaluations(tmp_path, plan, {"fr3e": 0.9})
    other = plan.model_copy(
        update={
            "evaluated": [
                entry.model_copy(
                    update={
                        "method": "random_anchors",
                        "tag": entry.tag.replace("fr3e", "random_anchors"),
                        "folder": entry.folder.replace("fr3e", "random_anchors"),
                    }
                )
                for entry in plan.evaluated
                if entry.method == "fr3e"
            ]
        }
    )
    write_evaluations(tmp_path, other, {"random_anchors": 0.5})
    found = {item.id: item for item in judge(plan, load_runs(plan))}
    assert found["anchors"].status == REPRODUCED
    assert found["anchors"].comparisons[0].what == "Toy-0.2M, FR3E − random anchors"
    assert found["alpha"].status == NOT_ATTEMPTED
