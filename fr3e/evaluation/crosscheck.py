"""Let lm-eval score the same text, and say where the two graders disagree.

lm-eval lives in its own environment (its antlr runtime clashes with ours), found as `.venv-lmeval` or through the
environment variable FR3E_LMEVAL, which names its interpreter (docs/evaluation.md).
"""

import json
import os
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fr3e.errors import UserError
from fr3e.evaluation.verdicts import load_verdicts
from fr3e.files import read_json, write_text
from fr3e.progress import log

KINDS = ("gsm8k", "math500")  # a benchmark's name begins with the kind of its lm-eval tasks (gsm8k_50 too)
INTERPRETER = Path(".venv-lmeval/bin/python")
TAIL = 300  # characters of a response that a disagreement shows
SAME = ["id", "protocol", "sample"]


def crosscheck(evaluation: Path, out: Path) -> None:
    """Export responses, have lm-eval score them, and write the agreement.

    `evaluation` holds <benchmark>/generations.parquet, generations.key.json and verdicts.parquet. Under `out`:
    documents/<benchmark>.jsonl (one document per response, in lm-eval's fields), tasks/*.yaml and lm_eval.jsonl (by
    lm-eval), agreement.csv and agreement.md (a row per benchmark, scoring and grader), disagreements.csv.
    Without lm-eval's environment it stops after the documents and says how to make it.
    Raises `UserError` where no GSM8K or MATH500 evaluation is there, or lm-eval fails.
    """
    found = [
        path.parent.name
        for path in sorted(evaluation.glob("*/generations.parquet"))
        if path.parent.name.startswith(KINDS)
    ]
    if not found:
        raise UserError(f"{evaluation}: no generations of {' or '.join(KINDS)}; sample and grade them first")
    ours = pd.concat([export(evaluation / name, out / "documents" / f"{name}.jsonl") for name in found])
    python = os.environ.get("FR3E_LMEVAL") or (str(INTERPRETER) if INTERPRETER.is_file() else None)
    if python is None:
        log.warning(
            "%s is written; lm-eval is not installed. Make its environment (python3 -m venv .venv-lmeval; "
            ".venv-lmeval/bin/pip install -c constraints/lmeval.txt torch 'lm-eval[math]') and call this again",
            out / "documents",
        )
        return
    run_lm_eval(python, out)
    theirs = pd.read_json(out / "lm_eval.jsonl", lines=True, dtype={"key": str})
    table = agreement(ours, theirs)
    write_text(out / "agreement.csv", table.to_csv(index=False, lineterminator="\n"))
    write_text(out / "agreement.md", markdown(table))
    write_text(out / "disagreements.csv", disagreements(ours, theirs).to_csv(index=False, lineterminator="\n"))
    print(markdown(table))


def export(folder: Path, target: Path) -> pd.DataFrame:
    """Write one benchmark's documents for lm-eval; returns our side: key, gold, response, correct, qwen_compatible, rule."""
    name = folder.name
    data = Path(read_json(folder / "generations.key.json", "data_path")["data_path"])
    try:
        asked = pq.read_table(data, columns=["id", "question", "gold", "gold_source"]).to_pandas()
        rows = pq.read_table(folder / "generations.parquet", columns=["benchmark", *SAME, "response"]).to_pandas()
        rules = pq.read_table(folder / "verdicts.parquet", columns=[*SAME, "answer", "rule"]).to_pandas()
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
        raise UserError(f"{folder}: generations, verdicts and {data} are needed ({error})") from error
    verdicts = load_verdicts(folder / "verdicts.parquet").merge(rules, on=SAME, validate="one_to_one")
    # Rows without a usable gold are not graded; they drop out of the inner joins.
    merged = rows.merge(verdicts.drop(columns="benchmark"), on=SAME, validate="one_to_one")
    merged = merged.merge(asked, on="id", validate="many_to_one")
    merged["key"] = merged["id"] + "/" + merged["protocol"] + "/" + merged["sample"].astype(str)
    merged["benchmark"] = name
    documents = [document(name, row) for row in merged.to_dict("records")]
    write_text(target, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in documents))
    return merged


def document(benchmark: str, row: dict[str, Any]) -> dict[str, str]:
    """One response in the fields of lm-eval's task: GSM8K's gold ends in '#### N', MATH's stands in a box."""
    if benchmark.startswith("gsm8k"):
        source = row["gold_source"]
        return {
            "key": row["key"],
            "question": row["question"],
            "answer": source if "####" in source else f"#### {row['gold']}",
            "response": row["response"],
        }
    return {
        "key": row["key"],
        "problem": row["question"],
        "solution": f"\\boxed{{{row['gold_source']}}}",
        "response": row["response"],
    }


def run_lm_eval(python: str, out: Path) -> None:
    """Score the exported documents with lm-eval's interpreter; its failure is a `UserError` with its last line."""
    script = resources.files("fr3e.evaluation") / "crosscheck_lm_eval.py"
    try:
        done = subprocess.run([python, str(script), str(out)], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"{python}: lm-eval's interpreter cannot be started ({error.strerror})") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"{python} {script.name}: failed with {done.returncode}: {last}")


def agreement(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Counts per benchmark, protocol ("all" first), lm-eval scoring and grader of ours.

    `grader` is `grade`, or `harness` for the published harness's rules. Columns: n, both_right, only_ours, only_lm_eval,
    both_wrong, agreement (share of equal verdicts), ours, lm_eval (accuracies).
    """
    joined = _joined(ours, theirs)
    whole = pd.concat([joined.assign(protocol="all"), joined])
    groups = whole.groupby(["benchmark", "lm_eval_scoring", "protocol"], sort=False)
    graders = (("grade", "correct_ours"), ("harness", "qwen_compatible"))
    keys = ("benchmark", "lm_eval_scoring", "protocol")
    return pd.DataFrame(
        [
            dict(zip(keys, names, strict=True)) | {"grader": grader} | _counts(part[column], part["correct_lm_eval"])
            for names, part in groups
            for grader, column in graders
        ]
    )


def _counts(ours: pd.Series, lm_eval: pd.Series) -> dict[str, float]:
    one, two = ours.astype(bool), lm_eval.astype(bool)
    return {
        "n": len(one),
        "both_right": int((one & two).sum()),
        "only_ours": int((one & ~two).sum()),
        "only_lm_eval": int((~one & two).sum()),
        "both_wrong": int((~one & ~two).sum()),
        "agreement": float((one == two).mean()),
        "ours": float(one.mean()),
        "lm_eval": float(two.mean()),
    }


def disagreements(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Every response on which our grader and an lm-eval scoring differ, with gold, answer, rule and the response's end."""
    joined = _joined(ours, theirs)
    joined = joined[joined["correct_ours"] != joined["correct_lm_eval"]].copy()
    joined["response_end"] = joined["response"].str[-TAIL:]
    columns = [
        "benchmark",
        "lm_eval_scoring",
        "key",
        "gold",
        "answer",
        "verdict",
        "rule",
        "correct_lm_eval",
        "response_end",
    ]
    return joined[columns].sort_values(["benchmark", "lm_eval_scoring", "key"])


def _joined(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    theirs = theirs.rename(columns={"scoring": "lm_eval_scoring"})
    joined = ours.merge(theirs, on=["benchmark", "key"], suffixes=("_ours", "_lm_eval"), validate="one_to_many")
    if joined["key"].nunique() != ours["key"].nunique():
        raise UserError(f"lm-eval scored {joined['key'].nunique()} of {ours['key'].nunique()} responses")
    return joined


def markdown(table: pd.DataFrame) -> str:
    """The agreement as a Markdown table: all protocols together for both graders, then `grade` by protocol."""
    titles = ["benchmark", "lm-eval scoring", "protocol", "our grader", "n"]
    titles += ["both right", "only ours", "only lm-eval", "both wrong", "agree"]
    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * 4 + " ---: |" * 6]
    for row in table.to_dict("records"):
        if row["grader"] == "grade" or row["protocol"] == "all":
            cells = [row[name] for name in ("benchmark", "lm_eval_scoring", "protocol", "grader", "n")]
            cells += [row[name] for name in ("both_right", "only_ours", "only_lm_eval", "both_wrong")]
            lines.append("| " + " | ".join(map(str, [*cells, f"{100 * row['agreement']:.1f} %"])) + " |")
    return "\n".join(lines) + "\n"
