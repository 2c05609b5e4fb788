"""Every call of DVC in the project: one at a time, with the times of files kept, and messages for people.

DVC is a command here, not a library (its Python interface is internal). Two dvc commands at once fail after three
seconds, so all calls take one lock file; `dvc add` moves what it adds through its cache, so modification times, by which
Snakemake decides what is new, are put back afterwards.
"""

import contextlib
import fcntl
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fr3e.errors import UserError
from fr3e.files import read_yaml
from fr3e.progress import log

LOCK_WAIT_SECONDS = 1800.0


def repository(path: Path) -> Path:
    """The folder with `.dvc` that `path` lies in; a `UserError` when there is none."""
    absolute = path.absolute()
    for folder in (absolute, *absolute.parents):
        if (folder / ".dvc" / "config").is_file():
            return folder
    raise UserError(f"{path}: not inside a DVC repository (no .dvc/config above it); work in a clone of the project")


@contextlib.contextmanager
def one_at_a_time(root: Path, wait: float = LOCK_WAIT_SECONDS) -> Iterator[None]:
    """Hold the project's only DVC lock; says so while it waits and gives up with a `UserError` after `wait` seconds."""
    file = root / ".dvc" / "tmp" / "fr3e.lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    started, said = time.monotonic(), False
    with open(file, "w") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() - started > wait:
                    raise UserError(
                        f"{file}: held by another process for {wait:.0f} s; wait for it or end it"
                    ) from error
                if not said:
                    log.info("waiting for another dvc command (%s)", file)
                    said = True
                time.sleep(0.1)
        yield


def installed() -> bool:
    """Whether this environment has dvc."""
    return importlib.util.find_spec("dvc") is not None


def run_dvc(root: Path, *arguments: str) -> str:
    """Run one dvc command in `root` under the lock and return its output; a failure is a `UserError` with its reason."""
    if not installed():
        raise UserError("dvc is not installed in this environment; install the extra `workflow` (docs/environments.md)")
    with one_at_a_time(root):
        done = subprocess.run(
            [sys.executable, "-m", "dvc", *arguments], cwd=root, capture_output=True, text=True, check=False
        )
    if done.returncode:
        lines = [line for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
        reason = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "no message")
        raise UserError(f"dvc {' '.join(arguments)}: {reason.removeprefix('ERROR: ')}")
    return done.stdout


@contextlib.contextmanager
def times_kept(path: Path) -> Iterator[None]:
    """Put the modification times of a file, or of a folder and all in it, back when the block ends."""
    before = {item: item.stat() for item in [path, *(path.rglob("*") if path.is_dir() else [])]}
    try:
        yield
    finally:
        for item, stat in reversed(before.items()):
            if item.exists():
                os.utime(item, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def has_remote(root: Path) -> bool:
    """Whether a DVC remote is configured."""
    return bool(run_dvc(root, "remote", "list").strip())


def listing(root: Path, lock: Path) -> dict[str, str]:
    """Relative path -> md5 of a tracked folder's files, from DVC's cache; empty when the cache has no listing."""
    digest = str(read_yaml(lock)["outs"][0]["md5"])
    cached = root / ".dvc" / "cache" / "files" / "md5" / digest[:2] / digest[2:]
    if not digest.endswith(".dir") or not cached.is_file():
        return {}
    entries: list[dict[str, str]] = json.loads(cached.read_text(encoding="utf-8"))
    return {entry["relpath"]: entry["md5"] for entry in entries}


def changed(root: Path, locks: list[Path]) -> dict[str, Any]:
    """`dvc status` of the given .dvc files: empty when all is clean, else what changed, by .dvc file."""
    if not locks:
        return {}
    targets = [str(lock.absolute().relative_to(root)) for lock in locks]
    report: dict[str, Any] = json.loads(run_dvc(root, "status", "--json", *targets) or "{}")
    return report
