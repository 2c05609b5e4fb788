"""The eight real benchmarks, row by row where a source is odd; and the doubts on made-up questions."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fr3e.data.benchmarks import gold_type, leak, truncated, write_benchmarks
from fr3e.data.sources import BENCHMARKS
from fr3e.errors import UserError
from fr3e.grading import grade

ROWS = {
    "aime24": 30, "gsm8k": 1319, "math500": 500, "minerva_math": 272, "gaokao2023en": 385, "olympiadbench": 675,
    "college_math": 2818, "amc23": 40,
}  # fmt: skip


@pytest.fixture(scope="module")
def written(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("benchmarks")
    write_benchmarks(mirror, out, None)
    return out


@pytest.fixture(scope="module")
def rows(written: Path) -> dict[str, list[dict]]:
    return {name: pq.read_table(written / f"{name}.parquet").to_pylist() for name in BENCHMARKS}


def test_every_benchmark_has_its_rows_and_unique_ids(rows):
    assert {name: len(own) for name, own in rows.items()} == ROWS
    for name, own in rows.items():
        assert len({row["id"] for row in own}) == len(own)
        assert all(row["id"].startswith(f"{name}:{number}:") for number, row in enumerate(own))


def test_status_reason_and_gold_go_together(rows):
    for own in rows.values():
        for row in own:
            assert row["status"] in ("ok", "unusable")
            assert bool(row["gold"]) == (row["status"] == "ok")
            assert row["status"] == "ok" or row["reason"]
            assert row["question"].strip()
            assert "$" not in row["gold"] and row["gold"] == row["gold"].strip() and "\n" not in row["gold"]


def test_the_only_unusable_rows_are_the_two_without_a_gold(rows):
    unusable = [
        (name, row["source_row"], row["reason"]) for name in rows for row in rows[name] if row["status"] != "ok"
    ]
    assert [(name, number) for name, number, _ in unusable] == [("gaokao2023en", "167"), ("gaokao2023en", "192")]
    assert "ends in its answer (Answer: A)" in unusable[1][2]


def test_golds_of_contests_are_whole_numbers(rows):
    for name in ("aime24", "amc23", "gsm8k"):
        assert all(str(int(row["gold"])) == row["gold"] for row in rows[name])
    by_id = {row["source_id"]: row for row in rows["aime24"]}
    assert (by_id["67"]["gold_source"], by_id["67"]["gold"]) == ("025", "25")
    assert (rows["amc23"][0]["gold_source"], rows["amc23"][0]["gold"]) == ("27.0", "27")


def test_sources_values_are_unchanged(rows, mirror):
    lines = (mirror / "benchmarks/math500/test.jsonl").read_text(encoding="utf-8").splitlines()
    for line, row in zip(lines, rows["math500"], strict=True):
        assert row["gold_source"] == json.loads(line)["answer"]
        assert row["question"] == json.loads(line)["problem"]
        assert row["source_id"] == json.loads(line)["unique_id"]


@pytest.mark.parametrize(
    ("name", "number", "gold"),
    [
        ("minerva_math", 5, r"\arcsin(10/13)"),
        ("minerva_math", 49, "-3/2"),
        ("minerva_math", 1, "4.5e33"),
        ("gaokao2023en", 0, r"\{x|-2\leq x < 1\}"),
        ("gaokao2023en", 8, "48, 384"),
        ("gaokao2023en", 107, "145"),
        ("gaokao2023en", 236, "120000"),
        ("olympiadbench", 13, "69,84"),
        ("olympiadbench", 194, "221,8"),
        ("olympiadbench", 96, "(0,4]"),
        ("olympiadbench", 5, "(1,8,19),(2,7,13),(4,5,7)"),
        ("college_math", 176, "3040"),
        ("math500", 198, "10080"),
        ("math500", 217, "11111111100"),
    ],
)
def test_odd_golds(rows, name, number, gold):
    assert rows[name][number]["gold"] == gold


def test_golds_are_ready_for_grade(rows):
    """A response that boxes the gold is right, and so is one that boxes what the source printed."""
    for name, number in (
        ("math500", 217),
        ("math500", 242),
        ("gaokao2023en", 8),
        ("olympiadbench", 194),
        ("aime24", 7),
    ):
        row = rows[name][number]
        assert grade(f"So it is $\\boxed{{{row['gold']}}}$.", row["gold"]), row
    for name in ("aime24", "amc23", "gaokao2023en"):
        for row in rows[name]:
            assert row["status"] != "ok" or grade(f"So it is $\\boxed{{{row['gold']}}}$.", row["gold"]), row


def test_olympiad_units_tolerance_and_several_answers(rows):
    own = rows["olympiadbench"]
    assert sum(row["unit"] is not None for row in own) == 8
    assert [(row["source_row"], row["tolerance"]) for row in own if row["tolerance"] is not None] == [("316", 0.1)]
    assert sum(bool(row["multiple"]) for row in own) == 94  # 63 numerical, 24 tuples, 7 expressions
    assert rows["gsm8k"][0]["multiple"] is None


def test_the_same_question_with_two_golds_is_said_on_both_sides(rows):
    amc = next(row for row in rows["amc23"] if "902" in row["reason"])
    gaokao = next(row for row in rows["gaokao2023en"] if "901" in row["reason"])
    assert (amc["gold"], gaokao["gold"]) == ("901", "902")
    assert gaokao["id"] in amc["reason"] and amc["id"] in gaokao["reason"]
    assert amc["status"] == gaokao["status"] == "ok"  # the published gold stays for the headline score


def test_manifest_counts_doubts(written, rows):
    manifest = json.loads((written / "manifest.json").read_text())
    kinds: dict[str, list[str]] = {}
    for name, entry in manifest["benchmarks"].items():
        assert entry["rows"] == ROWS[name]
        for doubt in entry["doubts"]:
            kinds.setdefault(doubt["kind"], []).append(doubt["id"].rsplit(":", 1)[0])
    assert kinds["leak"] == ["gaokao2023en:167", "gaokao2023en:192", "minerva_math:169"]
    assert kinds["truncated"] == ["gaokao2023en:190", "gaokao2023en:216", "gaokao2023en:245"]
    assert kinds["disputed"] == ["gaokao2023en:69", "gsm8k:288", "gsm8k:368", "minerva_math:155"]
    assert sum(name.startswith("amc23") for name in kinds["repeated"] + kinds["conflict"]) == 9
    licences = manifest["benchmarks"]["college_math"]["licences"]
    assert sum(licences.values()) == 2818 and len(licences) == 8


def test_the_same_mirror_gives_the_same_bytes(mirror, written, tmp_path):
    write_benchmarks(mirror, tmp_path, ["amc23", "aime24"])
    for name in ("amc23", "aime24"):
        assert (tmp_path / f"{name}.parquet").read_bytes() == (written / f"{name}.parquet").read_bytes()


def variant(mirror: Path, tmp_path: Path, name: str, rows: list[dict]) -> Path:
    """A mirror whose benchmark `name` was replaced by other rows."""
    for source in (mirror / "benchmarks").glob("*/test.jsonl*"):
        target = tmp_path / "benchmarks" / source.parent.name
        target.mkdir(parents=True, exist_ok=True)
        (target / source.name).write_bytes(source.read_bytes())
    (tmp_path / f"benchmarks/{name}/test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_the_83_amc_rows_are_not_amc23(mirror, tmp_path):
    other = json.loads((mirror / "benchmarks/alt_deepscaler_test/amc.json").read_text())
    folder = variant(mirror, tmp_path, "amc23", [{"id": i, **row} for i, row in enumerate(other)])
    with pytest.raises(UserError, match=r"83 rows, amc23 has 40; a set with 83 rows is AMC 2022 and 2023 together"):
        write_benchmarks(folder, tmp_path / "out", ["amc23"])


@pytest.mark.parametrize("as_list", [True, False])
def test_a_minerva_file_with_answers_of_sub_questions(mirror, tmp_path, as_list):
    other = json.loads((mirror / "benchmarks/alt_deepscaler_test/minerva.json").read_text())
    rows = other if as_list else [{**row, "answer": row["answer"][0].strip()} for row in other]
    folder = variant(mirror, tmp_path, "minerva_math", rows)
    with pytest.raises(UserError, match=r"row \d+: answer .* answers of sub-questions as golds"):
        write_benchmarks(folder, tmp_path / "out", ["minerva_math"])


def test_leaks():
    assert leak("What is 2+2? Answer: 4", "4")
    assert leak("Compute.answers: $\\frac{3}{10}$", None)
    assert leak("Part 0: \\boxed{7}. Part 1: and now?", "7")
    assert not leak("Part 0: \\boxed{8}. Part 1: and now?", "7")
    assert not leak(
        "Give your answer: as a fraction, simplified, with no decimals in any of its parts or terms at all.", "7"
    )
    assert not leak("Answer the question: what is 2+2?", "4")


def test_cut_off_questions():
    assert truncated("Find the value of")
    assert truncated("If $x=$ 3 and y = (")
    assert truncated("the medians of A and B: (C) equal (D) not enough to compare the med")
    assert truncated(r"Solve $\begin{cases} x=1 $")
    for whole in (
        "Find x",
        "Which is right: (A) f (B) g",
        "What is the sum?",
        "Evaluate $\\log_2 8$",
        "n in the xy-plane",
    ):
        assert not truncated(whole)


@pytest.mark.parametrize(
    ("gold", "kind"),
    [("12", "integer"), ("-0.5", "decimal"), ("4.5e33", "decimal"), (r"\frac{1}{2}", "fraction"), ("C", "letter"),
     ("(1,2]", "interval or tuple"), ("1,2", "list"), ("x=3", "equation"), ("x<3", "inequality"),
     (r"2\sqrt{3}", "expression"), (r"\{1,2\}", "set"), (r"\begin{pmatrix}1\end{pmatrix}", "matrix"),
     ("It will take the colony about ten minutes.", "sentence")],
)  # fmt: skip
def test_gold_types(gold, kind):
    assert gold_type(gold) == kind
