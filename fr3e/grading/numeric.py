"""Numerical values of trees, in floating point here and in high precision (mpmath) in a worker.

The same walk serves both: a backend names the functions. Roots of odd order of negative real numbers are real, as in
school mathematics; every other multivalued function takes its principal value.
"""

import cmath
import math
import zlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from fr3e.grading.exact import NotExact, exact
from fr3e.grading.nodes import Node

RECIPROCAL = {"cot": "tan", "sec": "cos", "csc": "sin", "coth": "tanh", "sech": "cosh", "csch": "sinh"}
INVERSE_RECIPROCAL = {"arcsec": "arccos", "arccsc": "arcsin"}


class NoValue(Exception):
    """The value does not exist, is infinite, or is out of range."""


def _float_gamma(x: complex) -> complex:
    if abs(x.imag) > 0 or x.real > 160:
        raise NoValue("gamma")
    return complex(math.gamma(x.real))


FLOAT = SimpleNamespace(
    number=lambda f: complex(f.numerator / f.denominator) if f else 0j,
    pi=complex(math.pi), e=complex(math.e), i=1j,
    power=lambda a, b: a**b, exp=cmath.exp, ln=cmath.log, sin=cmath.sin, cos=cmath.cos, tan=cmath.tan,
    arcsin=cmath.asin, arccos=cmath.acos, arctan=cmath.atan, sinh=cmath.sinh, cosh=cmath.cosh, tanh=cmath.tanh,
    arsinh=cmath.asinh, arcosh=cmath.acosh, artanh=cmath.atanh, gamma=_float_gamma, floor=math.floor, ceil=math.ceil,
    complex=complex, finite=cmath.isfinite, tiny=1e-9,
)  # fmt: skip


def precise() -> SimpleNamespace:
    """The mpmath backend at its current precision; only workers call this."""
    import mpmath as mp

    def power(a: Any, b: Any) -> Any:
        if mp.mag(b) > 40:
            raise NoValue("an exponent beyond 10^12")
        return mp.power(a, b)

    def exp(a: Any) -> Any:
        if mp.mag(a) > 40:
            raise NoValue("an exponent beyond 10^12")
        return mp.exp(a)

    return SimpleNamespace(
        number=lambda f: mp.mpc(mp.mpf(f.numerator) / mp.mpf(f.denominator)), pi=mp.mpc(mp.pi), e=mp.mpc(mp.e), i=mp.mpc(1j),
        power=power, exp=exp, ln=mp.log, sin=mp.sin, cos=mp.cos, tan=mp.tan, arcsin=mp.asin, arccos=mp.acos,
        arctan=mp.atan, sinh=mp.sinh, cosh=mp.cosh, tanh=mp.tanh, arsinh=mp.asinh, arcosh=mp.acosh, artanh=mp.atanh,
        gamma=mp.gamma, floor=mp.floor, ceil=mp.ceil, complex=mp.mpc, finite=mp.isfinite, tiny=mp.mpf(10) ** (10 - mp.mp.dps),
    )  # fmt: skip


def _real(value: Any, backend: SimpleNamespace) -> bool:
    return abs(value.imag) <= backend.tiny * max(1, abs(value.real))


def _power(base: Any, exponent: Any, node: Node, backend: SimpleNamespace) -> Any:
    if base == 0:
        if not exponent.real > 0:
            raise NoValue("zero to a power that is not positive")
        return backend.number(Fraction(0))
    if base.real < 0 and _real(base, backend):
        try:
            rational = exact(node)[0]
        except NotExact:
            rational = None
        if rational is not None and rational.denominator % 2 == 1:
            size = backend.power(backend.complex(abs(base.real)), backend.number(rational))
            return -size if rational.numerator % 2 else size
    return backend.power(base, exponent)


def _pseudo(name: str, values: list[Any], backend: SimpleNamespace) -> Any:
    """An arbitrary but fixed function for an unknown one: equal arguments give equal values, and hardly anything else."""
    seed = backend.number(Fraction(zlib.crc32(name.encode()) % 99_991 + 7, 50_021))
    total = seed
    for value in values:
        total = backend.sin(total * 3 + value * seed) + value / 7 + seed
    return total


def _function(name: str, node: Node, values: list[Any], backend: SimpleNamespace, log_base: Any) -> Any:  # noqa: PLR0911
    first = values[0]
    if name == "root":
        order = node[3]
        return _power(first, backend.number(Fraction(1)) / values[1], ("/", ("n", Fraction(1)), order), backend)
    if name == "abs":
        return backend.complex(abs(first))
    if name in ("floor", "ceil"):
        if not _real(first, backend):
            raise NoValue("floor of a complex number")
        return backend.complex(getattr(backend, name)(first.real))
    if name == "fact":
        return backend.gamma(first + 1)
    if name == "binom":
        return backend.gamma(first + 1) / (backend.gamma(values[1] + 1) * backend.gamma(first - values[1] + 1))
    if name in RECIPROCAL:
        return 1 / getattr(backend, RECIPROCAL[name])(first)
    if name in INVERSE_RECIPROCAL:
        return getattr(backend, INVERSE_RECIPROCAL[name])(1 / first)
    if name == "arccot":
        return backend.pi / 2 - backend.arctan(first)
    if name == "log":
        base = values[1] if len(values) > 1 else log_base
        return backend.ln(first) / backend.ln(base)
    if name == "sgn":
        return first / abs(first)
    if name in ("Re", "Im"):
        return backend.complex(first.real if name == "Re" else first.imag)
    return getattr(backend, name)(first)


def evaluate(node: Node, at: Mapping[str, Fraction], backend: SimpleNamespace, log_base: Any = None) -> Any:
    """Complex value of `node` with symbols from `at`; a bare "log" has base `log_base` (10 when None).

    Raises NoValue where there is none (poles, overflow, infinity, names without a value).
    """
    if log_base is None:
        log_base = backend.number(Fraction(10))

    def walk(n: Node) -> Any:  # noqa: PLR0911
        kind = n[0]
        if kind == "n":
            return backend.number(n[1])
        if kind == "s":
            if n[1] not in at:
                raise NoValue(n[1])
            return backend.number(at[n[1]])
        if kind in ("pi", "e", "i"):
            return getattr(backend, kind)
        if kind == "deg":
            return backend.number(Fraction(1))
        if kind == "oo":
            raise NoValue("infinity")
        if kind == "neg":
            return -walk(n[1])
        if kind == "f":
            return _function(n[1], n, [walk(child) for child in n[2:]], backend, log_base)
        if kind == "app":
            return _pseudo(n[1], [walk(child) for child in n[2:]], backend)
        return _binary(kind, walk(n[1]), walk(n[2]), n, backend)

    try:
        value = walk(node)
    except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
        raise NoValue(str(error)) from error
    if not backend.finite(value):
        raise NoValue("not finite")
    return value


def _binary(kind: str, a: Any, b: Any, node: Node, backend: SimpleNamespace) -> Any:
    operations: dict[str, Callable[[], Any]] = {
        "+": lambda: a + b,
        "*": lambda: a * b,
        "/": lambda: a / b,
        "^": lambda: _power(a, b, node[2], backend),
    }
    return operations[kind]()


def points(names: frozenset[str], integers: bool) -> list[dict[str, Fraction]]:
    """Fixed sample points: the value of a symbol depends on its name only, so both sides see the same.

    Positive ones first, then below 1 (for arcsin), then mixed signs; only small integers when `integers`. With three
    symbols or more all are positive: such answers are formulas of lengths, masses and rates.
    """
    signs = len(names) < 3
    result = []
    for round_ in range(12 if integers else 7):
        point = {}
        for name in names:
            seed = zlib.crc32(f"{round_}:{name}".encode())
            if integers:
                point[name] = Fraction(seed % (7 + 3 * round_) + 1 + round_ // 2)
                continue
            size = Fraction(seed % 9_973 + 1_009, 4_409 if round_ != 1 else 12_007)
            point[name] = -size if signs and round_ >= 3 and (seed >> (round_ + 3)) % 2 else size
        result.append(point)
    if not integers and signs and names:
        result[4] = {name: -value for name, value in result[3].items()}
    return result
