"""What stands around a value: currency in front; units, percent and degree signs, scale words behind."""

from fr3e.grading import units
from fr3e.grading.tokens import FUNCTIONS, Token


def without_currency(tokens: list[Token]) -> tuple[list[Token], units.Unit | None]:
    for index, token in enumerate(tokens[:2]):
        if token.value == "\\$":
            return tokens[:index] + tokens[index + 1 :], units.read_unit("dollars")
    if tokens[0].kind == "text" and units.known(tokens[0].value) and len(tokens) > 1:
        return tokens[1:], units.read_unit(tokens[0].value)
    if tokens[-1].value == "\\$" and len(tokens) > 1:
        return tokens[:-1], units.read_unit("dollars")
    return tokens, None


def _unit_token(tokens: list[Token], index: int) -> bool:
    token = tokens[index]
    if token.kind == "text":
        return not units.blocking(token.value)
    if token.kind == "letters":
        if (
            token.value in units.ORDINALS
            or token.value in units.POWERS
            or (units.known(token.value) and len(token.value) >= 2)
        ):
            return True
        if token.value in units.LONE:
            return (index + 1 < len(tokens) and tokens[index + 1].value in ("^", "/")) or index == len(tokens) - 1
        return len(token.value) >= 3 and token.gap and token.value.isalpha() and not units.blocking(token.value)
    return False


def split_unit(tokens: list[Token]) -> tuple[list[Token], units.Unit | None, bool, bool, int]:
    """Value tokens, unit, percent sign, degree sign, and a scale word's factor."""
    percent = degree = False
    scale = 1
    body = list(tokens)
    unit_words: list[str] = []
    while body:
        if body[-1].value == "%":
            percent, body = True, body[:-1]
            continue
        if len(body) > 4 and [t.value for t in body[-4:]] == ["^", "{", "circ", "}"] and not _inside_function(body):
            degree, body = True, body[:-4]
            continue
        cut = _unit_start(body)
        if cut is None or cut == 0 or not _measurable(body[:cut]):
            break
        spelled = "".join((" " if t.gap else "") + t.value for t in body[cut:]).strip()
        body = body[:cut]
        word = units.singular(spelled)
        if spelled.lower() in units.SCALES:
            scale *= units.SCALES[spelled.lower()]
        elif word in ("percent", "pct"):
            percent = True
        elif word in ("degree", "deg"):
            degree = True
        else:
            unit_words.insert(0, spelled)
    lone = len(unit_words) == 1 and len(body) + 1 == len(tokens) and tokens[-1].kind == "letters"
    unit = units.read_unit(" ".join(unit_words), lone) if unit_words else None
    return body, unit, percent, degree, scale


def _measurable(tokens: list[Token]) -> bool:
    """Whether a unit may follow: a number or a formula, and no words ("No solution" is not No, in solutions)."""
    return any(t.kind in ("num", "cmd") for t in tokens) or all(len(t.value) == 1 for t in tokens)


def _inside_function(body: list[Token]) -> bool:
    """Whether the degree sign at the end belongs to a function's argument, as in sin 30°."""
    return any(t.kind == "cmd" and t.value in FUNCTIONS for t in body)


def _unit_start(body: list[Token]) -> int | None:
    """Where the trailing unit of `body` begins, None without one."""
    index = len(body)
    start = None
    while index > 1:
        token = body[index - 1]
        if _unit_token(body, index - 1):
            start = index = index - 1
            continue
        if token.value == ")" and index > 2:
            open_ = next((i for i in range(index - 2, 0, -1) if body[i].value == "("), None)
            if (
                open_
                and all(
                    t.kind in ("letters", "text") and (t.kind == "text" or len(t.value) > 1)
                    for t in body[open_ + 1 : index - 1]
                )
                and not units.blocking(" ".join(t.value for t in body[open_ + 1 : index - 1]))
            ):
                start = index = open_
                continue
        power = _unit_power(body, index)
        if power is not None:
            start = index = power
            continue
        if token.value in ("/", "cdot", "*", "-") and start is not None and index > 2 and _unit_before(body, index - 1):
            index -= 1
            continue
        break
    return start


def _unit_before(body: list[Token], end: int) -> bool:
    return _unit_token(body, end - 1) or _unit_power(body, end) is not None


def _unit_power(body: list[Token], end: int) -> int | None:
    """Start of "unit ^ digit" that ends at `end`."""
    for shape in (["^", "{", None, "}"], ["^", None], ["^", "{", "-", None, "}"], ["^", "-", None]):
        start = end - len(shape)
        if start < 1:
            continue
        piece = body[start:end]
        fits = all(
            (want is None and t.kind == "num" and len(t.value) == 1) or t.value == want
            for t, want in zip(piece, shape, strict=True)
        )
        if fits and (
            (body[start - 1].kind == "text" and not units.blocking(body[start - 1].value))
            or (
                body[start - 1].kind == "letters"
                and (
                    (units.known(body[start - 1].value) and len(body[start - 1].value) > 1)
                    or (body[start - 1].value in units.LONE and start > 1)
                )
            )
        ):
            return start - 1
    return None
