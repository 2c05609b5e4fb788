"""Measures in several units, such as 5 ft 6 in: one value, in the first of them."""

import dataclasses
import itertools
from collections.abc import Sequence

from fr3e.grading import units
from fr3e.grading.forms import Form, Value
from fr3e.grading.nodes import Node, symbols
from fr3e.grading.tokens import Token


def measure(items: Sequence[Form]) -> Value | None:
    """The sum of `items` where they are numbers in ever smaller units of one kind, else None."""
    parts = [item for item in items if isinstance(item, Value) and not symbols(item.node) and item.unit is not None]
    if len(parts) != len(items) or len(parts) < 2:
        return None
    of = [part.unit for part in parts if part.unit is not None]
    sizes = [unit.factor for unit in of]
    if not of[0].dimension or any(unit.dimension != of[0].dimension for unit in of) or None in sizes:
        return None
    if any(size <= after for size, after in itertools.pairwise(sizes)):  # type: ignore[operator]
        return None
    total: Node = parts[0].node
    for part, unit in zip(parts[1:], of[1:], strict=True):
        total = ("+", total, ("*", part.node, ("n", units.conversion(unit, of[0]))))
    return Value(total, unit=dataclasses.replace(of[0], needed=True))


def pieces(tokens: list[Token]) -> list[list[Token]]:
    """`tokens` cut before each number that follows a unit."""
    cuts = [
        index
        for index in range(1, len(tokens))
        if tokens[index].kind == "num"
        and any(token.kind == "num" for token in tokens[:index])
        and tokens[index - 1].kind in ("text", "letters")
        and units.known(tokens[index - 1].value)
    ]
    return [tokens[start:end] for start, end in itertools.pairwise([0, *cuts, len(tokens)])]
