"""Do two forms say the same? The rules of docs/grading.md, one function per pair of kinds."""

import contextlib
from fractions import Fraction

from fr3e.grading.forms import (
    Based,
    Choice,
    Clock,
    Form,
    Listing,
    Matrix,
    Name,
    Ratio,
    Region,
    Relation,
    Value,
    Words,
)
from fr3e.grading.nodes import Node, contains, renamed, symbols
from fr3e.grading.numeric import NoValue
from fr3e.grading.oracle import Oracle
from fr3e.grading.read import read
from fr3e.grading.sets import merged, spread
from fr3e.grading.tokens import GREEK, Unreadable
from fr3e.grading.values import same_value
from fr3e.grading.words import same_words


def same_form(answer: Form, gold: Form, oracle: Oracle) -> bool:  # noqa: PLR0911, PLR0912
    """Whether `answer` is right for `gold`. May raise Undecided (see Oracle)."""
    answer, gold = _unpacked(answer), _unpacked(gold)
    if isinstance(gold, Relation):
        return _to_relation(answer, gold, oracle)
    if isinstance(answer, Relation) and not isinstance(gold, Listing):
        side = _defined(answer, oracle)
        if side is not None and same_form(side, gold, oracle):
            return True
        if isinstance(gold, Value) and not symbols(gold.node):
            return _measured(answer, gold, oracle)
        return False
    if isinstance(answer, Value) and isinstance(gold, Value):
        return same_value(answer, gold, oracle)
    if isinstance(answer, Ratio) or isinstance(gold, Ratio):
        return _ratios(answer, gold, oracle)
    if isinstance(answer, Region) or isinstance(gold, Region):
        return _regions(answer, gold, oracle)
    if isinstance(answer, Listing) or isinstance(gold, Listing):
        return _listings(answer, gold, oracle)
    if isinstance(answer, Matrix) and isinstance(gold, Matrix):
        return (
            answer.kind == gold.kind
            and len(answer.rows) == len(gold.rows)
            and len(answer.rows[0]) == len(gold.rows[0])
            and all(
                oracle.same(a, g)
                for ra, rg in zip(answer.rows, gold.rows, strict=True)
                for a, g in zip(ra, rg, strict=True)
            )
        )
    if isinstance(answer, Clock) and isinstance(gold, Clock):
        if answer.half and not gold.half:
            return answer.minutes % 720 == gold.minutes % 720  # the gold leaves the half of the day open
        return answer.minutes == gold.minutes
    if isinstance(gold, Choice) and isinstance(answer, Value) and answer.unit is None and answer.node[0] in ("s", "e"):
        return (answer.node[1] if answer.node[0] == "s" else "e").upper() == gold.letter
    if isinstance(answer, Choice) and answer.content and not isinstance(gold, Choice):
        return any(same_form(form, gold, oracle) for form in read(answer.content) if not isinstance(form, Choice))
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


# -- relations ----------------------------------------------------------------------------------------------------------


def _named(form: Form) -> bool:
    """Whether `form` can stand left of "=" as a name: a symbol, f(x), an angle, a few words, a tuple of symbols."""
    if isinstance(form, Name):
        return True
    if isinstance(form, Value):
        node = form.node
        if _segment(form):
            return True
        if node[0] == "f" and node[1] == "abs":
            inner = node[2]
            return _segment(Value(inner)) or (inner[0] == "s" and (inner[1] in "zw" or not inner[1].islower()))
        return node[0] in ("s", "app") or _angle_function(node)
    return isinstance(form, Listing) and form.kind == "tuple" and all(_named(item) for item in form.items)


def _angle_function(node: Node) -> bool:
    """cos A, tan(alpha + beta): the cosine of an angle that has a name, not an equation for x."""
    names = symbols(node)
    return (
        node[0] == "f" and node[1] in ("sin", "cos", "tan", "cot", "sec", "csc") and bool(names)
        and all(name[:1].isupper() or name.strip("\\").split("_")[0] in GREEK for name in names)
    )  # fmt: skip


def _segment(form: Form) -> bool:
    """AB, ABC: capitals side by side, which name a segment or a figure (or are a product)."""
    return (
        isinstance(form, Value)
        and form.node[0] == "*"
        and all(n[0] == "s" and len(n[1]) == 1 and n[1].isupper() for n in _factors(form.node))
    )


def _factors(node: Node) -> list[Node]:
    return _factors(node[1]) + _factors(node[2]) if node[0] == "*" else [node]


def _defined(relation: Relation, oracle: Oracle) -> Form | None:
    """What a chain of "=" defines: its last side, when all sides after the name agree; None for a general equation."""
    if any(op not in ("=", "approx") for op in relation.operators):
        return None
    sides = list(relation.sides)
    operators = list(relation.operators)
    if "approx" in operators:
        cut = operators.index("approx")
        exact_part = _defined(Relation(tuple(operators[:cut]), tuple(sides[: cut + 1])), oracle) if cut else sides[0]
        return exact_part
    if len(sides) >= 2 and _named(sides[0]):
        word = _segment(sides[0]) and len(_factors(sides[0].node)) > 2 and not _segment(sides[-1])  # type: ignore[union-attr]
        if _segment(sides[0]) and not word and not all(isinstance(s, Value) and not symbols(s.node) for s in sides[1:]):
            return None
        sides = sides[1:]
        while len(sides) >= 2 and isinstance(sides[0], Value) and sides[0].node[0] == "s":
            sides = sides[1:]  # x = y = 8
    elif len(sides) == 2 and _named(sides[1]):
        return sides[0]
    last = sides[-1]
    return last if all(same_form(side, last, oracle) for side in sides[:-1]) else None


def _measured(answer: Relation, gold: Value, oracle: Oracle) -> bool:
    """m + n = 33 for 33 (a quantity made of several unknowns), and sqrt(2) = 1.41 in "x = sqrt(2) ~ 1.41" for 1.41."""
    last, before = answer.sides[-1], answer.sides[:-1]
    if answer.operators[-1] == "approx" and gold.node[0] == "n":
        return same_form(last, gold, oracle)
    if set(answer.operators) != {"="} or not isinstance(before[0], Value):
        return False
    quantity = before[0].node
    if len(symbols(quantity)) < 2 or contains(quantity, {"n", "app", "f", "^"}):
        return False
    return all(same_form(side, last, oracle) for side in before[1:]) and same_form(last, gold, oracle)


def _to_relation(answer: Form, gold: Relation, oracle: Oracle) -> bool:  # noqa: PLR0911
    if not isinstance(answer, Relation):
        if not isinstance(answer, Region):
            defined = _defined(gold, oracle)
            return defined is not None and same_form(answer, defined, oracle)
        return len(gold.sides) == 3 and _span_relation(answer, gold, oracle)
    if set(answer.operators) == {"="} == set(gold.operators):
        return _equations(answer, gold, oracle)
    if answer.operators != gold.operators:
        if len(gold.operators) == 1 == len(answer.operators):
            return False
        return False
    if len(gold.sides) == 2 and _inequality(answer, gold, oracle):
        return True
    return all(same_form(a, g, oracle) for a, g in zip(answer.sides, gold.sides, strict=True))


def _span_relation(answer: Region, gold: Relation, oracle: Oracle) -> bool:
    if len(answer.spans) != 1 or answer.points or not all(isinstance(s, Value) for s in gold.sides):
        return False
    span = answer.spans[0]
    low, _, high = (side.node for side in gold.sides)  # type: ignore[union-attr]
    closed = tuple(op == "le" for op in gold.operators)
    return span.closed == closed and oracle.same(span.low, low) and oracle.same(span.high, high)


def _zero(relation: Relation) -> Node | None:
    """left - right of a relation with two expressions as its sides."""
    if len(relation.sides) != 2 or not all(isinstance(s, Value) for s in relation.sides):
        return None
    left, right = (side.node for side in relation.sides)  # type: ignore[union-attr]
    return ("+", left, ("neg", right))


def _inequality(answer: Relation, gold: Relation, oracle: Oracle) -> bool:
    a, g = _zero(answer), _zero(gold)
    if a is None or g is None or gold.operators[0] not in ("<", "le", "ne"):
        return False
    sign = oracle.ratio(a, g)
    return sign > 0 or (sign != 0 and gold.operators[0] == "ne")


def _function_like(form: Form) -> bool:
    return isinstance(form, Value) and (form.node[0] == "app" or form.node in (("s", "y"), ("s", "f"), ("s", "g")))


def _constant_renamed(answer: Node, gold: Node) -> Node:
    """`answer` with its one arbitrary constant called as in `gold` (y = Ce^x for y = ke^x)."""
    a, g = symbols(answer), symbols(gold)
    old, new = (a - g) & set("cCkK"), (g - a) & set("cCkK")
    return renamed(answer, *old, *new) if len(old) == len(new) == 1 else answer


def _equations(answer: Relation, gold: Relation, oracle: Oracle) -> bool:  # noqa: PLR0911
    if len(answer.sides) != len(gold.sides):
        a, g = _defined(answer, oracle), _defined(gold, oracle)
        return a is not None and g is not None and same_form(a, g, oracle)
    if all(same_form(a, g, oracle) for a, g in zip(answer.sides, gold.sides, strict=True)):
        return True
    left_a, left_g = answer.sides[0], gold.sides[0]
    named = _named(left_a) and _named(left_g)
    if named and (isinstance(left_a, Name) or isinstance(left_g, Name)):
        return same_form(answer.sides[-1], gold.sides[-1], oracle)
    if named and _function_like(left_a) and _function_like(left_g):
        right_a, right_g = answer.sides[-1], gold.sides[-1]
        if isinstance(right_a, Value) and isinstance(right_g, Value) and left_a.node[0] == left_g.node[0] == "app":  # type: ignore[union-attr]
            va, vg = left_a.node[2], left_g.node[2]  # type: ignore[union-attr]
            if va[0] == vg[0] == "s" and va != vg and vg[1] not in symbols(right_a.node):
                right_a = Value(renamed(right_a.node, va[1], vg[1]))
        if isinstance(right_a, Value) and isinstance(right_g, Value):
            right_a = Value(_constant_renamed(right_a.node, right_g.node))
        if same_form(right_a, right_g, oracle):
            return True
    a, g = _zero(answer), _zero(gold)
    if a is None or g is None:
        tuple_a, tuple_g = _assignment(answer), _assignment(gold)
        return tuple_a is not None and tuple_a == tuple_g
    if len(symbols(g)) < 2 and _solved(gold) and not _solved(answer):
        return False
    if not symbols(g):
        value_a, value_g = _defined(answer, oracle), _defined(gold, oracle)
        return value_a is not None and value_g is not None and same_form(value_a, value_g, oracle)
    return oracle.ratio(a, g) != 0


def _solved(relation: Relation) -> bool:
    left, right = relation.sides
    return (_named(left) and isinstance(right, Value) and not symbols(right.node)) or (
        _named(right) and isinstance(left, Value) and not symbols(left.node)
    )


# -- lists, sets, tuples ------------------------------------------------------------------------------------------------


def _assignment(form: Form) -> dict[str, Form] | None:
    """x = 1, y = 2 and (x, y) = (1, 2) as a mapping from names to values."""
    if isinstance(form, Relation) and form.operators == ("=",):
        left, right = form.sides
        pairs = isinstance(left, Listing) and isinstance(right, Listing) and len(left.items) == len(right.items)
        if pairs and all(isinstance(i, Value) and i.node[0] == "s" for i in left.items):
            return {i.node[1]: r for i, r in zip(left.items, right.items, strict=True)}  # type: ignore[union-attr]
        return None
    if isinstance(form, Listing) and form.kind in ("list", "set"):
        result: dict[str, Form] = {}
        for item in form.items:
            if not (isinstance(item, Relation) and item.operators == ("=",) and len(item.sides) == 2):
                return None
            left = item.sides[0]
            if not (isinstance(left, Value) and left.node[0] in ("s", "app")) or str(left.node[1]) in result:
                return None
            result[str(left.node[1])] = item.sides[1]
        return result
    return None


def _listings(answer: Form, gold: Form, oracle: Oracle) -> bool:  # noqa: PLR0911
    named_a, named_g = _assignment(answer), _assignment(gold)
    if named_a is not None and named_g is not None:
        return named_a.keys() == named_g.keys() and all(same_form(named_a[k], named_g[k], oracle) for k in named_g)
    if named_a is not None and isinstance(gold, Listing) and gold.kind == "tuple" and len(named_a) == len(gold.items):
        names = list(named_a) if isinstance(answer, Relation) else sorted(named_a)
        return all(same_form(named_a[k], g, oracle) for k, g in zip(names, gold.items, strict=True))
    if isinstance(answer, Relation):
        side = _defined(answer, oracle)
        return side is not None and same_form(side, gold, oracle)
    if not isinstance(answer, Listing) or not isinstance(gold, Listing):
        return _vector(answer, gold, oracle)
    kinds = {answer.kind, gold.kind}
    if kinds == {"tuple"}:
        return _tuples(answer, gold, oracle)
    if "tuple" in kinds:
        if "set" in kinds:
            return False
        bracketed = answer if answer.kind == "tuple" else gold
        return bracketed.brackets == "()" and _in_order(answer.items, gold.items, oracle)
    left, right = list(answer.items), list(gold.items)
    if "set" in kinds:
        left, right = _distinct(left, oracle), _distinct(right, oracle)
    return _any_order(left, right, oracle)


def _vector(answer: Form, gold: Form, oracle: Oracle) -> bool:
    """A tuple may stand for a row or a column."""
    pair = (answer, gold)
    if isinstance(answer, Listing) and isinstance(gold, Matrix) and all(isinstance(i, Listing) for i in answer.items):
        return len(answer.items) == len(gold.rows) > 1 and all(
            _vector(row, Matrix((cells,)), oracle) for row, cells in zip(answer.items, gold.rows, strict=True)
        )
    matrix = next((f for f in pair if isinstance(f, Matrix)), None)
    listing = next((f for f in pair if isinstance(f, Listing)), None)
    if matrix is None or listing is None or listing.kind != "tuple":
        return False
    if 1 not in (len(matrix.rows), len(matrix.rows[0])):
        return False
    cells = [cell for row in matrix.rows for cell in row]
    return len(cells) == len(listing.items) and all(
        isinstance(item, Value) and oracle.same(item.node, cell)
        for item, cell in zip(listing.items, cells, strict=True)
    )


def _tuples(answer: Listing, gold: Listing, oracle: Oracle) -> bool:
    vectors = {"()", "<>", "[]"}
    plain = {answer.brackets, gold.brackets} <= vectors and (
        len(gold.items) > 2 or "<>" in (answer.brackets, gold.brackets)
    )
    return (answer.brackets == gold.brackets or plain) and _in_order(answer.items, gold.items, oracle)


def _in_order(left: tuple[Form, ...], right: tuple[Form, ...], oracle: Oracle) -> bool:
    return len(left) == len(right) and all(_entry(a, g, oracle) for a, g in zip(left, right, strict=True))


def _entry(answer: Form, gold: Form, oracle: Oracle) -> bool:
    if (
        isinstance(answer, Value)
        and isinstance(gold, Value)
        and (contains(answer.node, {"oo"}) or contains(gold.node, {"oo"}))
    ):
        return answer.node == gold.node
    return same_form(answer, gold, oracle)


def _distinct(items: list[Form], oracle: Oracle) -> list[Form]:
    kept: list[Form] = []
    for item in items:
        if not any(same_form(item, other, oracle) for other in kept):
            kept.append(item)
    return kept


def _any_order(left: list[Form], right: list[Form], oracle: Oracle) -> bool:
    if len(left) != len(right):
        return False
    rest = list(left)
    for wanted in right:
        match = next((i for i, item in enumerate(rest) if same_form(item, wanted, oracle)), None)
        if match is None:
            return False
        del rest[match]
    return True


# -- regions and ratios --------------------------------------------------------------------------------------------------


def _regions(answer: Form, gold: Form, oracle: Oracle) -> bool:
    try:
        a, g = spread(answer), spread(gold)
    except Unreadable:
        return False
    if a.variable and g.variable and a.variable != g.variable:
        return False
    with contextlib.suppress(NoValue):  # symbolic ends are compared as they stand
        a, g = merged(a, oracle), merged(g, oracle)
    if len(a.spans) != len(g.spans) or len(a.points) != len(g.points):
        return False
    return all(
        s.closed == t.closed and _end(s.low, t.low, oracle) and _end(s.high, t.high, oracle)
        for s, t in zip(a.spans, g.spans, strict=True)
    ) and _any_order([Value(p) for p in a.points], [Value(p) for p in g.points], oracle)


def _end(a: Node, b: Node, oracle: Oracle) -> bool:
    return a == b or oracle.same(a, b)


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
