"""Forms in ordinary notation, for people: 3/4, {1, 2}, (0, 1], x ≤ 5.

Nothing here takes part in a comparison, and nothing that is written here is read again.
"""

from decimal import Context, Decimal
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
    Span,
    Value,
    Words,
)
from fr3e.grading.nodes import Node, symbols

LONGEST = 400  # characters of one form; more is cut
_LONG_BITS = 256  # of an integer; longer ones are shown as powers of ten
_SUM, _PRODUCT, _POWER, _ATOM = range(4)  # how tightly the outermost operation of an expression binds
_CONSTANTS = {"pi": "π", "e": "e", "i": "i", "oo": "∞", "deg": "°"}
_RELATIONS = {"le": "≤", "ge": "≥", "ne": "≠", "approx": "≈"}
_AROUND = {"abs": "||", "floor": "⌊⌋", "ceil": "⌈⌉"}


def form_text(form: Form) -> str:
    """`form` in ordinary notation, cut at LONGEST characters."""
    text = _form(form)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def form_kind(form: Form) -> str:
    """What `form` is, in a word or two: number, expression, list, set, ..."""
    if isinstance(form, Value):
        return "expression" if symbols(form.node) else "number"
    if isinstance(form, Listing):
        if form.kind == "tuple" and len(form.items) == 2 and form.brackets != "<>":
            return "pair or interval" if form.brackets in ("()", "[]") else "interval"
        return form.kind
    if isinstance(form, Relation):
        return "equation" if set(form.operators) <= {"=", "approx"} else "inequality"
    if isinstance(form, Matrix):
        return "determinant" if form.kind == "det" else "matrix"
    names = {Region: "set of real numbers", Name: "name", Words: "text", Choice: "choice", Clock: "time of day",
             Ratio: "ratio", Based: "number with its base"}  # fmt: skip
    return names[type(form)]


def _form(form: Form) -> str:  # noqa: PLR0911
    if isinstance(form, Value):
        return _value(form)
    if isinstance(form, Listing):
        return _listing(form)
    if isinstance(form, Region):
        return _region(form)
    if isinstance(form, Relation):
        text = _form(form.sides[0])
        for operator, side in zip(form.operators, form.sides[1:], strict=True):
            text += f" {_RELATIONS.get(operator, operator)} {_form(side)}"
        return text
    if isinstance(form, Matrix):
        rows = "; ".join(", ".join(expression(cell) for cell in row) for row in form.rows)
        return f"|{rows}|" if form.kind == "det" else f"[{rows}]"
    if isinstance(form, Choice):
        return f"({form.letter}) {form.content}".strip()
    if isinstance(form, Clock):
        return f"{form.minutes // 60}:{form.minutes % 60:02d}"
    if isinstance(form, Ratio):
        return " : ".join(expression(term) for term in form.terms)
    if isinstance(form, Based):
        return f"{form.digits} in base {form.base}"
    return form.text


def _value(value: Value) -> str:
    text = expression(value.node)
    sign = "%" if value.percent else "°" if value.degree else ""
    if (sign or value.unit) and value.node[0] == "+":
        text = f"({text})"
    return text + sign + (f" {value.unit.words}" if value.unit else "")


def _listing(listing: Listing) -> str:
    inner = ", ".join(_form(item) for item in listing.items)
    if listing.kind == "set":
        return f"{{{inner}}}" if listing.items else "∅"
    opener, closer = ("⟨", "⟩") if listing.brackets == "<>" else (listing.brackets or "()")
    return f"{opener}{inner}{closer}" if listing.kind == "tuple" else inner


def _region(region: Region) -> str:
    parts = [_span(span) for span in region.spans]
    if region.points:
        parts.append("{" + ", ".join(expression(point) for point in region.points) + "}")
    text = " ∪ ".join(parts) or "∅"
    return f"{region.variable.lstrip(chr(92))} in {text}" if region.variable else text


def _span(span: Span) -> str:
    opener, closer = "(["[span.closed[0]], ")]"[span.closed[1]]
    return f"{opener}{expression(span.low)}, {expression(span.high)}{closer}"


def expression(node: Node) -> str:
    """An expression with no more parentheses than it needs."""
    return _spelled(node)[0]


def _within(node: Node, level: int) -> str:
    """`node` as part of an operation that binds as tightly as `level`."""
    text, own = _spelled(node)
    return text if own >= level else f"({text})"


def _spelled(node: Node) -> tuple[str, int]:  # noqa: PLR0911
    kind = node[0]
    if kind == "n":
        return _number(node[1])
    if kind == "s":
        return _symbol(node[1]), _ATOM
    if kind in _CONSTANTS:
        return _CONSTANTS[kind], _ATOM
    if kind == "neg":
        return f"-{_within(node[1], _PRODUCT)}", _SUM
    if kind == "+":
        right = node[2]
        if right[0] == "neg":
            return f"{expression(node[1])} - {_within(right[1], _PRODUCT)}", _SUM
        return f"{expression(node[1])} + {_within(right, _SUM if right[0] == '+' else _PRODUCT)}", _SUM
    if kind == "*":
        return _product(node)
    if kind == "/":
        return f"{_within(node[1], _PRODUCT)}/{_within(node[2], _POWER)}", _PRODUCT
    if kind == "^":
        return f"{_within(node[1], _ATOM)}^{_within(node[2], _ATOM)}", _POWER
    if kind == "f":
        return _function(node[1], node[2:])
    return f"{' '.join(node[1].split())}({', '.join(expression(child) for child in node[2:])})", _ATOM


def _product(node: Node) -> tuple[str, int]:
    factors: list[Node] = []
    while node[0] == "*":
        factors.insert(0, node[2])
        node = node[1]
    negative = node[0] == "neg"
    first = node[1] if negative else node
    text = _within(first, _PRODUCT)
    beside = first[0] == "n" and first[1].denominator == 1  # 2x, but 2·3 and x·y
    for factor in factors:
        spelled = _within(factor, _POWER)
        together = spelled == "°" or (beside and not spelled[0].isdigit())
        text += spelled if together else f"·{spelled}"
        beside = False
    return (f"-{text}", _SUM) if negative else (text, _PRODUCT)


def _number(number: Fraction) -> tuple[str, int]:
    if max(abs(number.numerator), number.denominator).bit_length() > _LONG_BITS:
        context = Context(prec=7)
        return f"{context.divide(Decimal(number.numerator), Decimal(number.denominator)):.6e}", _SUM
    level = _SUM if number < 0 else _ATOM if number.denominator == 1 else _PRODUCT
    return str(number), level


def _symbol(name: str) -> str:
    if name.startswith("{"):
        return name.replace("}{", "/").strip("{}").replace("partial", "∂")  # a derivative
    return name.replace("\\", "")


def _function(name: str, arguments: tuple[Node, ...]) -> tuple[str, int]:
    first, second = arguments[0], arguments[1] if len(arguments) > 1 else None
    if name in _AROUND:
        return _AROUND[name][0] + expression(first) + _AROUND[name][1], _ATOM
    if name == "fact":
        return f"{_within(first, _ATOM)}!", _POWER
    if name == "root" and second == ("n", Fraction(2)):
        return f"√{_within(first, _ATOM)}", _POWER
    if second is None:
        return f"{name}({expression(first)})", _ATOM
    shapes = {
        "root": f"{_within(first, _ATOM)}^(1/{_within(second, _POWER)})",
        "log": f"log_{_within(second, _ATOM)}({expression(first)})",
    }
    return shapes.get(name, f"C({expression(first)}, {expression(second)})"), _POWER
