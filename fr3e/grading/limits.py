"""Limits that keep every grading bounded, in time, memory and depth.

The text limits are checked before anything is parsed: a text outside them is refused, whatever it says.
"""

import re

MAX_RESPONSE = 1_000_000  # characters; of longer responses the end is read, and boxes of the last MAX_SEARCHED
MAX_SEARCHED = 20_000_000
MAX_ANSWER = 2_000  # characters in the extracted answer
MAX_GOLD = 4_000
MAX_DEPTH = 50  # nesting of brackets
MAX_ITEMS = 100  # items of a list, cells of a matrix
MAX_DIGITS = 1_000  # digits in one literal
MAX_COMPARISONS = 400  # of expressions, before a worker takes over
MAX_BITS = 40_000  # bits in an exact intermediate result

CPU_SECONDS = 1.0  # processor time a worker may spend on one answer
WALL_SECONDS = 1.1  # wall clock after which the processor time is looked at
HARD_WALL_SECONDS = 15.0  # wall clock after which a worker is killed on a machine however busy
WORKER_BYTES = 1 << 30  # address space of a worker
WORKER_JOBS = 4_000  # answers after which a worker is replaced
START_SECONDS = 60.0  # wall clock a worker may take to start

_CARET = r"(?:\^|\*\*)\s*"
_SIMPLE = r"[({]*-?(?:\d[\d.]*|[A-Za-z])[)}]*\s*"
_TOWER = re.compile(rf"{_CARET}\{{[^{{}}]*{_CARET}\{{[^{{}}]*(?:\^|\*\*)|{_CARET}{_SIMPLE}{_CARET}{_SIMPLE}(?:\^|\*\*)")
_FACTORIALS = re.compile(r"!\s*\)*\}*\s*!\s*\)*\}*\s*!|(?<!\d)\d{5,}\s*!")
_DIGITS = re.compile(rf"\d{{{MAX_DIGITS + 1},}}")


def depth(text: str) -> int:
    """Deepest nesting of (), [] and {} in `text`."""
    deepest = current = 0
    for character in text:
        if character in "([{":
            current += 1
            deepest = max(deepest, current)
        elif character in ")]}":
            current = max(0, current - 1)
    return deepest


def refusal(text: str, longest: int = MAX_ANSWER) -> str | None:  # noqa: PLR0911
    """Why `text` is not handed to any parser, or None when it may be."""
    if len(text) > longest:
        return f"longer than {longest} characters"
    if depth(text) > MAX_DEPTH:
        return f"nested deeper than {MAX_DEPTH}"
    if text.count(",") + text.count("&") + text.count(";") >= MAX_ITEMS:
        return f"a list of {MAX_ITEMS} or more"
    if _DIGITS.search(text):
        return f"a number of more than {MAX_DIGITS} digits"
    if _TOWER.search(text):
        return "a tower of powers"
    if _FACTORIALS.search(text):
        return "a tower of factorials"
    return None
