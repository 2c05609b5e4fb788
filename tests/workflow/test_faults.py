"""What goes wrong around Snakemake: two runs at once, a kill, Ctrl-C, a full disk, results that cannot be written."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from fr3e.files import read_json
from tests.workflow.checkout import TINY, Checkout

pytestmark = pytest.mark.workflow

SNAKEMAKE = f"{sys.executable} -m snakemake --profile workflow/profiles/local --configfile {TINY} --cores 1 all"
PRIVATE_MOUNTS = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
needs_mounts = pytest.mark.skipif(not PRIVATE_MOUNTS, reason="needs the right to mount in a namespace (unshare -m)")


def start(project: Checkout, log: Path) -> subprocess.Popen[bytes]:
    """Snakemake as a terminal starts it: in a process group of its own."""
    with open(log, "wb") as handle:
        return subprocess.Popen(
            SNAKEMAKE.split(),
            cwd=project.folder,
            env=project.environment,
            stdout=handle,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def wait_for(happened: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def alive(session: int) -> list[str]:
    """Commands of the living processes of a session."""
    found = []
    for process in psutil.process_iter(["pid", "status", "cmdline"]):
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(process.info["pid"]) == session and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.info["cmdline"] or []))
    return found


def longer_training(project: Checkout) -> Path:
    """Training that lasts long enough to be interrupted; the folder of its first run, emptied."""
    project.edit(TINY, "updates: 2}", "updates: 60}")
    shutil.rmtree(project.folder / "results/tiny/runs")
    return project.folder / "results/tiny/runs/toy-grpo_pp-s0"


def test_two_runs_at_once_and_a_killed_one(project: Checkout, tmp_path: Path) -> None:
    """A second run is told that the folder is locked; after a kill the next call goes on."""
    shutil.rmtree(project.folder / "results/tiny/runs")
    first = start(project, tmp_path / "log")
    try:
        wait_for(lambda: bool(list((project.folder / ".snakemake/locks").glob("*"))))
        second = project.snakemake("all", check=False)
        assert second.returncode != 0
        assert "lock" in (second.stdout + second.stderr).lower()
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    project.snakemake("--unlock")
    project.snakemake("all")
    assert project.due() == {}


def test_ctrl_c_leaves_no_process_and_the_next_call_goes_on(project: Checkout, tmp_path: Path) -> None:
    run, log = longer_training(project), tmp_path / "log"
    first = start(project, log)
    try:
        wait_for(lambda: len(list((run / "checkpoints").glob("*.pt"))) > 0)
        os.killpg(first.pid, signal.SIGINT)
        assert first.wait(timeout=60) != 0
        wait_for(lambda: not alive(first.pid), 20)
    finally:
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
    assert list((run / "checkpoints").glob("*.pt")), "the checkpoint stays"
    project.snakemake("all")  # needs no --unlock
    attempts = read_json(run / "attempts.json")["attempts"]
    assert [attempt["resumed_after_update"] > 0 for attempt in attempts] == [False, True]
    assert project.due() == {}


def test_a_closed_terminal_and_two_makes_at_once(project: Checkout, tmp_path: Path) -> None:
    """SIGHUP leaves Snakemake's lock behind; the same `make demo` then goes on. A second one at once is refused."""
    longer_training(project)
    text = (project.folder / "Makefile").read_text(encoding="utf-8")
    text = text.replace("config/demo.yaml", TINY).replace("results/demo", "results/tiny")
    (project.folder / "Makefile").write_text(text, encoding="utf-8")
    command = ["make", "demo", "READY=", f"BIN={Path(sys.executable).parent}", "CORES=1"]
    locks = project.folder / ".snakemake/locks"
    with open(tmp_path / "log", "wb") as log:
        first = subprocess.Popen(
            command, cwd=project.folder, env=project.environment, stdout=log, stderr=log, start_new_session=True
        )

    def make() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=project.folder,
            env=project.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    try:
        wait_for(lambda: first.poll() is None and bool(list(locks.glob("*"))))
        second = make()
        assert second.returncode != 0
        assert "another make demo or make demo-ablations is at work in this folder" in second.stderr
        os.killpg(first.pid, signal.SIGHUP)
        first.wait(timeout=60)
        wait_for(lambda: not alive(first.pid), 20)
    finally:
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
            first.wait()
    assert list(locks.glob("*")), "the lock that a user would meet"
    third = make()
    assert third.returncode == 0, third.stdout[-2000:] + third.stderr[-3000:]
    assert "results/tiny/report.html is the whole report" in third.stdout
    assert not list(locks.glob("*"))


def in_private_mounts(project: Checkout, script: str) -> str:
    """Run `script` where its mounts are seen by nobody else and end with it; its output."""
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script],
        cwd=project.folder,
        env=project.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    return done.stdout


@needs_mounts
def test_a_full_disk_is_named_and_the_next_call_goes_on(project: Checkout) -> None:
    longer_training(project)
    output = in_private_mounts(
        project,
        f"""
        mkdir -p results/tiny/runs && mount -t tmpfs -o size=400k none results/tiny/runs
        {SNAKEMAKE}; echo "first ended with $?"
        mount -o remount,size=100m results/tiny/runs
        {SNAKEMAKE}; echo "second ended with $?"
        """,
    )
    first, second = output.split("first ended with ")
    assert not second.startswith("0") and "second ended with 0" in second, output[-4000:]
    assert "cannot be written (No space left on device); free space" in first, first[-4000:]
    assert "Traceback" not in first


@needs_mounts
def test_results_that_cannot_be_written_are_named_and_stay_as_they_are(project: Checkout) -> None:
    project.edit(TINY, "lr: 1.0e-4", "lr: 2.0e-4")
    output = in_private_mounts(
        project,
        f"""
        mount --bind results results && mount -o remount,bind,ro results
        {SNAKEMAKE}; echo "ended with $?"
        """,
    )
    assert "ended with 0" not in output
    assert "Write-protected output files" in output and "results/tiny/" in output, output[-4000:]
    assert "Traceback" not in output
    assert (project.folder / "results/tiny/table1.csv").is_file()
    project.snakemake("all")
    assert project.due() == {}
