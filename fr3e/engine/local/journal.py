"""What a run leaves behind while it goes on: rows of metrics, wall time over all attempts, seconds by phase."""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fr3e.engine.local.batching import BatchingGenerator
from fr3e.engine.local.checkpoint import Progress
from fr3e.files import read_json, write_json, write_text


class Journal:
    """metrics.jsonl and trajectories.jsonl: brought to the state of `progress` at the start, then appended to, durably."""

    def __init__(self, out: Path, progress: Progress) -> None:
        self.out, self.progress = out, progress
        write_text(out / "metrics.jsonl", "".join(progress.metrics))
        write_text(out / "trajectories.jsonl", "".join(progress.trajectories))

    def add(self, row: dict[str, Any], trajectories: list[dict[str, Any]] | None = None) -> None:
        """One row of metrics, and sampled trajectories. NaN is refused (`ValueError`)."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
        lines = tuple(json.dumps(t, ensure_ascii=False, allow_nan=False) + "\n" for t in trajectories or [])
        self._append("trajectories.jsonl", "".join(lines))
        self._append("metrics.jsonl", line)
        self.progress.trajectories += lines
        self.progress.metrics += (line,)

    def _append(self, name: str, text: str) -> None:
        if text:
            with (self.out / name).open("a", encoding="utf-8") as handle:
                handle.write(text)
                handle.flush()
                os.fsync(handle.fileno())


class Clock:
    """Wall time since the run began, all attempts added up, and the attempts, in a small file beside the metrics."""

    def __init__(self, path: Path, identity: str, resumed_after: int) -> None:
        self.path, self.identity = path, identity
        self.started = time.monotonic()
        before: dict[str, Any] = read_json(path) if path.exists() else {}
        if before.get("identity") != identity:
            before = {}
        self.before = float(before.get("seconds", 0.0))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self.attempts = [*before.get("attempts", []), {"started": now, "resumed_after_update": resumed_after}]
        self.seconds()

    def seconds(self) -> float:
        """Seconds so far; also written down, for the attempt after this one."""
        seconds = round(self.before + time.monotonic() - self.started, 3)
        write_json(self.path, {"identity": self.identity, "seconds": seconds, "attempts": self.attempts})
        return seconds


class Stopwatch:
    """Columns seconds/<phase>: laps of wall time, with generation and grading taken out of the lap they fall in."""

    def __init__(self, batching: BatchingGenerator) -> None:
        self.batching = batching
        self.seconds = dict.fromkeys(("generate", "grade", "explore", "update"), 0.0)
        self.last = self._now()

    def _now(self) -> tuple[float, float, float]:
        return time.perf_counter(), self.batching.generate_seconds, self.batching.grade_seconds

    def lap(self, phase: str) -> None:
        """End a phase. A probe keeps its own generation and grading."""
        now = self._now()
        total, generate, grade = (b - a for a, b in zip(self.last, now, strict=True))
        self.last = now
        if phase == "probe":
            self.seconds["probe"] = total
            return
        for name, value in (("generate", generate), ("grade", grade), (phase, total - generate - grade)):
            self.seconds[name] += value

    def columns(self) -> dict[str, float]:
        """seconds/<phase>, rounded to 0.1 ms."""
        return {f"seconds/{name}": round(value, 4) for name, value in self.seconds.items()}
