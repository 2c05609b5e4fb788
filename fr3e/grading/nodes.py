"""Trees of expressions, as plain tuples.

A node is one of
  ("n", Fraction)  ("s", name)  ("pi",)  ("e",)  ("i",)  ("oo",)
  ("+", a, b)  ("*", a, b)  ("/", a, b)  ("^", a, b)  ("neg", a)
  ("f", name, argument, ...)      a known function (sin, ln, log with base, sqrt with order, abs, floor, fact, binom)
  ("app", name, argument, ...)    an unknown function applied to something, such as f(0)
Nothing is simplified and nothing is evaluated here; no text is ever executed.
"""

from fractions import Fraction
from typing import Any

Node = tuple[Any, ...]


def radians(node: Node) -> Node:
    """A degree sign inside a function's argument is a factor of pi/180; anywhere else it is a unit."""
    if node == ("deg",):
        return ("/", ("pi",), ("n", Fraction(180)))
    return tuple(radians(child) if isinstance(child, tuple) else child for child in node)


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


def renamed(node: Node, old: str, new: str) -> Node:
    """`node` with the symbol `old` called `new`."""
    if node == ("s", old):
        return ("s", new)
    return tuple(renamed(child, old, new) if isinstance(child, tuple) else child for child in node)
