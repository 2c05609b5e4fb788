"""Persistent, killable worker processes.

Workers are started with the interpreter and `-m fr3e.grading.worker`, not by multiprocessing: the caller's main module is
never imported again, so a script without a main guard works, and so does any thread, event loop or forked process.
A worker that hangs is killed and one that died is replaced; only the answer it held is affected.
"""

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from fr3e.grading import limits


class WorkerDied(Exception):
    """The worker ended while it held an answer."""


class WorkerHung(Exception):
    """The worker ran out of time and was killed."""


class StartFailed(Exception):
    """The worker ended before it was ready."""


class PoolBroken(Exception):
    """No worker can be started."""


class Worker:
    """One worker process and its two pipes."""

    def __init__(self) -> None:
        environment = dict(os.environ)
        root = str(Path(__file__).resolve().parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH")]))
        environment.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"})
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "fr3e.grading.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
            bufsize=0,
        )
        self.ready = False
        self.jobs = 0
        self._buffer = b""

    def _cpu(self) -> float:
        """Seconds of processor time used so far; infinite when the system does not say."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError, ValueError):
            return float("inf")

    def _line(self, seconds: float) -> bytes | None:
        """The next line, or None when it did not come within `seconds`."""
        assert self.process.stdout is not None
        end = time.monotonic() + seconds
        poller = select.poll()
        poller.register(self.process.stdout, select.POLLIN)
        while b"\n" not in self._buffer:
            left = end - time.monotonic()
            if left <= 0 or not poller.poll(left * 1000):
                if time.monotonic() >= end:
                    return None
                continue
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise WorkerDied("worker ended")
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def wait_ready(self) -> None:
        """Wait for the first line of a starting worker."""
        if not self.ready:
            try:
                if self._line(limits.START_SECONDS) is None:
                    raise PoolBroken(f"a worker did not start within {limits.START_SECONDS:.0f} s")
            except WorkerDied as error:
                raise StartFailed(f"a worker could not start (exit status {self.process.wait()})") from error
            self.ready = True

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """The worker's reply to `job`. Raises WorkerDied or WorkerHung; the worker is then of no more use."""
        assert self.process.stdin is not None
        self.jobs += 1
        started, cpu = time.monotonic(), self._cpu()
        data = json.dumps(job).encode("ascii") + b"\n"
        try:
            while data:
                data = data[os.write(self.process.stdin.fileno(), data) :]
        except (BrokenPipeError, OSError) as error:
            raise WorkerDied("worker ended") from error
        wait = limits.WALL_SECONDS
        while (line := self._line(wait)) is None:
            # On a busy machine a worker may have had little of its time: processor time is what it is judged by.
            used = self._cpu() - cpu
            if not used < limits.CPU_SECONDS or time.monotonic() - started > limits.HARD_WALL_SECONDS:
                raise WorkerHung("out of time")
            wait = max(0.05, min(limits.CPU_SECONDS - used, 0.5))
        return json.loads(line)

    def forget(self) -> None:
        """Close our ends of the pipes without touching the process (it may belong to another process of ours)."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def kill(self) -> None:
        """End the process now and collect it."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.forget()
        self.process.wait()


class Pool:
    """At most `size` workers, started when first needed; safe to use from any thread."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"a grading pool of {size} workers: at least 1 is needed")
        self.size = size
        self._slots = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._closed = False

    def start(self) -> None:
        """Start all workers and wait until they are ready; not needed, but it takes the start out of a measurement."""
        with contextlib.ExitStack() as stack:
            workers = []
            for _ in range(self.size):
                self._slots.acquire()
                stack.callback(self._slots.release)
                workers.append(self._take())
            for worker in workers:
                worker.wait_ready()
            with self._lock:
                self._idle.extend(workers)

    def _take(self) -> Worker:
        with self._lock:
            if self._closed:
                raise PoolBroken("the pool is closed")
            while self._idle:
                worker = self._idle.pop()
                if worker.process.poll() is None:
                    return worker
                self._all.discard(worker)
                worker.kill()
            try:
                worker = Worker()
            except OSError as error:
                raise PoolBroken(f"a worker could not be started ({error})") from error
            self._all.add(worker)
            return worker

    def _drop(self, worker: Worker) -> None:
        with self._lock:
            self._all.discard(worker)
        worker.kill()

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """The reply to `job`: {"value": ...}, {"refused": why}, {"timeout": why} or {"fault": why}; never raises those."""
        deaths = starts = 0
        with self._slots:
            while True:
                try:
                    return self._ask_once(job)
                except WorkerHung:
                    return {"timeout": f"no decision within {limits.CPU_SECONDS} s of processor time"}
                except WorkerDied:
                    # Once may be bad luck (somebody killed it); twice on the same answer is the answer's doing.
                    deaths += 1
                    if deaths == 2:
                        return {"refused": "two workers died on it"}
                except StartFailed as error:
                    starts += 1
                    if starts == 3:
                        return {"fault": str(error)}
                except PoolBroken as error:
                    return {"fault": str(error)}

    def _ask_once(self, job: dict[str, Any]) -> dict[str, Any]:
        worker = self._take()
        try:
            worker.wait_ready()
            reply = worker.ask(job)
        except BaseException:
            self._drop(worker)
            raise
        if worker.jobs >= limits.WORKER_JOBS:
            self._drop(worker)
            return reply
        with self._lock:
            if not self._closed:
                self._idle.append(worker)
                return reply
        self._drop(worker)
        return reply

    def pids(self) -> list[int]:
        """Process ids of the workers alive now."""
        with self._lock:
            return [worker.process.pid for worker in self._all if worker.process.poll() is None]

    def close(self) -> None:
        """End all workers; a pool that is closed stays closed."""
        with self._lock:
            self._closed = True
            workers, self._all, self._idle = list(self._all), set(), []
        for worker in workers:
            worker.kill()

    def abandon(self) -> None:
        """Called in a forked child: the workers are the parent's, so only our copies of the pipes are closed."""
        for worker in self._all:
            worker.forget()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_shared: Pool | None = None
_shared_lock = threading.Lock()


def default_workers() -> int:
    """FR3E_GRADING_WORKERS, or the number of usable cores, at most 8."""
    given = os.environ.get("FR3E_GRADING_WORKERS")
    if given:
        return max(1, int(given))
    return max(1, min(8, len(os.sched_getaffinity(0))))


def shared() -> Pool:
    """This process's pool; made at the first call, without starting a worker."""
    global _shared  # noqa: PLW0603
    with _shared_lock:
        if _shared is None or _shared._closed:
            _shared = Pool(default_workers())
        return _shared


def close() -> None:
    """End this process's workers. The next grading that needs one starts a new pool."""
    global _shared
    with _shared_lock:
        pool, _shared = _shared, None
    if pool is not None:
        pool.close()


def _after_fork() -> None:
    global _shared, _shared_lock  # noqa: PLW0603
    pool, _shared = _shared, None
    _shared_lock = threading.Lock()
    if pool is not None:
        pool.abandon()


atexit.register(close)
os.register_at_fork(after_in_child=_after_fork)
