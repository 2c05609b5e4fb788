"""The demo's task: chains of one-digit arithmetic, evaluated strictly from left to right modulo 10.

A problem such as `4-4*3+5?` is solved step by step, one step a line, `4-4=0`, `0*3=0`, `0+5=5`, and closes with
`\\boxed{5}`. The worked solutions of the warm start are imperfect on purpose (`demonstrate`): the mistakes are what
reinforcement learning finds to mend. Every random draw comes from `random.Random.random()`, the one method whose values
Python promises to keep.
"""

import random
import zlib
from dataclasses import dataclass

from fr3e.errors import UserError

MODULUS = 10
# One problem in eight, by a hash of its text, is set apart for benchmarks and is never used in any training.
HELD_OUT_SHARE = 8


@dataclass(frozen=True, slots=True)
class Chain:
    """`digits[0] operators[0] digits[1] ...`: n operators and n + 1 one-digit numbers."""

    digits: tuple[int, ...]
    operators: str

    @property
    def question(self) -> str:
        """The problem's text, for example `4-4*3?`."""
        return self.expression(str(self.digits[0]), 0, len(self.operators)) + "?"

    @property
    def gold(self) -> str:
        """The answer, one digit."""
        return str(self.fold(self.digits[0], 0, len(self.operators)))

    @property
    def held_out(self) -> bool:
        """Whether the problem belongs to the benchmarks' share; fixed by its text alone."""
        return zlib.crc32(self.question.encode()) % HELD_OUT_SHARE == 0

    def expression(self, first: str, start: int, stop: int) -> str:
        """`first` followed by operations `start` to `stop - 1` as text."""
        return first + "".join(f"{self.operators[i]}{self.digits[i + 1]}" for i in range(start, stop))

    def fold(self, value: int, start: int, stop: int) -> int:
        """`value` after operations `start` to `stop - 1`."""
        for i in range(start, stop):
            value = apply(value, self.operators[i], self.digits[i + 1])
        return value


def apply(left: int, operator: str, right: int) -> int:
    """One operation modulo 10: 3-7 is 6."""
    if operator == "+":
        return (left + right) % MODULUS
    if operator == "-":
        return (left - right) % MODULUS
    if operator == "*":
        return (left * right) % MODULUS
    raise UserError(f"operators: {operator!r} is not an operator of the synthetic problems; allowed: + - *")


def below(rng: random.Random, n: int) -> int:
    """A whole number from 0 to n - 1."""
    return int(rng.random() * n)


def draw(rng: random.Random, min_ops: int, max_ops: int, operators: str) -> Chain:
    """One problem; the number of operations, the digits and the operators are uniform."""
    n = min_ops + below(rng, max_ops - min_ops + 1)
    digits = tuple(below(rng, MODULUS) for _ in range(n + 1))
    return Chain(digits, "".join(operators[below(rng, len(operators))] for _ in range(n)))


@dataclass(frozen=True, slots=True)
class Flaws:
    """How imperfect the demonstrations are. A solution is careful or hasty throughout; that choice is its style.

    careful: share of careful solutions; merge_*: chance that a step takes two operations at once; jump: chance, before
    each step after the first, of going straight to the answer; slip: chance that a step's result is off by one or two
    (the wrong value is carried on).
    """

    careful: float = 0.45
    merge_careful: float = 0.08
    merge_hasty: float = 0.70
    jump: float = 0.06
    slip: float = 0.03


def demonstrate(chain: Chain, rng: random.Random, flaws: Flaws) -> str:
    """An imperfect worked solution; with no flaws at all it is the careful one and ends with the gold."""
    merge = flaws.merge_careful if rng.random() < flaws.careful else flaws.merge_hasty
    value, done, total = chain.digits[0], 0, len(chain.operators)
    lines: list[str] = []
    while done < total:
        if lines and rng.random() < flaws.jump:
            value, done = chain.fold(value, done, total), total
            break
        stop = done + (2 if total - done > 1 and rng.random() < merge else 1)
        result = chain.fold(value, done, stop)
        if rng.random() < flaws.slip:
            result = (result + (-2, -1, 1, 2)[below(rng, 4)]) % MODULUS
        lines.append(f"{chain.expression(str(value), done, stop)}={result}")
        value, done = result, stop
    return "\n".join([*lines, f"\\boxed{{{value}}}"])
