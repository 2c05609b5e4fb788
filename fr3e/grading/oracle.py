"""Are two expressions equal? First what can be decided at once and for sure, then (in a worker) in high precision.

In the calling process (`Oracle(heavy=False)`) only exact arithmetic says yes, and only exact arithmetic or a gross
difference in floating point says no; everything else raises Undecided, and a worker decides with 60 digits.
"""

from fractions import Fraction
from typing import Any

from fr3e.grading.exact import NotExact, exact
from fr3e.grading.limits import MAX_COMPARISONS
from fr3e.grading.nodes import Node, contains, symbols
from fr3e.grading.numeric import FLOAT, NoValue, evaluate, points

DIGITS = 60
AGREE = 30  # digits that must agree
GROSS = 1e-3  # relative difference in floating point that needs no second look
_INTEGER_FUNCTIONS = {"floor", "ceil", "fact", "binom"}


class Undecided(Exception):
    """A worker has to decide."""


def _alternating(node: Node) -> bool:
    if node[0] == "^" and node[1] in (("neg", ("n", Fraction(1))), ("n", Fraction(-1))) and symbols(node[2]):
        return True
    return any(isinstance(child, tuple) and _alternating(child) for child in node[1:])


class Oracle:
    """Equality of trees. `heavy` allows high precision, which only workers may use."""

    def __init__(self, heavy: bool) -> None:
        self.heavy = heavy
        self.comparisons = 0

    def same(self, a: Node, b: Node) -> bool:
        """Whether `a` and `b` are the same number, or the same function of their symbols."""
        if a == b:
            return True
        if a[0] == "oo" or b[0] == "oo" or ("oo",) in (a[-1], b[-1]):
            return False
        self.comparisons += 1
        if self.comparisons > MAX_COMPARISONS and not self.heavy:
            raise Undecided
        names = symbols(a) | symbols(b)
        decided = self._exactly(a, b, names)
        if decided is not None:
            return decided
        logs = contains(a, {"log"}) or contains(b, {"log"})
        bases = [10, None] if logs else [10]
        return any(self._numerically(a, b, names, natural=base is None) for base in bases)

    def ratio(self, a: Node, b: Node) -> int:
        """The sign of the constant c with a = c·b for all values of their symbols, 0 when there is none."""
        names = symbols(a) | symbols(b)
        if not names or symbols(a) != symbols(b):
            return 0
        quotient: Node = ("/", a, b)
        values = []
        for point in points(names, integers=False)[:4]:
            try:
                values.append(exact(quotient, point))
            except NotExact:
                break
        if len(values) == 4:
            first = values[0]
            return 0 if first[1] or any(v != first for v in values) or not first[0] else (1 if first[0] > 0 else -1)
        if not self.heavy:
            raise Undecided
        return self._ratio_precisely(quotient, names)

    def constant(self, a: Node) -> bool:
        """Whether `a` has the same value at all sample points (a constant of integration may be left over)."""
        names = symbols(a)
        if not names:
            return True
        if not self.heavy:
            raise Undecided
        import mpmath as mp

        from fr3e.grading.numeric import precise

        values: list[Any] = []
        with mp.workdps(DIGITS):
            backend = precise()
            for point in points(names, integers=False):
                try:
                    value = evaluate(a, point, backend, backend.e)
                except NoValue:
                    continue
                if abs(value.imag) <= backend.tiny * max(1, abs(value)):
                    values.append(value)
            tolerance = mp.mpf(10) ** (-AGREE)
            return len(values) >= 3 and all(abs(v - values[0]) <= tolerance * max(1, abs(v)) for v in values)

    def sign(self, a: Node) -> float:
        """Approximate real value of a constant, infinite for infinity. Raises NoValue when it is not real."""
        if a[0] == "oo":
            return float("inf")
        if a == ("neg", ("oo",)):
            return float("-inf")
        try:
            return float(exact(a)[0])
        except (NotExact, OverflowError):
            value = evaluate(a, {}, FLOAT)
        if abs(value.imag) > 1e-9 * max(1.0, abs(value.real)):
            raise NoValue("not real")
        return value.real

    def _exactly(self, a: Node, b: Node, names: frozenset[str]) -> bool | None:
        if not names:
            try:
                return exact(a) == exact(b)
            except NotExact:
                return None
        compared = 0
        if contains(a, {"app"} | _INTEGER_FUNCTIONS) or contains(b, {"app"} | _INTEGER_FUNCTIONS):
            return None
        for point in points(names, integers=False):
            try:
                if exact(a, point) != exact(b, point):
                    return False
                compared += 1
            except NotExact:
                continue
        return True if compared >= 4 else None

    def _numerically(self, a: Node, b: Node, names: frozenset[str], natural: bool) -> bool:
        integers = any(contains(n, _INTEGER_FUNCTIONS) or _alternating(n) for n in (a, b))
        imaginary = contains(a, {"i"}) or contains(b, {"i"})
        sample = points(names, integers) if names else [{}]
        if self._grossly_different(a, b, sample, natural, imaginary):
            return False
        if not self.heavy:
            raise Undecided
        return self._precisely_equal(a, b, sample, natural, imaginary)

    def _grossly_different(
        self, a: Node, b: Node, sample: list[dict[str, Fraction]], natural: bool, imaginary: bool
    ) -> bool:
        for point in sample:
            try:
                left = evaluate(a, point, FLOAT, FLOAT.e if natural else None)
                right = evaluate(b, point, FLOAT, FLOAT.e if natural else None)
            except NoValue:
                continue
            size = max(abs(left), abs(right))
            if not imaginary and point and max(abs(left.imag), abs(right.imag)) > 1e-9 * size:
                continue
            if 1e-6 < size < 1e12 and abs(left - right) > GROSS * size:
                return True
        return False

    def _precisely_equal(
        self, a: Node, b: Node, sample: list[dict[str, Fraction]], natural: bool, imaginary: bool
    ) -> bool:
        import mpmath as mp

        from fr3e.grading.numeric import precise

        agreed = unreal = 0
        for digits in (DIGITS, 3 * DIGITS):
            agreed = unreal = 0
            smallest = mp.mpf(10) ** (-DIGITS // 2)
            with mp.workdps(digits):
                backend = precise()
                tiny_only = False
                for point in sample:
                    values = _values(a, b, point, backend, natural)
                    if values is None:
                        continue
                    left, right = values
                    size = max(abs(left), abs(right))
                    tolerance = size * mp.mpf(10) ** (-AGREE * digits // DIGITS)
                    if not imaginary and point:
                        crooked = [abs(v.imag) > size * backend.tiny for v in values]
                        if crooked[0] != crooked[1]:
                            return False
                        if crooked[0]:
                            unreal += abs(left - right) <= tolerance
                            continue
                    if size < smallest:
                        tiny_only = True
                        if digits > DIGITS and size > mp.mpf(10) ** (-2 * DIGITS) and abs(left - right) > tolerance:
                            return False
                    elif abs(left - right) > tolerance:
                        return False
                    agreed += 1
                if not tiny_only:
                    break
        return agreed >= (2 if sample[0] else 1) or (agreed == 0 and unreal >= 2)

    def _ratio_precisely(self, quotient: Node, names: frozenset[str]) -> int:
        import mpmath as mp

        from fr3e.grading.numeric import precise

        values: list[Any] = []
        with mp.workdps(DIGITS):
            backend = precise()
            for point in points(names, integers=False):
                try:
                    values.append(evaluate(quotient, point, backend))
                except NoValue:
                    continue
            if len(values) < 2 or values[0] == 0:
                return 0
            tolerance = abs(values[0]) * mp.mpf(10) ** (-AGREE)
            if any(abs(v - values[0]) > tolerance for v in values) or abs(values[0].imag) > tolerance:
                return 0
            return 1 if values[0].real > 0 else -1


def _values(a: Node, b: Node, point: dict[str, Fraction], backend: Any, natural: bool) -> tuple[Any, Any] | None:
    base = backend.e if natural else None
    try:
        return evaluate(a, point, backend, base), evaluate(b, point, backend, base)
    except NoValue:
        return None
