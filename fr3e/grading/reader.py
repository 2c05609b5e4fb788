"""From tokens to one form: lists, brackets, intervals, sets, relations and single values."""

import itertools
import re
from fractions import Fraction

from fr3e.grading.brackets import OPENERS, closes, split
from fr3e.grading.expression import parse_expression
from fr3e.grading.forms import EVERYTHING, NOTHING, Form, Listing, Name, Ratio, Region, Relation, Span, Value
from fr3e.grading.limits import MAX_ITEMS
from fr3e.grading.matrices import read_matrix
from fr3e.grading.measures import measure, pieces
from fr3e.grading.sets import as_region, combined, finite_points, plain, taken_away, without
from fr3e.grading.solved import relation_of
from fr3e.grading.tokens import Token, Unreadable
from fr3e.grading.trailing import split_unit, without_currency

_RELATIONS = {"=": "=", "<": "<", ">": ">"}
_RELATION_COMMANDS = {"le": "le", "ge": "ge", "ne": "ne", "approx": "approx", "in": "in", "equiv": "=", "sim": "approx",
                      "simeq": "approx"}  # fmt: skip
_POINTS = {"A", "B", "M", "P", "Q", "point", "the point", "Point"}  # names before coordinates; C(5, 2) counts
_POINT_NOUNS = {"vertex", "center", "centre", "focus", "midpoint", "centroid", "circumcenter", "orthocenter", "incenter",
                "intersection"}  # fmt: skip
_QUANTITIES = {"max", "min", "maximum", "minimum", "area", "perimeter", "circumference", "length", "width", "height", "volume",
               "radius", "diameter", "mean", "median", "mode", "slope", "total", "cost", "price", "distance", "speed",
               "probability"}  # fmt: skip
_REAL = {"R": EVERYTHING}


def _connector(token: Token) -> str:
    if token.kind in ("letters", "text"):
        word = token.value.lower().strip(" ,;.~")
        if word in ("or", "and"):
            return word
    if token.kind == "cmd" and token.value in ("lor", "vee", "land", "wedge"):
        return "or" if token.value in ("lor", "vee") else "and"
    return ""


class Reader:
    """Reads one list of tokens."""

    def __init__(self, tokens: list[Token], text: str) -> None:
        self.tokens = [
            Token("punct", word + "~", token.gap) if (word := _connector(token)) else token for token in tokens
        ]
        self.text = text

    def form(self) -> Form:
        """The reading. Raises Unreadable."""
        matrix = read_matrix(self.text)
        return matrix if matrix is not None else self.several(self.tokens)

    # -- several answers ------------------------------------------------------------------------------------------

    def several(self, tokens: list[Token]) -> Form:
        tokens = self.unwrapped(tokens)
        separators = {("punct", ","), ("punct", ";"), ("punct", "or~"), ("punct", "and~")}
        parts, found = split(tokens, separators)
        kept = [part for part in parts if part]
        if len(kept) == 1:
            return self.one(kept[0])
        if not kept:
            raise Unreadable("nothing there")
        if len(kept) > MAX_ITEMS:
            raise Unreadable("too many answers")
        kept = _distributed(kept)
        items = [self.one(part) for part in kept]
        return measure(items) or combined(items, "or~" in found)

    def unwrapped(self, tokens: list[Token]) -> list[Token]:
        while (
            len(tokens) >= 2
            and tokens[0].value == "{"
            and tokens[-1].value == "}"
            and closes(tokens, 0) == len(tokens) - 1
        ):
            tokens = tokens[1:-1]
        return tokens

    def one(self, tokens: list[Token]) -> Form:
        tokens = self.unwrapped(tokens)
        if not tokens:
            raise Unreadable("nothing there")
        if (named := self.labelled(tokens)) is not None:
            return named
        operators = {("punct", sign) for sign in _RELATIONS} | {("cmd", name) for name in _RELATION_COMMANDS}
        parts, found = split(tokens, operators)
        if found:
            return self.relation(parts, found)
        for name in ("cup", "setminus"):
            pieces, cuts = split(tokens, {("cmd", name)})
            if cuts:
                return self.combination(pieces, name)
        if tokens and tokens[0].kind == "cmd" and tokens[0].value == "mathbb":
            return self.number_set(tokens)
        if len(tokens) == 1 and tokens[0] == ("cmd", "emptyset", tokens[0].gap):
            return NOTHING
        return self.ratio(tokens) or self.bracketed(tokens) or self.value(tokens)

    def labelled(self, tokens: list[Token]) -> Relation | None:
        """ "vertex (2, -1)", "maximum 5", "Bob: 5": a noun before the value that it names."""
        if len(tokens) < 2 or tokens[0].kind not in ("text", "letters") or tokens[1].value in _RELATION_COMMANDS:
            return None
        if tokens[0].kind == "text" and tokens[0].value.endswith(":"):
            return Relation(("=",), (Name(tokens[0].value.rstrip(" :").lower()), self.one(tokens[1:])))
        noun = tokens[0].value.lower().removeprefix("the ").removesuffix(" value")
        point = tokens[1].value == "(" and len(split(tokens[2:-1], {("punct", ",")})[0]) > 1
        value = tokens[1].kind in ("num", "cmd") or tokens[1].value in ("-", "\\$")
        if (noun in _POINT_NOUNS and point) or (noun in _QUANTITIES and value):
            return Relation(("=",), (Name(noun), self.one(tokens[1:])))
        return None

    def number_set(self, tokens: list[Token]) -> Form:
        name = re.sub(r"[{}]", "", "".join(t.value for t in tokens[1:]))
        if name in ("R^+", "R_+", "R_>0", "R^-", "R_-", "R_<0"):
            zero, far = ("n", Fraction(0)), ("oo",)
            span = (
                Span(zero, far, (False, False))
                if name[-1] in "+0" and "<" not in name
                else Span(("neg", far), zero, (False, False))
            )
            return Region((span,))
        if name not in _REAL:
            raise Unreadable(f"the set {name}")
        return _REAL[name]

    def ratio(self, tokens: list[Token]) -> Form | None:
        parts, found = split(tokens, {("punct", ":")})
        if not found:
            parts, found = split(tokens, {("letters", "to"), ("text", "to")})
        if not found:
            return None
        return Ratio(tuple(plain(self.value(part)) for part in parts))

    # -- brackets -------------------------------------------------------------------------------------------------

    def bracketed(self, tokens: list[Token]) -> Form | None:  # noqa: PLR0911
        if (
            len(tokens) > 4
            and tokens[0].kind in ("letters", "text")
            and tokens[0].value in _POINTS
            and "," in {t.value for t in tokens}
        ):
            tokens = tokens[1:]
        first, last = tokens[0], tokens[-1]
        if first.value == "]" or (last.value == "[" and first.value in "[("):
            return self.outward(tokens)
        closer = "rangle" if first.value == "langle" else OPENERS.get(first.value)
        if closer is None or closes(tokens, 0) != len(tokens) - 1:
            return None
        inner = tokens[1:-1]
        if first.value == "\\{":
            return self.braces(inner)
        parts, _ = split(inner, {("punct", ","), ("punct", ";")})
        if len(parts) < 2:
            if first.value == "(" and any(t.value in ("or~", "and~") for t in inner):
                return self.several(inner)
            return None
        if len(parts) > MAX_ITEMS:
            raise Unreadable("too many entries")
        brackets = {"langle": "<>"}.get(first.value, first.value + last.value)
        items = tuple(self.one(part) if part else _missing() for part in parts)
        if any(isinstance(item, Listing) and item.kind == "list" for item in items):
            # (±3, ±2): every choice of signs
            choices = [item.items if isinstance(item, Listing) and item.kind == "list" else (item,) for item in items]
            tuples = list(itertools.islice(itertools.product(*choices), MAX_ITEMS))
            return Listing("list", tuple(Listing("tuple", chosen, brackets) for chosen in tuples))
        return Listing("tuple", items, brackets)

    def outward(self, tokens: list[Token]) -> Form:
        parts, _ = split(tokens[1:-1], {("punct", ","), ("punct", ";")})
        if len(parts) != 2:
            raise Unreadable("brackets that open outward")
        low, high = (plain(self.one(part)) for part in parts)
        return Region((Span(low, high, (tokens[0].value == "[", tokens[-1].value == "]")),))

    def braces(self, inner: list[Token]) -> Form:
        if not inner:
            return NOTHING
        for bar in (("punct", "|"), ("punct", ":")):
            parts, found = split(inner, {bar})
            head = [t for t in parts[0] if t.kind != "punct" or t.value not in "{}"]
            if found and head and (len(head) == 1 or any(t.value == "in" for t in inner) or head[0].value == "("):
                condition = inner[len(parts[0]) + 1 :]
                return self.builder(parts[0], condition)
        form = self.several(inner)
        if isinstance(form, Listing) and form.kind == "list":
            return Listing("set", form.items)
        if isinstance(form, Region | Relation):
            raise Unreadable("a relation in braces")
        return Listing("set", (form,))

    def builder(self, head: list[Token], condition: list[Token]) -> Form:
        conditions, _ = split(condition, {("punct", ",")})
        integer = [
            part for part in conditions if {"in", "mathbb"} <= {t.value for t in part} and part[-2].value in "ZN"
        ]
        if integer and len(conditions) <= 2:
            return self.multiples(head, [part for part in conditions if part not in integer], integer)
        form = self.several(condition)
        if isinstance(form, Region):
            return form
        if isinstance(form, Relation):
            return Listing("set", (form,))
        if isinstance(form, Listing):
            return Listing("set", form.items)
        raise Unreadable("a set described in words")

    def multiples(self, head: list[Token], equations: list[list[Token]], integer: list[list[Token]]) -> Form:
        """{3k | k in Z} and {x | x = 3k, k in Z}: the expression, and where its parameter runs."""
        values = [t.value for t in head]
        if equations and [t.value for t in equations[0][: len(head) + 1]] != [*values, "="]:
            raise Unreadable("a set described by an equation")
        body = equations[0][len(head) + 1 :] if equations else head
        return Listing("set", (self.several(body), Name(" ".join(t.value for part in integer for t in part))))

    def combination(self, pieces: list[list[Token]], name: str) -> Form:
        forms = [self.one(piece) for piece in pieces if piece]
        if len(forms) < 2:
            raise Unreadable("a union of one")
        if name == "cup":
            if all(isinstance(f, Listing) and f.kind == "set" for f in forms):
                return Listing("set", tuple(item for f in forms for item in f.items))  # type: ignore[union-attr]
            regions = [as_region(f) for f in forms]
            return Region(tuple(s for r in regions for s in r.spans), tuple(p for r in regions for p in r.points))
        whole = as_region(forms[0])
        for form in forms[1:]:
            interval = isinstance(form, Region) or (isinstance(form, Listing) and form.kind == "tuple")
            whole = taken_away(whole, as_region(form)) if interval else without(whole, finite_points(form))
        return whole

    # -- relations ------------------------------------------------------------------------------------------------

    def relation(self, parts: list[list[Token]], found: list[str]) -> Form:
        operators = [_RELATIONS.get(sign) or _RELATION_COMMANDS[sign] for sign in found]
        if not parts[0] and operators[0] in ("approx", "="):
            parts, operators = parts[1:], operators[1:]
            if not operators:
                return self.one(parts[0])
        if any(not part for part in parts):
            raise Unreadable("a relation without a side")
        if operators == ["in"]:
            return self.one(parts[1])
        if "in" in operators:
            raise Unreadable("membership inside a chain")
        sides: list[Form] = []
        for index, part in enumerate(parts):
            sides.append(self.side(part, index == 0))
        return relation_of(operators, sides)

    def side(self, tokens: list[Token], first: bool) -> Form:
        if first and [t.kind for t in tokens] == ["letters", "punct", "letters", "punct"] and tokens[1].value == "(":
            return Value(("app", tokens[0].value, ("s", tokens[2].value)))
        try:
            return self.one(tokens)
        except Unreadable:
            if not first:
                raise
            shown = " ".join(t.value for t in tokens)
            if len(shown) > 80 or (re.search(r"[<>=]", shown) and not shown.startswith("P (")):
                raise
            return Name(shown)

    # -- one value ------------------------------------------------------------------------------------------------

    def value(self, tokens: list[Token]) -> Form:
        if not tokens:
            raise Unreadable("nothing there")
        parts = pieces(tokens)
        if len(parts) > 1 and (whole := measure([self.value(part) for part in parts])) is not None:
            return whole
        tokens, money = without_currency(tokens)
        body, unit, percent, degree, scale = split_unit(tokens)
        if unit is None:
            unit = money
        if any(t.kind == "cmd" and t.value in ("pm", "mp") for t in body):
            nodes = (parse_expression(body, 1), parse_expression(body, -1))
            return Listing("list", tuple(Value(node, percent, degree, unit) for node in nodes))
        node = parse_expression(body)
        if scale != 1:
            node = ("*", node, ("n", Fraction(scale)))
        return Value(node, percent, degree, unit)


def _missing() -> Form:
    raise Unreadable("an entry is missing")


def _distributed(parts: list[list[Token]]) -> list[list[Token]]:
    """ "x = 1, 2" as "x = 1, x = 2" where the first part alone names the unknown: the name is dropped from it; x != 1, 2 alike."""
    if [t.value for t in parts[0][1:2]] == ["ne"] and all(len(part) <= 2 for part in parts[1:]):
        return [parts[0], *(parts[0][:2] + part for part in parts[1:])]
    heads = [index for index, part in enumerate(parts) if any(t.value == "=" for t in part)]
    others = {t.value for part in parts[1:] for t in part}
    if heads == [0] and len(parts) > 1 and not others & (set(_RELATIONS) | set(_RELATION_COMMANDS)):
        cut = next(i for i, t in enumerate(parts[0]) if t.value == "=")
        if cut <= 4 and cut + 1 < len(parts[0]) and not any(t.value in ("in",) for t in parts[0]):
            return [parts[0][cut + 1 :], *parts[1:]]
    return parts
