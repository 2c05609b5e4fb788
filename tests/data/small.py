"""A mirror of made-up rows with its own table of sources, small enough to be read beside a test."""

import json
from pathlib import Path
from typing import Any

import yaml

REVISION = "0123456789abcdef0123456789abcdef01234567"

AIME = [
    {
        "id": 1,
        "problem": "Find the number of ways to seat nine people in a circle so that two do not touch.",
        "answer": "025",
    },
    {"id": 2, "problem": "Let $x+y=3$. Compute $x^2+y^2$ when $xy=1$.", "answer": "7"},
]
GSM = [
    {"question": "Ann has 3 apples and buys 2. How many has she?", "answer": "3+2=<<3+2=5>>5\n#### 5"},
    {"question": "A car costs $1,200 and a van twice as much. What do both cost?", "answer": "so\n#### 3,600"},
]
SIMPLE = [
    ("Solve $x+1=2$ for $x$.", "1", 3),
    ("Let $x+y=3$. Compute   $x^2+y^2$ when $xy=1$", "7", 4),
    ("How many primes are below ten?", "", 5),
    ("What is the area of a unit square?", "1", 5),
]
DEEP = [
    ("Solve $x + 1 = 2$ for $x$", "1.0", 1),
    ("What is half of one?", r"\frac12", 1),
    ("What is half of one?", "0.5", 2),
    ("What is the area of a unit square?", "2", 2),
    ("What is \\$3 plus \\$4?", r"\$7", 2),
]


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write_list(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows), encoding="utf-8")


def place(rows: int, columns: dict[str, str], *files: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "github": "someone/some-data",
        "revision": REVISION,
        "rows": rows,
        "columns": columns,
        "files": [{"path": file["local"], "sha256": None, **file} for file in files],
        **more,
    }


def make_mirror(folder: Path) -> Path:
    """Write the files and `sources.yaml` into `folder`; returns the table's path."""
    write_lines(folder / "benchmarks/aime24/test.jsonl", AIME)
    write_lines(folder / "benchmarks/gsm8k/test.jsonl", GSM)
    write_lines(
        folder / "train/simple.jsonl",
        [
            {"extra_info": {"question": q, "level": level}, "reward_model": {"ground_truth": gold}}
            for q, gold, level in SIMPLE
        ],
    )
    for level in (1, 2):
        rows = [{"prompt": q, "answer": gold} for q, gold, own in DEEP if own == level]
        write_list(folder / f"train/deep{level}.json", rows)
    train_columns = {
        "question": "extra_info.question",
        "gold": "reward_model.ground_truth",
        "level": "extra_info.level",
    }
    table = {
        "aime24": {
            "kind": "benchmark",
            "gold": "integer",
            "licence": "made up",
            "places": [
                place(
                    2,
                    {"question": "problem", "gold": "answer", "id": "id"},
                    {"local": "benchmarks/aime24/test.jsonl"},
                )
            ],
        },
        "gsm8k": {
            "kind": "benchmark",
            "gold": "after_hashes",
            "licence": "made up",
            "places": [place(2, {"question": "question", "gold": "answer"}, {"local": "benchmarks/gsm8k/test.jsonl"})],
        },
        "simplelr": {
            "kind": "train",
            "gold": "plain",
            "licence": "made up",
            "places": [place(4, train_columns, {"local": "train/simple.jsonl"})],
        },
        "deepscaler": {
            "kind": "train",
            "gold": "plain",
            "licence": "made up too",
            "places": [
                place(
                    5,
                    {"question": "prompt", "gold": "answer"},
                    {"local": "train/deep2.json", "part": "level2", "level": 2},
                    {"local": "train/deep1.json", "part": "level1", "level": 1},
                )
            ],
        },
    }
    target = folder / "sources.yaml"
    target.write_text(yaml.safe_dump({"sources": table}, sort_keys=False), encoding="utf-8")
    return target
