"""SIGKILL at any moment, then the same command again: weights and metrics as if nothing had happened."""

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fr3e.config.scenario import RunConfig
from fr3e.engine.local import checkpoint, journal
from fr3e.engine.local.generator import LocalGenerator
from fr3e.engine.local.train import Trainer, train
from fr3e.engine.local.update import Updater
from tests.engine.local.test_train import rows, same_run
from tests.engine.local.tiny_run import tiny_run

pytestmark = pytest.mark.slow
FORK = multiprocessing.get_context("fork")


def attempt(
    run: RunConfig, out: Path, arm: Callable[[], None] | None = None, seconds: float | None = None
) -> int | None:
    """Train in a forked process and kill it after `seconds`; its exit code, -9 when it was killed."""

    def work() -> None:
        torch.set_num_threads(1)
        if arm is not None:
            arm()
        train(run, out)

    process = FORK.Process(target=work)
    process.start()
    if seconds is not None:
        process.join(seconds)
        process.kill()
    process.join(120)
    return process.exitcode


def dying(owner: Any, name: str, call: int, after: bool) -> Callable[[], None]:
    """Make the `call`-th call of owner.name the process's last, before or after it did its work."""

    def arm() -> None:
        original, count = getattr(owner, name), 0

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            result = original(*args, **kwargs) if count < call or after else None
            if count == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(owner, name, wrapped)

    return arm


def half_written() -> None:
    """The second checkpoint is cut in the middle of its file."""
    original, count = torch.save, 0

    def save(content: Any, target: Path) -> None:
        nonlocal count
        count += 1
        original(content, target)
        if count == 2:
            os.truncate(target, target.stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    torch.save = save


MOMENTS = {
    "during generation": dying(LocalGenerator, "_decoder", 9, after=False),
    "during grading": dying(Trainer, "grade", 150, after=True),
    "during the update": dying(Updater, "_backward", 8, after=True),
    "before a row is written": dying(journal.Journal, "_append", 9, after=False),
    "after a row is written": dying(journal.Journal, "_append", 10, after=True),
    "in the middle of a checkpoint": half_written,
    "before the checkpoint has its checksum": dying(checkpoint, "write_json", 2, after=False),
    "after the checkpoint has its checksum": dying(checkpoint, "write_json", 2, after=True),
}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunConfig, Path, float]:
    """The run, its output and how long it took."""
    folder = tmp_path_factory.mktemp("run")
    run = tiny_run(folder)
    started = time.monotonic()
    assert attempt(run, folder / "out") == 0
    return run, folder / "out", time.monotonic() - started


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_a_chosen_moment(uninterrupted: tuple[RunConfig, Path, float], tmp_path: Path, moment: str) -> None:
    run, out, _ = uninterrupted
    assert attempt(run, tmp_path, MOMENTS[moment]) == -signal.SIGKILL
    assert attempt(run, tmp_path) == 0
    same_run(out, tmp_path)


def test_killed_at_20_random_moments(uninterrupted: tuple[RunConfig, Path, float], tmp_path: Path) -> None:
    """Twenty kills of one run after another; a run that gets done before its kill is begun anew elsewhere."""
    run, out, length = uninterrupted
    rng = random.Random(0)
    kills = round_ = 0
    while kills < 20:
        here = tmp_path / str(round_)
        code = attempt(run, here, seconds=rng.uniform(0.02, 0.8) * length)
        kills += code == -signal.SIGKILL
        if code == 0:
            same_run(out, here)
            round_ += 1
    here = tmp_path / str(round_)
    assert attempt(run, here) == 0
    same_run(out, here)
    assert [row["update"] for row in rows(here)] == list(range(run.training.optim.updates + 1))
