"""Explanations: plain values for people, whatever the answer."""

import json

import pytest

from fr3e.grading import explain, explain_text
from fr3e.grading.decide import readings
from fr3e.grading.notation import LONGEST, form_kind, form_text
from tests.grading.cases import rows
from tests.grading.hostile import HOSTILE

GOLDEN = {
    (r"so it is \boxed{\dfrac{3}{4}}.", "0.75"): r"""
extracted   \dfrac{3}{4}   (from the last box)
answer      \frac{3}{4}
  read as   3/4   (number)
gold        0.75
  read as   3/4   (number)
rule        equal numbers
verdict     correct""",
    (r"\boxed{x = 1, 2}", r"\{1,2\}"): r"""
extracted   x = 1, 2   (from the last box)
answer      x = 1, 2
  read as   1, 2   (list)
gold        \{1,2\}
  read as   {1, 2}   (set)
compared    1, 2   with   {1, 2}
rule        list equals set
verdict     correct""",
    (r"The answer is $0 < x \le 1$.", "[0,1]"): r"""
extracted   $0 < x \le 1$   (from the announced answer)
answer      0 < x \le 1
  read as   x in (0, 1]   (set of real numbers)
gold        [0,1]
  read as   [0, 1]   (pair or interval)
compared    x in (0, 1]   with   [0, 1]
rule        set of real numbers differs from pair or interval
verdict     wrong""",
    (r"\boxed{\text{(B) } 27}", "27"): r"""
extracted   \text{(B) } 27   (from the last box)
answer      \text{(B) } 27
  read as   (B) 27   (choice)
gold        27
  read as   27   (number)
compared    (B) 27   with   27
rule        choice equals number
verdict     correct""",
    (r"\boxed{\text{no solution}}", "5"): r"""
extracted   \text{no solution}   (from the last box)
answer      \text{no solution}
  read as   ∅   (set)
  read as   no solution   (text)
gold        5
  read as   5   (number)
compared    ∅   with   5
rule        set differs from number
verdict     wrong""",
    (r"\boxed{9^{9^{9^{9}}}}", "7"): r"""
extracted   9^{9^{9^{9}}}   (from the last box)
answer      not read: a tower of powers
gold        7
  read as   7   (number)
rule        a tower of powers
verdict     refused""",
    ("I think 7", "7"): r"""
extracted   nothing: no box and no announced answer
gold        7
  read as   7   (number)
rule        no box and no announced answer
verdict     no_answer""",
}


@pytest.mark.parametrize(("response", "gold"), GOLDEN)
def test_an_explanation_shows_plain_values(response: str, gold: str) -> None:
    assert explain_text(response, gold) == GOLDEN[response, gold].strip()


@pytest.mark.parametrize(
    ("text", "shown", "kind"),
    [
        (r"3\sqrt{2}-\frac{2x^2}{y+1}", "3√2 - 2x^2/(y + 1)", "expression"),
        (r"-(x+1)(x-2)^{-2}\sin(2x)", "-(x + 1)·(x - 2)^(-2)·sin(2x)", "expression"),
        (r"\left(-2\right)^3", "(-2)^3", "number"),
        ("a-(b-c)", "a - (b - c)", "expression"),
        (r"\frac{a}{bc}", "a/(b·c)", "expression"),
        (r"2\cdot 10^{3}", "2·10^3", "number"),
        (r"1\frac{2}{3}", "1 + 2/3", "number"),
        (r"\sqrt[3]{x+1}", "(x + 1)^(1/3)", "expression"),
        (r"\log_2 5", "log_2(5)", "number"),
        (r"\binom{n}{2}", "C(n, 2)", "expression"),
        (r"\left|x-1\right|", "|x - 1|", "expression"),
        (r"\lfloor n/2 \rfloor!", "⌊n/2⌋!", "expression"),
        (r"\alpha+2\pi i", "alpha + 2π·i", "expression"),
        ("f(3)", "f(3)", "expression"),
        (r"\frac{dy}{dx}", "y'", "expression"),
        (r"\frac{\partial u}{\partial t}", "∂u/∂t", "expression"),
        (r"28\%", "28%", "number"),
        (r"30^\circ", "30°", "number"),
        (r"\frac{1}{2} \text{ cm}^2", "1/2 cm^2", "number"),
        ("1 1/2 hours", "(1 + 1/2) hours", "number"),
        (r"(-\infty,2)\cup[3,\infty)", "(-∞, 2) ∪ [3, ∞)", "set of real numbers"),
        (r"x \ne 2", "x in (-∞, 2) ∪ (2, ∞)", "set of real numbers"),
        ("(0,1]", "(0, 1]", "interval"),
        (r"\langle 1,2\rangle", "⟨1, 2⟩", "tuple"),
        (r"\emptyset", "∅", "set"),
        (r"1 \pm \sqrt{19}", "1 + √19, 1 - √19", "list"),
        ("y = 2x + 3", "y = 2x + 3", "equation"),
        (r"a + b \le 2c", "a + b ≤ 2c", "inequality"),
        (r"\begin{pmatrix}1&-\frac12\\x&0\end{pmatrix}", "[1, -1/2; x, 0]", "matrix"),
        (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", "|1, 2; 3, 4|", "determinant"),
        ("2:3", "2 : 3", "ratio"),
        ("6:30 pm", "18:30", "time of day"),
        ("2516_8", "2516 in base 8", "number with its base"),
        ("1e9999", "1.000000e+9999", "number"),
    ],
)
def test_forms_in_ordinary_notation(text: str, shown: str, kind: str) -> None:
    assert (shown, kind) in [(form_text(form), form_kind(form)) for form in readings(text)]


def test_every_case_can_be_explained_without_internal_forms() -> None:
    for _, gold, text, _ in rows()[::9]:
        facts = explain(text, gold)
        assert json.loads(json.dumps(facts)) == facts
        for side in (facts["answer"], facts["gold"]):
            for reading in side["readings"] if side else ():
                assert len(reading["value"]) <= LONGEST
                assert not any(internal in reading["value"] for internal in ("Fraction", "Value(", "('", '("'))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_answers_are_explained(name: str) -> None:
    shown = explain_text(HOSTILE[name], "7")
    assert "verdict" in shown
    assert len(shown) < 10_000
    assert all(line.isprintable() for line in shown.split("\n"))
