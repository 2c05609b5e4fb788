"""Expressions: a recursive descent parser from tokens to a tree of plain tuples.

A node is one of
  ("n", Fraction)  ("s", name)  ("pi",)  ("e",)  ("i",)  ("oo",)
  ("+", a, b)  ("*", a, b)  ("/", a, b)  ("^", a, b)  ("neg", a)
  ("f", name, argument, ...)      a known function (sin, ln, log with base, sqrt with order, abs, floor, fact, binom)
  ("app", name, argument, ...)    an unknown function applied to something, such as f(0)
Nothing is simplified and nothing is evaluated here; no text is ever executed.
"""

import re
from fractions import Fraction
from typing import Any

from fr3e.grading.limits import MAX_DIGITS
from fr3e.grading.tokens import FUNCTIONS, GREEK, Token, Unreadable

Node = tuple[Any, ...]
END = Token("end", "")
_DELIMITED = {"lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
_ACCENTS = {"dot", "ddot", "vec", "hat", "bar", "tilde", "overline", "overrightarrow", "widehat", "underline", "mathcal",
            "mathscr", "mathfrak", "widetilde"}  # fmt: skip
_SYMBOL_COMMANDS = GREEK | {"ell", "hbar", "infty", "partial", "nabla", "odot", "prime", "triangle", "angle"}
_APPLIED = set("fghFGHPQRuyIpqTNMV")
_DERIVATIVE = re.compile(
    r"\{(?:d|partial)(?:\^\{?\d\}?)?(?:[A-Za-z](?:_\{?\w+\}?)?)?\}\{(?:d|partial)[A-Za-z](?:\^\{?\d\}?)?\}"
)
_CLOSERS = {"(": ")", "[": "]", "{": "}", "\\{": "\\}"}


class Parser:
    """One pass over a list of tokens. `euler` reads 3e-2 as 3·e − 2 instead of 0.03."""

    def __init__(self, tokens: list[Token], sign: dict[str, int] | None = None) -> None:
        self.tokens = tokens
        self.position = 0
        self.signs = sign or {}
        self.bars = 0

    def peek(self, ahead: int = 0) -> Token:
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else END

    def next(self) -> Token:
        token = self.peek()
        self.position += 1
        return token

    def at(self, value: str, kind: str = "punct") -> bool:
        token = self.peek()
        return token.kind == kind and token.value == value

    def expect(self, value: str) -> None:
        if not self.at(value):
            raise Unreadable(f"expected {value!r}, found {self.peek().value!r}")
        self.position += 1

    def whole(self) -> Node:
        node = self.infix(self.sum())
        if self.peek() is not END:
            raise Unreadable(f"{self.peek().value!r} was not expected")
        return node

    def sum(self) -> Node:
        node = self.product()
        while True:
            token = self.peek()
            if token.kind == "punct" and token.value == "+":
                self.next()
                node = ("+", node, self.product())
            elif token.kind == "punct" and token.value == "-":
                self.next()
                node = ("+", node, ("neg", self.product()))
            elif token.kind == "cmd" and token.value in ("pm", "mp"):
                node = ("+", node, self.plus_minus())
            else:
                return node

    def plus_minus(self) -> Node:
        # Both readings are made by the caller, who fixes the sign of the n-th sign in turn.
        token = self.next()
        sign = self.signs.get("pm", 1) * (1 if token.value == "pm" else -1)
        node = self.product()
        return node if sign > 0 else ("neg", node)

    def product(self) -> Node:
        node = self.signed()
        while True:
            token = self.peek()
            if token.kind == "punct" and token.value in "*/" and token.value:
                self.next()
                node = ("*" if token.value == "*" else "/", node, self.signed())
            elif token.kind == "cmd" and token.value in ("cdot", "times", "div"):
                self.next()
                node = ("/" if token.value == "div" else "*", node, self.signed())
            elif self.starts_factor():
                node = self.juxtaposed(node)
            else:
                return node

    def juxtaposed(self, left: Node) -> Node:
        fraction = self.at("frac", "cmd")
        right = self.power()
        whole = left[1] if left[0] == "neg" else left
        mixed = (
            fraction and whole[0] == "n" and whole[1].denominator == 1 and right[0] == "/"
            and right[1][0] == right[2][0] == "n" and right[1][1] < right[2][1]
        )  # fmt: skip
        if mixed and left[0] == "n":
            return ("+", left, right)
        if mixed:
            return ("neg", ("+", left[1], right))
        if right[0] == "n" and left[0] == "n":
            raise Unreadable("two numbers side by side")
        return ("*", left, right)

    def starts_factor(self) -> bool:
        token = self.peek()
        if token.kind == "num" or token.kind == "letters":
            return True
        if token.kind == "text":
            return len(token.value) == 1
        if token.kind == "punct":
            return token.value in ("(", "[", "{") or (token.value == "|" and self.bars == 0)
        return token.kind == "cmd" and token.value not in (
            "pm", "mp", "cdot", "times", "div", "rfloor", "rceil", "rangle", "cup", "cap", "in", "le", "ge", "ne", "approx",
            "setminus", "ldots", "to", "Rightarrow", "lor", "land", "end", "over", "choose", "equiv", "sim",
        )  # fmt: skip

    def signed(self) -> Node:
        token = self.peek()
        if token.kind == "punct" and token.value in ("-", "+"):
            self.next()
            node = self.signed()
            return ("neg", node) if token.value == "-" else node
        if token.kind == "cmd" and token.value in ("pm", "mp"):
            token = self.next()
            sign = self.signs.get("pm", 1) * (1 if token.value == "pm" else -1)
            node = self.signed()
            return node if sign > 0 else ("neg", node)
        return self.power()

    def power(self) -> Node:
        node = self.postfix(self.atom())
        if self.at("^"):
            self.next()
            if self.degree_mark():
                return self.postfix(("*", node, ("deg",)))
            node = self.postfix(("^", node, self.exponent()))
            if self.at("^"):
                raise Unreadable("two exponents")
        return node

    def degree_mark(self) -> bool:
        if self.at("{") and self.peek(1).value == "circ" and self.peek(2).value == "}":
            self.position += 3
            return True
        if self.at("circ", "cmd"):
            self.position += 1
            return True
        return False

    def exponent(self) -> Node:
        if self.at("{"):
            self.next()
            node = self.sum()
            self.expect("}")
            return node
        if self.at("-") or self.at("+"):
            negative = self.next().value == "-"
            node = self.exponent()
            return ("neg", node) if negative else node
        return self.postfix(self.atom(single=True))

    def postfix(self, node: Node) -> Node:
        while self.at("!"):
            self.next()
            node = ("f", "fact", node)
        return node

    def group(self) -> Node:
        opener = self.next().value
        bars, self.bars = self.bars, 0
        node = self.sum()
        self.bars = bars
        node = self.infix(node)
        self.expect(_CLOSERS[opener])
        return node

    def infix(self, left: Node) -> Node:
        """a \\over b and n \\choose k, which divide the whole group they stand in."""
        if self.at("over", "cmd"):
            self.next()
            return ("/", left, self.sum())
        if self.at("choose", "cmd"):
            self.next()
            return ("f", "binom", left, self.sum())
        return left

    def atom(self, single: bool = False) -> Node:
        token = self.peek()
        if token.kind == "num":
            self.next()
            return self.number(token)
        if token.kind == "letters" or (token.kind == "text" and len(token.value) == 1):
            return self.letter(single)
        if token.kind == "punct" and token.value in ("(", "[", "{"):
            return self.group()
        if token.kind == "punct" and token.value == "|":
            self.next()
            self.bars += 1
            node = self.sum()
            self.bars -= 1
            self.expect("|")
            return ("f", "abs", node)
        if token.kind == "cmd":
            self.next()
            return self.command(token.value)
        raise Unreadable(f"{token.value!r} where a value was expected" if token is not END else "it ends too early")

    def number(self, token: Token) -> Node:
        if len(token.value) > MAX_DIGITS:
            raise Unreadable("too many digits")
        node = self.repeating(token.value)
        if node is not None:
            return node
        exponent = re.search(r"[eE]([+-]?\d+)$", token.value)
        if exponent and abs(int(exponent[1])) > 10_000:
            raise Unreadable("an exponent beyond 10,000")
        return ("n", Fraction(token.value.rstrip(".") if not exponent else token.value))

    def repeating(self, literal: str) -> Node | None:
        """0.1\\overline{6}, 0.\\bar{3}, 0.\\dot{1}4\\dot{2}"""
        if "." not in literal or self.peek().kind != "cmd" or self.peek().value not in ("overline", "bar", "dot"):
            return None
        dots = self.peek().value == "dot"
        period, first = "", True
        while self.peek().value in ("overline", "bar", "dot") or (
            dots and self.peek().kind == "num" and len(period) == 1
        ):
            if self.peek().kind == "num":
                period += self.next().value
                continue
            self.next()
            if self.at("{"):
                self.next()
                period += self.next().value
                self.expect("}")
            else:
                period += self.next().value
            if not first:
                break
            first = False
            if not dots:
                break
        if not period.isdigit():
            raise Unreadable("a repeating decimal without digits")
        decimals = literal.split(".")[1]
        start = Fraction(literal.rstrip(".") or "0")
        return ("n", start + Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(decimals)))

    def letter(self, single: bool) -> Node:
        token = self.next()
        name, rest = token.value[0], token.value[1:]
        if rest:
            # One letter is taken, the others stay for the following factors.
            self.position -= 1
            self.tokens = [*self.tokens[: self.position], Token("letters", name, token.gap), Token("letters", rest),
                           *self.tokens[self.position + 1 :]]  # fmt: skip
            self.position += 1
        if name == "C" and not rest:
            combination = self.combination()
            if combination is not None:
                return combination
        name += self.subscript() + self.primes()
        if name == "i":
            return ("i",)
        if name == "e":
            return ("e",)
        if not single and not rest and self.at("(") and (applied := self.application(name)) is not None:
            return applied
        return ("s", name)

    def combination(self) -> Node | None:
        """C_{n}^{k} and C(n, k) with numbers as a binomial coefficient."""
        start = self.position
        try:
            if self.at("("):
                return self.called("binom", 2)
            if self.at("_"):
                self.next()
                upper = self.exponent()
                if self.at("^") and upper[0] == "n":
                    self.next()
                    return ("f", "binom", upper, self.exponent())
            elif self.at("^"):
                self.next()
                lower = self.exponent()
                if self.at("_") and lower[0] == "n":
                    self.next()
                    return ("f", "binom", self.exponent(), lower)
        except Unreadable:
            pass
        self.position = start
        return None

    def application(self, name: str) -> Node | None:
        """f(0), I(x): a function where the argument is one number or symbol, or the letter is a customary function."""
        start = self.position
        customary = name[0] in "fgh" or name in ("P", "F", "G")
        if name[0] not in _APPLIED:
            return None
        self.next()
        inner, close = self.peek(), self.peek(1)
        simple = inner.kind in ("num", "letters") and len(inner.value) == 1 and close.value == ")"
        if not simple and not customary:
            self.position = start
            return None
        arguments = [self.sum()]
        while self.at(","):
            self.next()
            arguments.append(self.sum())
        self.expect(")")
        return ("app", name, *arguments)

    def subscript(self) -> str:
        if not self.at("_"):
            return ""
        self.next()
        if not self.at("{"):
            token = self.next()
            if token.kind == "letters" and len(token.value) > 1 and not token.gap:
                return "_" + token.value
            return "_" + token.value
        self.next()
        parts, level = [], 1
        while True:
            token = self.next()
            if token is END:
                raise Unreadable("an open subscript")
            level += {"{": 1, "}": -1}.get(token.value, 0)
            if level == 0:
                return "_" + "".join(parts).replace(" ", "")
            parts.append(token.value)

    def primes(self) -> str:
        count = 0
        while True:
            if self.at("'"):
                self.next()
                count += 1
            elif self.at("^") and self.peek(1).value == "prime":
                self.position += 2
                count += 1
            elif self.at("^") and self.peek(1).value == "{" and self.peek(2).value in ("prime", "'"):
                self.position += 2
                while self.peek().value in ("prime", "'"):
                    self.next()
                    count += 1
                self.expect("}")
            else:
                return "'" * count

    def command(self, name: str) -> Node:
        if name == "frac":
            derivative = self.derivative()
            if derivative is not None:
                return derivative
            numerator = self.argument()
            return ("/", numerator, self.argument())
        if name == "sqrt":
            return self.root()
        if name in ("binom", "choose"):
            if self.at("("):
                return self.called("binom", 2)
            upper = self.argument()
            return ("f", "binom", upper, self.argument())
        if name in FUNCTIONS:
            return self.function(name)
        if name == "pi":
            return ("pi",)
        if name == "infty":
            return ("oo",)
        if name in ("imath", "mathrm", "mathit"):
            return self.argument() if name != "imath" else ("i",)
        if name in _DELIMITED:
            closer, function = _DELIMITED[name]
            node = self.sum()
            if not self.at(closer, "cmd"):
                raise Unreadable(f"{name} without {closer}")
            self.next()
            return ("f", function, node)
        if name in ("abs", "floor", "ceil", "cbrt"):
            node = self.group() if self.at("(") or self.at("{") else self.power()
            return ("f", "root", node, ("n", Fraction(3))) if name == "cbrt" else ("f", name, node)
        if name in _ACCENTS:
            return self.accented(name)
        if name in _SYMBOL_COMMANDS:
            symbol = "\\" + name + self.subscript() + self.primes()
            if name in ("angle", "triangle"):
                raise Unreadable("a geometric name")
            return ("s", symbol)
        if name == "circ":
            return ("deg",)
        raise Unreadable(f"\\{name}")

    def derivative(self) -> Node | None:
        """\\frac{dx}{dt} and its like as one symbol, so that the d does not cancel."""
        match = _DERIVATIVE.match("".join(token.value for token in self.tokens[self.position : self.position + 40]))
        if match is None:
            return None
        length = 0
        while length < match.end():
            length += len(self.next().value)
        return ("s", match[0])

    def accented(self, accent: str) -> Node:
        inner = self.argument()
        if inner[0] != "s":
            raise Unreadable(f"\\{accent} over an expression")
        return ("s", f"{accent} {inner[1]}{self.subscript()}{self.primes()}")

    def argument(self) -> Node:
        """A braced group, or one token: \\frac12 and \\sqrt2 take single digits as TeX does."""
        if self.at("{"):
            self.next()
            bars, self.bars = self.bars, 0
            node = self.infix(self.sum())
            self.bars = bars
            self.expect("}")
            return node
        token = self.peek()
        if token.kind == "num" and len(token.value) > 1:
            digit, rest = token.value[0], token.value[1:]
            if not digit.isdigit():
                raise Unreadable("a decimal without braces")
            self.tokens = [*self.tokens[: self.position], Token("num", digit, token.gap), Token("num", rest),
                           *self.tokens[self.position + 1 :]]  # fmt: skip
        return self.atom(single=True)

    def root(self) -> Node:
        order: Node = ("n", Fraction(2))
        if self.at("["):
            self.next()
            order = self.sum()
            self.expect("]")
        if self.at("("):
            return ("f", "root", self.group(), order)
        token = self.peek()
        if token.kind == "num":
            self.next()
            return ("f", "root", self.number(token), order)
        return ("f", "root", self.argument(), order)

    def called(self, name: str, count: int) -> Node:
        self.expect("(")
        arguments = [self.sum()]
        while self.at(","):
            self.next()
            arguments.append(self.sum())
        self.expect(")")
        if len(arguments) != count:
            raise Unreadable(f"{name} of {len(arguments)} arguments")
        return ("f", name, *arguments)

    def function(self, name: str) -> Node:
        base: Node | None = None
        exponent: Node | None = None
        while self.at("_") or self.at("^"):
            mark = self.next().value
            if mark == "_" and name in ("log", "ln"):
                base = self.exponent()
            elif mark == "^" and exponent is None:
                exponent = self.exponent()
            else:
                raise Unreadable(f"a subscript of \\{name}")
        argument = self.function_argument()
        if name == "lg":
            name, base = "log", ("n", Fraction(10))
        if exponent is not None and exponent in (("neg", ("n", Fraction(1))),) and name in ("sin", "cos", "tan", "cot"):
            return ("f", "arc" + name, argument)
        argument = _radians(argument)
        node: Node = ("f", name, argument) if base is None else ("f", name, argument, base)
        if name == "exp":
            node = ("^", ("e",), argument)
        return node if exponent is None else ("^", node, exponent)

    def function_argument(self) -> Node:
        if self.at("(") or self.at("{") or self.at("["):
            inner = self.group()
            if self.at("^") and self.peek(1).value != "circ":
                self.next()
                if self.degree_mark():
                    return ("*", inner, ("deg",))
                return ("^", inner, self.exponent())
            return inner
        if self.at("|"):
            return self.atom()
        if self.at("-"):
            self.next()
            return ("neg", self.function_argument())
        node = self.power()
        while self.starts_factor() and not self.at("(") and not (
            self.peek().kind == "cmd" and self.peek().value in FUNCTIONS
        ) and not self.at("|"):  # fmt: skip
            node = ("*", node, self.power())
        return node


def _radians(node: Node) -> Node:
    """A degree sign inside a function's argument is a factor of pi/180; anywhere else it is a unit."""
    if node == ("deg",):
        return ("/", ("pi",), ("n", Fraction(180)))
    return tuple(_radians(child) if isinstance(child, tuple) else child for child in node)


def parse_expression(tokens: list[Token], pm: int = 1) -> Node:
    """Tree of `tokens`, with every plus-minus read as `pm`. Raises Unreadable, or RecursionError on deep nesting."""
    if not tokens:
        raise Unreadable("nothing there")
    return Parser(list(tokens), {"pm": pm}).whole()


def symbols(node: Node) -> frozenset[str]:
    """Names of the free symbols and unknown functions in `node`."""
    if node[0] == "s":
        return frozenset([node[1]])
    found: frozenset[str] = frozenset([node[1]]) if node[0] == "app" else frozenset()
    for child in node[1:]:
        if isinstance(child, tuple):
            found |= symbols(child)
    return found


def contains(node: Node, kinds: set[str]) -> bool:
    """Whether `node` holds a node of one of `kinds` (a function counts by its name)."""
    if node[0] in kinds or (node[0] == "f" and node[1] in kinds):
        return True
    return any(isinstance(child, tuple) and contains(child, kinds) for child in node[1:])
