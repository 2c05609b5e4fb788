"""Why an answer was graded as it was, for people."""

from typing import Any

from fr3e.grading.decide import readings
from fr3e.grading.extract import extract
from fr3e.grading.limits import MAX_GOLD, refusal
from fr3e.grading.normalise import clean


def _side(text: str, longest: int) -> dict[str, Any]:
    why = refusal(text, longest)
    if why is not None:
        return {"text": text[:500], "normal": None, "readings": [], "refused": why}
    return {"text": text, "normal": clean(text), "readings": [repr(form) for form in readings(text)], "refused": None}


def explain(response: str, gold: str) -> dict[str, Any]:
    """Extraction, normal forms, readings, verdict and rule, as values that JSON knows."""
    from fr3e.grading.api import grade

    verdict = grade(response, gold)
    found = extract(response)
    return {
        "extraction": {"source": found.source, "text": None if found.text is None else found.text[:2_000]},
        "answer": None if found.text is None else _side(found.text, 2_000),
        "gold": _side(gold, MAX_GOLD),
        "verdict": verdict.kind,
        "correct": bool(verdict),
        "rule": verdict.rule,
    }


def explain_text(response: str, gold: str) -> str:
    """`explain` as a few lines of text."""
    facts = explain(response, gold)
    lines = [f"extracted   {facts['extraction']['text']!r} ({facts['extraction']['source']})"]
    for name in ("answer", "gold"):
        side = facts[name]
        if side is None:
            continue
        lines.append(
            f"{name:<11} {side['normal']!r}" if side["refused"] is None else f"{name:<11} refused: {side['refused']}"
        )
        lines.extend(f"  read as   {reading}" for reading in side["readings"])
    lines.append(f"verdict     {facts['verdict']}")
    lines.append(f"rule        {facts['rule']}")
    return "\n".join(lines)
