"""A gate for the tests, loaded through verl's own VERL_USE_EXTERNAL_MODULES: a run waits after an update until it is let go.

A fault is to meet a run at a known place, however fast the machine is. `<attempt>.hold` names the update; the run waits behind
its metrics row, before its checkpoint, until the file is gone.
"""

import json
import time
from pathlib import Path

from fr3e.engine.verl import stopping

_reason = stopping.Stopping.reason


def reason(self: stopping.Stopping) -> str | None:
    """The real answer, once no file holds the update that has just ended."""
    hold = self.asked.with_suffix(".hold")
    rows = self.asked.with_suffix(".metrics.jsonl").read_text().splitlines()
    update = json.loads(rows[-1])["update"]
    while _held(hold) == update:
        time.sleep(0.05)
    return _reason(self)


def _held(hold: Path) -> int | None:
    try:
        return int(hold.read_text())
    except FileNotFoundError:
        return None


stopping.Stopping.reason = reason  # type: ignore[method-assign]
