"""Are two golds of one question the same answer? Exact for numbers, by spelling for the rest.

This decides only which copies of a question contradict each other; grading a model's answer is `fr3e.grading`.
Nothing is evaluated by a library: a small parser of numbers, fractions, roots and pi does it, so no text can run code.
"""

import math
import re
from fractions import Fraction

from fr3e.data.normalise import question_key

Number = Fraction | float
TOKENS = re.compile(r"\s*(\d+\.?\d*|\.\d+|\\[a-zA-Z]+|[-+*/^(){}\[\]%])")
MAX_LENGTH = 200
MAX_EXPONENT = 256


class _NotANumber(ValueError):
    pass


class _Parser:
    """Recursive descent over a closed expression of numbers; every number is exact until a root or pi enters."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        position = 0
        while position < len(text):
            match = TOKENS.match(text, position)
            if match is None:
                raise _NotANumber
            self.tokens.append(match.group(1))
            position = match.end()
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise _NotANumber
        self.at += 1
        return token

    def whole(self) -> Number:
        value = self.sum()
        if self.peek() == "%":
            self.take()
            value = value / 100
        if self.peek():
            raise _NotANumber
        return value

    def sum(self) -> Number:
        value = self.product()
        while self.peek() in ("+", "-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def product(self) -> Number:
        value = self.power()
        while self.peek() and self.peek() not in "+-)}]%":
            token = self.peek()
            if token in ("*", r"\cdot", r"\times"):
                self.take()
                value = value * self.power()
            elif token in ("/", r"\div"):
                self.take()
                value = value / self.power()
            elif token == r"\frac" and self._mixed():
                value = value + self.power()
            else:
                value = value * self.power()
        return value

    def _mixed(self) -> bool:
        r"""`65\frac{4}{5}`: a whole number directly before a fraction of whole numbers is a mixed number."""
        before = self.tokens[self.at - 1] if self.at else ""
        alone = self.at < 2 or self.tokens[self.at - 2] in "+-({"
        return before.isdigit() and alone

    def power(self) -> Number:
        if self.peek() in ("-", "+"):
            return -self.power() if self.take() == "-" else self.power()
        base = self.atom()
        if self.peek() == "^":
            self.take()
            exponent = self.atom()
            if abs(exponent) > MAX_EXPONENT or abs(base) > 10**12:
                raise _NotANumber
            return base ** (int(exponent) if exponent == int(exponent) else float(exponent))
        return base

    def group(self, opening: str, closing: str) -> Number:
        self.take(opening)
        value = self.sum()
        self.take(closing)
        return value

    def argument(self) -> Number:
        r"""`{...}`, or as LaTeX reads it the next digit alone: `\frac12`."""
        if self.peek() == "{":
            return self.group("{", "}")
        token = self.take()
        if not token.isdigit():
            raise _NotANumber
        if len(token) > 1:
            self.at -= 1
            self.tokens[self.at] = token[1:]
        return Fraction(token[0])

    def atom(self) -> Number:
        token = self.peek()
        if token == "(":
            return self.group("(", ")")
        if token == "{":
            return self.group("{", "}")
        self.take()
        if token == r"\frac":
            return self.argument() / self.argument()
        if token == r"\sqrt":
            degree = self.group("[", "]") if self.peek() == "[" else Fraction(2)
            return float(self.argument()) ** (1 / float(degree))
        if token == r"\pi":
            return math.pi
        if token[0].isdigit() or token[0] == ".":
            return Fraction(token.removesuffix("."))
        raise _NotANumber


def value(text: str) -> Number | None:
    """The number that `text` (LaTeX) spells, exact where it is rational; None for anything else."""
    cleaned = re.sub(r"\\left|\\right|\\[!,;: ]|\\\s|\^\s*\{?\\circ\}?|\\%(?=\\)", "", text)
    cleaned = re.sub(r"\\[dt]frac", r"\\frac", cleaned).replace(r"\%", "%")
    if not cleaned.strip() or len(cleaned) > MAX_LENGTH:
        return None
    try:
        result = _Parser(cleaned).whole()
    except (_NotANumber, ZeroDivisionError, OverflowError, RecursionError):
        return None
    return None if isinstance(result, complex) or (isinstance(result, float) and not math.isfinite(result)) else result


def same_gold(first: str, second: str) -> bool:
    """Whether two normalised golds spell one answer: equal numbers, or the same text up to layout."""
    if question_key(first) == question_key(second):
        return True
    one, other = value(first), value(second)
    if one is None or other is None:
        return False
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return one == other
    return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-15)
