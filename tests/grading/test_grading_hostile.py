"""Hostile responses: a verdict in bounded time and memory, no code run, the workers still there."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fr3e.grading import grade, limits, pool
from fr3e.grading.qwen_compatible import qwen_compatible
from tests.grading.hostile import HOSTILE

GOLDS = ("7", r"x^{2}+\sqrt{y}", r"\{1,2\}")


@pytest.fixture(scope="module", autouse=True)
def started() -> Iterator[None]:
    pool.shared().start()
    yield
    pool.close()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_response(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for gold in GOLDS:
        started_at, cpu = time.monotonic(), time.process_time()
        verdict = grade(HOSTILE[name], gold)
        assert not verdict, verdict
        assert verdict.kind not in ("fault", "correct"), verdict
        # What runs in this process is bounded in processor time; a worker has its own limit, by the clock when it is idle.
        assert time.process_time() - cpu < 1.5
        assert time.monotonic() - started_at < limits.HARD_WALL_SECONDS + 5
    assert not qwen_compatible(HOSTILE[name], GOLDS[0])
    assert not list(tmp_path.iterdir()), "a response ran code"


def test_workers_stay_small_and_alive() -> None:
    for process in map(psutil.Process, pool.shared().pids()):
        assert process.memory_info().rss < 1 << 30
        assert process.memory_info().vms <= limits.WORKER_BYTES * 1.05
    assert grade(r"\boxed{\frac{1}{\sqrt{2}}}", r"\frac{\sqrt{2}}{2}")


def _confined(code: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process with a worker's limits."""
    program = "from fr3e.grading.worker import confine\nconfine()\n" + code
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


def test_a_worker_cannot_take_more_memory_than_allowed() -> None:
    assert "MemoryError" in _confined(f"bytearray({limits.WORKER_BYTES})").stderr
    assert _confined(f"bytearray({limits.WORKER_BYTES // 2})").returncode == 0


def test_a_worker_cannot_write_files(tmp_path: Path) -> None:
    target = tmp_path / "written"
    result = _confined(f"with open({str(target)!r}, 'w') as file: file.write('x')")
    assert result.returncode != 0
    assert not target.exists() or target.stat().st_size == 0


def test_megabytes_before_and_after_the_box_are_read_through() -> None:
    assert grade(r"\boxed{7}" + " and so on" * 300_000, "7")
    assert grade("so " * 1_000_000 + r"\boxed{7}", "7")
    assert grade(r"\boxed{1} " * 5_000 + r"\boxed{7}", "7")
