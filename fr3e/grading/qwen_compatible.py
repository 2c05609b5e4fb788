"""A second, laxer opinion for the evaluation: what the harness behind most published numbers would say.

Written from its published rules, to compare with published tables and to see where the two disagree; never a reward:
- the answer is the last box, else what is announced, else the last number of the response;
- texts are compared without case, and two empty texts are equal;
- numbers agree within a relative tolerance of 1e-4, and x, x/100 and 100·x all count;
- the entries of lists, tuples, sets and intervals are compared in their order, whatever the brackets;
- matrices entry by entry, equations as left minus right up to the sign, "x =" in front of a value is ignored;
- expressions are equal when they are symbolically, or in numbers within 1e-4.
Rules: Qwen2.5-Math, evaluation/grader.py and parser.py, as described in the README of that repository.
"""

import math
import re

from fr3e.grading import limits
from fr3e.grading.extract import announced, last_box
from fr3e.grading.forms import Form, Listing, Matrix, Name, Region, Relation, Value
from fr3e.grading.nodes import Node, symbols
from fr3e.grading.normalise import clean, join_thousands
from fr3e.grading.numeric import FLOAT, NoValue, evaluate
from fr3e.grading.oracle import Oracle, Undecided
from fr3e.grading.pool import Pool, shared
from fr3e.grading.read import read

TOLERANCE = 1e-4
_LAST_NUMBER = re.compile(r"-?\d*\.?\d+")
_DIGITS = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?")


def _extract(response: str) -> str:
    response = response[-limits.MAX_RESPONSE :]
    box = last_box(response)
    if box is not None:
        return box
    prose = announced(response)
    if prose is not None:
        return prose
    numbers = _LAST_NUMBER.findall(response[-20_000:].replace(",", ""))
    return numbers[-1] if numbers else ""


def _normal(text: str) -> str:
    text = clean(text)
    text = re.sub(r"(?<=[\d}])\s*\\text\s*\{[^{}]*\}(?:\^\{?\d\}?)?", "", text)
    text = re.sub(r"\\text\s*\{([^{}]*)\}", r"\1", text)
    text = text.replace("^{\\circ}", "").replace(r"\$", "").strip()
    return join_thousands(text).strip(" .")


def _number(text: str) -> float | None:
    plain = text.replace(",", "").replace(" ", "")
    percent = plain.endswith("%")
    plain = plain.rstrip("%").rstrip("\\")
    if _DIGITS.fullmatch(plain) is None:
        return None
    value = float(plain)
    return value / 100 if percent else value


def _close(a: float, b: float, hundred: bool) -> bool:
    wanted = (b / 100, b, b * 100) if hundred else (b,)
    return any(math.isclose(a, w, rel_tol=TOLERANCE) for w in wanted)


def qwen_compatible(response: str, gold: str, pool: Pool | None = None) -> bool:
    """Whether the published harness's rules accept the answer of `response`. Never raises on any text.

    `pool` is used instead of this process's own where one is given.
    """
    answer = _extract(response)
    if limits.refusal(answer) or limits.refusal(gold, limits.MAX_GOLD):
        return answer.strip() == gold.strip()
    a, g = _normal(answer), _normal(gold)
    if a.lower() == g.lower():
        return True
    number_a, number_g = _number(a), _number(g)
    if number_a is not None and number_g is not None:
        return _close(number_a, number_g, hundred=True)
    if not a or not g:
        return False
    return bool((pool or shared()).ask({"do": "qwen", "answer": a, "gold": g}).get("value", False))


def equal_in_worker(answer: str, gold: str) -> bool:
    """The part of the comparison that may be slow; runs in a worker."""
    oracle = Oracle(heavy=True)
    for wanted in read(gold):
        for found in read(answer):
            if _same(found, wanted, oracle):
                return True
    return False


def _entries(form: Form) -> list[Form] | None:
    if isinstance(form, Listing):
        return list(form.items)
    if isinstance(form, Region):
        ends = [Value(end) for span in form.spans for end in (span.low, span.high)]
        return [*ends, *(Value(p) for p in form.points)]
    if isinstance(form, Matrix):
        return [Value(cell) for row in form.rows for cell in row]
    return None


def _same(answer: Form, gold: Form, oracle: Oracle) -> bool:
    if isinstance(answer, Relation) and isinstance(gold, Relation):
        left, right = _difference(answer), _difference(gold)
        return left is not None and right is not None and (
            _equal(left, right, oracle) or _equal(left, ("neg", right), oracle)
        )  # fmt: skip
    if isinstance(answer, Relation) != isinstance(gold, Relation):
        answer, gold = _value_of(answer), _value_of(gold)
    first, second = _entries(answer), _entries(gold)
    if first is not None and second is not None:
        return len(first) == len(second) and all(_same(a, g, oracle) for a, g in zip(first, second, strict=True))
    if isinstance(answer, Value) and isinstance(gold, Value):
        return _equal(answer.node, gold.node, oracle)
    return type(answer) is type(gold) and answer == gold


def _value_of(form: Form) -> Form:
    """The right side of "x = value" with a short left side."""
    if isinstance(form, Relation) and form.operators == ("=",):
        left = form.sides[0]
        if (isinstance(left, Name) and len(left.text) <= 2) or (isinstance(left, Value) and left.node[0] == "s"):
            return form.sides[1]
    return form


def _difference(relation: Relation) -> Node | None:
    if relation.operators != ("=",) or not all(isinstance(side, Value) for side in relation.sides):
        return None
    left, right = (side.node for side in relation.sides)  # type: ignore[union-attr]
    return ("+", left, ("neg", right))


def _equal(a: Node, b: Node, oracle: Oracle) -> bool:
    if not symbols(a) and not symbols(b):
        try:
            x, y = evaluate(a, {}, FLOAT), evaluate(b, {}, FLOAT)
        except NoValue:
            return a == b
        return abs(x - y) <= TOLERANCE * max(abs(x), abs(y))
    try:
        return oracle.same(a, b)
    except Undecided:
        return False
