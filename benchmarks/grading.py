"""How right and how fast the graders are.

    python benchmarks/grading.py accuracy [--verl FILE]      the suite in tests/grading, three graders
    python benchmarks/grading.py speed [--mirror FOLDER]     answers per second on the mix of the eight benchmarks
    python benchmarks/grading.py start                       seconds until a pool of 1, 2, 4 workers is ready
    python benchmarks/grading.py file [--rows N]             grade_file on N made rows: rows per second and peak memory

FILE is verl's verl/utils/reward_score/math_verify.py (verl 0.9.1), which needs no other part of verl. FOLDER holds
benchmarks/<name>/test.jsonl as the mirror does (default: $FR3E_MIRROR or ../shared/data beside the repository).
"""

import argparse
import gzip
import importlib.util
import json
import logging
import os
import random
import re
import resource
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "grading")]
NAMES = ("aime24", "amc23", "gsm8k", "math500", "minerva_math", "gaokao2023en", "olympiadbench", "college_math")
INTEGER_SETS = ("aime24", "amc23", "gsm8k")
Grader = Callable[[str, str], bool]


def plain(text: str, gold: str) -> bool:
    """math-verify as its README uses it, with its own time limits."""
    from math_verify import parse, verify

    return bool(verify(parse(gold if "$" in gold else f"${gold}$"), parse(text)))


def verls(file: Path) -> Grader:
    """verl's compute_score, imported from its file alone."""
    specification = importlib.util.spec_from_file_location("verl_math_verify", file)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return lambda text, gold: module._verify_in_subprocess("\\boxed{" + gold + "}", text) > 0.5


def ours(text: str, gold: str) -> bool:
    from fr3e.grading import grade

    return bool(grade(text, gold))


def accuracy(verl: Path | None) -> None:
    """Print the table of docs/grading.md."""
    from cases import rows

    graders: dict[str, Grader] = {"math-verify": plain}
    if verl is not None:
        graders["verl"] = verls(verl)
    graders["fr3e"] = ours
    table: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    cases = rows()
    for kind, gold, text, right in cases:
        table[kind]["", "cases"] += 1
        for name, grader in graders.items():
            try:
                said = grader(text, gold)
            except Exception:  # a peer that raises has not graded: counted apart
                table[kind][name, "raised"] += 1
                said = False
            if said != right:
                table[kind][name, "wrong accept" if said else "wrong reject"] += 1
    print("| kind | cases |" + "".join(f" {name} |" for name in graders))
    print("| --- | ---: |" + " ---: |" * len(graders))
    total: Counter[tuple[str, str]] = Counter()
    for kind, counts in table.items():
        total.update(counts)
        print(f"| {kind} | {counts['', 'cases']} |" + "".join(f" {_cell(counts, name)} |" for name in graders))
    print(f"| **all** | {len(cases)} |" + "".join(f" {_cell(total, name)} |" for name in graders))


def _cell(counts: "Counter[tuple[str, str]]", name: str) -> str:
    accepts, rejects = counts[name, "wrong accept"], counts[name, "wrong reject"]
    right = counts["", "cases"] - accepts - rejects
    return f"{right} ({accepts} / {rejects})" if accepts or rejects else str(right)


# -- speed ----------------------------------------------------------------------------------------------------------------


def golds(mirror: Path, name: str) -> list[str]:
    """Golds of one benchmark, read as the data stage reads them."""
    from fr3e.grading.extract import last_box

    path = mirror / "benchmarks" / name / "test.jsonl"
    data = path.read_bytes() if path.exists() else gzip.decompress(Path(f"{path}.gz").read_bytes())
    records = [json.loads(line) for line in data.decode("utf-8").splitlines() if line.strip()]
    if name == "gsm8k":
        return [record["answer"].split("####")[-1].strip() for record in records]
    if name == "minerva_math":
        return [last_box(record["solution"]) or "" for record in records]
    if name == "olympiadbench":
        return [record["final_answer"][0] for record in records]
    return [str(record["answer"]) for record in records]


def pairs(names: Iterable[str], mirror: Path, per_set: int) -> list[tuple[str, str]]:
    """(response, gold): each gold against itself, against a near miss of itself, and against another problem's gold."""
    choose = random.Random(0)
    result = []
    for name in names:
        answers = [gold for gold in golds(mirror, name) if gold]
        for gold in choose.sample(answers, min(per_set, len(answers))):
            near = re.sub(r"\d+", lambda m: str(int(m[0]) + 1), gold, count=1)
            spelled = gold.replace(r"\frac", r"\dfrac").replace(" ", "").replace("$", "")
            for answer in (gold, spelled, near, choose.choice(answers)):
                result.append((rf"Step by step we find $\boxed{{{answer}}}$.", gold))
    choose.shuffle(result)
    return result


def speed(mirror: Path, per_set: int) -> None:
    """Answers per second, in this process and one worker, against math-verify plain."""
    from fr3e.grading import grade_many, pool

    logging.disable(logging.CRITICAL)
    plain(r"\boxed{x^2}", "x^2")
    with pool.Pool(1) as workers:
        workers.start()
        for label, names in (("integer sets", INTEGER_SETS), ("whole mix", NAMES)):
            sample = pairs(names, mirror, per_set)
            started = time.perf_counter()
            verdicts = list(grade_many(sample, pool=workers))
            own = len(sample) / (time.perf_counter() - started)
            started = time.perf_counter()
            agree = 0
            for (text, gold), verdict in zip(sample, verdicts, strict=True):
                try:
                    agree += plain(text, gold) == bool(verdict)
                except Exception:  # counted as a disagreement
                    continue
            peer = len(sample) / (time.perf_counter() - started)
            kinds = ", ".join(f"{kind} {n}" for kind, n in Counter(v.kind for v in verdicts).items())
            print(f"{label}: {len(sample)} answers; fr3e {own:.0f}/s, math-verify {peer:.0f}/s, factor {own / peer:.1f}; "
                  f"same verdict {agree / len(sample):.1%}; {kinds}")  # fmt: skip


def start() -> None:
    """Seconds until a pool is ready."""
    from fr3e.grading import pool

    for size in (1, 2, 4):
        started = time.perf_counter()
        with pool.Pool(size) as workers:
            workers.start()
            print(f"{size} workers ready after {time.perf_counter() - started:.2f} s")


def whole_file(rows: int, workers: int) -> None:
    """grade_file on made rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from fr3e.grading.files import grade_file

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    answers = [r"\frac{1}{2}", "0.5", r"\sqrt{2}/2", r"\frac{1}{\sqrt{2}}", "(1,2)", "12", r"\{1,2\}", "x+1"]
    with tempfile.TemporaryDirectory() as folder:
        generations, gold, out = (
            Path(folder) / name for name in ("generations.parquet", "gold.parquet", "verdicts.parquet")
        )
        made: dict[str, list[Any]] = {
            "benchmark": ["made"] * rows, "id": [str(i % 8) for i in range(rows)], "protocol": ["greedy"] * rows,
            "sample": list(range(rows)),
            "response": [rf"We find that {'so ' * 200} \boxed{{{answers[(i * 5) % 8]}}}" for i in range(rows)],
            "finish": ["stop"] * rows, "response_tokens": [100] * rows,
        }  # fmt: skip
        pq.write_table(pa.table(made), generations, row_group_size=2_000)
        pq.write_table(pa.table({"id": [str(i) for i in range(8)], "gold": answers}), gold)
        del made
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        started = time.perf_counter()
        grade_file(generations, gold, out, workers)
        took = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{rows} rows in {took:.1f} s ({rows / took:.0f}/s); peak memory {after:.0f} MB, before grading {before:.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["accuracy", "speed", "start", "file"])
    parser.add_argument("--verl", type=Path)
    parser.add_argument(
        "--mirror", type=Path, default=Path(os.environ.get("FR3E_MIRROR", ROOT.parent / "shared" / "data"))
    )
    parser.add_argument("--per-set", type=int, default=150)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    {
        "accuracy": lambda: accuracy(given.verl),
        "speed": lambda: speed(given.mirror, given.per_set),
        "start": start,
        "file": lambda: whole_file(given.rows, given.workers),
    }[given.what]()


if __name__ == "__main__":
    main()
