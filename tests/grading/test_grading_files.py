"""Files in, verdicts out; the second column; explanations."""

import json
import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fr3e.errors import UserError
from fr3e.grading import explain, explain_text, grade
from fr3e.grading.files import grade_file
from fr3e.grading.qwen_compatible import qwen_compatible

ANSWERS = [
    r"\boxed{12}",
    r"The answer is $\frac{1}{2}$.",
    "no idea",
    r"\boxed{9^{9^{9^{9}}}}",
    "\\boxed{\\foo{}}",
    r"\boxed{13}",
]


def _generations(path: Path, ids: list[str], responses: list[str]) -> Path:
    count = len(ids)
    pq.write_table(
        pa.table(
            {
                "benchmark": ["made"] * count, "id": ids, "protocol": ["avg@2"] * count, "sample": list(range(count)),
                "response": responses, "finish": ["stop"] * count, "response_tokens": [7] * count, "extra": [1] * count,
            }
        ),
        path,
    )  # fmt: skip
    return path


def _golds(path: Path, status: bool = True) -> Path:
    table = {"id": ["a", "b", "c"], "question": ["?"] * 3, "gold": ["12", "0.5", ""]}
    if status:
        table["status"] = ["ok", "ok", "unusable"]
    pq.write_table(pa.table(table), path)
    return path


def test_a_file_is_graded_row_by_row(tmp_path: Path) -> None:
    generations = _generations(tmp_path / "g.parquet", ["a", "b", "a", "a", "b", "a"], ANSWERS)
    out = tmp_path / "sub" / "v.parquet"
    grade_file(generations, _golds(tmp_path / "gold.parquet"), out, workers=1)
    table = pq.read_table(out)
    assert table.column_names == [
        "benchmark", "id", "protocol", "sample", "verdict", "correct", "answer", "rule", "qwen_compatible", "finish",
        "response_tokens",
    ]  # fmt: skip
    rows = table.to_pylist()
    assert [row["verdict"] for row in rows] == ["correct", "correct", "no_answer", "refused", "unparseable", "wrong"]
    assert [row["correct"] for row in rows] == [True, True, False, False, False, False]
    assert [row["qwen_compatible"] for row in rows] == [True, True, False, False, False, False]
    assert [row["sample"] for row in rows] == list(range(6))
    assert rows[0]["answer"] == "12"
    assert rows[2]["answer"] is None
    assert list(tmp_path.glob("sub/.*")) == []


def test_unusable_rows_are_left_out_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    generations = _generations(tmp_path / "g.parquet", ["a", "c", "c"], [r"\boxed{12}"] * 3)
    with caplog.at_level(logging.INFO, "fr3e"):
        grade_file(generations, _golds(tmp_path / "gold.parquet"), tmp_path / "v.parquet", workers=1)
    assert pq.read_table(tmp_path / "v.parquet").column("id").to_pylist() == ["a"]
    assert "2 generations left out" in caplog.text
    assert "correct 1, wrong 0" in caplog.text


def test_a_generation_without_a_gold_names_both_files(tmp_path: Path) -> None:
    generations = _generations(tmp_path / "g.parquet", ["a", "z"], [r"\boxed{12}"] * 2)
    gold = _golds(tmp_path / "gold.parquet", status=False)
    with pytest.raises(UserError) as error:
        grade_file(generations, gold, tmp_path / "v.parquet", workers=1)
    assert str(generations) in str(error.value)
    assert str(gold) in str(error.value)
    assert "'z'" in str(error.value)
    assert not (tmp_path / "v.parquet").exists()


def test_broken_files_are_named(tmp_path: Path) -> None:
    gold = _golds(tmp_path / "gold.parquet")
    with pytest.raises(UserError, match=r"none\.parquet: no such file"):
        grade_file(tmp_path / "none.parquet", gold, tmp_path / "v.parquet", workers=1)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(UserError, match=r"bad\.parquet: not a parquet file"):
        grade_file(tmp_path / "bad.parquet", gold, tmp_path / "v.parquet", workers=1)
    with pytest.raises(UserError, match="no column benchmark"):
        grade_file(gold, gold, tmp_path / "v.parquet", workers=1)


def test_lone_surrogates_and_missing_responses_survive(tmp_path: Path) -> None:
    generations = _generations(
        tmp_path / "g.parquet", ["a", "a"], ["\\boxed{\udcff5}".encode("utf-8", "replace").decode(), None]
    )  # type: ignore[list-item]
    grade_file(generations, _golds(tmp_path / "gold.parquet"), tmp_path / "v.parquet", workers=1)
    assert pq.read_table(tmp_path / "v.parquet").column("verdict").to_pylist()[1] == "no_answer"


@pytest.mark.parametrize(
    ("response", "gold", "accepted"),
    [
        (r"\boxed{12}", "12", True),
        (r"\boxed{12.0005}", "12", True),  # 4e-5, within 1e-4
        (r"\boxed{12.01}", "12", False),
        (r"\boxed{28}", "0.28", True),  # 100 times
        (r"\boxed{0.28}", "28", True),  # a hundredth
        (r"\boxed{2.8}", "28", False),
        (r"\boxed{3.1416}", r"\pi", True),
        (r"\boxed{3.2}", r"\pi", False),
        (r"\boxed{(1,2)}", "[1,2)", True),  # brackets are not looked at
        (r"\boxed{(2,1)}", "(1,2)", False),  # but the order is
        (r"\boxed{2,1}", "1,2", False),
        (r"\boxed{\text{East}}", "east", True),
        (r"\boxed{x=5}", "5", True),
        (r"\boxed{2y=4x+6}", "y=2x+3", False),
        (r"\boxed{y-2x=3}", "y=2x+3", True),
        ("so it is 7", "7", True),  # the last number counts
        ("nothing", "", True),  # empty equals empty
        (r"\boxed{(x+1)^2}", "x^2+2x+1", True),
        (r"\boxed{9^{9^{9^{9}}}}", "7", False),
    ],
)
def test_the_second_column_follows_the_published_rules(response: str, gold: str, accepted: bool) -> None:
    assert qwen_compatible(response, gold) is accepted


def test_explanations_are_json_and_name_the_rule() -> None:
    facts = explain(r"so \boxed{\dfrac{2}{4}}", r"$\frac{1}{2}$")
    assert json.loads(json.dumps(facts)) == facts
    assert facts["extraction"] == {"source": "last box", "text": r"\dfrac{2}{4}"}
    assert facts["answer"]["normal"] == r"\frac{2}{4}"
    assert facts["gold"]["normal"] == r"\frac{1}{2}"
    assert facts["correct"] is True
    assert facts["rule"] == "equal numbers"
    shown = explain_text(r"so \boxed{9^{9^{9^{9}}}}", "7")
    assert "refused" in shown
    assert "a tower of powers" in shown
    assert "no_answer" in explain_text("nothing", "7")


@pytest.mark.parametrize(
    ("answer", "gold", "unit", "tolerance", "right"),
    [
        (r"4.2\%", "4.2", "%", 0.1, True),
        ("4.3", "4.2", "%", 0.1, True),
        ("4.35", "4.2", "%", 0.1, False),
        ("4.3", "4.2", "%", None, False),
        (r"45 \text{ minutes}", "45", "minute", None, True),
        ("45", "45", "minute", None, True),
        (r"45 \text{ hours}", "45", "minute", None, False),
        (r"0.75 \text{ hours}", "45", "minute", None, True),
        (r"166 \text{ cm}^2", "$166$", "$cm^2$", None, True),
        (r"4.8 \text{ m/s}", "4.7", "m/s", 0.2, True),
        (r"5.0 \text{ m/s}", "4.7", "m/s", 0.2, False),
        ("90, 90", r"$\angle A=90$,$\angle B=90$", r"^{\circ}", None, True),
    ],
)
def test_the_unit_and_the_error_beside_a_gold_count(
    answer: str, gold: str, unit: str, tolerance: float | None, right: bool, tmp_path: Path
) -> None:
    assert bool(grade(rf"\boxed{{{answer}}}", gold, unit=unit, tolerance=tolerance)) == right
    generations = _generations(tmp_path / "g.parquet", ["a"], [rf"\boxed{{{answer}}}"])
    pq.write_table(
        pa.table({"id": ["a"], "gold": [gold], "unit": [unit], "tolerance": pa.array([tolerance], pa.float64())}),
        tmp_path / "gold.parquet",
    )
    grade_file(generations, tmp_path / "gold.parquet", tmp_path / "v.parquet", workers=1)
    assert pq.read_table(tmp_path / "v.parquet").column("correct").to_pylist() == [right]
