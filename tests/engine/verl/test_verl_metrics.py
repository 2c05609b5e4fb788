"""One continuous metrics file out of several attempts."""

import json
from pathlib import Path

import numpy as np
import pytest

from fr3e.engine.verl.metrics import RowFile, merge, mismatch
from fr3e.files import write_json


def attempt(folder: Path, number: int, resumed_from: int, updates: list[int]) -> None:
    folder.mkdir(exist_ok=True)
    write_json(folder / f"{number}.json", {"resumed_from": resumed_from})
    rows = RowFile(folder / f"{number}.metrics.jsonl")
    for update in updates:
        rows.add({"update": update, "attempt": number})


def merged(folder: Path) -> list[tuple[int, int]]:
    rows = merge(folder, ".metrics.jsonl", folder.parent / "metrics.jsonl")
    assert [json.loads(line) for line in (folder.parent / "metrics.jsonl").read_text().splitlines()] == rows
    return [(row["update"], row["attempt"]) for row in rows]


def test_rows_done_again_replace_those_after_the_checkpoint(tmp_path: Path) -> None:
    attempt(tmp_path / "a", 1, 0, [0, 1, 2, 3, 4, 5])
    attempt(tmp_path / "a", 2, 4, [5, 6])
    assert merged(tmp_path / "a") == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 2), (6, 2)]


def test_an_attempt_that_fell_shorter_takes_the_lost_rows_away(tmp_path: Path) -> None:
    # Attempt 1 reached update 5, its checkpoint was of update 2; attempt 2 died after update 3: 4 and 5 are nowhere now.
    attempt(tmp_path / "a", 1, 0, [0, 1, 2, 3, 4, 5])
    attempt(tmp_path / "a", 2, 2, [3])
    assert merged(tmp_path / "a") == [(0, 1), (1, 1), (2, 1), (3, 2)]


def test_an_attempt_that_died_before_its_first_row_takes_nothing_away(tmp_path: Path) -> None:
    attempt(tmp_path / "a", 1, 0, [0, 1, 2])
    attempt(tmp_path / "a", 2, 0, [])
    assert merged(tmp_path / "a") == [(0, 1), (1, 1), (2, 1)]


def test_starting_anew_replaces_everything(tmp_path: Path) -> None:
    attempt(tmp_path / "a", 1, 0, [0, 1])
    attempt(tmp_path / "a", 2, 0, [0, 1, 2])
    assert merged(tmp_path / "a") == [(0, 2), (1, 2), (2, 2)]


def test_attempt_ten_comes_after_attempt_two(tmp_path: Path) -> None:
    attempt(tmp_path / "a", 2, 0, [0, 1])
    attempt(tmp_path / "a", 10, 1, [2])
    assert merged(tmp_path / "a") == [(0, 2), (1, 2), (2, 10)]


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    attempt(tmp_path / "a", 1, 0, [0, 1])
    with open(tmp_path / "a" / "1.metrics.jsonl", "a") as handle:
        handle.write('{"update": 2, "rew')
    assert merged(tmp_path / "a") == [(0, 1), (1, 1)]


def test_a_column_that_is_not_finite_is_absent(tmp_path: Path) -> None:
    rows = RowFile(tmp_path / "m.jsonl")
    rows.add({"update": 1, "loss": float("nan"), "grad_norm": float("inf"), "reward/first": 0.5})
    assert json.loads((tmp_path / "m.jsonl").read_text()) == {"update": 1, "reward/first": 0.5}


def test_mismatch_is_over_tokens_not_rows() -> None:
    # |0.1|, |-0.3|, |0.2| over three tokens: mean 0.2, largest 0.3.
    found = mismatch([np.array([0.1, -0.3]), np.array([0.2])])
    assert found == {"mismatch/mean": pytest.approx(0.2), "mismatch/max": pytest.approx(0.3)}
    assert mismatch([]) == {} == mismatch([np.array([])])
