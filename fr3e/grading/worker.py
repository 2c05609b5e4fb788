"""One grading worker: a process that answers JSON lines until its standard input ends.

It protects the machine from itself: an address space limit, no files, no core dump, no child processes, and kernel
timers that end it even when Python is stuck inside a C function. It ends when its parent does, because the parent holds
the only other end of the pipe; the timers bound how long a busy one outlives it.
"""

import contextlib
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Iterator
from typing import Any

from fr3e.grading import limits

SECONDS_BETWEEN_PARENT_CHECKS = 5.0


def _lines(descriptor: int, parent: int) -> Iterator[bytes]:
    """Lines from `descriptor` until it ends or `parent` is no longer our parent."""
    buffer = b""
    while True:
        while b"\n" not in buffer:
            ready, _, _ = select.select([descriptor], [], [], SECONDS_BETWEEN_PARENT_CHECKS)
            if os.getppid() != parent:
                return
            if ready:
                chunk = os.read(descriptor, 1 << 16)
                if not chunk:
                    return
                buffer += chunk
        line, buffer = buffer.split(b"\n", 1)
        yield line


def confine() -> None:
    """Limits of the process; a limit the system does not allow to set is left as it is (already lower)."""
    wanted = {"RLIMIT_AS": limits.WORKER_BYTES, "RLIMIT_CORE": 0, "RLIMIT_FSIZE": 0, "RLIMIT_NPROC": 0}
    for name, value in wanted.items():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (value, value))
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)


def _reply(line: bytes) -> dict[str, Any]:
    from fr3e.grading.jobs import run

    try:
        return {"value": run(json.loads(line))}
    except RecursionError:
        return {"refused": "nested too deeply"}
    except MemoryError:
        return {"refused": "needs more memory than allowed"}
    except Exception as error:  # reported as a fault by the parent, never as a wrong answer
        return {"fault": f"{type(error).__name__}: {error}"[:500]}


def main() -> None:
    """Serve until the parent closes the pipe."""
    parent = os.getppid()
    output = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from fr3e.grading.jobs import warm_up

    warm_up()
    confine()
    os.write(output, b'{"ready": true}\n')
    for line in _lines(0, parent):
        signal.setitimer(signal.ITIMER_REAL, limits.HARD_WALL_SECONDS + 1)
        signal.setitimer(signal.ITIMER_PROF, limits.CPU_SECONDS + 1)
        text = json.dumps(_reply(line)) + "\n"
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        data = text.encode("ascii")
        while data:
            data = data[os.write(output, data) :]


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit(0)
