"""Why an answer was graded as it was, for people."""

from typing import Any

from fr3e.grading.compare import same_form
from fr3e.grading.decide import readings, rule_name
from fr3e.grading.extract import extract
from fr3e.grading.forms import Form, Value, Words
from fr3e.grading.limits import MAX_ANSWER, MAX_GOLD, refusal
from fr3e.grading.nodes import symbols
from fr3e.grading.normalise import clean
from fr3e.grading.notation import LONGEST, form_kind, form_text
from fr3e.grading.oracle import Oracle, Undecided


def _shown(form: Form) -> dict[str, str]:
    return {"value": form_text(form), "kind": form_kind(form)}


def _side(text: str, longest: int) -> dict[str, Any]:
    why = refusal(text, longest)
    if why is None:
        try:
            return {"text": text, "normal": clean(text), "readings": _distinct(text), "refused": None}
        except RecursionError:
            why = "nested too deeply"
    return {"text": text[:500], "normal": None, "readings": [], "refused": why}


def _distinct(text: str) -> list[dict[str, str]]:
    """The readings that a person would tell apart."""
    forms = readings(text)
    if any(isinstance(form, Words) for form in forms):
        # A word is also tried as the product of its letters, which nobody means.
        forms = tuple(form for form in forms if not (isinstance(form, Value) and symbols(form.node)))
    shown = [_shown(form) for form in forms]
    return [form for index, form in enumerate(shown) if form not in shown[:index]]


def _compared(answer: str, gold: str, rule: str) -> dict[str, dict[str, str]] | None:
    """The two readings that `rule` speaks of, None where a rule about texts decided."""
    pairs = [
        (found, wanted)
        for wanted in readings(gold)
        for found in readings(answer)
        if rule in (f"{rule_name(found)} {verb} {rule_name(wanted)}" for verb in ("equals", "differs from"))
    ]
    if not pairs:
        return None
    oracle = Oracle(heavy=False)
    for found, wanted in pairs:
        try:
            if same_form(found, wanted, oracle) == (" equals " in rule):
                return {"answer": _shown(found), "gold": _shown(wanted)}
        except Undecided:
            continue  # only a worker can tell
    return {"answer": _shown(pairs[0][0]), "gold": _shown(pairs[0][1])}


def explain(response: str, gold: str) -> dict[str, Any]:
    """Extraction, normal forms, readings in ordinary notation, what was compared, verdict and rule, as JSON knows them."""
    from fr3e.grading.api import grade

    verdict = grade(response, gold)
    found = extract(response)
    answer = None if found.text is None else _side(found.text, MAX_ANSWER)
    wanted = _side(gold, MAX_GOLD)
    both = found.text is not None and answer is not None and answer["refused"] is wanted["refused"] is None
    return {
        "extraction": {"source": found.source, "text": None if found.text is None else found.text[:MAX_ANSWER]},
        "answer": answer,
        "gold": wanted,
        "compared": _compared(found.text, gold, verdict.rule) if both and found.text is not None else None,
        "verdict": verdict.kind,
        "correct": bool(verdict),
        "rule": verdict.rule,
    }


def _printable(text: str) -> str:
    """One line that a terminal shows as it is: model output may hold control characters and lone surrogates."""
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def explain_text(response: str, gold: str) -> str:
    """`explain` as a few lines of text."""
    facts = explain(response, gold)
    text, source = facts["extraction"]["text"], facts["extraction"]["source"]
    place = "last box" if source == "last box" else f"{source} answer"
    lines = [
        f"extracted   nothing: {source}" if text is None else f"extracted   {_printable(text)}   (from the {place})"
    ]
    for name in ("answer", "gold"):
        side = facts[name]
        if side is None:
            continue
        if side["refused"] is not None:
            lines.append(f"{name:<11} not read: {side['refused']}")
            continue
        lines.append(f"{name:<11} {_printable(side['normal'])}")
        lines.extend(
            f"  read as   {_printable(reading['value'])}   ({reading['kind']})" for reading in side["readings"]
        )
        if not side["readings"]:
            lines.append("  read as   nothing known: compared as it is written")
    pair = facts["compared"]
    if pair is None:
        lines.append(f"rule        {facts['rule']}")
    else:
        verb = "equals" if facts["correct"] else "differs from"
        found, wanted = (_printable(pair[name]["value"]) for name in ("answer", "gold"))
        lines.append(f"compared    {found}   with   {wanted}")
        lines.append(f"rule        {pair['answer']['kind']} {verb} {pair['gold']['kind']}")
    lines.append(f"verdict     {facts['verdict']}")
    return "\n".join(lines)
