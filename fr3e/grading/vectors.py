"""Vectors: tuples, rows, columns, and sums of the unit vectors i, j, k."""

from fractions import Fraction

from fr3e.grading.forms import Form, Listing, Matrix, Value
from fr3e.grading.nodes import Node
from fr3e.grading.oracle import Oracle

_UNIT_VECTORS: dict[Node, str] = {("i",): "i"} | {
    ("s", accent + name): name for accent in ("", "vec ", "overrightarrow ") for name in "ijk"
}
_SCALAR = ""
_ZERO: Node = ("n", Fraction(0))
_ONE: Node = ("n", Fraction(1))


def same_vector(answer: Form, gold: Form, oracle: Oracle) -> bool:
    """Whether two forms have the same components; a list of rows may stand for a matrix. May raise Undecided."""
    if isinstance(answer, Listing) and isinstance(gold, Matrix) and all(isinstance(i, Listing) for i in answer.items):
        return len(answer.items) == len(gold.rows) > 1 and all(
            same_vector(row, Matrix((cells,)), oracle) for row, cells in zip(answer.items, gold.rows, strict=True)
        )
    a, g = _components(answer, gold), _components(gold, answer)
    return a is not None and g is not None and len(a) == len(g) and all(map(oracle.same, a, g))


def _components(form: Form, other: Form) -> tuple[Node, ...] | None:
    """The components of `form`; a component that is not written, as that of k in 2i + j, is zero where `other` has it."""
    if isinstance(form, Listing):
        cells = [item.node for item in form.items if isinstance(item, Value)]
        return tuple(cells) if form.kind == "tuple" and len(cells) == len(form.items) else None
    if isinstance(form, Matrix):
        plain = form.kind == "matrix" and 1 in (len(form.rows), len(form.rows[0]))
        return tuple(cell for row in form.rows for cell in row) if plain else None
    if not isinstance(form, Value) or form.unit is not None or isinstance(other, Value):
        return None
    parts = _parts(form.node)
    if parts is None or _SCALAR in parts or not parts.keys() & {"j", "k"}:
        return None  # 3 + 2i and 2i are complex numbers
    beside = _components(other, form)
    names = "ij" if "k" not in parts and beside is not None and len(beside) == 2 else "ijk"
    return tuple(parts.get(name, _ZERO) for name in names)


def _parts(node: Node) -> dict[str, Node] | None:  # noqa: PLR0911
    """Coefficients of the unit vectors in `node` and what stands without one, None where it is not linear in them."""
    if node in _UNIT_VECTORS:
        return {_UNIT_VECTORS[node]: _ONE}
    if node[0] not in ("+", "neg", "*", "/"):
        inner = [_parts(child) for child in node[1:] if isinstance(child, tuple)]
        return {_SCALAR: node} if all(part is not None and part.keys() <= {_SCALAR} for part in inner) else None
    left = _parts(node[1])
    right = _parts(node[2]) if len(node) > 2 else {}
    if left is None or right is None:
        return None
    if node[0] == "neg":
        return {name: ("neg", part) for name, part in left.items()}
    if node[0] == "+":
        both = left.keys() & right.keys()
        return left | right | {name: ("+", left[name], right[name]) for name in both}
    if right.keys() <= {_SCALAR}:
        return {name: (node[0], part, node[2]) for name, part in left.items()}
    if node[0] == "*" and left.keys() <= {_SCALAR}:
        return {name: ("*", node[1], part) for name, part in right.items()}
    return None
