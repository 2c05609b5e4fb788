"""Definitions: what can stand left of "=" as a name, and what a relation says its name is.

`same` compares two forms of any kind (compare.same_form).
"""

from fr3e.grading.forms import Form, Listing, Name, Relation, Same, Value
from fr3e.grading.nodes import Node, contains, symbols
from fr3e.grading.tokens import GREEK


def named(form: Form) -> bool:
    """Whether `form` can stand left of "=" as a name: a symbol, f(x), an angle, a few words, a tuple of symbols."""
    if isinstance(form, Name):
        return True
    if isinstance(form, Value):
        node = form.node
        if segment(form):
            return True
        if node[0] == "f" and node[1] == "abs":
            inner = node[2]
            return segment(Value(inner)) or (inner[0] == "s" and not real_unknown(inner[1]))
        return node[0] in ("s", "app") or _angle_function(node)
    return isinstance(form, Listing) and form.kind == "tuple" and all(named(item) for item in form.items)


def real_unknown(name: str) -> bool:
    """Whether |name| = 5 speaks of two numbers; |z| = 5, |V| = 5 and |vec v| = 5 give the size of something else."""
    return name.islower() and name not in ("z", "w") and " " not in name


def _angle_function(node: Node) -> bool:
    """cos A, tan(alpha + beta): the cosine of an angle that has a name, not an equation for x."""
    names = symbols(node)
    return (
        node[0] == "f" and node[1] in ("sin", "cos", "tan", "cot", "sec", "csc") and bool(names)
        and all(name[:1].isupper() or name.strip("\\").split("_")[0] in GREEK for name in names)
    )  # fmt: skip


def segment(form: Form) -> bool:
    """AB, ABC: capitals side by side, which name a segment or a figure (or are a product)."""
    return (
        isinstance(form, Value)
        and form.node[0] == "*"
        and all(n[0] == "s" and len(n[1]) == 1 and n[1].isupper() for n in _factors(form.node))
    )


def _factors(node: Node) -> list[Node]:
    return _factors(node[1]) + _factors(node[2]) if node[0] == "*" else [node]


def defined(relation: Relation, same: Same) -> Form | None:
    """What a chain of "=" defines: its last side, when all sides after the name agree; None for a general equation."""
    if any(op not in ("=", "approx") for op in relation.operators):
        return None
    sides = list(relation.sides)
    operators = list(relation.operators)
    if "approx" in operators:
        cut = operators.index("approx")
        exact_part = defined(Relation(tuple(operators[:cut]), tuple(sides[: cut + 1])), same) if cut else sides[0]
        return exact_part
    if len(sides) >= 2 and named(sides[0]):
        word = segment(sides[0]) and len(_factors(sides[0].node)) > 2 and not segment(sides[-1])  # type: ignore[union-attr]
        if segment(sides[0]) and not word and not all(isinstance(s, Value) and not symbols(s.node) for s in sides[1:]):
            return None
        sides = sides[1:]
        while len(sides) >= 2 and isinstance(sides[0], Value) and sides[0].node[0] == "s":
            sides = sides[1:]  # x = y = 8
    elif len(sides) == 2 and named(sides[1]):
        return sides[0]
    last = sides[-1]
    return last if all(same(side, last) for side in sides[:-1]) else None


def measured(answer: Relation, gold: Value, same: Same) -> bool:
    """m + n = 33 for 33 (a quantity made of several unknowns), and sqrt(2) = 1.41 in "x = sqrt(2) ~ 1.41" for 1.41."""
    last, before = answer.sides[-1], answer.sides[:-1]
    if answer.operators[-1] == "approx" and gold.node[0] == "n":
        return same(last, gold)
    if set(answer.operators) != {"="} or not isinstance(before[0], Value):
        return False
    quantity = before[0].node
    if len(symbols(quantity)) < 2 or contains(quantity, {"n", "app", "f", "^"}):
        return False
    return all(same(side, last) for side in before[1:]) and same(last, gold)


def function_like(form: Form) -> bool:
    """Whether `form` can be the name of a function: f(x), y, f, g."""
    return isinstance(form, Value) and (form.node[0] == "app" or form.node in (("s", "y"), ("s", "f"), ("s", "g")))


def solved(relation: Relation) -> bool:
    """Whether one of the two sides is a name and the other one a number."""
    left, right = relation.sides
    return (named(left) and isinstance(right, Value) and not symbols(right.node)) or (
        named(right) and isinstance(left, Value) and not symbols(left.node)
    )


def assignment(form: Form) -> dict[str, Form] | None:
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
            name = _assigned(item.sides[0])
            if name is None or name in result:
                return None
            result[name] = item.sides[1]
        return result
    return None


def _assigned(form: Form) -> str | None:
    """The name that is given a value: a symbol, a function, words."""
    if isinstance(form, Name):
        return form.text.lower()
    if not isinstance(form, Value) or form.node[0] not in ("s", "app"):
        return None
    # f(x) is f, but f(1) and f(2) are two numbers.
    numbers = [argument for argument in form.node[2:] if not symbols(argument)]
    return f"{form.node[1]}{numbers or ''}"
