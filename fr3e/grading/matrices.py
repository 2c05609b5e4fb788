"""Matrices, vectors and determinants: how they are read, and when they are the same."""

import re
from fractions import Fraction

from fr3e.grading.expression import parse_expression
from fr3e.grading.forms import Form, Listing, Matrix, Value
from fr3e.grading.limits import MAX_ITEMS
from fr3e.grading.oracle import Oracle
from fr3e.grading.tokens import Unreadable, tokenise

_MATRIX = re.compile(
    r"(?P<before>.*?)(?P<open>[\[(|]?)\s*\\begin\s*\{(?P<kind>[pbvBV]?matrix|smallmatrix|array)\}\s*(?:\{[lcr| ]*\})?"
    r"(?P<body>.*)\\end\s*\{(?P=kind)\}\s*[\])|]?(?P<after>.*)",
    re.DOTALL,
)


def read_matrix(text: str) -> Matrix | Value | None:
    """The matrix, vector or determinant that `text` is, None for no matrix. Raises Unreadable for one that is no rectangle."""
    match = _MATRIX.fullmatch(text.strip())
    if match is None:
        return None
    if "\\begin" in match["body"] or match["after"].strip():
        raise Unreadable("more than one matrix")
    rows = []
    for line in match["body"].split("\\\\"):
        line = line.replace("\\hline", " ").strip()
        if line:
            rows.append(tuple(parse_expression(tokenise(cell)) for cell in line.split("&")))
    if not rows or len({len(row) for row in rows}) != 1 or len(rows) * len(rows[0]) > MAX_ITEMS:
        raise Unreadable("a ragged matrix")
    before = match["before"].strip().rstrip("*").removesuffix(r"\cdot").removesuffix(r"\times").strip()
    name = re.fullmatch(r"(.*)=", before)
    if name:
        before = "" if len(name[1]) < 30 and "begin" not in name[1] else before
    if before:
        factor = ("neg", ("n", Fraction(1))) if before == "-" else parse_expression(tokenise(before))
        rows = [tuple(("*", factor, cell) for cell in row) for row in rows]
    if len(rows) == len(rows[0]) == 1 and match["kind"] == "array":
        return Value(rows[0][0])
    kind = "det" if match["kind"] in ("vmatrix", "Vmatrix") or match["open"] == "|" else "matrix"
    return Matrix(tuple(rows), kind)


def same_matrix(answer: Matrix, gold: Matrix, oracle: Oracle) -> bool:
    """Whether kind, shape and all cells agree. May raise Undecided."""
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


def same_vector(answer: Form, gold: Form, oracle: Oracle) -> bool:
    """Whether a tuple and a row or column agree; a list of rows may stand for a matrix. May raise Undecided."""
    pair = (answer, gold)
    if isinstance(answer, Listing) and isinstance(gold, Matrix) and all(isinstance(i, Listing) for i in answer.items):
        return len(answer.items) == len(gold.rows) > 1 and all(
            same_vector(row, Matrix((cells,)), oracle) for row, cells in zip(answer.items, gold.rows, strict=True)
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
