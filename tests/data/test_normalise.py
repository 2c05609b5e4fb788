"""Golds of every source's shape, and the one form of a question: hand-made cases, then laws."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fr3e.data import normalise
from fr3e.data.normalise import Unusable, last_box, question_key, question_tokens


@pytest.mark.parametrize(
    ("text", "box"),
    [
        (r"so \boxed{5}", "5"),
        (r"first \boxed{3}, then \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"\boxed {7}", "7"),
        (r"\fbox{8}", "8"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{4} and \boxed{5", "4"),
        ("no box", None),
        (r"\boxed{}", ""),
    ],
)
def test_last_balanced_box(text, box):
    assert last_box(text) == box


@pytest.mark.parametrize(
    ("value", "gold"),
    [
        ("5", "5"),
        (5, "5"),
        (27.0, "27"),
        (0.5, "0.5"),
        (" $\\frac{1}{2}$ ", r"\frac{1}{2}"),
        (r"\$ 54.60", "54.60"),
        (r"\$306,\!956.63", "306956.63"),
        (r"\$23{,}000", "23000"),
        ("$35,000$", "35000"),
        (r"11,\! 111,\! 111,\! 100", "11111111100"),
        (r"(1,\! 2)", "(1, 2)"),
        (r"\[ \boxed{\left(\frac{c}{2}, 1\right)} \]", r"\left(\frac{c}{2}, 1\right)"),
        ("$1,2,3$", "1,2,3"),
        ("36,36,108", "36,36,108"),
        ("$87.50", "87.50"),
        (r"$7\sqrt{2}$.", r"7\sqrt{2}"),
        ("\n\\begin{pmatrix} 0 \\\\ 1 \\end{pmatrix}\n", r"\begin{pmatrix} 0 \\ 1 \end{pmatrix}"),
        ({"target": "12", "question": "q"}, "12"),
        ("\x0crac{1}{2}", r"\frac{1}{2}"),
    ],
)
def test_plain(value, gold):
    assert normalise.plain(value) == gold


@pytest.mark.parametrize("value", ["", "  ", "$$", None, math.inf, math.nan, r"\frac{1}{2", r"\boxed{}", "1}"])
def test_plain_without_an_answer_is_unusable(value):
    with pytest.raises(Unusable):
        normalise.plain(value)


@pytest.mark.parametrize("value", [["1", "2"], True, {"answer": "1"}, b"1"])
def test_plain_of_a_wrong_type(value):
    with pytest.raises(TypeError, match="text or a number is allowed"):
        normalise.plain(value)


@pytest.mark.parametrize(("value", "gold"), [("025", "25"), ("000", "0"), (27.0, "27"), (-1.0, "-1"), ("902", "902")])
def test_integer(value, gold):
    assert normalise.integer(value) == gold


@pytest.mark.parametrize("value", ["1/2", 0.5, "5 or 7", ""])
def test_integer_refuses_what_is_none(value):
    with pytest.raises(Unusable):
        normalise.integer(value)


@pytest.mark.parametrize(
    ("value", "gold"),
    [(r"\boxed{\textbf{(055) }}", "55"), (r"\boxed{204}", "204"), (r"x \boxed{1} y \boxed{073}", "73")],
)
def test_boxed_integer(value, gold):
    assert normalise.boxed_integer(value) == gold


@pytest.mark.parametrize("value", ["no box", r"\boxed{1, 2}", r"\boxed{x}"])
def test_boxed_integer_unusable(value):
    with pytest.raises(Unusable):
        normalise.boxed_integer(value)


def test_after_hashes():
    assert normalise.after_hashes("a #### 1\nb\n#### 1,234") == "1234"
    assert normalise.after_hashes("#### $-5.5") == "-5.5"
    for text in ("no number", "#### ", "#### five"):
        with pytest.raises(Unusable):
            normalise.after_hashes(text)


@pytest.mark.parametrize(
    ("solution", "gold"),
    [
        (r"\boxed{4.5e33}", "4.5e33"),
        (r"\boxed{np.arcsin(10/13)}", r"\arcsin(10/13)"),
        (r"\boxed{-3./2}", "-3/2"),
        (r"\boxed{1.5}", "1.5"),
        ("\\boxed{a+$ $b}", "a+ b"),
        ("\\boxed{I(0) e^{-t}\n}", "I(0) e^{-t}"),
    ],
)
def test_minerva(solution, gold):
    assert normalise.minerva(solution) == gold


@pytest.mark.parametrize(
    ("value", "gold"),
    [
        ("$48$, $384$", "48, 384"),
        ("$0.05$ and $0.6$", "0.05, 0.6"),
        ("$2$ or $-2$ or $\\frac{1}{2}$", r"2, -2, \frac{1}{2}"),
        ("$145$solution:", "145"),
        ("$2,900$", "2900"),
        ("20 $cm^{2}$", "20 cm^{2}"),
        ("C", "C"),
        ("$1.1\\%$", "1.1\\%"),
    ],
)
def test_gaokao(value, gold):
    assert normalise.gaokao(value) == gold


@pytest.mark.parametrize(
    ("value", "gold"),
    [
        (["2"], "2"),
        (["$69$,$84$"], "69,84"),
        (["$221,$8$"], "221,8"),
        (["$221,108$"], "221,108"),
        ([r"$(1,8,19), (2,7,13)$"], "(1,8,19),(2,7,13)"),
        ([r"$(-\infty, 0) \cup\{1\}$."], r"(-\infty,0) \cup\{1\}"),
    ],
)
def test_olympiad(value, gold):
    assert normalise.olympiad(value) == gold


def test_olympiad_wrong_type_and_empty():
    with pytest.raises(TypeError):
        normalise.olympiad("2")
    for value in ([], [""], ["$$"]):
        with pytest.raises(Unusable):
            normalise.olympiad(value)


def test_repair_question():
    assert normalise.repair_question("Find $\x0crac{1}{2}$.") == (
        r"Find $\frac{1}{2}$.",
        r"a form feed was the command \f",
    )
    text, done = normalise.repair_question("a\r\nb\rc\x00d\x0cfind")
    assert (text, bool(done)) == ("a\nb\ncdfind", True)
    assert normalise.repair_question("plain\n\ttext") == ("plain\n\ttext", "")


SAME = [
    ("Find $x$.", r"Find \(x\)"),
    (r"Compute $\dfrac{1}{2}+\tfrac{3}{4}$", r"Compute  \frac12 + \frac34."),
    (r"Let \left( a \right) be", "Let (a) be"),
    (r"angle of $30^\circ$", r"angle of $30^{\circ}$"),
    (r"$a \leq b$", r"$a\le b$"),
    ("Then, find f.", "Then find f"),
    (r"$x^{2}$ and \text{so on}", "$x^2$ and so on"),
    (r"$a_1\equal{}1 \plus{} 2$", "$a_1 = 1 + 2$"),
    (r"\begin{align*}x=1\end{align*}", "x = 1"),
    ("3 − 2 × 4", r"3 - 2 \times 4"),
]
DIFFERENT = [
    ("Find $1+2$.", "Find $1-2$."),
    ("Find $2 * 3$.", "Find $2 3$."),
    (r"$\frac{11}{2}$", r"$\frac{1}{12}$"),
    ("mean of 1, 23", "mean of 12, 3"),
    ("$f'(x)$", "$f(x)$"),
    ("$x<1$", r"$x\le 1$"),
    ("$x_{10}$", "$x_10$"),
    ("3.5 apples", "35 apples"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_layout_makes_no_difference(first, second):
    assert question_key(first) == question_key(second)


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_operators_and_numbers_do(first, second):
    assert question_key(first) != question_key(second)


WORDS = st.lists(
    st.sampled_from(["find", "x", "12", "3", "+", "-", "=", r"\sqrt", "f(x)", "{a}"]), min_size=1, max_size=12
)


@given(WORDS, st.sampled_from([" ", "  ", "\n", " $ "]))
def test_any_whitespace_gives_the_same_key(words, separator):
    assert question_key(separator.join(words)) == question_key(" ".join(words))


@given(WORDS, WORDS)
def test_different_operator_sequences_give_different_keys(first, second):
    signs = [[w for w in words if w in "+-="] for words in (first, second)]
    if signs[0] != signs[1]:
        assert question_key(" ".join(first)) != question_key(" ".join(second))


def test_tokens_keep_operators_and_drop_layout():
    assert question_tokens(r"Find $\dfrac{1}{2}+x_3$, now.") == ["find", r"\frac", "1", "2", "+", "x", "_", "3", "now"]
