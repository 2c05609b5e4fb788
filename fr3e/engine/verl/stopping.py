"""When an attempt ends before its last update: it was asked to, or its job will end before one more update is on the disk."""

import time
from pathlib import Path

PREEMPTED = 75
"""Exit code of an attempt that was stopped, has a checkpoint, and goes on when started again (EX_TEMPFAIL)."""
JOB_END = "FR3E_JOB_END"
"""Variable with the end of the job's time limit in seconds since 1970; with_ray.sh asks Slurm for it."""
MARGIN_SECONDS = 60.0


class Stopped(Exception):
    """The attempt's last update is on the disk, and no further one is begun."""


class Stopping:
    """Looked at after every update. `asked` is a file that the watching command makes when it gets SIGTERM."""

    def __init__(self, asked: Path, job_end: float | None = None) -> None:
        self.asked, self.job_end = asked, job_end
        self.longest_update = self.longest_save = 0.0
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
        needed = self.longest_update + 2 * self.longest_save + MARGIN_SECONDS
        return None if left > needed else f"the job ends in {left:.0f} s, one more update may take {needed:.0f} s"
