"""Exact values: Gaussian rationals, in bounded size.

A value is a pair of Fractions (real part, imaginary part). What is not a Gaussian rational, or would be too large, raises
NotExact; nothing is ever approximated here, so an equality found here is an equality.
"""

import math
from collections.abc import Mapping
from fractions import Fraction

from fr3e.grading.limits import MAX_BITS
from fr3e.grading.nodes import Node

Exact = tuple[Fraction, Fraction]
ZERO = Fraction(0)


class NotExact(Exception):
    """The value is not a Gaussian rational of bounded size, or does not exist."""


def _bits(value: Exact) -> int:
    return max(part.bit_length() for f in value for part in (f.numerator, f.denominator))


def _checked(value: Exact) -> Exact:
    if _bits(value) > MAX_BITS:
        raise NotExact("too large")
    return value


def _multiply(a: Exact, b: Exact) -> Exact:
    if not a[1] and not b[1]:
        return _checked((a[0] * b[0], ZERO))
    return _checked((a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]))


def _divide(a: Exact, b: Exact) -> Exact:
    norm = b[0] * b[0] + b[1] * b[1]
    if norm == 0:
        raise NotExact("division by zero")
    return _multiply(a, (b[0] / norm, -b[1] / norm))


def _integer(value: Exact) -> int:
    if value[1] or value[0].denominator != 1:
        raise NotExact("not an integer")
    return value[0].numerator


def _power(base: Exact, exponent: Exact) -> Exact:
    if exponent[1]:
        raise NotExact("complex exponent")
    if exponent[0].denominator != 1:
        root = _root(base, exponent[0].denominator)
        return _power(root, (Fraction(exponent[0].numerator), ZERO))
    n = exponent[0].numerator
    if base == (ZERO, ZERO) and n <= 0:
        raise NotExact("zero to a power that is not positive")
    if abs(n) * _bits(base) > MAX_BITS and base not in ((Fraction(1), ZERO), (Fraction(-1), ZERO)):
        raise NotExact("too large")
    if not base[1]:
        return (base[0] ** (n % 2 if abs(base[0]) == 1 else n), ZERO)
    result: Exact = (Fraction(1), ZERO)
    square = base if n >= 0 else _divide(result, base)
    for bit in bin(abs(n))[:1:-1]:
        if bit == "1":
            result = _multiply(result, square)
        square = _multiply(square, square)
    return result


def integer_root(value: int, order: int) -> int | None:
    """The integer whose `order`-th power is `value` >= 0, or None."""
    if value < 2:
        return value
    low, high = 0, 1 << (value.bit_length() // order + 1)
    while low < high:
        middle = (low + high + 1) // 2
        if middle**order <= value:
            low = middle
        else:
            high = middle - 1
    return low if low**order == value else None


def _root(base: Exact, order: int) -> Exact:
    if base[1] or not 1 <= order <= 1000:
        raise NotExact("root of a complex number")
    if base[0] < 0 and order % 2 == 0:
        if order != 2:
            raise NotExact("even root of a negative number")
        real = _root((-base[0], ZERO), 2)
        return (ZERO, real[0])
    sign = -1 if base[0] < 0 else 1
    top, bottom = integer_root(abs(base[0].numerator), order), integer_root(base[0].denominator, order)
    if top is None or bottom is None:
        raise NotExact("irrational root")
    return (Fraction(sign * top, bottom), ZERO)


def _function(name: str, arguments: list[Exact]) -> Exact:
    first = arguments[0]
    if name == "root":
        order = _integer(arguments[1])
        if order == 0:
            raise NotExact("root of order zero")
        root = _root(first, abs(order))
        return root if order > 0 else _divide((Fraction(1), ZERO), root)
    if name == "abs":
        if first[1]:
            return _root((first[0] ** 2 + first[1] ** 2, ZERO), 2)
        return (abs(first[0]), ZERO)
    if name in ("floor", "ceil") and not first[1]:
        return (Fraction(math.floor(first[0]) if name == "floor" else math.ceil(first[0])), ZERO)
    if name == "fact":
        n = _integer(first)
        if not 0 <= n <= 2_000:
            raise NotExact("factorial out of range")
        return _checked((Fraction(math.factorial(n)), ZERO))
    if name == "binom":
        n, k = _integer(first), _integer(arguments[1])
        if not 0 <= k <= n <= 5_000:
            raise NotExact("binomial out of range")
        return _checked((Fraction(math.comb(n, k)), ZERO))
    raise NotExact(name)


def exact(node: Node, at: Mapping[str, Fraction] | None = None) -> Exact:  # noqa: PLR0911
    """Value of `node`, with symbols taken from `at`. Raises NotExact."""
    kind = node[0]
    if kind == "n":
        return (node[1], ZERO)
    if kind == "s":
        if at is None or node[1] not in at:
            raise NotExact("a symbol")
        return (at[node[1]], ZERO)
    if kind == "i":
        return (ZERO, Fraction(1))
    if kind == "deg":
        return (Fraction(1), ZERO)
    if kind == "neg":
        value = exact(node[1], at)
        return (-value[0], -value[1])
    if kind == "f":
        return _function(node[1], [exact(child, at) for child in node[2:]])
    if kind in "+*/^":
        a, b = exact(node[1], at), exact(node[2], at)
        if kind == "+":
            return _checked((a[0] + b[0], a[1] + b[1]))
        return {"*": _multiply, "/": _divide, "^": _power}[kind](a, b)
    raise NotExact(kind)
