"""Commands and names: \\frac, \\sqrt, functions with their arguments, symbols with subscripts and primes."""

import re
from fractions import Fraction

from fr3e.grading.nodes import Node, radians
from fr3e.grading.stream import END, Stream
from fr3e.grading.tokens import FUNCTIONS, GREEK, Token, Unreadable

_DELIMITED = {"lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
_ACCENTS = {"dot", "ddot", "vec", "hat", "bar", "tilde", "overline", "overrightarrow", "widehat", "underline", "mathcal",
            "mathscr", "mathfrak", "widetilde"}  # fmt: skip
_SYMBOL_COMMANDS = GREEK | {"ell", "hbar", "infty", "partial", "nabla", "odot", "prime", "triangle", "angle"}
_UNIT_VECTORS: tuple[Node, ...] = (("i",), ("s", "j"), ("s", "k"))
_OPERATORS = {"sum", "prod", "int", "iint", "iiint", "oint", "lim"}
_APPLIED = set("fghFGHPQRuyIpqTNMV")
_NAME = "(?:" + "|".join(sorted(GREEK, key=len, reverse=True)) + "|[A-Za-z])"
_DERIVATIVE = re.compile(
    r"\{(?P<d>d|partial)(?:\^\{?(?P<order>\d)\}?)?(?P<of>" + _NAME + r"(?:_\{?\w+\}?)?)?\}"
    r"\{(?:d|partial)(?P<by>" + _NAME + r")(?:\^\{?\d\}?)?\}"
)


class Commands(Stream):
    """The part of the parser that reads what a command or a letter begins."""

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

    def command(self, name: str) -> Node:  # noqa: PLR0911, PLR0912
        if name == "frac":
            derivative = self.derivative()
            if derivative is not None:
                return derivative
            numerator = self.argument()
            return ("/", numerator, self.argument())
        if name in _OPERATORS:
            return self.operator(name)
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
        if name in ("imath", "jmath"):
            return ("i",) if name == "imath" else ("s", "j")
        if name in ("mathrm", "mathit"):
            return self.argument()
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

    def operator(self, name: str) -> Node:
        """A sum, product, integral or limit, not carried out: an unknown function of its body, named by its bounds."""
        bounds = {"_": "", "^": ""}
        while self.at("_") or self.at("^"):
            mark = self.next().value
            start = self.position
            if self.at("{"):
                level = 0
                while True:
                    token = self.next()
                    if token is END:
                        raise Unreadable("open bounds")
                    level += {"{": 1, "}": -1}.get(token.value, 0)
                    if level == 0:
                        break
            else:
                self.next()
            bounds[mark] = "".join(t.value for t in self.tokens[start : self.position]).strip("{}")
        return ("app", f"{name} {bounds['_']} {bounds['^']}", self.product())

    def derivative(self) -> Node | None:
        """\\frac{dx}{dt} and its like as one symbol, so that the d does not cancel: that of \\dot{x}, and y' by x."""
        match = _DERIVATIVE.match("".join(token.value for token in self.tokens[self.position : self.position + 40]))
        if match is None:
            return None
        length = 0
        while length < match.end():
            length += len(self.next().value)
        order, of = int(match["order"] or 1), (match["of"] or "").replace("{", "").replace("}", "")
        of = "\\" + of if of.split("_")[0] in GREEK else of
        if match["d"] == "d" and of and match["by"] == "t" and order <= 2:
            return ("s", f"{'d' * (order - 1)}dot {of}")
        if match["d"] == "d" and of and match["by"] == "x":
            return ("s", of + "'" * order)
        return ("s", match[0])

    def accented(self, accent: str) -> Node:
        inner = self.argument()
        if accent in ("hat", "widehat") and inner in _UNIT_VECTORS:
            return inner
        if inner in (("i",), ("e",)):
            inner = ("s", inner[0])
        if inner[0] != "s":
            raise Unreadable(f"\\{accent} over an expression")
        accent = "vec" if accent == "overrightarrow" else accent
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
        argument = radians(argument)
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
