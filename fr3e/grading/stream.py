"""A cursor over tokens, the ground on which the expression parser stands."""

from fr3e.grading.nodes import Node
from fr3e.grading.tokens import Token, Unreadable

END = Token("end", "")
CLOSERS = {"(": ")", "[": "]", "{": "}", "\\{": "\\}"}


class Stream:
    """Tokens, a position, and the levels of the grammar that the parts of the parser call in one another."""

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

    def degree_mark(self) -> bool:
        if self.at("{") and self.peek(1).value == "circ" and self.peek(2).value == "}":
            self.position += 3
            return True
        if self.at("circ", "cmd"):
            self.position += 1
            return True
        return False

    def sum(self) -> Node:
        """A sum of products; reads as far as it can."""
        raise NotImplementedError

    def product(self) -> Node:
        """A product of factors; reads as far as it can."""
        raise NotImplementedError

    def power(self) -> Node:
        """A value with its exponent."""
        raise NotImplementedError

    def atom(self, single: bool = False) -> Node:
        """One value; `single` takes one letter or digit group without an argument."""
        raise NotImplementedError

    def exponent(self) -> Node:
        """What follows "^" or "_"."""
        raise NotImplementedError

    def group(self) -> Node:
        """A bracketed sum."""
        raise NotImplementedError

    def infix(self, left: Node) -> Node:
        """What \\over and \\choose make of the group so far."""
        raise NotImplementedError

    def starts_factor(self) -> bool:
        """Whether the next token begins another factor."""
        raise NotImplementedError

    def number(self, token: Token) -> Node:
        """The value of a literal."""
        raise NotImplementedError
