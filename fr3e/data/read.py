"""Reading files of other people: JSON, JSON lines and parquet, plain or gzipped, within limits, errors by file and row.

Nothing is dropped here: a file is either read whole or refused with a `UserError` that names the file and, where there
is one, the row (counted from 0).
"""

import gzip
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fr3e.errors import UserError

MAX_FILE_BYTES = 128 * 2**20
"""Largest uncompressed file; the largest source has 22 MB. A gzip or parquet bomb stops here."""
MAX_TEXT_CHARACTERS = 100_000
"""Longest text cell; the longest real one has under 20,000."""
CHUNK = 2**20


def read_bytes(path: Path) -> bytes:
    """The uncompressed content of a plain or `.gz` file, at most `MAX_FILE_BYTES`."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as handle:
            content = handle.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read ({error}); it is truncated or damaged, fetch it again") from error
    if len(content) > MAX_FILE_BYTES:
        raise UserError(f"{path}: over {MAX_FILE_BYTES // 2**20} MiB uncompressed; such a file is refused")
    if not content.strip():
        raise UserError(f"{path}: the file is empty")
    return content


def sha256_uncompressed(path: Path) -> str:
    """SHA-256 of the bytes inside a `.gz` file, 64 hex digits."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a `.jsonl`, `.json` (a list of objects) or `.parquet` file; text cells are checked."""
    plain = path.name.removesuffix(".gz")
    if plain.endswith(".parquet"):
        rows = _parquet(path)
    elif plain.endswith(".jsonl"):
        rows = _json_lines(path)
    elif plain.endswith(".json"):
        rows = _json_list(path)
    else:
        raise UserError(f"{path}: unknown kind of file; allowed: .jsonl, .json, .parquet, the first two also with .gz")
    if not rows:
        raise UserError(f"{path}: holds no rows")
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise UserError(f"{path} row {number}: is a {type(row).__name__}; an object with named columns is allowed")
        _check_text(row, f"{path} row {number}")
    return rows


def _not_json(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _json_lines(path: Path) -> list[dict[str, Any]]:
    lines = read_bytes(path).removeprefix(b"\xef\xbb\xbf").rstrip().split(b"\n")
    rows = []
    for number, line in enumerate(lines):
        try:
            rows.append(json.loads(line.decode("utf-8"), parse_constant=_not_json))
        except UnicodeDecodeError as error:
            raise UserError(f"{path} row {number}: not UTF-8 ({error.reason} at byte {error.start})") from error
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path} row {number}: not JSON ({error})") from error
    return rows


def _json_list(path: Path) -> list[dict[str, Any]]:
    content = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    try:
        rows = json.loads(content.decode("utf-8"), parse_constant=_not_json)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path} line {line}: not UTF-8 ({error.reason} at byte {error.start})") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error})") from error
    if not isinstance(rows, list):
        raise UserError(f"{path}: is a JSON {type(rows).__name__}; a list of objects is allowed")
    return rows


def _parquet(path: Path) -> list[dict[str, Any]]:
    try:
        with pq.ParquetFile(path) as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            size = sum(group.total_byte_size for group in groups)
            # Dictionary and run-length coding can hide a large table in few bytes, so the rows are bounded as well.
            if size > MAX_FILE_BYTES or file.metadata.num_rows > 10**6:
                raise UserError(
                    f"{path}: {file.metadata.num_rows} rows, {size // 2**20} MiB uncompressed; "
                    f"at most 1000000 rows and {MAX_FILE_BYTES // 2**20} MiB are allowed"
                )
            return _batches(path, file)
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a readable parquet file ({error}); fetch it again") from error


def _batches(path: Path, file: pq.ParquetFile) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    size = 0
    for batch in file.iter_batches(batch_size=1000):
        size += batch.get_total_buffer_size()
        if size > 4 * MAX_FILE_BYTES:
            raise UserError(f"{path}: over {4 * MAX_FILE_BYTES // 2**20} MiB in memory; such a file is refused")
        try:
            rows.extend(batch.to_pylist())
        except UnicodeDecodeError:
            for number in range(batch.num_rows):
                try:
                    batch.slice(number, 1).to_pylist()
                except UnicodeDecodeError as error:
                    raise UserError(f"{path} row {len(rows) + number}: not UTF-8 ({error.reason})") from error
            raise
    return rows


def _check_text(value: Any, where: str) -> None:
    if isinstance(value, str):
        if len(value) > MAX_TEXT_CHARACTERS:
            raise UserError(f"{where}: a text of {len(value)} characters; at most {MAX_TEXT_CHARACTERS} are allowed")
        if not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError as error:
                raise UserError(f"{where}: not UTF-8 (half a surrogate pair at character {error.start})") from error
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(item, f"{where}, column {key}")
    elif isinstance(value, list):
        for item in value:
            _check_text(item, where)
