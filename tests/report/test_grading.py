"""Verdicts are counted by kind and disagreements shown, from made verdict files with the counts done by hand."""

from pathlib import Path

import pandas as pd
import pytest

from fr3e.config import load_scenario
from fr3e.config.load import dump
from fr3e.config.plans import report_plan
from fr3e.errors import UserError
from fr3e.report.grading import write_grading

ROOT = Path(__file__).resolve().parents[2]
# problem, verdict, ours, harness, finish
ROWS = [
    ("a", "correct", True, True, "stop"),
    ("b", "correct", True, False, "stop"),
    ("c", "wrong", False, True, "stop"),
    ("d", "wrong", False, False, "length"),
    ("e", "no_answer", False, False, "length"),
    ("f", "timeout", False, None, "stop"),
]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    plan = report_plan(load_scenario(ROOT / "config/demo.yaml"), with_arms=False)
    monkeypatch.chdir(tmp_path)
    folder = Path(plan.evaluated[1].folder) / "chain"
    folder.mkdir(parents=True)
    frame = pd.DataFrame(ROWS, columns=["id", "verdict", "correct", "qwen_compatible", "finish"])
    frame = frame.assign(
        benchmark="chain", protocol="avg8", sample=0, answer="<b>7</b>", rule="integers", response_tokens=3
    )
    frame.to_parquet(folder / "verdicts.parquet")
    data = Path(plan.data) / "benchmarks"
    data.mkdir(parents=True)
    pd.DataFrame({"id": list("abcdef"), "gold": ["7"] * 6}).to_parquet(data / "chain.parquet")
    dump(plan, "report.yaml")
    write_grading(Path("report.yaml"), Path("out"))
    return tmp_path / "out"


def test_counts(written: Path) -> None:
    (row,) = pd.read_csv(written / "grading.csv").to_dict("records")
    assert {kind: row[kind] for kind in ("correct", "wrong", "no_answer", "timeout", "unparseable", "fault")} == {
        "correct": 2, "wrong": 2, "no_answer": 1, "timeout": 1, "unparseable": 0, "fault": 0,
    }  # fmt: skip
    assert (row["answers"], row["truncated"], row["too_long"]) == (6, 2, 0)
    assert (row["only_ours"], row["only_harness"]) == (1, 1)
    assert row["correct_share"] == pytest.approx(2 / 6)


def test_page_shows_the_disagreements_escaped(written: Path) -> None:
    page = (written / "grading.html").read_text(encoding="utf-8")
    assert "Disagreements" in page
    assert "&lt;b&gt;7&lt;/b&gt;" in page
    assert "<b>7</b>" not in page


def test_a_damaged_verdict_file_is_named(written: Path) -> None:
    damaged = next(Path("results").rglob("verdicts.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.raises(UserError, match=r"chain/verdicts.parquet: not a readable parquet file"):
        write_grading(Path("report.yaml"), Path("out"))
