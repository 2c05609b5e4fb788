"""The worker pool, with real processes: threads, event loops, forks, kills, hangs, and no orphans."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fr3e.grading import close, grade, grade_async, grade_many, limits, pool

ROOT = Path(__file__).resolve().parents[2]
# Equal, but only in high precision: this always takes a worker.
GOLD = r"\sqrt{2}+\sqrt{3}"
HARD = r"\boxed{\sqrt{5+2\sqrt{6}}}"


@pytest.fixture
def fresh() -> Iterator[pool.Pool]:
    with pool.Pool(1) as one:
        yield one


def _gone(pids: list[int], seconds: float) -> list[int]:
    """Those of `pids` that still run after `seconds` (zombies are over)."""
    end = time.monotonic() + seconds
    while True:
        left = [p for p in pids if psutil.pid_exists(p) and psutil.Process(p).status() != psutil.STATUS_ZOMBIE]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)


def _run(program: str, folder: Path, wait: bool = True) -> subprocess.Popen[str]:
    script = folder / "script.py"
    script.write_text(program)
    environment = dict(os.environ, PYTHONPATH=str(ROOT), FR3E_GRADING_WORKERS="1")
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
    )
    if wait:
        process.wait(60)
    return process


START = f"""
from fr3e.grading import grade, pool
assert grade({HARD!r}, {GOLD!r})
print(*pool.shared().pids(), flush=True)
"""


def test_fast_paths_start_no_worker() -> None:
    close()
    assert grade(r"\boxed{12}", "12.0")
    assert not grade(r"\boxed{\frac{3}{4}}", "0.76")
    assert grade(r"\boxed{\{3, 1\}}", "1,3")
    assert not grade("nothing", "12")
    assert pool.shared().pids() == []


def test_an_answer_that_needs_it_starts_one() -> None:
    close()
    assert grade(HARD, GOLD)
    assert len(pool.shared().pids()) == 1
    assert not grade(HARD, GOLD.replace("3", "7"))
    assert len(pool.shared().pids()) == 1


def test_threads_share_the_pool() -> None:
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(bool(grade(HARD, GOLD)))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [True] * 12
    assert len(pool.shared().pids()) <= pool.default_workers()


def test_the_event_loop_is_not_blocked() -> None:
    async def run() -> tuple[list[bool], float]:
        worst, last, done = 0.0, time.monotonic(), asyncio.Event()

        async def heartbeat() -> None:
            nonlocal worst, last
            while not done.is_set():
                await asyncio.sleep(0.01)
                worst, last = max(worst, time.monotonic() - last), time.monotonic()

        beating = asyncio.create_task(heartbeat())
        verdicts = await asyncio.gather(*(grade_async(HARD, GOLD) for _ in range(20)))
        done.set()
        await beating
        return [bool(v) for v in verdicts], worst

    close()
    started = time.monotonic()
    verdicts, worst = asyncio.run(run())
    assert verdicts == [True] * 20
    # The pool was started in between, which takes many heartbeats.
    assert worst < max(0.4, 0.7 * (time.monotonic() - started))


def test_a_dead_worker_is_replaced_and_its_answer_still_graded(fresh: pool.Pool) -> None:
    fresh.start()
    (pid,) = fresh.pids()
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    assert next(grade_many([(HARD, GOLD)], pool=fresh))
    assert fresh.pids() != [pid]


def test_a_worker_killed_at_work_harms_nothing(fresh: pool.Pool) -> None:
    fresh.start()
    killed: list[int] = []

    def killer() -> None:
        for _ in range(3):
            time.sleep(0.15)
            for pid in fresh.pids():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    thread = threading.Thread(target=killer)
    thread.start()
    verdicts = list(grade_many([(HARD, GOLD)] * 150, pool=fresh))
    thread.join()
    assert killed
    # An answer is tried twice; only one that was hit twice may be without a verdict, and then it says so.
    assert sum(map(bool, verdicts)) >= 149
    assert all(v or v.kind == "refused" for v in verdicts)


def test_a_stopped_worker_is_killed_at_the_deadline(fresh: pool.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HARD_WALL_SECONDS", 2.0)
    fresh.start()
    (pid,) = fresh.pids()
    os.kill(pid, signal.SIGSTOP)  # uses no processor time, answers nothing
    (verdict,) = grade_many([(HARD, GOLD)], pool=fresh)
    assert verdict.kind == "timeout"
    assert _gone([pid], 5) == []
    assert next(grade_many([(HARD, GOLD)], pool=fresh))


def test_a_busy_worker_is_killed_and_only_its_answer_is_lost(fresh: pool.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh.start()
    (pid,) = fresh.pids()
    monkeypatch.setattr(limits, "CPU_SECONDS", 0.0)
    monkeypatch.setattr(limits, "WALL_SECONDS", 0.0)
    verdicts = list(grade_many([(HARD, GOLD)], pool=fresh))
    monkeypatch.undo()
    assert [v.kind for v in verdicts] == ["timeout"]
    assert _gone([pid], 5) == []
    assert next(grade_many([(HARD, GOLD)], pool=fresh))


def test_a_worker_is_recycled(fresh: pool.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WORKER_JOBS", 2)
    seen = set()
    for _ in range(4):
        fresh.ask({"do": "grade", "answer": r"\sqrt{5+2\sqrt{6}}", "gold": GOLD})
        seen.update(fresh.pids())
    assert len(seen) >= 1
    assert all(v for v in grade_many([(HARD, GOLD)] * 3, pool=fresh))


def test_a_fault_is_called_a_fault(fresh: pool.Pool) -> None:
    assert set(fresh.ask({"do": "something else"})) == {"fault"}
    fresh.close()
    (verdict,) = grade_many([(HARD, GOLD)], pool=fresh)
    assert verdict.kind == "fault"


def test_a_worker_that_cannot_start_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/does/not/exist")
    with pool.Pool(1) as broken:
        (verdict,) = grade_many([(HARD, GOLD)], pool=broken)
    assert verdict.kind == "fault"
    assert "could not be started" in verdict.rule


def test_a_forked_process_has_its_own_pool() -> None:
    close()
    assert grade(HARD, GOLD)
    mine = pool.shared().pids()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            good = bool(grade(HARD, GOLD)) and not set(pool.shared().pids()) & set(mine)
            os.write(write, " ".join(map(str, pool.shared().pids())).encode())
            close()
            status = 0 if good else 1
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    os.close(write)
    theirs = [int(p) for p in os.read(read, 1000).split()]
    os.close(read)
    assert os.waitstatus_to_exitcode(status) == 0
    assert _gone(theirs, 5) == []
    assert pool.shared().pids() == mine
    assert grade(HARD, GOLD)


def test_a_script_without_a_main_guard_ends_cleanly(tmp_path: Path) -> None:
    process = _run(START + "print('once')", tmp_path)
    out, err = process.communicate()
    assert process.returncode == 0, err
    lines = out.splitlines()
    assert lines[1:] == ["once"]  # the script was not imported again by a worker
    assert _gone([int(p) for p in lines[0].split()], 5) == []


def test_no_orphans_after_an_exception(tmp_path: Path) -> None:
    process = _run(START + "raise RuntimeError('the end')", tmp_path)
    out, err = process.communicate()
    assert process.returncode == 1
    assert "the end" in err
    assert _gone([int(p) for p in out.split()], 5) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_no_orphans_after_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    process = _run(START + "import time; time.sleep(60)", tmp_path, wait=False)
    assert process.stdout is not None
    pids = [int(p) for p in process.stdout.readline().split()]
    assert pids
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert _gone(pids, 8) == []


def test_no_orphan_when_the_parent_dies_while_the_worker_computes(tmp_path: Path) -> None:
    # The worker is busy for as long as it is allowed to be; its kernel timer ends it without the parent's help.
    busy = START + (
        "import threading, time\n"
        "job = {'do': 'grade', 'answer': '+'.join(r'\\sin(x^{%d}+y)' % k for k in range(90)) , 'gold': r'\\cos(x)' }\n"
        "def ask():\n    while True: pool.shared().ask(job)\n"
        "threading.Thread(target=ask, daemon=True).start()\n"
        "time.sleep(0.5)\nprint('busy', flush=True)\ntime.sleep(60)\n"
    )
    process = _run(busy, tmp_path, wait=False)
    assert process.stdout is not None
    pids = [int(p) for p in process.stdout.readline().split()]
    assert process.stdout.readline().strip() == "busy"
    process.kill()
    process.communicate(timeout=30)
    assert _gone(pids, limits.HARD_WALL_SECONDS + 5) == []


def test_a_multiprocessing_child_that_was_spawned_can_grade(tmp_path: Path) -> None:
    program = (
        "import multiprocessing\n"
        f"def work(q):\n    from fr3e.grading import grade\n    q.put(bool(grade({HARD!r}, {GOLD!r})))\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n    q = context.Queue()\n"
        "    p = context.Process(target=work, args=(q,), daemon=True)\n    p.start()\n    print(q.get(timeout=50))\n    p.join()\n"
    )
    process = _run(program, tmp_path)
    out, err = process.communicate()
    assert out.strip() == "True", err


def test_the_package_is_light() -> None:
    program = (
        "import sys, fr3e.grading\n"
        "heavy = {'torch', 'verl', 'ray', 'vllm', 'snakemake', 'dvc', 'sympy', 'mpmath', 'math_verify', 'numpy', 'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert out.strip() == "[]"
