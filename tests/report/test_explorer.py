"""The explorer's data: escaping, ranking, what is taken from a run."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fr3e.algorithm.anchors import choose_anchors
from fr3e.algorithm.states import eligible_tokens
from fr3e.config.training import Fr3eConfig
from fr3e.report.explorer import example, page, ranking, script_json, trajectory, write_explorer
from fr3e.report.runs import Run
from tests.report.synthetic import scenario_plan, write_results


@given(st.text())
def test_json_in_a_script_element_can_neither_end_it_nor_change(text: str) -> None:
    made = script_json({"tokens": [text]})
    assert not set("<>&\u2028\u2029") & set(made)
    assert json.loads(made) == {"tokens": [text]}


@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.5, 2.0]), min_size=1, max_size=30), st.integers(1, 8))
def test_the_ranking_begins_with_the_anchors_that_training_chooses(entropies: list[float], count: int) -> None:
    eligible = [t % 5 != 4 for t in range(len(entropies))]
    chosen = choose_anchors(
        entropies, Fr3eConfig(num_anchors=count), eligible_T=eligible, surprisal_T=np.zeros(len(entropies)), seed="s"
    )
    assert tuple(sorted(ranking(entropies, eligible)[:count])) == chosen


def run_of(settings: dict) -> Run:
    return Run("toy-fr3e-s0", "toy", "fr3e", 0, Path("nowhere"), (), None, {"training": {"fr3e": settings}})


ROW = {
    "update": 10,
    "prompt": "p",
    "question": "1+1?",
    "gold": "2",
    "tokens": ["1", "+", "1", "=", "\\boxed{", "2", "}", "<|im_end|>"],
    "token_ids": [1, 2, 1, 3, 4, 5, 6, 0],
    "entropies": [0.1, 0.2, 0.3, 0.9, 2.0, 0.5, 0.4, 3.0],
    "anchors": [2, 3],
    "states": [
        {"k": 0, "value": 0.25, "previous": None, "alpha": 1.0},
        {"k": 2, "value": 0.5, "previous": 0.25, "alpha": 0.7788},
        {"k": 3, "value": 1.0, "previous": 0.5, "alpha": 0.6065},
    ],
    "reward": 1.0,
}


def test_tokens_that_cannot_be_anchors_follow_the_runs_settings() -> None:
    row = trajectory(ROW, run_of({}), "Toy")
    # Nothing from the answer's box on, no special token: 0.9, 0.3, 0.2, 0.1.
    assert row["order"] == [3, 2, 1, 0]
    special = {0}
    expected = eligible_tokens(
        ROW["token_ids"], special, lambda t: dict(zip(ROW["token_ids"], ROW["tokens"], strict=True))[t], True
    )
    assert sorted(row["order"]) == np.flatnonzero(expected).tolist()
    free = trajectory(ROW, run_of({"exclude_answer_span": False, "skip_first": 1}), "Toy")
    assert free["order"] == [4, 3, 5, 6, 2, 1]


def test_measured_values_are_keyed_by_prefix_length() -> None:
    row = trajectory(ROW, run_of({"anchor_in_prefix": False}), "Toy")
    assert row["measured"] == {"0": 0.25, "2": 0.5, "3": 1.0}
    assert row["alpha"]["2"] == 0.7788
    assert (row["run_k"], row["anchors"], row["in_prefix"]) == (2, [2, 3], False)


def test_the_worked_example_is_the_published_one() -> None:
    shown = example()
    assert shown["entropies"] == [1.2, 3.6, 0.8, 3.1, 1.9, 2.9, 0.6, 2.5, 1.4, 2.2, 0.9, 1.7]
    assert [p + 1 for p in sorted(shown["order"][:2])] == [2, 4]
    assert [p + 1 for p in sorted(shown["order"][:4])] == [2, 4, 6, 8]
    assert shown["measured"] == {"2": 0.375, "4": 0.625, "6": 0.75, "8": 0.25}


def test_the_page_is_self_contained() -> None:
    made = page([example()], "demo")
    for sign in ("http://", "https://", "src=", "@import", "url("):
        assert sign not in made
    assert "default-src 'none'" in made
    assert "no run of the scenario" in made.lower()


def test_a_scenario_without_runs_has_the_example_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = scenario_plan()
    path = write_results(tmp_path, plan, skip=tuple(entry.tag for entry in plan.evaluated))
    write_explorer(path, Path("explorer.html"))
    assert "so only the published example is shown" in " ".join(
        Path("explorer.html").read_text(encoding="utf-8").split()
    )
