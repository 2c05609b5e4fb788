"""data/ and its content lock data.dvc: compare, add, pull, and the way from a fresh clone to data that match.

data.dvc is an ordinary DVC file; under `meta.files` it also lists md5 and rows of every file, so that a difference can
be named on a clone that has neither DVC's cache nor a remote.
"""

import hashlib
import json
import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from fr3e.config.scenario import RealData
from fr3e.data import dvc
from fr3e.data.manifest import contradictions
from fr3e.data.schema import content_sha256, count_rows
from fr3e.data.sources import default_table
from fr3e.errors import UserError
from fr3e.files import read_json, read_yaml, write_text
from fr3e.progress import log

SHOWN = 8


@dataclass(frozen=True)
class Difference:
    """One file of data/ that is not as locked. Rows are None for other files than parquet."""

    file: str
    what: str
    rows: int | None
    locked_rows: int | None

    def __str__(self) -> str:
        if self.rows is None and self.locked_rows is None:
            return f"{self.file} {self.what}"
        rows = "no" if self.rows is None else str(self.rows)
        locked = "none" if self.locked_rows is None else str(self.locked_rows)
        return f"{self.file} {self.what} ({rows} rows, {locked} locked)"


def digests(data: Path) -> dict[str, str]:
    """Relative path -> md5 of every file in a folder, sorted."""
    files = sorted(path for path in data.rglob("*") if path.is_file())
    return {path.relative_to(data).as_posix(): _md5(path) for path in files}


def _md5(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def folder_digest(files: dict[str, str]) -> str:
    """DVC's digest of a folder: md5 of its JSON listing, with `.dir` behind it."""
    entries = [{"md5": md5, "relpath": name} for name, md5 in sorted(files.items())]
    return hashlib.md5(json.dumps(entries, sort_keys=True).encode(), usedforsecurity=False).hexdigest() + ".dir"


def _locked(lock: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    content = read_yaml(lock)
    try:
        return str(content["outs"][0]["md5"]), dict((content.get("meta") or {}).get("files") or {})
    except (TypeError, KeyError, IndexError) as error:
        raise UserError(f"{lock}: not a DVC lock of one folder; take the committed one back from git") from error


def _present(data: Path) -> bool:
    return data.is_dir() and any(path.is_file() for path in data.rglob("*"))


def compare(data: Path, lock: Path) -> list[Difference]:
    """Files of `data` that differ from `lock`, by name; empty when the folder is as locked. Needs no dvc and no cache."""
    digest, locked = _locked(lock)
    found = digests(data)
    if folder_digest(found) == digest:
        return []
    differences = []
    for name in sorted(found.keys() | locked.keys()):
        rows = count_rows(data / name) if name in found else None
        entry = locked.get(name, {})
        if name not in locked:
            differences.append(Difference(name, "is not in the lock", rows, None))
        elif name not in found:
            differences.append(Difference(name, "is missing", None, entry.get("rows")))
        elif found[name] != entry.get("md5"):
            differences.append(Difference(name, _how(data, name, found, locked), rows, entry.get("rows")))
    return differences or [Difference(data.name, f"has digest {folder_digest(found)}, locked is {digest}", None, None)]


def _how(data: Path, name: str, found: dict[str, str], locked: dict[str, dict[str, Any]]) -> str:
    """Whether a differing parquet file has other rows, or the locked rows in other bytes."""
    manifest = str(Path(name).with_name("manifest.json"))
    if not name.endswith(".parquet") or found.get(manifest) != locked.get(manifest, {}).get("md5"):
        return "differs"
    content = read_json(data / manifest)
    stem = Path(name).stem
    known = content.get("files", {}).get(Path(name).name) or content.get("benchmarks", {}).get(stem) or {}
    try:
        same = content_sha256(pq.read_table(data / name).to_pylist()) == known.get("content_sha256")
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return "cannot be read"
    return "has the locked rows in other bytes (written by another pyarrow)" if same else "differs in its rows"


def _sentence(data: Path, lock: Path, differences: list[Difference]) -> str:
    shown = "; ".join(str(difference) for difference in differences[:SHOWN])
    more = f"; and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
    return f"{data} differs from {lock}: {shown}{more}"


def check(data: Path, lock: Path) -> None:
    """Say that `data` is as `lock` says, or stop with a `UserError` that names the files and rows that are not.

    Run before training: one changed byte is enough to stop. When the folder is absent the error gives the ways to it.
    """
    if not _present(data):
        raise UserError(_absent(data, lock))
    differences = compare(data, lock)
    if differences:
        raise UserError(
            f"{_sentence(data, lock, differences)}; restore it (remove {data}, then `fr3e data ensure`), "
            "or accept it with `fr3e data ensure --accept-difference`"
        )
    print(f"{data}: {len(digests(data))} files, as locked by {lock}")


def _absent(data: Path, lock: Path) -> str:
    _, locked = _locked(lock)
    rows = sum(entry.get("rows") or 0 for entry in locked.values())
    return (
        f"{data} is not here ({lock} locks {len(locked)} files with {rows} rows); get it with "
        "`fr3e data ensure` (downloads the sources), `fr3e data ensure --mirror DIR` (a folder with the sources' files), "
        "or `dvc remote add -d NAME URL` and `dvc pull`"
    )


def add(path: Path) -> Path:
    """Track a file or folder with DVC, modification times kept; returns its .dvc file.

    Of a folder, md5 and rows of every file are written to the .dvc file's `meta.files`.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    root = dvc.repository(path)
    lock = path.with_name(f"{path.name}.dvc")
    before = (lock.read_text(encoding="utf-8"), lock.stat()) if lock.exists() else None
    with dvc.times_kept(path):
        dvc.run_dvc(root, "add", str(path.absolute().relative_to(root)))
    text = lock.read_text(encoding="utf-8")
    files = dvc.listing(root, lock)
    if files:
        content = read_yaml(lock)
        content["meta"] = {"files": {name: _entry(path / name, md5) for name, md5 in sorted(files.items())}}
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)
        write_text(lock, text)
    if before and before[0] == text:
        os.utime(lock, ns=(before[1].st_atime_ns, before[1].st_mtime_ns))
    return lock


def _entry(path: Path, md5: str) -> dict[str, Any]:
    rows = count_rows(path)
    return {"md5": md5} if rows is None else {"md5": md5, "rows": rows}


def pull(path: Path) -> None:
    """Bring back what `<path>.dvc` tracks, from DVC's cache or remote; a `UserError` says why it cannot be had."""
    root = dvc.repository(path)
    lock = path.with_name(f"{path.name}.dvc")
    if not lock.is_file():
        raise UserError(f"{lock}: no such file; only tracked files can be pulled")
    dvc.run_dvc(root, "pull", str(lock.absolute().relative_to(root)))


def status(root: Path) -> str:
    """`dvc status` of everything tracked whose output is here, as one sentence; a `UserError` names what changed.

    An output that is absent is not a change: a clone that never fetched data/ has nothing to compare, and the demo neither
    needs nor makes it. Plain `dvc status` calls such an output deleted; the sentence names it as not here.
    """
    root = dvc.repository(root)
    locks = sorted([*root.glob("*.dvc"), *root.glob("results/**/*.dvc")])
    locks = [lock for lock in locks if lock.is_file()]
    here = [lock for lock in locks if lock.with_suffix("").exists()]
    changes = dvc.changed(root, here)
    if changes:
        raise UserError(
            f"dvc status: changed: {', '.join(sorted(changes))}; see `dvc status`, then `dvc add` or restore"
        )
    absent = [str(lock.relative_to(root)) for lock in locks if lock not in here]
    return f"dvc status: clean, {len(here)} tracked and here" + (f"; not here: {', '.join(absent)}" if absent else "")


def cache_folder() -> Path:
    """Where downloaded sources lie: `$XDG_CACHE_HOME/fr3e/raw`, by default under ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fr3e" / "raw"


def ensure(
    data: Path, lock: Path, mirror: Path | None, accept_difference: bool, *, wanted: RealData | None = None
) -> str:
    """Have `data` as `lock` says: use it when it is here, else pull it from a remote, else make it from the sources.

    Made means: the sources' files come from `mirror`, or are downloaded to `cache_folder()`, and are assembled as the
    scenario's data section `wanted` says, by default as the paper's. Whatever was had is compared with the lock; a
    difference is named by file and rows and is a `UserError` unless accepted; then it is returned, else "". Data made
    otherwise than `wanted` says are never accepted.
    """
    _locked(lock)
    if _present(data):
        how = "is here"
    elif dvc.installed() and dvc.has_remote(dvc.repository(lock)):
        pull(data)
        how = "was pulled"
        if wanted is not None and (data / "manifest.json").is_file() and contradictions(data / "manifest.json", wanted):
            # The remote holds what the lock says, and the scenario wants another mix.
            shutil.rmtree(data)
            make(data, mirror, wanted)
            how = "was assembled, as the scenario wants other data than the remote has"
    else:
        make(data, mirror, wanted or RealData(sources=str(default_table())))
        how = f"was assembled from {mirror}" if mirror else "was fetched and assembled"
    differences = compare(data, lock)
    if wanted is not None and (data / "manifest.json").is_file():
        _as_wanted(data, lock, wanted)
    if not differences:
        root = dvc.repository(lock)
        if not dvc.listing(root, lock) and dvc.installed():
            # Without a copy in DVC's cache `dvc status` calls the folder changed. The lock itself stays as it is.
            add(data)
        log.info("%s %s and is as %s says", data, how, lock)
        return ""
    sentence = _sentence(data, lock, differences)
    if not accept_difference:
        raise UserError(
            f"{sentence}; it {how}; remove {data} to make it anew, lock it as it is with `fr3e data version {data}`, "
            "or use it with --accept-difference (data.accept_difference: true)"
        )
    log.warning("%s; accepted", sentence)
    return sentence


def _as_wanted(data: Path, lock: Path, wanted: RealData) -> None:
    if found := contradictions(data / "manifest.json", wanted):
        raise UserError(
            f"{data} was made otherwise than the scenario's data section says: {'; '.join(found)}; remove {data} and let "
            f"`fr3e data ensure --config SCENARIO` make it anew, then renew {lock} with `fr3e data version {data}`, or leave "
            "the lock and give --accept-difference (data.accept_difference: true)"
        )


def make(data: Path, mirror: Path | None, wanted: RealData) -> None:
    """Make `data` whole from the sources, in a folder beside it that gets its name when all is written."""
    from fr3e.data.assemble import assemble
    from fr3e.data.benchmarks import write_benchmarks
    from fr3e.data.fetch import fetch

    raw, table = mirror, Path(wanted.sources)
    if raw is None:
        raw = cache_folder()
        fetch(table, raw, None, None)
    temporary = data.with_name(f".{data.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        write_benchmarks(raw, temporary / "benchmarks", None, table)
        # No tokenizer: which prompts are too long depends on the model, and the lock serves all of them.
        assemble(raw, temporary, wanted)
        if data.is_dir() and not any(data.iterdir()):
            data.rmdir()
        temporary.rename(data)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
