"""When two golds are one answer: exact for numbers, by spelling otherwise, and never by running anything."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fr3e.data.compare import same_gold, value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        (r"\frac{1}{3}", Fraction(1, 3)),
        (r"\dfrac12", Fraction(1, 2)),
        (r"65 \frac{4}{5}", Fraction(329, 5)),  # 65 + 4/5
        (r"2 \cdot \frac{4}{5}", Fraction(8, 5)),  # a product, not a mixed number
        ("3^{4}-1", 80),
        ("-2^2", -4),  # the power binds first
        (r"16.67\%", Fraction(1667, 10000)),
        (r"90^\circ", 90),
        ("(1+2)(3)", 9),
    ],
)
def test_exact_values(text, number):
    assert value(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "",
        "1,2",
        r"\frac{1}{0}",
        "2^{1000000}",
        "9" * 300,
        "1+",
        "(1",
        "__import__('os')",
        "(-1)^{1/2}",
        r"\sqrt{x}",
    ],
)
def test_what_is_no_number(text):
    assert value(text) is None


def test_a_deep_nest_of_brackets_is_no_number():
    assert value("(" * 99 + "1" + ")" * 99) == 1
    assert value("{" * 5000 + "1" + "}" * 5000) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (r"\sqrt{244}", r"2\sqrt{61}"),
        (r"\frac{9\pi - 18}{2}", r"\frac{9\pi}{2} - 9"),
        ("0.5", r"\frac12"),
        (r"1 + 3\sqrt{2}", r"1+3\sqrt{2}"),
        (r"\sqrt[3]{8}", "2"),
        (r"\left(1, 2\right)", "(1,2)"),
        ("C", "c"),
    ],
)
def test_same(first, second):
    assert same_gold(first, second) and same_gold(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [("901", "902"), ("x", "y"), (r"16.67\%", "16.67"), ("(1,2)", "(2,1)"), ("0.333", r"\frac13"), ("[1,2)", "[1,2]")],
)
def test_not_the_same(first, second):
    assert not same_gold(first, second) and not same_gold(second, first)


@given(st.fractions(max_denominator=999), st.fractions(max_denominator=999))
def test_fractions_are_compared_exactly(one, other):
    first, second = (rf"{'-' if f < 0 else ''}\frac{{{abs(f.numerator)}}}{{{f.denominator}}}" for f in (one, other))
    assert same_gold(first, second) == (one == other)
