"""Verdict files as arrays: one row per graded response in, problems x samples out."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fr3e.errors import UserError

COLUMNS = [
    "benchmark",
    "id",
    "protocol",
    "sample",
    "verdict",
    "correct",
    "qwen_compatible",
    "finish",
    "response_tokens",
]


def load_verdicts(source: Path) -> pd.DataFrame:
    """The columns of a verdicts.parquet that scoring needs; a missing, broken or incomplete file is a `UserError`."""
    try:
        found = pq.read_schema(source).names
        if missing := [name for name in COLUMNS if name not in found]:
            raise UserError(f"{source}: no column {missing[0]!r}; a verdicts file has {', '.join(COLUMNS)}")
        frame = pq.read_table(source, columns=COLUMNS).to_pandas()
    except FileNotFoundError as error:
        raise UserError(f"{source}: no such file; `fr3e grade` writes it") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{source}: not a readable parquet file ({error})") from error
    if frame.empty:
        raise UserError(f"{source}: holds no verdicts")
    return frame


def problems_by_samples(
    frame: pd.DataFrame, protocol: str, samples: int, source: str, column: str = "correct"
) -> tuple[list[str], NDArray[np.float64]]:
    """Problem ids, sorted, and the 0/1 array [P, G] of one protocol.

    A problem without exactly `samples` samples numbered from 0, or a protocol without rows, is a `UserError` that names
    the file and the problem: an average over what happens to be there would be another number.
    """
    rows = frame[frame["protocol"] == protocol]
    if rows.empty:
        there = ", ".join(sorted(frame["protocol"].unique()))
        raise UserError(f"{source}: no verdicts of protocol {protocol!r}; it has {there}")
    rows = rows.sort_values(["id", "sample"], kind="stable")
    counts = rows.groupby("id", sort=True)["sample"].size()
    if (counts != samples).any():
        problem = counts.index[counts != samples][0]
        raise UserError(
            f"{source}: problem {problem!r} has {counts[problem]} samples of protocol {protocol!r}, expected {samples}"
        )
    numbers = rows["sample"].to_numpy().reshape(-1, samples)
    wrong = np.flatnonzero((numbers != np.arange(samples)).any(axis=1))
    if wrong.size:
        raise UserError(
            f"{source}: problem {counts.index[wrong[0]]!r} has samples {numbers[wrong[0]].tolist()} of {protocol!r}, "
            f"expected 0 to {samples - 1} once each"
        )
    values = rows[column].fillna(False).to_numpy(dtype=np.float64).reshape(-1, samples)
    return [str(name) for name in counts.index], values
