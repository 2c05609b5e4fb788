"""metrics.jsonl of a distributed run: one file per attempt, merged by update.

verl's own file logger opens its file anew on resume; here an attempt only ever adds to its own file, and the merge leaves
out what a later attempt did again.
"""

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fr3e.files import read_json, write_text


class RowFile:
    """JSON lines that an attempt adds to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, row: dict[str, Any]) -> None:
        """Append one row and put it on the disk; columns that are not finite are left out (docs/metrics.md)."""
        kept = {
            name: value for name, value in row.items() if not (isinstance(value, float) and not math.isfinite(value))
        }
        with open(self.path, "a", encoding="utf-8") as handle:
            handle.write(_line(kept))
            handle.flush()
            os.fsync(handle.fileno())


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Whole rows of a file of JSON lines; a last line that a kill cut off is left out."""
    if not path.is_file():
        return []
    lines = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines[:-1] if line]


def merge(attempts: Path, suffix: str, target: Path) -> list[dict[str, Any]]:
    """Merge attempts/<n><suffix> into `target`, in order of update: what an attempt did after the update that a later one
    resumed from was done again there and is left out.

    attempts/<n>.json tells the update that attempt n resumed from. An attempt that wrote nothing yet takes nothing away.
    """
    merged: list[dict[str, Any]] = []
    for number in sorted(int(path.name.removesuffix(suffix)) for path in attempts.glob(f"*{suffix}")):
        rows = read_rows(attempts / f"{number}{suffix}")
        resumed = int(read_json(attempts / f"{number}.json")["resumed_from"])
        if rows:
            merged = [row for row in merged if int(row["update"]) < int(rows[0]["update"]) and resumed >= row["update"]]
        merged += rows
    write_text(target, "".join(_line(row) for row in merged))
    return merged


def mismatch(differences: Sequence[Any]) -> dict[str, float]:
    """`mismatch/mean` and `/max` from the differences of log-probs of each row's trained tokens, arrays [T] in nats."""
    joined = (
        np.abs(np.concatenate([np.asarray(d, dtype=np.float64) for d in differences])) if differences else np.zeros(0)
    )
    return {"mismatch/mean": float(joined.mean()), "mismatch/max": float(joined.max())} if len(joined) else {}
