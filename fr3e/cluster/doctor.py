"""`fr3e doctor`: is this machine or cluster ready? Each fault is printed with its remedy."""

import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

from fr3e.cluster.environments import gpu, python_environment, verl_environment
from fr3e.cluster.finding import Finding, command, runs_of
from fr3e.cluster.plan import shape_of
from fr3e.cluster.slurm import slurm
from fr3e.config import load_scenario
from fr3e.config.scenario import HubModel, Scenario
from fr3e.errors import UserError

OTHER_GIB = 5.0
"""Generations, verdicts, logs and pages of a scenario, and the checkpoints of models as small as the demo's."""


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
    kind = (command("stat", "-f", "-c", "%T", ".") or "unknown").strip()
    return Finding("file system", True, f"{kind}: writes, locks and renames")


def needed_gib(scenario: Scenario) -> float:
    """GiB that the scenario's runs still have to write: checkpoints kept, one more while it is saved, models, base models."""
    from fr3e.engine.verl.memory import BF16, FP32, GIB, checkpoint_bytes, parameters

    results, size = Path("results", scenario.scenario), 0.0
    bases: dict[str, int] = {}
    for run in runs_of(scenario, "verl"):
        count = parameters(shape_of(run))
        if not (results / "base" / run.model_name / "manifest.json").is_file():
            bases[run.model_name] = count * BF16
        if not (results / "runs" / run.run / "trained.json").is_file():
            exported = count * (BF16 if run.training.verl.dtype == "bfloat16" else FP32)
            size += (run.training.checkpoint.keep + 1) * checkpoint_bytes(count) + exported
    return OTHER_GIB + (size + sum(bases.values())) / GIB


def disk(scenario: Scenario) -> Finding:
    """Free space where results go, for what the runs still have to write."""
    need = needed_gib(scenario)
    free = shutil.disk_usage("results" if Path("results").is_dir() else ".").free / 2**30
    return Finding(
        "disk",
        free >= need,
        f"{free:.0f} GiB free, about {need:.0f} needed",
        "free space, make results/ a link to a larger disk, or lower train.checkpoint.keep",
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
    if not runs_of(scenario, "verl"):
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
