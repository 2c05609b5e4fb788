"""Do two forms say the same? The rules of docs/grading.md: which one holds for which pair of kinds."""

from fractions import Fraction
from functools import partial

from fr3e.grading.definitions import defined, measured
from fr3e.grading.forms import Based, Choice, Clock, Form, Listing, Matrix, Name, Ratio, Region, Relation, Value, Words
from fr3e.grading.listings import same_listing
from fr3e.grading.matrices import same_matrix
from fr3e.grading.nodes import Node, symbols
from fr3e.grading.oracle import Oracle
from fr3e.grading.read import read
from fr3e.grading.relations import same_relation, values_of
from fr3e.grading.sets import same_region
from fr3e.grading.values import same_value
from fr3e.grading.vectors import same_vector
from fr3e.grading.words import same_words


def same_form(answer: Form, gold: Form, oracle: Oracle) -> bool:  # noqa: PLR0911, PLR0912
    """Whether `answer` is right for `gold`. May raise Undecided (see Oracle)."""
    answer, gold = _unpacked(answer), _unpacked(gold)
    same = partial(same_form, oracle=oracle)
    if isinstance(gold, Relation):
        return same_relation(answer, gold, same, oracle)
    if isinstance(answer, Relation) and isinstance(gold, Region | Listing) and (span := values_of(answer)) is not None:
        return same_region(span, gold, oracle)
    if isinstance(answer, Relation) and not isinstance(gold, Listing):
        side = defined(answer, same)
        if side is not None and same(side, gold):
            return True
        if isinstance(gold, Value) and not symbols(gold.node):
            return measured(answer, gold, same)
        return False
    if isinstance(answer, Value) and isinstance(gold, Value):
        return same_value(answer, gold, oracle)
    if isinstance(answer, Ratio) or isinstance(gold, Ratio):
        return _ratios(answer, gold, oracle)
    if isinstance(answer, Region) or isinstance(gold, Region):
        return same_region(answer, gold, oracle)
    if isinstance(answer, Listing) or isinstance(gold, Listing):
        return same_listing(answer, gold, same, oracle)
    if isinstance(answer, Matrix) and isinstance(gold, Matrix):
        return same_matrix(answer, gold, oracle)
    if isinstance(answer, Matrix | Value) and isinstance(gold, Matrix | Value):
        return same_vector(answer, gold, oracle)
    if isinstance(answer, Clock) and isinstance(gold, Clock):
        if answer.half and not gold.half:
            return answer.minutes % 720 == gold.minutes % 720  # the gold leaves the half of the day open
        return answer.minutes == gold.minutes
    if isinstance(gold, Choice) and isinstance(answer, Value) and answer.unit is None and answer.node[0] in ("s", "e"):
        return (answer.node[1] if answer.node[0] == "s" else "e").upper() == gold.letter
    if isinstance(answer, Choice) and answer.content and not isinstance(gold, Choice):
        return any(same(form, gold) for form in read(answer.content) if not isinstance(form, Choice))
    if isinstance(answer, Words | Choice | Based | Name) and type(answer) is type(gold):
        if isinstance(answer, Choice):
            return answer.letter == gold.letter  # type: ignore[union-attr]
        if isinstance(answer, Words):
            return same_words(answer.text, gold.text)  # type: ignore[union-attr]
        return answer == gold
    return False


def _unpacked(form: Form) -> Form:
    """A set or list of one is its only item."""
    while isinstance(form, Listing) and len(form.items) == 1 and form.kind != "tuple":
        if isinstance(form.items[0], Listing) and form.items[0].kind == "set":
            break
        form = form.items[0]
    return form


def _ratios(answer: Form, gold: Form, oracle: Oracle) -> bool:
    def terms(form: Form) -> tuple[Node, ...] | None:
        if isinstance(form, Ratio):
            return form.terms
        if isinstance(form, Value):
            return (form.node, ("n", Fraction(1)))
        return None

    a, g = terms(answer), terms(gold)
    if a is None or g is None or len(a) != len(g):
        return False
    zero = ("n", Fraction(0))
    if zero in a or zero in g:
        return a == g  # 12:00 and 7:00 are not in proportion
    return all(oracle.same(("*", x, g[0]), ("*", y, a[0])) for x, y in zip(a[1:], g[1:], strict=True))
