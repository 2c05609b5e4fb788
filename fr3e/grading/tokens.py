"""Tokens of the small LaTeX dialect that `normalise.clean` leaves."""

import re
from typing import NamedTuple

from fr3e.grading.units import LONE, known


class Unreadable(Exception):
    """The text is not mathematics that this grader reads."""


class Token(NamedTuple):
    """kind: num, letters, cmd, text, punct or end; `gap` says whether white space stood before it."""

    kind: str
    value: str
    gap: bool = False


_TOKEN = re.compile(
    r"(?P<gap>\s*)(?:"
    r"(?P<num>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+(?![\d.]*[a-zA-Z]))?)"
    r"|(?P<letters>[A-Za-z]+)"
    r"|(?P<brace>\\[{}])"
    r"|(?P<percent>\\?%)"
    r"|(?P<dollar>\\\$)"
    r"|(?P<row>\\\\)"
    r"|\\(?P<cmd>[A-Za-z]+)\*?"
    r"|(?P<punct>[-+*/^_=<>()\[\]{},;:|!'&~?\"#@.])"
    r"|(?P<bad>.)"
    r")",
    re.DOTALL,
)
FUNCTIONS = {
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "arccot", "arcsec", "arccsc", "sinh", "cosh",
    "tanh", "coth", "sech", "csch", "arsinh", "arcosh", "artanh", "ln", "log", "lg", "exp", "sgn", "Re", "Im",
}  # fmt: skip
PLAIN_FUNCTIONS = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "cosec": "csc", "arcsinh": "arsinh", "arccosh": "arcosh",
    "arctanh": "artanh", "asinh": "arsinh", "acosh": "arcosh", "atanh": "artanh",
}  # fmt: skip
GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi", "rho",
    "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi",
    "Psi", "Omega",
}  # fmt: skip
_PLAIN_COMMANDS = {
    "pi": "pi", "sqrt": "sqrt", "infty": "infty", "infinity": "infty", "inf": "infty", "oo": "infty", "Pi": "Pi",
    "cbrt": "cbrt", "abs": "abs", "floor": "floor", "ceil": "ceil", "binom": "binom", "frac": "frac",
}  # fmt: skip
_LEADING_NUMBER = re.compile(r"(-?(?:\\?\$)?[\d.]+)\s*-?([A-Za-z][A-Za-z ]*)")
_NUMPY = re.compile(r"\b(?:np|numpy|math|sympy|sp)\.(?=[a-z])")


def tokenise(text: str) -> list[Token]:
    """Tokens of `text`; raises Unreadable on a character that has no meaning here."""
    from fr3e.grading.extract import closing_brace

    text = _NUMPY.sub("", text)
    tokens: list[Token] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            break
        position = match.end()
        kind = match.lastgroup or ""
        value, gap = match[kind], bool(match["gap"])
        if kind == "bad":
            raise Unreadable(f"character {value!r}")
        if kind == "cmd" and value == "text":
            start = text.find("{", position)
            close = closing_brace(text, start) if start >= 0 and not text[position:start].strip() else -1
            if close < 0:
                raise Unreadable("text without braces")
            tokens.extend(_text_token(text[start + 1 : close], gap))
            position = close + 1
        elif kind == "letters":
            tokens.extend(_letters(value, gap))
        elif kind == "cmd":
            tokens.append(Token("cmd", PLAIN_FUNCTIONS.get(value, value), gap))
        elif kind in ("brace", "percent", "dollar", "row"):
            names = {"\\{": "\\{", "\\}": "\\}", "\\\\": "\\\\", "\\$": "\\$"}
            tokens.append(Token("punct", names.get(value, "%"), gap))
        else:
            tokens.append(Token(kind, value, gap))
    if len(tokens) > 1 and tokens[-1].kind == "cmd" and tokens[-1].value == "sec":
        tokens[-1] = Token("letters", "sec", tokens[-1].gap)  # "5 sec": a function would have an argument
    return tokens


def _letters(run: str, gap: bool) -> list[Token]:
    if run in PLAIN_FUNCTIONS or (run in FUNCTIONS and run not in ("Re", "Im")):
        return [Token("cmd", PLAIN_FUNCTIONS.get(run, run), gap)]
    if run in _PLAIN_COMMANDS:
        return [Token("cmd", _PLAIN_COMMANDS[run], gap)]
    if (run in GREEK and len(run) > 2) or run in ("mu", "nu", "xi"):
        return [Token("cmd", run, gap)]
    if run == "Infinity":
        return [Token("cmd", "infty", gap)]
    for name in ("sqrt", "arcsin", "arccos", "arctan", "sin", "cos", "tan", "log", "ln", "pi"):
        # "2sqrt" never reaches here (digits end a run), "xsqrt" and "esin" do.
        head, found, tail = run.partition(name)
        if found and not tail and 0 < len(head) <= 2 and run not in ("basin", "begin"):
            return [*(_letters(head, gap)), Token("cmd", name, False)]
    return [Token("letters", run, gap)]


def _text_token(content: str, gap: bool) -> list[Token]:  # noqa: PLR0911
    r"""Tokens for \text{content}: mathematics inside is read as mathematics, words stay one text."""
    stripped = content.strip(" ~")
    if not stripped:
        return []
    if stripped in LONE:
        return [Token("text", stripped, True)]
    product = re.sub(r"\\(?:cdot|times)(?![a-z])", " ", stripped)
    if (
        product != stripped
        and "\\" not in product
        and all(w in LONE or known(w) for w in re.findall("[A-Za-z]+", product))
    ):
        return [Token("text", " ".join(product.split()), True)]
    if re.fullmatch(r"[^A-Za-z]+", stripped) or re.fullmatch(r"[A-Za-z]", stripped) or "\\" in stripped:
        inner = tokenise(stripped)
        if inner:
            inner[0] = inner[0]._replace(gap=True)
        return inner
    number = _LEADING_NUMBER.fullmatch(stripped)
    if number is not None:
        return [*tokenise(number[1]), Token("text", number[2], True)]
    if stripped in FUNCTIONS - {"sec", "arcsec"}:
        return [Token("cmd", stripped, gap)]
    return [Token("text", " ".join(stripped.replace("~", " ").split()), True)]
