"""Made responses over the real GSM8K and MATH500, for the cross-check with lm-eval where no model is at hand.

    python benchmarks/crosscheck_text.py DATA OUT && fr3e crosscheck --evaluation OUT --out OUT/crosscheck

DATA holds benchmarks/gsm8k.parquet and math500.parquet (`fr3e data benchmarks`). Each problem gets one response per
manner below, right by the gold or wrong on purpose; the manner is the protocol column. They exercise extraction and
comparison, they say nothing about any model.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fr3e.evaluation.sample import SCHEMA
from fr3e.files import replacing, write_json
from fr3e.grading.files import grade_file

STEPS = "We set up the quantities step by step; after 2 steps and 3 checks everything is in place. "


def perturbed(gold: str) -> str:
    """Another answer of the same shape: the last number one larger, another word, or a term added."""
    numbers = list(re.finditer(r"\d+", gold))
    if not numbers:
        return f"{gold} + 1" if len(gold) == 1 or "text" not in gold else "\\text{neither}"
    last = numbers[-1]
    return gold[: last.start()] + str(int(last.group()) + 1) + gold[last.end() :]


def respelt(gold: str) -> str:
    """The same answer as models also write it: dfrac for frac, 42.0 and 1,234 for whole numbers, spaces."""
    if re.fullmatch(r"-?\d{4,}", gold):
        return f"{int(gold):,}"
    if re.fullmatch(r"-?\d+", gold):
        return f"{gold}.0"
    return gold.replace("\\frac", "\\dfrac").replace(",", ", ")


MANNERS: dict[str, Callable[[str], str]] = {
    "boxed": lambda gold: f"{STEPS}So the answer is $\\boxed{{{gold}}}$.",
    "boxed_wrong": lambda gold: f"{STEPS}So the answer is $\\boxed{{{perturbed(gold)}}}$.",
    "boxed_bare": lambda gold: f"{STEPS}So the answer is \\boxed{{{gold}}}",
    "boxed_bare_wrong": lambda gold: f"{STEPS}So the answer is \\boxed{{{perturbed(gold)}}}",
    "respelt": lambda gold: f"{STEPS}Therefore \\[\\boxed{{{respelt(gold)}}}\\]",
    "withdrawn": lambda gold: (
        f"{STEPS}That gives $\\boxed{{{perturbed(gold)}}}$. Wait, that is a slip. The answer is $\\boxed{{{gold}}}$."
    ),
    "sentence": lambda gold: f"{STEPS}Final Answer: The final answer is ${gold}$. I hope it is correct.",
    "sentence_wrong": lambda gold: (
        f"{STEPS}Final Answer: The final answer is ${perturbed(gold)}$. I hope it is correct."
    ),
    "hashes": lambda gold: f"{STEPS}\n#### {gold}",
    "no_answer": lambda gold: STEPS,
}


def write_generations(data: Path, out: Path) -> None:
    """OUT/<benchmark>/generations.parquet with its key, and the verdicts."""
    for name in ("gsm8k", "math500"):
        source = data / "benchmarks" / f"{name}.parquet"
        rows = []
        for problem in pq.read_table(source, columns=["id", "gold", "question"]).to_pylist():
            for manner, respond in MANNERS.items():
                rows.append(
                    {
                        "benchmark": name,
                        "id": problem["id"],
                        "protocol": manner,
                        "sample": 0,
                        "seed": "",
                        "prompt": problem["question"],
                        "prompt_tokens": 0,
                        "response": respond(problem["gold"]),
                        "response_ids": [],
                        "response_tokens": 0,
                        "finish": "stop",
                        "temperature": 0.0,
                        "top_p": 1.0,
                    }
                )
        target = out / name / "generations.parquet"
        with replacing(target) as temporary:
            pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), temporary)
        write_json(target.with_name("generations.key.json"), {"made": True, "data_path": str(source)})
        grade_file(target, source, target.with_name("verdicts.parquet"), 2)


if __name__ == "__main__":
    write_generations(Path(sys.argv[1]), Path(sys.argv[2]))
