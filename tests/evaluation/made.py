"""Verdict files and report plans with known right answers, for tests of scoring and tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from numpy.typing import ArrayLike

VERDICTS = ("wrong", "correct")


def write_verdicts(path: Path, benchmark: str, **by_protocol: ArrayLike) -> Path:
    """verdicts.parquet from 0/1 arrays [P, G], one per protocol; problems are p000, p001, .., in shuffled row order."""
    rows: list[dict[str, Any]] = []
    for protocol, correct in by_protocol.items():
        for problem, answers in enumerate(np.asarray(correct)):
            rows += [
                {
                    "benchmark": benchmark,
                    "id": f"p{problem:03d}",
                    "protocol": protocol,
                    "sample": sample,
                    "verdict": VERDICTS[int(right)],
                    "correct": bool(right),
                    "answer": "1",
                    "rule": "made",
                    "qwen_compatible": bool(right),
                    "finish": "stop",
                    "response_tokens": 10 + sample,
                }
                for sample, right in enumerate(answers)
            ]
    order = np.random.default_rng(0).permutation(len(rows))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([rows[index] for index in order]), path)
    return path


def report_plan(root: Path, models: dict[str, str], methods: list[str], seeds: list[int], **changes: Any) -> Path:
    """report.yaml over `easy` (avg4) and `hard` (greedy), folders under `root`; `changes` replace top-level keys."""
    evaluated = [
        {
            "tag": f"base-{model}",
            "model": model,
            "method": "base",
            "seed": None,
            "folder": str(root / f"base-{model}"),
            "run": None,
        }
        for model in models
    ]
    evaluated += [
        {
            "tag": f"{model}-{method}-s{seed}",
            "model": model,
            "method": method,
            "seed": seed,
            "folder": str(root / f"{model}-{method}-s{seed}"),
            "run": str(root / "runs" / f"{model}-{method}-s{seed}"),
        }
        for model in models
        for method in methods
        for seed in seeds
    ]
    values = {
        "scenario": "made",
        "results": str(root),
        "data": str(root / "data"),
        "models": models,
        "methods": methods,
        "benchmarks": {
            "easy": {"title": "Easy", "protocols": ["avg4", "greedy"], "in_distribution": True},
            "hard": {"title": "Hard & long", "protocols": ["greedy"]},
        },
        "evaluation": {
            "protocols": {"greedy": {"temperature": 0}, "avg4": {"temperature": 1.0, "samples": 4}},
            "max_tokens": 64,
        },
        "report": {"bootstrap_draws": 500},
        "evaluated": evaluated,
    } | changes
    path = root / "report.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    return path


def write_run(folder: Path, easy: ArrayLike, hard: ArrayLike) -> None:
    """Both benchmarks of one evaluated model; `easy` [P, 4], `hard` [P, 1]."""
    write_verdicts(folder / "easy" / "verdicts.parquet", "easy", avg4=easy, greedy=np.asarray(easy)[:, :1])
    write_verdicts(folder / "hard" / "verdicts.parquet", "hard", greedy=hard)
