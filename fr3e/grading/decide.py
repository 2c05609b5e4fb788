"""From two texts to a decision: short cuts first, then the readings of both, then (in a worker) high precision."""

import functools
import re
from fractions import Fraction

from fr3e.grading.compare import same_form
from fr3e.grading.exact import NotExact, exact
from fr3e.grading.forms import Form, Listing, Matrix, Value, Words
from fr3e.grading.limits import MAX_GOLD, refusal
from fr3e.grading.normalise import clean
from fr3e.grading.numeric import NoValue
from fr3e.grading.oracle import Oracle, Undecided
from fr3e.grading.read import read
from fr3e.grading.tokens import Unreadable
from fr3e.grading.verdict import Kind
from fr3e.grading.words import normal_text

Decision = tuple[Kind, str]
_NUMBER = re.compile(r"\s*\$?\s*([+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,400})(?:\.\d{1,400})?)\s*\$?\.?\s*")
_FRACTION = re.compile(
    r"\s*\$?\s*(-?)\\[dt]?frac\{(-?\d{1,100})\}\{(-?\d{1,100})\}\s*\$?\s*|\s*(-?)(-?\d{1,100})/(\d{1,100})\s*"
)
_BLANK = re.compile(r"(?<!\d)\s+|\s+(?!\d)")
_OPERATORS = re.compile(
    r"\\(?:i*int|oint|sum|prod|lim|gcd|lcm|max|min|det|sup|inf|bmod|pmod|operatorname|mathop|frac\{d\}|deg|dim)(?![a-zA-Z])"
    r"|\b(?:gcd|lcm|max|min|sum|integral|limit|det)\b\s*\("
)


def quick_number(text: str) -> Fraction | None:
    """Integers, decimals and plain fractions, without a parser."""
    match = _NUMBER.fullmatch(text)
    if match is not None:
        return Fraction(match[1].replace(",", ""))
    match = _FRACTION.fullmatch(text)
    if match is None:
        return None
    sign, top, bottom = (match[1], match[2], match[3]) if match[2] else (match[4], match[5], match[6])
    if int(bottom) == 0:
        return None
    value = Fraction(int(top), int(bottom))
    return -value if sign else value


@functools.lru_cache(maxsize=4096)
def readings(text: str) -> tuple[Form, ...]:
    """The readings of a raw gold or answer (kept for repeated golds)."""
    return tuple(read(clean(text)))


def short_cut(answer: str, gold: str) -> Decision | None:
    """A decision that needs no parser, or None."""
    if not gold.strip():
        return "wrong", "the gold is empty"
    if answer.strip() == gold.strip():
        return "correct", "same text"
    a, g = quick_number(answer), quick_number(gold)
    if a is not None and g is not None:
        return ("correct", "equal numbers") if a == g else ("wrong", "different numbers")
    return None


def decide(answer: str, gold: str, heavy: bool) -> Decision:  # noqa: PLR0911
    """Verdict kind and rule for an extracted `answer`. Raises Undecided when `heavy` is needed and not allowed."""
    decision = short_cut(answer, gold)
    if decision is not None:
        return decision
    why = refusal(answer)
    if why is not None:
        return "refused", why
    why = refusal(gold, MAX_GOLD)
    cleaned, cleaned_gold = clean(answer), clean(gold)
    if _BLANK.sub("", cleaned) == _BLANK.sub("", cleaned_gold) and cleaned_gold:
        return "correct", "same text after normalisation"
    if not cleaned:
        return "no_answer", "nothing left after normalisation"
    if why is not None:
        return "wrong", f"the gold is compared as text only: {why}"
    label, equals, result = cleaned.rpartition("=")
    if (
        equals
        and re.search(r"\w", (bare := _OPERATORS.sub("", label)))
        and bare != label
        and not _OPERATORS.search(result + cleaned_gold)
    ):
        answer = cleaned = result.strip()  # "gcd(12, 18) = 6": carried out
    if _OPERATORS.search(cleaned) and not _OPERATORS.search(cleaned_gold):
        return "wrong", "the answer is an operation that was not carried out"
    golds, answers = readings(gold), readings(answer)
    return _by_readings(answers, golds, cleaned, cleaned_gold, heavy)


def with_unit(gold: str, unit: str | None) -> str:
    """`gold` with the unit that its data set states beside it; a list of answers is left as it is."""
    if not unit or "," in gold:
        return gold
    bare, unit = gold.strip().strip("$"), unit.strip().strip("$")
    if unit in bare:
        return gold
    if unit in ("%", r"\%"):
        return rf"{bare}\%"
    if "circ" in unit:
        return rf"{bare}^{{\circ}}"
    return rf"{bare} \text{{{unit}}}"


def within(answer: str, gold: str, tolerance: float) -> bool:
    """Whether two rational values differ by no more than `tolerance`, the error that a data set states for a gold."""
    for wanted in readings(gold):
        for found in readings(answer):
            if isinstance(wanted, Value) and isinstance(found, Value):
                try:
                    difference = exact(found.node)[0] - exact(wanted.node)[0]
                except NotExact:
                    continue
                if abs(difference) <= Fraction(str(tolerance)):
                    return True
    return False


def _by_readings(
    answers: tuple[Form, ...], golds: tuple[Form, ...], cleaned: str, cleaned_gold: str, heavy: bool
) -> Decision:
    oracle = Oracle(heavy)
    undecided = False
    for gold in golds:
        for answer in answers:
            try:
                if same_form(answer, gold, oracle):
                    return "correct", f"{rule_name(answer)} equals {rule_name(gold)}"
            except Undecided:
                undecided = True
            except (NotExact, NoValue, Unreadable):
                continue
    if undecided:
        raise Undecided
    if answers and golds:
        return "wrong", f"{rule_name(answers[0])} differs from {rule_name(golds[0])}"
    if golds and all(isinstance(g, Words) for g in golds):
        return "wrong", "not the words of the gold"
    if golds:
        return "unparseable", "our reader understands the gold and not the answer"
    if _same_words(cleaned, cleaned_gold):
        return "correct", "the same words"
    if not heavy:
        raise Undecided
    from fr3e.grading.fallback import verify

    return verify(cleaned, cleaned_gold)


def _same_words(answer: str, gold: str) -> bool:
    """June 20 and \\text{june 20}: words beside numbers, which no other reading knows."""
    words = normal_text(gold)
    return bool(re.search("[a-z]{3}", words)) and normal_text(answer) == words and answer.count("-") == gold.count("-")


def rule_name(form: Form) -> str:
    """What the rules call the kind of `form`."""
    return form.kind if isinstance(form, Listing | Matrix) else type(form).__name__.lower()
