"""Matrices, vectors and determinants: how they are read, and when they are the same."""

import re
from fractions import Fraction

from fr3e.grading.expression import parse_expression
from fr3e.grading.forms import Matrix, Value
from fr3e.grading.limits import MAX_ITEMS
from fr3e.grading.oracle import Oracle
from fr3e.grading.tokens import Unreadable, tokenise

_MATRIX = re.compile(
    r"(?P<before>.*?)(?P<open>[\[(|]?)\s*\\begin\s*\{(?P<kind>[pbvBV]?matrix|smallmatrix|array)\}\s*(?:\{[lcr| ]*\})?"
    r"(?P<body>.*)\\end\s*\{(?P=kind)\}\s*[\])|]?(?P<after>.*)",
    re.DOTALL,
)
_TRANSPOSE = re.compile(r"\^\s*\{?\s*(?:T|\\(?:top|intercal)|\\text\s*\{\s*T\s*\})\s*\}?")


def read_matrix(text: str) -> Matrix | Value | None:
    """The matrix, vector or determinant that `text` is, None for no matrix. Raises Unreadable for one that is no rectangle."""
    match = _MATRIX.fullmatch(text.strip())
    if match is None:
        return None
    transposed = _TRANSPOSE.fullmatch(match["after"].strip())
    if "\\begin" in match["body"] or (match["after"].strip() and transposed is None):
        raise Unreadable("more than one matrix")
    rows = []
    for line in match["body"].split("\\\\"):
        line = line.replace("\\hline", " ").strip()
        if line:
            rows.append(tuple(parse_expression(tokenise(cell)) for cell in line.split("&")))
    if not rows or len({len(row) for row in rows}) != 1 or len(rows) * len(rows[0]) > MAX_ITEMS:
        raise Unreadable("a ragged matrix")
    if transposed:
        rows = list(zip(*rows, strict=True))
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
