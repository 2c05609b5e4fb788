"""`fr3e doctor`: is this machine or cluster ready? Each fault is printed with its remedy."""

import importlib.metadata
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fr3e.config import load_scenario, resolve_run, run_ids
from fr3e.config.scenario import HubModel, Scenario
from fr3e.errors import UserError
from fr3e.files import read_yaml

SITE = Path("config/site.yaml")
FREE_GIB = {"local": 5.0, "verl": 500.0}


@dataclass(frozen=True)
class Finding:
    """One check: `ok` is None where it does not apply."""

    name: str
    ok: bool | None
    found: str
    remedy: str = ""


def _command(*words: str) -> str | None:
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _site() -> dict[str, str]:
    return (read_yaml(SITE) or {}) if SITE.is_file() else {}


def python_environment(_: Scenario) -> Finding:
    """Python and the packages of the default environment, against its constraints file."""
    if not (3, 11) <= sys.version_info[:2] <= (3, 12):
        return Finding("python", False, sys.version.split()[0], "use Python 3.11 or 3.12: make PYTHON=python3.11 ...")
    path = Path("constraints/default.txt")
    pins = (
        dict(line.strip().split("==") for line in path.read_text(encoding="utf-8").splitlines() if "==" in line)
        if path.is_file()
        else {}
    )
    off = []
    for package in ("torch", "transformers", "snakemake", "dvc", "math-verify", "pandas", "scipy"):
        try:
            version = importlib.metadata.version(package).split("+")[0]
        except importlib.metadata.PackageNotFoundError:
            version = "absent"
        if package in pins and version != pins[package]:
            off.append(f"{package} {version} instead of {pins[package]}")
    return Finding(
        "python",
        not off,
        "; ".join(off) or f"{sys.version.split()[0]}, packages as pinned",
        "make the environment anew: rm -r .venv && make test",
    )


def verl_environment(scenario: Scenario) -> Finding:
    """The second environment, where a stage needs it."""
    if not _uses(scenario, "verl") and scenario.evaluation.engine != "vllm":
        return Finding("verl environment", None, "not needed by this scenario")
    python = _site().get("verl_python")
    if not python:
        return Finding(
            "verl environment",
            False,
            f"{SITE} names no verl_python",
            "make the environment (docs/cluster.md; workflow/scripts/install_verl_env.sh for the CPU set) and name its python in config/site.yaml",
        )
    versions = _command(
        python, "-c", "import importlib.metadata as m; print('verl', m.version('verl'), 'ray', m.version('ray'))"
    )
    return Finding(
        "verl environment",
        versions is not None,
        versions or f"{python} does not run or has no verl",
        "make the environment anew (docs/cluster.md)",
    )


def gpu(scenario: Scenario) -> Finding:
    """GPUs and driver of this machine; on a cluster the login node may have none."""
    found = _command("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
    if not _uses(scenario, "verl"):
        return Finding("GPUs", None, "not needed by this scenario")
    if found:
        return Finding("GPUs", True, "; ".join(found.splitlines()))
    on_cluster = shutil.which("sbatch") is not None
    return Finding(
        "GPUs",
        None if on_cluster else False,
        "none on this machine" + (", compute nodes may have them" if on_cluster else ""),
        "use a machine with NVIDIA GPUs and driver, or config/demo.yaml",
    )


def slurm(scenario: Scenario) -> Finding:
    """Slurm answers, and the partitions of the site file exist."""
    if shutil.which("sbatch") is None:
        return Finding("Slurm", None, "no sbatch here; runs are local")
    partitions = _command("sinfo", "-h", "-o", "%R")
    if partitions is None:
        needed = _uses(scenario, "verl")
        return Finding(
            "Slurm", False if needed else None, "sinfo does not answer", "ask your administrator, or check SLURM_CONF"
        )
    there, site = set(partitions.split()), _site()
    wanted = {site.get("cpu_partition", "cpu"), site.get("gpu_partition", "gpu")}
    if missing := sorted(wanted - there):
        return Finding(
            "Slurm",
            False,
            f"no partition {', '.join(missing)}; there are {', '.join(sorted(there))}",
            "name yours in config/site.yaml (cpu_partition, gpu_partition)",
        )
    age = next(
        (line for line in (_command("scontrol", "show", "config") or "").splitlines() if line.startswith("MinJobAge")),
        "",
    )
    seconds = int("".join(c for c in age.split("=")[-1] if c.isdigit()) or 0)
    if seconds < 120:
        return Finding(
            "Slurm",
            False,
            f"MinJobAge is {seconds} s",
            "finished jobs vanish from squeue before they are seen: ask for MinJobAge >= 120, or lower slurm-init-seconds-before-status-checks to a third of it",
        )
    return Finding("Slurm", True, f"partitions {', '.join(sorted(there))}, MinJobAge {seconds} s")


def shared_folder(_: Scenario) -> Finding:
    """The working folder takes files, locks and atomic renames."""
    import fcntl

    try:
        Path("results").mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir="results", prefix=".doctor") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            Path(handle.name).rename(handle.name + "x")
            Path(handle.name + "x").rename(handle.name)
    except OSError as error:
        return Finding(
            "file system",
            False,
            f"results/: {error.strerror}",
            "work in a folder that you may write to and that every node sees, with locks (flock) switched on",
        )
    kind = (_command("stat", "-f", "-c", "%T", ".") or "unknown").strip()
    return Finding("file system", True, f"{kind}: writes, locks and renames")


def disk(scenario: Scenario) -> Finding:
    """Free space for checkpoints and generations."""
    need = FREE_GIB["verl" if _uses(scenario, "verl") else "local"]
    free = shutil.disk_usage(".").free / 2**30
    return Finding(
        "disk", free >= need, f"{free:.0f} GiB free, about {need:.0f} needed", "free space, or lower checkpoint.keep"
    )


def data(scenario: Scenario) -> Finding:
    """The real data sets and their lock."""
    if scenario.data.kind != "real":
        return Finding("data", None, "synthetic, made by the pipeline")
    here = Path("data/train.parquet").is_file()
    mirror = scenario.data.mirror
    if here or (mirror and Path(mirror).is_dir()):
        return Finding("data", True, "data/ is there" if here else f"mirror {mirror}")
    return Finding(
        "data",
        _hub_answers(),
        "data/ is absent; the hub " + ("answers" if _hub_answers() else "does not answer"),
        "fetch on a machine with a network, or set data.mirror to a folder with the sources' files",
    )


def models(scenario: Scenario) -> Finding:
    """Base models: local folders, or a hub that answers."""
    hub = [m.base for m in scenario.models.values() if isinstance(m.base, HubModel)]
    if not hub:
        return Finding("models", None, "synthetic, made by the pipeline")
    missing = [base.path for base in hub if base.path and not Path(base.path).is_dir()]
    if missing:
        return Finding("models", False, f"no folder {missing[0]}", "correct models.<name>.base.path")
    if all(base.path for base in hub) or all(
        Path(f"results/{scenario.scenario}/base/{n}/manifest.json").is_file() for n in scenario.models
    ):
        return Finding("models", True, "local")
    return Finding(
        "models",
        _hub_answers(),
        "to be fetched; the hub " + ("answers" if _hub_answers() else "does not answer"),
        "fetch on a machine with a network and set models.<name>.base.path",
    )


def ports(scenario: Scenario) -> Finding:
    """Loopback ports can be opened; Ray and vLLM need them."""
    if not _uses(scenario, "verl"):
        return Finding("ports", None, "not needed by this scenario")
    try:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
        return Finding(
            "ports",
            True,
            f"loopback, host name {socket.gethostname()} resolves to {socket.gethostbyname(socket.gethostname())}",
        )
    except OSError as error:
        return Finding(
            "ports", False, str(error), "allow listening on loopback, and let the host name resolve (/etc/hosts)"
        )


def _hub_answers() -> bool:
    if os.environ.get("HF_HUB_OFFLINE") == "1":
        return False
    try:
        with socket.create_connection(("huggingface.co", 443), timeout=3):
            return True
    except OSError:
        return False


def _uses(scenario: Scenario, engine: str) -> bool:
    return any(resolve_run(scenario, *key).training.engine == engine for key in run_ids(scenario).values())


CHECKS: tuple[Callable[[Scenario], Finding], ...] = (
    python_environment,
    verl_environment,
    gpu,
    slurm,
    shared_folder,
    disk,
    data,
    models,
    ports,
)


def doctor(config: Path) -> int:
    """Print every check; exit code 1 if one failed."""
    scenario = load_scenario(config)
    findings = []
    for check in CHECKS:
        try:
            findings.append(check(scenario))
        except UserError as error:
            findings.append(Finding(check.__name__, False, str(error), "mend the file"))
    for finding in findings:
        mark = {True: "ok  ", False: "FAIL", None: "-   "}[finding.ok]
        print(
            f"{mark} {finding.name}: {finding.found}"
            + (f"\n     remedy: {finding.remedy}" if finding.ok is False else "")
        )
    return int(any(finding.ok is False for finding in findings))
