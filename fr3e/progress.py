"""Progress that suits the reader: a bar on a terminal, one plain line every few seconds in a log."""

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")
SECONDS_BETWEEN_LINES = 15.0
log = logging.getLogger("fr3e")


def track(items: Iterable[T], label: str, total: int | None = None, unit: str = "it") -> Iterator[T]:
    """Iterate over `items` and report how far it got; `total` is needed where `items` has no length."""
    total = total if total is not None else len(items)  # type: ignore[arg-type]
    if sys.stderr.isatty():
        yield from tqdm(items, desc=label, total=total, unit=unit)
        return
    started = last = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES or done == total:
            last = now
            rate = done / max(now - started, 1e-9)
            left = f", {(total - done) / rate:.0f} s left" if done < total else ""
            log.info("%s: %d/%d %s (%.3g/s%s)", label, done, total, unit, rate, left)
