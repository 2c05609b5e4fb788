"""Files that appear whole or not at all: every result is written beside its target and renamed onto it."""

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from fr3e.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

# How libraries that are not Python's own (safetensors, Arrow) spell an error of the system.
OS_ERROR = re.compile(r"\((?:os error|errno) (\d+)\)")
# What is the disk's fault, whatever library reports it.
DISK = {
    errno.ENOSPC: "free space, or choose a folder on another disk",
    errno.EDQUOT: "free space, or choose a folder outside the quota",
    errno.EROFS: "choose a folder you may write to",
}


@contextlib.contextmanager
def replacing(target: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `target`; rename it onto `target` when the block ends without an exception.

    Raises `UserError` when the folder cannot be made or written to. A failed block leaves `target` as it was.
    """
    target = Path(target)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = DISK.get(error.errno or 0, "choose a folder you may write to")
        raise UserError(f"{target}: cannot be written ({error.strerror}); {remedy}") from error
    try:
        with disk_faults(target):
            yield temporary
            with open(temporary, "rb") as handle:
                os.fsync(handle.fileno())
            temporary.replace(target)
    except (PermissionError, NotADirectoryError, FileExistsError, IsADirectoryError) as error:
        raise UserError(f"{target}: cannot be written ({error.strerror}); choose a folder you may write to") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


@contextlib.contextmanager
def replacing_all(folder: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`; its files move into `folder` when the block ends without an exception.

    Files that belong together appear together: a failed block, or a file there that may not be replaced (`UserError`),
    leaves `folder` as it was. Other files in it stay.
    """
    folder = Path(folder)
    temporary = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        folder.mkdir(exist_ok=True)
        names = sorted(path.name for path in temporary.iterdir())
        for target in (folder / name for name in names):
            if target.is_dir() or (target.exists() and not os.access(target, os.W_OK)):
                found = "a folder has this name" if target.is_dir() else "it is write-protected"
                raise UserError(f"{target}: cannot be written ({found}); remove it or choose another folder")
        for name in names:
            (temporary / name).replace(folder / name)
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror}); choose a folder you may write to") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def disk_faults(target: str | Path) -> Iterator[None]:
    """Turn an error with a full or read-only disk behind it into a `UserError` that names `target`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        number = _disk_fault(error)
        if number is None:
            raise
        raise UserError(f"{target}: cannot be written ({os.strerror(number)}); {DISK[number]}") from error


def _disk_fault(error: BaseException | None) -> int | None:
    """The error number where a full or read-only disk is behind `error`: a library's close may fail after it, in its own words."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in DISK:
            return error.errno
        # torch's writer counts bytes, and says nothing of the disk when fewer arrived than it wrote.
        if isinstance(error, RuntimeError) and "inline_container" in str(error) and "unexpected pos" in str(error):
            return errno.ENOSPC
        named = OS_ERROR.search(str(error))
        if named and int(named[1]) in DISK:
            return int(named[1])
        error = error.__cause__ or error.__context__
    return None


def write_text(target: str | Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(target: str | Path, value: Any) -> None:
    """Write `value` as indented JSON with sorted keys, atomically; NaN is refused (`ValueError`)."""
    write_text(target, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(source: str | Path, *keys: str) -> Any:
    """Read a JSON object that has `keys`; a missing or broken file, or another value, is a `UserError` that names it."""
    try:
        value = json.loads(Path(source).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{source}: no such file") from error
    except ValueError as error:
        raise UserError(f"{source}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise UserError(f"{source}: expected a JSON object, found {type(value).__name__}")
    if missing := [key for key in keys if key not in value]:
        raise UserError(f"{source}: no {missing[0]!r}; found {', '.join(value) or 'nothing'}")
    return value


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, and strict: YAML itself lets the second of two equal keys win without a word."""

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)  # type: ignore[no-untyped-call]
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise yaml.MarkedYAMLError(None, None, f"the key {key.value!r} stands twice", key.start_mark)
                seen.add((key.tag, key.value))
        return node


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a JSONL file; a broken line is a `UserError` that names file and line."""
    with open(path, encoding="utf-8") as handle:
        for number, line in enumerate(handle, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise UserError(f"{path}:{number}: not JSON ({error}); every line is one object") from error
            if not isinstance(row, dict):
                raise UserError(f"{path}:{number}: found {type(row).__name__}; every line is one object")
            yield row


def read_yaml(source: str | Path) -> Any:
    """Read YAML; a missing or broken file, or a key given twice, is a `UserError` that names the file and the line."""
    try:
        return yaml.load(Path(source).read_text(encoding="utf-8"), Loader=_Loader)
    except FileNotFoundError as error:
        raise UserError(f"{source}: no such file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{source}: not YAML ({error})") from error


def read_parquet(source: str | Path, columns: Sequence[str] | None = None) -> "pa.Table":
    """Read a parquet file, or some of its columns; a missing or damaged file or an absent column is a `UserError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(source) as file:
            found = file.schema_arrow.names
            if missing := [name for name in columns or [] if name not in found]:
                raise UserError(f"{source}: no column {missing[0]!r}; found {', '.join(found)}")
            return file.read(columns=None if columns is None else list(columns))
    except FileNotFoundError as error:
        raise UserError(f"{source}: no such file") from error
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{source}: not a readable parquet file, it may be cut short ({error})") from error


def sha256(source: str | Path) -> str:
    """SHA-256 of a file's bytes, as 64 hex digits."""
    with open(source, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
