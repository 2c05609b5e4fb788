"""Are two relations the same: definitions ("x = 5", "f(x) = 2x"), equations, inequalities?

`same` compares two forms of any kind (compare.same_form).
"""

from fractions import Fraction

from fr3e.grading.definitions import assignment, defined, function_like, named, solved
from fr3e.grading.exact import NotExact, exact
from fr3e.grading.forms import Form, Name, Region, Relation, Same, Span, Value
from fr3e.grading.nodes import Node, renamed, symbols
from fr3e.grading.numeric import points
from fr3e.grading.oracle import Oracle


def same_relation(answer: Form, gold: Relation, same: Same, oracle: Oracle) -> bool:
    """Whether `answer` is right for the relation `gold`. May raise Undecided."""
    if not isinstance(answer, Relation):
        if not isinstance(answer, Region):
            side = defined(gold, same)
            return side is not None and same(answer, side)
        return len(gold.sides) == 3 and _span_relation(answer, gold, oracle)
    if set(answer.operators) == {"="} == set(gold.operators):
        return _equations(answer, gold, same, oracle)
    if answer.operators != gold.operators:
        return False
    if len(gold.sides) == 2 and _inequality(answer, gold, oracle):
        return True
    return all(same(a, g) for a, g in zip(answer.sides, gold.sides, strict=True))


def values_of(relation: Relation) -> Region | None:
    """The interval in which a named quantity lies: 1 <= f(x) <= 3, 2 < a + b < 5, xy <= 8. None for any other relation.

    Of one unknown only its name counts, since 0 <= 2x <= 2 speaks of another interval for x.
    """
    if not set(relation.operators) <= {"<", "le"} or not all(isinstance(side, Value) for side in relation.sides):
        return None
    nodes = [side.node for side in relation.sides]  # type: ignore[union-attr]
    closed = [op == "le" for op in relation.operators]
    if len(nodes) == 2 and symbols(nodes[0]) and not symbols(nodes[1]):
        nodes, closed = [("neg", ("oo",)), *nodes], [False, *closed]
    elif len(nodes) == 2:
        nodes, closed = [*nodes, ("oo",)], [*closed, False]
    if len(nodes) != 3 or symbols(nodes[0]) or symbols(nodes[2]):
        return None
    if not named(Value(nodes[1])) and len(symbols(nodes[1])) < 2:
        return None
    return Region((Span(nodes[0], nodes[2], (closed[0], closed[1])),))


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


def _constant_renamed(answer: Node, gold: Node) -> Node:
    """`answer` with its one arbitrary constant called as in `gold` (y = Ce^x for y = ke^x)."""
    a, g = symbols(answer), symbols(gold)
    old, new = (a - g) & set("cCkK"), (g - a) & set("cCkK")
    return renamed(answer, *old, *new) if len(old) == len(new) == 1 else answer


def _equations(answer: Relation, gold: Relation, same: Same, oracle: Oracle) -> bool:  # noqa: PLR0911
    if len(answer.sides) != len(gold.sides):
        a, g = defined(answer, same), defined(gold, same)
        return a is not None and g is not None and same(a, g)
    if all(same(a, g) for a, g in zip(answer.sides, gold.sides, strict=True)):
        return True
    left_a, left_g = answer.sides[0], gold.sides[0]
    both_named = named(left_a) and named(left_g)
    if both_named and (isinstance(left_a, Name) or isinstance(left_g, Name)):
        return same(answer.sides[-1], gold.sides[-1])
    if both_named and _values_at_numbers(left_a, left_g):
        return False  # the left sides are not the same, so f(1) = 3 meets f(2) = 3
    if both_named and function_like(left_a) and function_like(left_g):
        right_a, right_g = answer.sides[-1], gold.sides[-1]
        if isinstance(right_a, Value) and isinstance(right_g, Value) and left_a.node[0] == left_g.node[0] == "app":  # type: ignore[union-attr]
            va, vg = left_a.node[2], left_g.node[2]  # type: ignore[union-attr]
            if va[0] == vg[0] == "s" and va != vg and vg[1] not in symbols(right_a.node):
                right_a = Value(renamed(right_a.node, va[1], vg[1]))
        if isinstance(right_a, Value) and isinstance(right_g, Value):
            right_a = Value(_constant_renamed(right_a.node, right_g.node))
        if same(right_a, right_g):
            return True
    a, g = _zero(answer), _zero(gold)
    if a is None or g is None:
        tuple_a, tuple_g = assignment(answer), assignment(gold)
        return tuple_a is not None and tuple_a == tuple_g
    if len(symbols(g)) < 2 and solved(gold) and not solved(answer):
        return False
    if not symbols(g):
        value_a, value_g = defined(answer, same), defined(gold, same)
        return value_a is not None and value_g is not None and same(value_a, value_g)
    return oracle.ratio(a, g) != 0 or _cleared(a, g, oracle) or _cleared(g, a, oracle)


def _values_at_numbers(left: Form, right: Form) -> bool:
    nodes = [form.node for form in (left, right) if isinstance(form, Value) and form.node[0] == "app"]
    numeric = [all(not symbols(argument) for argument in node[2:]) for node in nodes]
    return len(nodes) == 2 and any(numeric) and nodes[0] != nodes[1]


def _cleared(a: Node, b: Node, oracle: Oracle) -> bool:
    """Whether b = 0 is a = 0 times a power of an unknown, and that unknown is never zero on it: y = 6/x and xy = 6."""
    names = symbols(b)
    for name in sorted(names):
        for exponent in (1, 2):
            if oracle.ratio(b, ("*", a, ("^", ("s", name), ("n", Fraction(exponent))))) != 0:
                try:
                    left = [exact(b, point | {name: Fraction(0)})[0] for point in points(names, integers=False)]
                except NotExact:
                    return False
                return left[0] != 0 and len(set(left)) == 1
    return False
