"""Files that appear whole or not at all: every result is written beside its target and renamed onto it."""

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from fr3e.errors import UserError


@contextlib.contextmanager
def replacing(target: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `target`; rename it onto `target` when the block ends without an exception.

    Raises `UserError` when the folder cannot be made or written to. A failed block leaves `target` as it was.
    """
    target = Path(target)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(target)
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise UserError(f"{target}: cannot be written ({error.strerror}); choose a folder you may write to") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def write_text(target: str | Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(target: str | Path, value: Any) -> None:
    """Write `value` as indented JSON with sorted keys, atomically; NaN is refused (`ValueError`)."""
    write_text(target, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(source: str | Path) -> Any:
    """Read JSON; a missing or broken file is a `UserError` that names it."""
    try:
        return json.loads(Path(source).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{source}: no such file") from error
    except ValueError as error:
        raise UserError(f"{source}: not JSON ({error})") from error


def read_yaml(source: str | Path) -> Any:
    """Read YAML; a missing or broken file is a `UserError` that names it and the line."""
    try:
        return yaml.safe_load(Path(source).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{source}: no such file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{source}: not YAML ({error})") from error


def sha256(source: str | Path) -> str:
    """SHA-256 of a file's bytes, as 64 hex digits."""
    with open(source, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
