"""When an attempt ends before its last update: it was asked to, or its job will end before one more update is on the disk."""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PREEMPTED = 75
"""Exit code of an attempt that was stopped, has a checkpoint, and goes on when started again (EX_TEMPFAIL)."""
JOB_END = "FR3E_JOB_END"
"""Variable with the end of the job's time limit in seconds since 1970; with_ray.sh asks Slurm for it."""
MARGIN_SECONDS = 60.0
SAVE_SECONDS = 3600.0
"""Time for one checkpoint before its silence counts: 98 GB, a node's share of 32B on four, at 27 MB/s."""
BYTES_PER_PARAMETER = 12
DISK_BYTES_PER_SECOND = 200e6
"""What a node is taken to write until a save was measured: cautious, a sixth of what 10 Gbit/s Ethernet carries."""


class Stopped(Exception):
    """The attempt's last update is on the disk, and no further one is begun."""


class Stopping:
    """Looked at after every update. `asked` is a file that the watching command makes when it gets SIGTERM.

    `saved` is the longest save of the attempts before, in seconds; where there was none (0), `expected` stands for it until
    one has been measured.
    """

    def __init__(self, asked: Path, job_end: float | None = None, saved: float = 0.0, expected: float = 0.0) -> None:
        self.asked, self.job_end, self.expected = asked, job_end, expected
        self.longest_update, self.longest_save = 0.0, saved
        self._last = time.time()

    def update_ended(self, saving: float) -> None:
        """Note how long the update took that ends now, and the checkpoint before it, 0 where none was written."""
        now = time.time()
        self.longest_update = max(self.longest_update, now - self._last)
        self.longest_save = max(self.longest_save, saving)
        self._last = now

    def reason(self) -> str | None:
        """Why no further update may begin, or None.

        One that would take as long as the longest so far, with two checkpoints (this update's and its own), has to end
        `MARGIN_SECONDS` before the job does.
        """
        if self.asked.exists():
            return "stopped by SIGTERM"
        if self.job_end is None:
            return None
        left = self.job_end - time.time()
        needed = self.longest_update + 2 * (self.longest_save or self.expected) + MARGIN_SECONDS
        return None if left > needed else f"the job ends in {left:.0f} s, one more update may take {needed:.0f} s"


def expected_save(parameters: int, nodes: int) -> float:
    """Seconds that a first checkpoint may take: float32 weights and AdamW's two moments, each node writing its share."""
    return parameters * BYTES_PER_PARAMETER / nodes / DISK_BYTES_PER_SECOND


def parameters_of(base: Path) -> int:
    """Parameters of a model folder, from the headers of its safetensors."""
    from safetensors import safe_open

    count = 0
    for path in sorted(base.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            count += sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    return count


@contextlib.contextmanager
def beating(beat: Callable[[], None], seconds: float = SAVE_SECONDS, every: float = 15.0) -> Iterator[None]:
    """Call `beat` while the block runs, for at most `seconds`: long work counts as progress, endless work does not."""
    over = threading.Event()

    def run() -> None:
        until = time.monotonic() + seconds
        while not over.wait(every) and time.monotonic() < until:
            beat()

    thread = threading.Thread(target=run, name="beat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
