"""Expressions: a recursive descent parser from tokens to a tree (see nodes.py).

Nothing is simplified and nothing is evaluated here; no text is ever executed.
"""

import re
from fractions import Fraction

from fr3e.grading.commands import Commands
from fr3e.grading.limits import MAX_DIGITS
from fr3e.grading.nodes import Node
from fr3e.grading.stream import CLOSERS, END
from fr3e.grading.tokens import Token, Unreadable


class Parser(Commands):
    """One pass over a list of tokens."""

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
        if token.kind in ("num", "letters"):
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
        self.expect(CLOSERS[opener])
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
        if not token.value[:1].isdigit() and not token.value[1:2].isdigit():
            raise Unreadable(f"the number {token.value!r}")
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
        if re.fullmatch(r"C_\d+", name):
            name = name.lower()  # constants of integration have no fixed case
        if name == "i":
            return ("i",)
        if name == "e":
            return ("e",)
        if not single and not rest and self.at("(") and (applied := self.application(name)) is not None:
            return applied
        return ("s", name)


def parse_expression(tokens: list[Token], pm: int = 1) -> Node:
    """Tree of `tokens`, with every plus-minus read as `pm`. Raises Unreadable, or RecursionError on deep nesting."""
    if not tokens:
        raise Unreadable("nothing there")
    return Parser(list(tokens), {"pm": pm}).whole()
