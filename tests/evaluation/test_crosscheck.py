"""The cross-check: what is exported, how agreement is counted, and lm-eval itself where its environment is there."""

import json
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fr3e.errors import UserError
from fr3e.evaluation import crosscheck as cross
from fr3e.evaluation.crosscheck import INTERPRETER, agreement, crosscheck, disagreements
from fr3e.files import write_json

ROOT = Path(__file__).resolve().parents[2]
# id, gold, gold_source, response, our verdict, verdict by the harness's rules
GSM8K = [
    ("g0", "5", "2 + 3 = 5 #### 5", "So \\boxed{5}", True, True),
    ("g1", "7", "#### 7", "So \\boxed{8}", False, False),
    ("g2", "1200", "1200", "The answer is 1,200", True, True),
]
MATH = [
    ("m0", "\\frac{1}{2}", "\\frac{1}{2}", "So $\\boxed{\\dfrac12}$", True, True),
    ("m1", "3", "3", "So $\\boxed{4}$", False, True),
]


def write_evaluation(folder: Path) -> Path:
    """An evaluated folder with gsm8k and math500 as `sample` and `grade` leave it, and aime24, which is not checked."""
    for name, rows in (("gsm8k", GSM8K), ("math500", MATH), ("aime24", MATH)):
        place = folder / name
        place.mkdir(parents=True)
        data = place / "data.parquet"
        asked = [{"id": r[0], "question": f"What is {r[0]}?", "gold": r[1], "gold_source": r[2]} for r in rows]
        pq.write_table(pa.Table.from_pylist(asked), data)
        common = [{"benchmark": name, "id": r[0], "protocol": "greedy", "sample": 0} for r in rows]
        pq.write_table(
            pa.Table.from_pylist([c | {"response": r[3]} for c, r in zip(common, rows, strict=True)]),
            place / "generations.parquet",
        )
        graded = [
            c
            | {
                "verdict": "correct" if r[4] else "wrong",
                "correct": r[4],
                "answer": "",
                "rule": "",
                "qwen_compatible": r[5],
                "finish": "stop",
                "response_tokens": 3,
            }
            for c, r in zip(common, rows, strict=True)
        ]
        pq.write_table(pa.Table.from_pylist(graded), place / "verdicts.parquet")
        write_json(place / "generations.key.json", {"data_path": str(data)})
    return folder


def test_documents_are_in_lm_evals_fields(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)  # no .venv-lmeval here
    monkeypatch.delenv("FR3E_LMEVAL", raising=False)
    crosscheck(write_evaluation(tmp_path / "evaluation"), tmp_path / "out")
    assert "constraints/lmeval.txt" in caplog.text  # says how to go on
    documents = tmp_path / "out" / "documents"
    assert sorted(path.name for path in documents.iterdir()) == ["gsm8k.jsonl", "math500.jsonl"]
    gsm8k, math = (
        [json.loads(line) for line in (documents / f"{n}.jsonl").read_text().splitlines()] for n in ("gsm8k", "math500")
    )
    assert gsm8k[0] == {
        "key": "g0/greedy/0",
        "question": "What is g0?",
        "answer": "2 + 3 = 5 #### 5",
        "response": "So \\boxed{5}",
    }
    assert gsm8k[2]["answer"] == "#### 1200"
    assert math[0]["solution"] == "\\boxed{\\frac{1}{2}}" and math[0]["response"] == "So $\\boxed{\\dfrac12}$"


def test_agreement_is_counted_by_protocol_and_grader():
    ours = pd.DataFrame(
        {
            "benchmark": "gsm8k",
            "key": ["a", "b", "c", "d"],
            "protocol": ["p", "p", "q", "q"],
            "correct": [True, True, False, False],
            "qwen_compatible": [True, True, True, False],
            "response": "x" * 400,
            **dict.fromkeys(("gold", "answer", "verdict", "rule"), ""),
        }
    )
    theirs = pd.DataFrame(
        {"benchmark": "gsm8k", "key": ["a", "b", "c", "d"], "scoring": "s", "correct": [True, False, True, False]}
    )
    table = agreement(ours, theirs).set_index(["protocol", "grader"])
    counts = ["both_right", "only_ours", "only_lm_eval", "both_wrong"]
    assert table.loc[("all", "grade"), counts].tolist() == [1, 1, 1, 1]
    assert table.loc[("all", "harness"), counts].tolist() == [2, 1, 0, 1]
    assert table.loc[("p", "grade"), counts].tolist() == [1, 1, 0, 0]
    assert table.loc[("all", "harness"), "agreement"] == 0.75
    differing = disagreements(ours, theirs)
    assert differing["key"].tolist() == ["b", "c"] and differing["response_end"].str.len().max() == cross.TAIL
    with pytest.raises(UserError, match="scored 3 of 4"):
        agreement(ours, theirs[:3])


def test_nothing_to_check_and_broken_interpreters_are_told(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="no generations of gsm8k or math500"):
        crosscheck(tmp_path, tmp_path / "out")
    write_evaluation(tmp_path / "evaluation")
    monkeypatch.setenv("FR3E_LMEVAL", str(tmp_path / "absent"))
    with pytest.raises(UserError, match="cannot be started"):
        crosscheck(tmp_path / "evaluation", tmp_path / "out")
    monkeypatch.setenv("FR3E_LMEVAL", "/bin/false")
    with pytest.raises(UserError, match="failed with 1: no message"):
        crosscheck(tmp_path / "evaluation", tmp_path / "out")


@pytest.mark.slow
def test_lm_eval_itself(tmp_path, monkeypatch):
    python = Path(os.environ.get("FR3E_LMEVAL", ROOT / INTERPRETER))
    if not python.is_file():
        pytest.skip("lm-eval's environment is not there (docs/evaluation.md)")
    monkeypatch.setenv("FR3E_LMEVAL", str(python))
    crosscheck(write_evaluation(tmp_path / "evaluation"), tmp_path / "out")
    table = pd.read_csv(tmp_path / "out" / "agreement.csv").set_index(["lm_eval_scoring", "protocol", "grader"])
    assert table.loc[("gsm8k/flexible-extract/exact_match", "all", "grade"), "agreement"] == 1.0
    assert table.loc[("minerva_math500/none/math_verify", "all", "grade"), "agreement"] == 1.0
    assert table.loc[("minerva_math500/none/math_verify", "all", "harness"), "only_ours"] == 1
