"""Columns of the files in data/, and how they are written: the same rows give the same bytes."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fr3e.errors import UserError
from fr3e.files import replacing

BENCHMARK = pa.schema(
    [
        ("id", pa.string()),
        ("question", pa.string()),
        ("gold", pa.string()),
        ("gold_source", pa.string()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("unit", pa.string()),
        ("tolerance", pa.float64()),
        ("multiple", pa.bool_()),
        ("source_id", pa.string()),
        ("source_row", pa.string()),
        ("licence", pa.string()),
    ]
)
"""One benchmark. `gold` is empty where `status` is `unusable`; `gold_source` is the source's value, JSON if not text."""

_OWN = [
    ("id", pa.string()),
    ("source", pa.string()),
    ("source_row", pa.string()),
    ("question", pa.string()),
    ("gold", pa.string()),
    ("gold_source", pa.string()),
    ("level", pa.int64()),
    ("subject", pa.string()),
    ("licence", pa.string()),
    ("status", pa.string()),
    ("reason", pa.string()),
    ("overlap", pa.string()),
    ("prompt_tokens", pa.int64()),
]
TRAIN = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", pa.struct([("index", pa.int64()), ("id", pa.string()), ("split", pa.string())])),
        *_OWN,
    ]
)
"""Training rows: verl's five columns, then ours. `level` is the source's own scale (MATH 3-5, difficulty 1-5)."""
DROPPED = pa.schema([*_OWN, ("filter", pa.string())])
"""Rows that did not become training rows, with the filter that took them and its reason."""


def write_parquet(target: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    """Write rows atomically with fixed settings: no file-system times, one row group per 10,000 rows, snappy.

    The bytes depend on the rows and on the version of pyarrow alone.
    """
    try:
        table = pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise UserError(f"{target}: a row does not fit the columns ({error})") from error
    with replacing(target) as temporary:
        pq.write_table(
            table, temporary, row_group_size=10_000, compression="snappy", version="2.6", write_statistics=False
        )


def content_sha256(rows: list[dict[str, Any]]) -> str:
    """SHA-256 over the rows as JSON lines: equal for equal rows, whatever wrote the parquet file."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, ensure_ascii=False, sort_keys=True).encode("utf-8"))
        digest.update(b"\n")
    return digest.hexdigest()


def count_rows(path: Path) -> int | None:
    """Rows of a parquet file; None for another kind of file or one that cannot be read."""
    if path.suffix != ".parquet":
        return None
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError):
        return None
