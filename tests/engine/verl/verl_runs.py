"""Real runs of the distributed engine for the tests: small, on the CPU (or with FR3E_TEST_DEVICE=cuda on a GPU), each started
by the command a user would type, watched from outside, and ended by a real fault where one is to be tested.
"""

import os
import pickle
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import yaml

from fr3e.config import load_scenario, resolve_run
from fr3e.config.load import dump
from fr3e.config.scenario import RunConfig, RunModel
from fr3e.data.synthetic import TRAIN_SCHEMA, train_rows, write_problems
from fr3e.engine.base import make_base
from fr3e.engine.verl import state
from fr3e.engine.verl.metrics import read_rows

ROOT = Path(__file__).resolve().parents[3]
DEVICE = os.environ.get("FR3E_TEST_DEVICE", "cpu")
RANKS = 2
"""Ranks of the runs that are to have several: two, or one where only one GPU is there."""
if DEVICE == "cuda":
    import torch

    RANKS = max(1, min(RANKS, torch.cuda.device_count()))
START_LIMIT = 900.0
"""Seconds for an attempt to start; about 130 on two idle cores."""
STEP_LIMIT = 300.0


def small_scenario() -> dict[str, Any]:
    """config/demo.yaml with fewer problems, smaller updates and the distributed engine."""
    values = yaml.safe_load((ROOT / "config" / "demo.yaml").read_text())
    values["data"]["train"]["problems"] = 300
    train = values["train"]
    train |= {"engine": "verl", "verl": {"nodes": 1, "dtype": "float32", "device": DEVICE, "max_tokens_per_gpu": 250}}
    train["rollout"] |= {"prompts_per_round": 4}
    train["optim"] |= {"minibatches": 2, "updates": 6}
    train["accum"] |= {"groups_per_update": 5}
    train["probe"] |= {"every": 3, "problems": 4, "samples": 2}
    train["checkpoint"] |= {"every": 2, "keep": 2}
    values["overrides"]["fr3e"]["accum"]["groups_per_update"] = 6
    for model in values["models"].values():
        model["base"] |= {"steps": 400}
    return values


@dataclass(frozen=True)
class Materials:
    """Base model and data that all runs of a session share."""

    folder: Path

    @property
    def base(self) -> Path:
        return self.folder / "base"

    @property
    def train(self) -> Path:
        return self.folder / "train.parquet"


def make_materials(folder: Path) -> Materials:
    """Train the base model and draw the problems; FR3E_TEST_BASE names a base model that exists already."""
    scenario = load_scenario(small_scenario())
    made = Materials(folder)
    pq.write_table(_table(train_rows(scenario.data.train)), made.train)
    plan = folder / "plan.yaml"
    for name in ("chain", "chain_hard"):
        family = scenario.benchmarks[name].family.model_dump(mode="json")
        content = {"scenario": "demo", "data": scenario.data.model_dump(mode="json"), "benchmark": {"family": family}}
        plan.write_text(yaml.safe_dump(content))
        write_problems(plan, folder / f"{name}.parquet")
    if existing := os.environ.get("FR3E_TEST_BASE"):
        made.base.symlink_to(Path(existing).resolve())
    else:
        model = scenario.models["toy"].model_dump(mode="json", include=set(RunModel.model_fields))
        plan.write_text(yaml.safe_dump(model))
        make_base(plan, made.base)
    return made


def _table(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(rows, schema=TRAIN_SCHEMA)


def small_run(materials: Materials, arm: str, ranks: int, **changes: dict[str, Any]) -> RunConfig:
    """One run; `changes` are laid over sections of its training settings."""
    values = small_scenario()
    values["train"]["verl"]["gpus_per_node"] = ranks
    run = resolve_run(load_scenario(values), "toy", arm, 0, arms=ROOT / "config" / "arms")
    training = run.training
    for section, update in changes.items():
        training = training.model_copy(update={section: getattr(training, section).model_copy(update=update)})
    files = {name: str(materials.folder / f"{name}.parquet") for name in run.benchmarks}
    paths = {"base": str(materials.base), "data": str(materials.train), "benchmarks": files}
    return run.model_copy(update={"training": training, **paths})


@dataclass
class Ended:
    """How an attempt ended: exit code, what it said, and seconds from the fault (or the start) to the end."""

    code: int
    said: str
    seconds: float


@dataclass
class Attempt:
    """`fr3e train` in its own process, which waits after the update `hold` until `release`. `modules` are loaded into verl."""

    run: RunConfig
    out: Path
    hold: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ("verl_hold",)

    def __post_init__(self) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        number = 1 + len(list((self.out / "attempts").glob("*.log")))
        self.base = self.out / "attempts" / str(number)
        run_file = self.out / f"run-{number}.yaml"
        dump(self.run, run_file)
        self.gate = self.base.with_suffix(".hold")
        if self.hold is not None:
            self.gate.parent.mkdir(exist_ok=True)
            self.gate.write_text(str(self.hold))
        path = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
        environment = os.environ | {"VERL_USE_EXTERNAL_MODULES": ",".join(self.modules), "PYTHONPATH": path}
        environment |= {"FR3E_KEEP_BATCHES": "1", "FR3E_STALL_SECONDS": "600"} | self.environment
        self.said = self.out / f"said-{number}.txt"
        with open(self.said, "wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fr3e", "train", "--run", str(run_file), "--out", str(self.out)],
                env=environment,
                stdout=said,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
            )
        self.started = time.monotonic()

    def rows(self) -> list[int]:
        """Updates whose metrics row this attempt has written."""
        return [int(row["update"]) for row in read_rows(self.base.with_suffix(".metrics.jsonl"))]

    def wait_until_held(self) -> None:
        """Wait for the row of the update after which the attempt waits."""
        limit = time.monotonic() + START_LIMIT + STEP_LIMIT
        while self.hold not in self.rows():
            if self.process.poll() is not None or time.monotonic() > limit:
                self.stop()
                raise AssertionError(f"no row of update {self.hold}: {self.text()[-2000:]}\n{self.log()[-6000:]}")
            time.sleep(0.1)

    def release(self) -> None:
        """Let the attempt go on."""
        self.gate.unlink()

    def terminate(self) -> None:
        """Send SIGTERM to the command, and wait until it has been taken in."""
        self.process.terminate()
        while not self.base.with_suffix(".stop").exists() and self.process.poll() is None:
            time.sleep(0.05)

    def session(self) -> int:
        """Session of the attempt's processes: Ray's and vLLM's are all of it."""
        (child,) = [p for p in psutil.Process(self.process.pid).children() if "fr3e.engine.verl.run" in p.cmdline()]
        return child.pid

    def find(self, title: str) -> psutil.Process:
        """A process of this attempt whose title holds `title`."""
        for process in psutil.Process(self.process.pid).children(recursive=True):
            if title in " ".join(process.cmdline()):
                return process
        raise AssertionError(f"no process {title!r} of this attempt")

    def end(self, limit: float = START_LIMIT + STEP_LIMIT) -> Ended:
        """Wait for the end; an attempt that is not over within `limit` seconds is ended and fails the test."""
        since = time.monotonic()
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.stop()
            raise AssertionError(f"not over after {limit} s: {self.log()[-6000:]}") from None
        return Ended(code, self.text(), time.monotonic() - since)

    def stop(self) -> None:
        """Ask the command to end; it takes its own processes with it."""
        self.process.terminate()
        self.process.wait(120)

    def text(self) -> str:
        return self.said.read_text(errors="replace")

    def log(self) -> str:
        file = self.base.with_suffix(".log")
        return file.read_text(errors="replace") if file.exists() else "(no log)"


def of_session(session: int) -> list[str]:
    """Titles of the living processes of a session."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline())[:200])
        except (psutil.NoSuchProcess, psutil.AccessDenied, ProcessLookupError):
            continue
    return found


def saved(out: Path) -> list[int]:
    """Updates of the whole checkpoints of a run."""
    return state.updates_saved(out / "checkpoint")


def batch(out: Path, update: int) -> dict[str, Any]:
    """What one update trained on, as the trainer kept it."""
    content: dict[str, Any] = pickle.loads((out / "batches" / f"{update}.pkl").read_bytes())
    return content


@contextmanager
def two_nodes(folder: Path) -> Iterator[dict[str, str]]:
    """A Ray cluster of two raylets on this host, started as with_ray.sh starts them; variables of its address and token."""
    scratch = tempfile.mkdtemp(prefix="ray")  # short: Ray's sockets lie below it
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    ours = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    common = ["--block", "--num-gpus=1", "--num-cpus=8", "--disable-usage-stats"]
    head = ["--head", "--node-ip-address=127.0.0.1", f"--port={address.split(':')[1]}", f"--temp-dir={scratch}"]
    started = []
    try:
        for name, options in (("head", [*head, "--include-dashboard=false"]), ("worker", [f"--address={address}"])):
            with open(folder / f"{name}.log", "wb") as output:
                command = [str(Path(sys.executable).with_name("ray")), "start", *common, *options]
                started.append(
                    subprocess.Popen(
                        command, env=os.environ | ours, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
                    )
                )
            limit = time.monotonic() + 120
            while "will now block" not in (folder / f"{name}.log").read_text(errors="replace"):
                assert time.monotonic() < limit and started[-1].poll() is None, (folder / f"{name}.log").read_text()
                time.sleep(0.2)
        yield ours | {"RAY_ADDRESS": address}
    finally:
        for process in reversed(started):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(scratch, ignore_errors=True)
