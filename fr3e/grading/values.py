"""Are two single values the same, with their percent signs, degree signs, units and constants of integration?"""

from fractions import Fraction

from fr3e.grading import units
from fr3e.grading.forms import Value
from fr3e.grading.nodes import Node, contains, renamed, symbols
from fr3e.grading.oracle import Oracle

HUNDREDTH = ("n", Fraction(1, 100))


def same_value(answer: Value, gold: Value, oracle: Oracle) -> bool:  # noqa: PLR0911
    """Whether the value `answer` is right for `gold`. May raise Undecided."""
    factor = units.conversion(answer.unit, gold.unit)
    if factor is None:
        return False
    a: Node = answer.node if factor == 1 else ("*", answer.node, ("n", factor))
    g = gold.node
    if contains(g, {"oo"}) or contains(a, {"oo"}):
        return a == g
    if oracle.same(a, g):
        return True
    if answer.percent != gold.percent:
        # 28 % is 0.28: the side with the sign may be read as a hundredth.
        if answer.percent:
            return oracle.same(("*", a, HUNDREDTH), g)
        return oracle.same(a, ("*", g, HUNDREDTH))
    if answer.degree != gold.degree and contains(g if answer.degree else a, {"pi"}):
        radian = ("/", ("pi",), ("n", Fraction(180)))
        return oracle.same(("*", a, radian), g) if answer.degree else oracle.same(a, ("*", g, radian))
    if g[0] == "+" and contains(g, {"pi"}) and (same := _parameter_renamed(a, g)) != a:
        return oracle.same(same, g)
    return _antiderivatives(a, g, oracle)


def _parameter_renamed(answer: Node, gold: Node) -> Node:
    """`answer` with its integer parameter called as in `gold` (pi/6 + 2n pi for pi/6 + 2k pi)."""
    a, g = symbols(answer), symbols(gold)
    old, new = (a - g) & set("kmn"), (g - a) & set("kmn")
    return renamed(answer, *old, *new) if len(old) == len(new) == 1 else answer


def _constant_dropped(node: Node) -> Node | None:
    """`node` without an added constant of integration, None when it has none."""
    if node[0] == "+":
        for part, other in ((node[2], node[1]), (node[1], node[2])):
            if (
                part[0] == "s"
                and part[1] in ("C", "c", "k", "K", "C_1", "C_{1}", "c_1")
                and part[1] not in symbols(other)
            ):
                return other
        left = _constant_dropped(node[1])
        if left is not None:
            return ("+", left, node[2])
    return None


def _antiderivatives(a: Node, g: Node, oracle: Oracle) -> bool:
    """F(x) + C and G(x) + c are the same family when F - G is constant."""
    left, right = _constant_dropped(a), _constant_dropped(g)
    if left is None or right is None or not symbols(right):
        return False
    if oracle.same(left, right):
        return True
    return oracle.constant(("+", left, ("neg", right)))
