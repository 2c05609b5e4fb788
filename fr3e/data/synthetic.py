"""The demo's data as files: training problems in verl's layout, and one benchmark file per column of Table 1.

Problems of a family come from its own seed and from its own side of a fixed split of all problems (`Chain.held_out`), so
no held-out problem can occur in training, and adding a benchmark changes no other file. The same plan gives the same
bytes.
"""

import json
import random
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fr3e.config.base import Section
from fr3e.config.load import checked
from fr3e.config.scenario import SyntheticData, SyntheticFamily
from fr3e.data import chains
from fr3e.errors import UserError
from fr3e.files import read_yaml, replacing

SOURCE = "chains"
# Draws without a new problem after which a family counts as exhausted.
PATIENCE = 10_000
SAMPLES = {"gsm8k_50": "gsm8k_50.jsonl"}
MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
TRAIN_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("question", pa.string()),
        ("gold", pa.string()),
        ("source", pa.string()),
        ("ops", pa.int32()),
        ("data_source", pa.string()),
        ("prompt", pa.list_(MESSAGE)),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", pa.struct([("split", pa.string()), ("index", pa.int64()), ("id", pa.string())])),
    ]
)
BENCHMARK_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("id", "question", "gold", "gold_source", "status", "reason")]
)


class BenchmarkSource(Section):
    """Where a benchmark's problems come from; exactly one of the two is given."""

    family: SyntheticFamily | None = None
    sample_of: str | None = None


class DataPlan(Section):
    """One file of the demo's data, resolved: the training problems where `benchmark` is absent."""

    scenario: str
    data: SyntheticData
    benchmark: BenchmarkSource | None = None


def problems(family: SyntheticFamily, held_out: bool, where: str) -> list[chains.Chain]:
    """`family.problems` different problems from one side of the split, in the order drawn.

    Raises `UserError` (naming `where`) for an unknown operator or for a family that has fewer problems than asked for.
    """
    for operator in family.operators:
        if operator not in "+-*":
            raise UserError(f"{where}.operators: {operator!r} is not an operator; allowed: + - *")
    rng = random.Random(f"problems {family.seed}")
    found: dict[str, chains.Chain] = {}
    futile = 0
    while len(found) < family.problems:
        chain = chains.draw(rng, family.min_ops, family.max_ops, family.operators)
        if chain.held_out == held_out and chain.question not in found:
            found[chain.question] = chain
            futile = 0
        elif (futile := futile + 1) == PATIENCE:
            raise UserError(
                f"{where}.problems: {family.problems} asked for, but only {len(found)} different ones were found; "
                "lower problems or raise max_ops"
            )
    return list(found.values())


def train_rows(family: SyntheticFamily) -> list[dict[str, Any]]:
    """Rows of train.parquet."""
    return [
        {
            "id": f"train-{index:06d}",
            "question": chain.question,
            "gold": chain.gold,
            "source": SOURCE,
            "ops": len(chain.operators),
            "data_source": SOURCE,
            "prompt": [{"role": "user", "content": chain.question}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": chain.gold},
            "extra_info": {"split": "train", "index": index, "id": f"train-{index:06d}"},
        }
        for index, chain in enumerate(problems(family, held_out=False, where="data.train"))
    ]


def benchmark_rows(name: str, benchmark: BenchmarkSource) -> list[dict[str, Any]]:
    """Rows of one benchmark file: a held-out family, or a packaged sample of a real test set."""
    if benchmark.family is not None and benchmark.sample_of is None:
        chosen = problems(benchmark.family, held_out=True, where=f"benchmarks.{name}.family")
        questions = [(chain.question, chain.gold, chain.gold) for chain in chosen]
    elif benchmark.family is None and benchmark.sample_of in SAMPLES:
        text = (resources.files("fr3e.data") / "samples" / SAMPLES[benchmark.sample_of]).read_text(encoding="utf-8")
        rows = [json.loads(line) for line in text.splitlines()]
        questions = [(row["question"], gsm8k_gold(row["answer"]), row["answer"]) for row in rows]
    else:
        raise UserError(
            f"benchmarks.{name}: needs either a family or sample_of, one of {', '.join(SAMPLES)}; "
            f"found sample_of {benchmark.sample_of!r} and {'a' if benchmark.family else 'no'} family"
        )
    return [
        {
            "id": f"{name}-{index:04d}",
            "question": question,
            "gold": gold,
            "gold_source": source,
            "status": "ok",
            "reason": "",
        }
        for index, (question, gold, source) in enumerate(questions)
    ]


def gsm8k_gold(answer: str) -> str:
    """The number after GSM8K's `####`, without thousands separators."""
    return answer.rsplit("####", 1)[1].strip().replace(",", "")


def write_problems(plan: Path, out: Path) -> None:
    """Write `out`, one parquet: the training problems, or the plan's benchmark, named after the file.

    Raises `UserError` for a plan that is not one, a family that cannot be drawn, or a sample that does not exist.
    """
    wanted = checked(DataPlan, read_yaml(plan), str(plan))
    if wanted.benchmark is None:
        table = pa.Table.from_pylist(train_rows(wanted.data.train), schema=TRAIN_SCHEMA)
    else:
        table = pa.Table.from_pylist(benchmark_rows(out.stem, wanted.benchmark), schema=BENCHMARK_SCHEMA)
    with replacing(out) as temporary:
        pq.write_table(table, temporary)
