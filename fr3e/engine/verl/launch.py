"""Train a run on verl: start an attempt in its own process, watch it, clean up after it, and put its metrics together.

    <out>/verl.yaml                 the resolved configuration of the last attempt
    <out>/attempts/<n>.{json,yaml,log,error.json,metrics.jsonl,trajectories.jsonl}
    <out>/checkpoint/global_step_<update>/
    <out>/metrics.jsonl, <out>/trained.json

An attempt ends in bounded time whatever happens: the trainer touches a heartbeat file with every finished prompt and
phase, and one that stands still for `stall_seconds` is killed.
"""

import contextlib
import logging
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import uuid
from importlib import metadata, util
from pathlib import Path
from typing import Any

import psutil

from fr3e.config.scenario import RunConfig
from fr3e.engine.local.checkpoint import locked
from fr3e.engine.verl import VERL_VERSION, state
from fr3e.engine.verl.causes import in_brief
from fr3e.engine.verl.config import check, render
from fr3e.engine.verl.environment import MARK, environment, make_scratch, ray_init
from fr3e.engine.verl.metrics import merge
from fr3e.engine.verl.stopping import JOB_END, PREEMPTED, expected_save, parameters_of
from fr3e.errors import UserError
from fr3e.files import read_json, sha256, write_json, write_text
from fr3e.provenance.manifest import hardware

log = logging.getLogger("fr3e")
STALL_SECONDS = 1800.0
"""Silence of a trainer at work after which an attempt is hung; FR3E_STALL_SECONDS overrides it."""
START_SECONDS = 3600.0
"""Time until the trainer has loaded its model; reading a large one from a slow disk is not a fault."""
KEEP = "FR3E_KEEP_BATCHES"
"""Where set, each update's batch is kept in <out>/batches, for a replay by another engine."""
GRACE_SECONDS = 30.0
STOP_SECONDS = 110.0
"""Time after SIGTERM for the update under way and its checkpoint; FR3E_STOP_SECONDS overrides it. with_ray.sh waits 120."""


def train(run: RunConfig, out: Path) -> None:
    """Train to the last update, from the newest sound checkpoint where there is one; writes metrics.jsonl, trained.json.

    What another configuration, other data or other code left in `out` is moved to `out`/superseded first.
    Raises `UserError` with the reason, the log's place and the update that can be resumed from when the attempt fails, and
    `SystemExit` with code 75 when it was stopped: by SIGTERM, or because its job would end before another update has.
    """
    out = Path(out).resolve()
    with locked(out / "checkpoint"):
        (out / "trained.json").unlink(missing_ok=True)
        attempt(run, out)
        finish(run, out)


def attempt(run: RunConfig, out: Path) -> None:
    """One attempt, to the last update or a `UserError`."""
    check(run)
    _installed()
    checkpoints, attempts = out / "checkpoint", out / "attempts"
    made, updates = state.parts(run), run.training.optim.updates
    if other := state.difference(out, made, updates):
        log.warning("%s: what lies there %s; it is moved to %s, the run starts afresh", out, other, state.SUPERSEDED)
        state.set_aside(out)
    for folder in (checkpoints, attempts):
        folder.mkdir(parents=True, exist_ok=True)
    ranks = run.training.verl.nodes * run.training.verl.gpus_per_node
    resumed = state.choose(checkpoints, ranks)
    if resumed >= updates:
        _merge(out)  # a workflow may have removed its outputs before it ordered them again
        return
    number = 1 + max((int(p.stem) for p in attempts.glob("*.log")), default=0)
    base = attempts / str(number)
    mark, scratch = uuid.uuid4().hex, make_scratch()
    facts: dict[str, Any] = {
        "attempt": number,
        "resumed_from": resumed,
        "made_from": made,
        "started": time.time(),
        "host": platform.node(),
    }
    write_json(base.with_suffix(".json"), facts)
    started = time.monotonic()
    log.info("%s: attempt %d from update %d; log %s", run.run, number, resumed, base.with_suffix(".log"))
    try:
        known = {
            "identity": state.identity(made),
            "longest_save": state.longest_save(checkpoints),
            "expected_save": expected_save(parameters_of(Path(run.base)), run.training.verl.nodes),
        }
        config = _configured(run, out, base, known, ray_init(run, mark, scratch))
        failure = _watched(run, base, config, mark, _stall())
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)
        write_json(base.with_suffix(".json"), facts | {"seconds": time.monotonic() - started})
        _merge(out)
    if failure:
        saved = state.updates_saved(checkpoints)
        there = f"update {saved[-1]} can be resumed from" if saved else "there is no checkpoint yet"
        raise UserError(f"{run.run}: attempt {number}: {failure}; log: {base.with_suffix('.log')}; {there}")


def _merge(out: Path) -> None:
    for name in ("metrics", "trajectories"):
        merge(out / "attempts", f".{name}.jsonl", out / f"{name}.jsonl")


def finish(run: RunConfig, out: Path) -> None:
    """Write trained.json from the last checkpoint, the metrics and the attempts."""
    out = Path(out).resolve()
    updates = run.training.optim.updates
    folder = state.folder_of(out / "checkpoint", updates)
    if not state.sound(folder):
        raise UserError(f"{run.run}: no whole checkpoint of the last update {updates} in {out / 'checkpoint'}")
    progress = state.load(out / "checkpoint", updates)
    attempts = [read_json(p) for p in (out / "attempts").glob("*.json") if p.stem.isdigit()]
    verl = run.training.verl
    write_json(
        out / "trained.json",
        {
            "run": run.run,
            "updates": updates,
            "checkpoint": str(folder.relative_to(out)),
            "checkpoint_sha256": sha256(folder / state.COMPLETE),
            "seconds": sum(float(facts.get("seconds", 0.0)) for facts in attempts),
            "tokens_total": progress.tokens_total,
            "rollouts_total": progress.rollouts_total,
            "gpus": verl.nodes * verl.gpus_per_node if verl.device == "cuda" else 0,
            "hardware": hardware(),
            "attempts": len(attempts),
        },
    )


def _stall() -> float:
    return float(os.environ.get("FR3E_STALL_SECONDS", STALL_SECONDS))


def _installed() -> None:
    """Refuse to start where verl is absent, another version, or would not load our plug-in."""
    if util.find_spec("verl") is None:
        raise UserError(
            "engine: verl needs the verl environment (workflow/scripts/install_verl_env.sh); start fr3e with its python"
        )
    if (found := metadata.version("verl")) != VERL_VERSION:
        raise UserError(f"verl {found} is installed; this engine is written for {VERL_VERSION}")
    if not metadata.entry_points(group="verl.plugins", name="fr3e"):
        raise UserError("the package's entry point verl.plugins is not installed; run `pip install --no-deps -e .`")


def _configured(run: RunConfig, out: Path, base: Path, known: dict[str, Any], ray: dict[str, Any]) -> Path:
    """Write the attempt's verl.yaml with what is `known` before it and Ray's start (`ray_init`); its path."""
    from omegaconf import OmegaConf

    others = [path for path in base.parent.glob("*.json") if path.stem.isdigit() and path.stem != base.name]
    own = known | {
        "metrics": str(base.with_suffix(".metrics.jsonl")),
        "trajectories": str(base.with_suffix(".trajectories.jsonl")),
        "heartbeat": str(base.with_suffix(".beat")),
        "stop": str(base.with_suffix(".stop")),
        "job_end": float(os.environ[JOB_END]) if os.environ.get(JOB_END) else None,
        "seconds_before": sum(float(read_json(path).get("seconds", 0.0)) for path in others),
        "batches": str(out / "batches") if os.environ.get(KEEP) else None,
    }
    config = render(run, out, {"fr3e": own}, ray)
    text = OmegaConf.to_yaml(config, resolve=True)
    write_text(out / "verl.yaml", text)
    write_text(base.with_suffix(".yaml"), text)
    return base.with_suffix(".yaml")


def _watched(run: RunConfig, base: Path, config: Path, mark: str, stall: float) -> str | None:
    """Run the attempt's process to its end, or to the end of its silence; why it failed, or None."""
    error_file, beat, stop = (base.with_suffix(ending) for ending in (".error.json", ".beat", ".stop"))
    beat.touch()
    born = beat.stat().st_mtime
    with open(base.with_suffix(".log"), "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "fr3e.engine.verl.run", str(config), str(error_file)],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment(run, mark),
            start_new_session=True,
        )
    previous = signal.signal(signal.SIGTERM, lambda *_: stop.touch()) if _in_main_thread() else None
    ended_for = None
    try:
        while process.poll() is None and ended_for is None:
            time.sleep(0.5)
            ended_for = _over(error_file, beat, stop, born, stall)
    finally:
        end_processes(mark, process.pid)
        code = process.wait()
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)
        stopped = stop.exists()
        for file in (beat, stop):
            file.unlink(missing_ok=True)
    if code == PREEMPTED or (stopped and code != 0):
        log.info(
            "%s: stopped before its last update; start the same command again to go on from the newest checkpoint",
            run.run,
        )
        raise SystemExit(PREEMPTED)
    if error_file.exists():
        error = read_json(error_file)
        return error["message"] if error["user"] else f"{error['type']}: {in_brief(error['message'])}"
    return ended_for if ended_for or code == 0 else f"the process ended with code {code}"


def _over(error_file: Path, beat: Path, stop: Path, born: float, stall: float) -> str | None:
    """Why an attempt that is still there has to be ended now, or None."""
    now, last = time.time(), beat.stat().st_mtime
    if error_file.exists():
        return "its error did not end it" if now - error_file.stat().st_mtime > GRACE_SECONDS else None
    if stop.exists():
        # Before its first update there is nothing to write.
        allowed = 0.0 if last == born else float(os.environ.get("FR3E_STOP_SECONDS", STOP_SECONDS))
        return "stopped" if now - stop.stat().st_mtime > allowed else None
    limit = max(stall, START_SECONDS) if last == born else stall
    silence = f"no progress for {limit:.0f} s, a worker or a vLLM server hangs; the attempt was ended"
    return silence if now - last > limit else None


def _in_main_thread() -> bool:
    import threading

    return threading.current_thread() is threading.main_thread()


def processes_of(mark: str, session: int) -> list[psutil.Process]:
    """Living processes of an attempt: those with its mark in their environment, and those of its session.

    Ray's and vLLM's processes rename themselves, which overwrites the environment that others can see; a session stays.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and (
                os.getsid(process.pid) == session or process.environ().get(MARK) == mark
            ):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess, ProcessLookupError):
            continue
    return found


def end_processes(mark: str, session: int) -> None:
    """Kill what is left of an attempt: Ray's daemons, its workers, vLLM's engines."""
    for _ in range(10):
        left = [p for p in processes_of(mark, session) if p.status() != psutil.STATUS_ZOMBIE]
        if not left:
            return
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=5)
