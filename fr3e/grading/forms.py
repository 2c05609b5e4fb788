"""What an answer can be: the kinds that are compared, as plain data."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from fr3e.grading.nodes import Node
from fr3e.grading.units import Unit


@dataclass(frozen=True, slots=True)
class Value:
    """One expression, with its percent sign, degree sign and unit if it has them."""

    node: Node
    percent: bool = False
    degree: bool = False
    unit: Unit | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """Several answers: `kind` is "list" (written side by side), "set" (in braces) or "tuple" (ordered, in `brackets`)."""

    kind: str
    items: tuple["Form", ...]
    brackets: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """An interval of the real line; `closed` tells which ends belong to it."""

    low: Node
    high: Node
    closed: tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class Region:
    """A union of intervals and single points."""

    spans: tuple[Span, ...]
    points: tuple[Node, ...] = ()
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A chain of sides with "=", "<", "le", "ne" ... between them."""

    operators: tuple[str, ...]
    sides: tuple["Form", ...]


@dataclass(frozen=True, slots=True)
class Name:
    """The left side of a definition that is no expression: an angle, a segment, a few words."""

    text: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of expressions; a determinant has `kind` "det"."""

    rows: tuple[tuple[Node, ...], ...]
    kind: str = "matrix"


@dataclass(frozen=True, slots=True)
class Words:
    """A short text, in normal form."""

    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A multiple-choice letter, with what was written after it."""

    letter: str
    content: str = ""


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day in minutes; `half` is "am", "pm" or "" (not said)."""

    minutes: int
    half: str


@dataclass(frozen=True, slots=True)
class Ratio:
    """a : b : c"""

    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Based:
    """Digits with the base they are written in."""

    digits: str
    base: int


Form = Value | Listing | Region | Relation | Name | Matrix | Words | Choice | Clock | Ratio | Based
Same = Callable[[Form, Form], bool]  # (answer, gold): whether the answer is right
EVERYTHING = Region((Span(("neg", ("oo",)), ("oo",), (False, False)),))
NOTHING = Listing("set", ())
_ZERO: Node = ("n", Fraction(0))
HALF_LINES = {
    "positive": Region((Span(_ZERO, ("oo",), (False, False)),)),
    "nonnegative": Region((Span(_ZERO, ("oo",), (True, False)),)),
    "negative": Region((Span(("neg", ("oo",)), _ZERO, (False, False)),)),
    "nonpositive": Region((Span(("neg", ("oo",)), _ZERO, (False, True)),)),
}
