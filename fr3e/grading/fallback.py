"""math-verify, for spellings that our own reader does not know. Only workers import it.

It gets the cleaned text between dollar signs (text without them can be read as 0 = 0 and accepted), and no time limit
of its own: those use signal.alarm, and the worker is limited from outside.
"""

import logging
import re

from fr3e.grading.verdict import Kind

MAX_LENGTH = 300  # characters of a gold; math-verify takes a part of a longer text for the whole
_SEVERAL = re.compile(
    r"\\(?:sum|prod|int|lim|ldots)(?![a-z])|\\begin|(?<![\\A-Za-z])[A-Za-z]{4,}|(?<!\\)\b(?:the|for|and|is|in|at)\b"
)


def warm_up() -> None:
    """Import and first use, which take about a second."""
    logging.disable(logging.CRITICAL)
    verify("1", "2")


def verify(answer: str, gold: str) -> tuple[Kind, str]:
    """Verdict kind and rule of math-verify for two cleaned texts."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse
    from math_verify import verify as equal

    if len(gold) > MAX_LENGTH or _SEVERAL.search(gold):
        return "wrong", "the gold is prose, a derivation or an operation, and the texts differ"
    for mark in ("?", "<", ">", r"\ne", r"\le", r"\ge", r"\approx", r"\ldots", "=", r"\to"):
        if (mark in answer) != (mark in gold):
            return "unparseable", f"{mark} in only one of the two, and our reader does not understand the answer"
    targets = [LatexExtractionConfig(boxed_match_priority=-1), ExprExtractionConfig()]
    wanted = parse(f"${gold}$", targets, fallback_mode="no_fallback", parsing_timeout=None)
    found = parse(f"${answer}$", targets, fallback_mode="no_fallback", parsing_timeout=None)
    if not found:
        return "unparseable", "neither reader understands the answer"
    if not wanted:
        return "wrong", "neither reader understands the gold, and the texts differ"
    right = equal(wanted, found, float_rounding=12, timeout_seconds=None)
    return ("correct", "math-verify: equal") if right else ("wrong", "math-verify: different")
