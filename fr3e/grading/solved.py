"""Relations in one symbol that say where it lies: solved inequalities, and distances from a point such as |x - 1| < 2."""

from fractions import Fraction

from fr3e.grading.definitions import real_unknown
from fr3e.grading.exact import NotExact, exact
from fr3e.grading.forms import EVERYTHING, Form, Listing, Region, Relation, Span, Value
from fr3e.grading.nodes import Node, symbols
from fr3e.grading.numeric import NoValue
from fr3e.grading.oracle import Oracle
from fr3e.grading.sets import without

_FLIPPED = {">": "<", "ge": "le"}
_INFINITE: Node = ("oo",)
_ZERO: Node = ("n", Fraction(0))


def relation_of(operators: list[str], sides: list[Form]) -> Form:
    """The region or the points that a relation describes, else the relation itself, with "<" for ">"."""
    if all(op in (">", "ge") for op in operators):
        operators, sides = [_FLIPPED[op] for op in reversed(operators)], list(reversed(sides))
    described = _described(operators, sides)
    return described if described is not None else Relation(tuple(operators), tuple(sides))


def _described(operators: list[str], sides: list[Form]) -> Form | None:
    if not all(isinstance(side, Value) for side in sides):
        return None
    nodes = [side.node for side in sides]  # type: ignore[union-attr]
    unknown = [index for index, node in enumerate(nodes) if node[0] == "s"]
    if len(unknown) == 1 and all(not symbols(n) for i, n in enumerate(nodes) if i not in unknown):
        return _solved(operators, nodes, unknown[0])
    distances = [index for index, node in enumerate(nodes) if node[0] == "f" and node[1] == "abs"]
    if len(distances) == 1 and len(nodes) == 2 and not symbols(nodes[1 - distances[0]]):
        return _within_distance(operators[0], nodes[distances[0]][2], nodes[1 - distances[0]], distances[0] == 0)
    return None


def _solved(operators: list[str], nodes: list[Node], at: int) -> Region | None:
    """a < x, x <= b, a < x <= b, x != a; the symbol stands at `at`."""
    name = nodes[at][1]
    if operators == ["ne"]:
        return Region(without(EVERYTHING, [nodes[1 - at]]).spans, (), name)
    if not all(op in ("<", "le") for op in operators) or len(nodes) > 3 or (len(nodes) == 3 and at != 1):
        return None
    low = nodes[at - 1] if at > 0 else ("neg", _INFINITE)
    high = nodes[at + 1] if at + 1 < len(nodes) else _INFINITE
    closed = (at > 0 and operators[at - 1] == "le", at + 1 < len(nodes) and operators[at] == "le")
    return Region((Span(low, high, closed),), (), name)


def _within_distance(operator: str, inner: Node, bound: Node, below: bool) -> Form | None:
    """|inner| < bound where `below`, else bound < |inner|; "=" alike. `inner` has to be linear in its one symbol."""
    names, line = symbols(inner), _linear(inner)
    if len(names) != 1 or line is None or operator not in ("<", "le", "="):
        return None
    (name,), (slope, start) = names, line
    low, high = (_simple(("/", ("+", end, ("neg", start)), slope)) for end in (("neg", bound), bound))
    try:
        place = Oracle(heavy=False).sign
        direction, size = place(slope), place(bound)
    except NoValue:
        return None
    if direction < 0:
        low, high = high, low
    if direction == 0 or (operator == "=" and (size <= 0 or not real_unknown(name))):
        return None
    if operator == "=":
        return Listing("list", tuple(Relation(("=",), (Value(("s", name)), Value(end))) for end in (low, high)))
    closed = operator == "le"
    if below:
        return Region((Span(low, high, (closed, closed)),), (), name)
    outside = (Span(("neg", _INFINITE), low, (False, closed)), Span(high, _INFINITE, (closed, False)))
    return Region(outside, (), name)


def _linear(node: Node) -> tuple[Node, Node] | None:
    """(p, q) where `node` is p·x + q in its one symbol and p is not zero as written, else None."""
    kind = node[0]
    if kind == "s":
        return ("n", Fraction(1)), _ZERO
    varying = [child for child in node[1:] if isinstance(child, tuple) and symbols(child)]
    if kind not in ("neg", "+", "*", "/") or len(varying) != 1 or (kind == "/" and varying[0] is not node[1]):
        return None
    line = _linear(varying[0])
    if line is None:
        return None
    slope, start = line
    if kind == "neg":
        return ("neg", slope), ("neg", start)
    constant = node[2] if varying[0] is node[1] else node[1]
    return (slope, ("+", start, constant)) if kind == "+" else ((kind, slope, constant), (kind, start, constant))


def _simple(node: Node) -> Node:
    """`node` as one number where it is rational, so that a person can read it."""
    try:
        real, imaginary = exact(node)
    except NotExact:
        return node
    return node if imaginary else ("n", real)
