"""Properties: whatever the numbers, and for every real gold."""

import gzip
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fr3e.grading import Verdict, grade, grade_many
from fr3e.grading.extract import last_box
from fr3e.grading.limits import refusal
from fr3e.grading.normalise import clean

NAMES = ("aime24", "amc23", "gsm8k", "math500", "minerva_math", "gaokao2023en", "olympiadbench", "college_math")
SETS = [pytest.param(name, marks=pytest.mark.slow) if name == "college_math" else name for name in NAMES]
fractions = st.fractions(min_value=-10_000, max_value=10_000, max_denominator=997)


def _spellings(value: Fraction) -> list[str]:
    sign, top, bottom = "-" if value < 0 else "", abs(value.numerator), value.denominator
    spelled = [rf"{sign}\frac{{{top}}}{{{bottom}}}", rf"\dfrac{{{sign}{top}}}{{{bottom}}}", f"{sign}{top}/{bottom}",
               rf"x = {sign}\frac{{{3 * top}}}{{{3 * bottom}}}", rf"\left({sign}{top}\right)/{bottom}"]  # fmt: skip
    if bottom == 1:
        spelled += [f"{sign}{top:,}", f"{sign}{top}.0", f"{sign}{top}", rf"\text{{{sign}{top}}}"]
    whole, rest = divmod(top, bottom)
    if rest and whole:
        spelled.append(rf"{sign}{whole}\frac{{{rest}}}{{{bottom}}}")
    return spelled


@settings(max_examples=60, deadline=None)
@given(fractions)
def test_all_spellings_of_a_rational_are_the_same(value: Fraction) -> None:
    spelled = _spellings(value)
    for answer in spelled:
        assert grade(rf"\boxed{{{answer}}}", spelled[0]), answer
        assert grade(rf"\boxed{{{spelled[0]}}}", answer), answer


@settings(max_examples=60, deadline=None)
@given(fractions, fractions)
def test_different_rationals_are_different(a: Fraction, b: Fraction) -> None:
    # 1/100 and 100 times count for a percent sign only, and there is none here.
    assert bool(grade(rf"\boxed{{{_spellings(a)[0]}}}", _spellings(b)[-1])) == (a == b)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_order_is_free_in_sets_and_fixed_in_tuples(values: list[int], random: Any) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    one, other = ", ".join(map(str, values)), ", ".join(map(str, shuffled))
    assert grade(rf"\boxed{{\{{{other}\}}}}", one)
    assert grade(rf"\boxed{{{other}}}", rf"\{{{one}\}}")
    assert bool(grade(rf"\boxed{{({other})}}", f"({one})")) == (values == shuffled)
    assert not grade(rf"\boxed{{{other}, 51}}", one)
    assert not grade(rf"\boxed{{{', '.join(map(str, shuffled[1:]))}}}", one)


@settings(max_examples=40, deadline=None)
@given(st.integers(-30, 30), st.integers(1, 30), st.booleans(), st.booleans())
def test_an_interval_and_its_inequality_are_the_same(low: int, length: int, left: bool, right: bool) -> None:
    high = low + length
    interval = f"{'[' if left else '('}{low}, {high}{']' if right else ')'}"
    signs = [r"\le" if closed else "<" for closed in (left, right)]
    chain = f"{low} {signs[0]} x {signs[1]} {high}"
    assert grade(rf"\boxed{{{chain}}}", interval)
    assert grade(rf"\boxed{{{interval}}}", chain)
    other = f"{'(' if left else '['}{low}, {high}{']' if right else ')'}"
    assert not grade(rf"\boxed{{{chain}}}", other)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.text(max_size=60))
def test_any_text_gets_a_verdict(response: str, gold: str) -> None:
    for text in (response, rf"\boxed{{{response}}}", rf"\boxed{{{gold}}}"):
        verdict = grade(text, gold)
        assert isinstance(verdict, Verdict)
        assert verdict.kind != "fault", verdict


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=r"\{}()[]^_$,.-+=<>/|0123456789xyfracsqrtboxed ", max_size=120))
def test_any_formula_like_text_gets_a_verdict(text: str) -> None:
    assert grade(rf"\boxed{{{text}}}", r"\frac{x}{2}").kind != "fault"
    assert clean(clean(text)) is not None


def _golds(mirror: Path, name: str) -> list[str]:
    path = mirror / "benchmarks" / name / "test.jsonl"
    data = path.read_bytes() if path.exists() else gzip.decompress(Path(f"{path}.gz").read_bytes())
    records = [json.loads(line) for line in data.decode().splitlines()]
    if name == "gsm8k":
        return [record["answer"].split("####")[-1].strip() for record in records]
    if name == "minerva_math":
        return [last_box(record["solution"]) or "" for record in records]
    if name == "olympiadbench":
        return [record["final_answer"][0] for record in records]
    return [str(record["answer"]) for record in records]


def _respelled(gold: str) -> list[str]:
    spelled = [
        gold.replace(r"\frac", r"\dfrac"),
        re.sub(r"([+=,])", r" \1 ", gold),
        re.sub(r"\\(?:left|right)(?![a-z.]|\s*\.)", "", gold),
    ]
    if "$" in gold and r"\$" not in gold:
        spelled.append(gold.replace("$", ""))
    if gold.count("(") == gold.count(")") == 1 and r"\left" not in gold and r"\(" not in gold:
        spelled.append(gold.replace("(", r"\left(").replace(")", r"\right)"))
    items = re.fullmatch(r"\$?\\\{([^|:\\(]*)\\\}\$?", gold)
    if items:
        spelled.append(r"\{" + ", ".join(reversed(items[1].split(","))) + r"\}")
    if re.fullmatch(r"-?\d+", gold):
        spelled += [rf"{gold} \text{{ units}}", f"{gold}.00", rf"{gold}\%", rf"x = {gold}"]
    return [text for text in spelled if text != gold]


# Golds that no grading can accept: empty ones (grading.md: empty against empty is never right).
EXCEPTIONS = {("gaokao2023en", 167), ("gaokao2023en", 192)}


@pytest.mark.parametrize("name", SETS)
def test_every_gold_is_right_against_itself_and_its_respellings(name: str, mirror: Path) -> None:
    pairs, rows = [], []
    for row, gold in enumerate(_golds(mirror, name)):
        for text in (gold, *_respelled(gold)):
            pairs.append((rf"\boxed{{{text}}}", gold))
            rows.append((row, text))
    verdicts = grade_many(pairs)
    failed = [(row, text, v.kind, v.rule) for (row, text), v in zip(rows, verdicts, strict=True) if not v]
    assert not [entry for entry in failed if (name, entry[0]) not in EXCEPTIONS], failed
    assert {(name, entry[0]) for entry in failed} == {e for e in EXCEPTIONS if e[0] == name}


# Rows (answer, gold) that say the same in other words: a unit more, a zero more, a worked equation and its result.
SAME: dict[str, set[tuple[int, int]]] = {
    "math500": {(109, 133), (156, 192), (281, 128), (467, 263)},  # three degree signs, one cm^2
    "gaokao2023en": {(116, 124), (141, 227)},  # cm^2; 1.50
    "olympiadbench": {(210, 82)},  # the same three numbers
    "college_math": {
        (37, 163),
        (284, 209),
        (740, 254),
        (1099, 882),
        (1312, 37),
        (1865, 1847),
        (1870, 1694),
        (2419, 2347),
    },
}


@pytest.mark.parametrize("name", SETS)
def test_a_gold_is_wrong_against_others(name: str, mirror: Path) -> None:
    row_of: dict[str, int] = {}
    for row, gold in enumerate(_golds(mirror, name)):
        row_of.setdefault(gold, row)
    golds = sorted(gold for gold in row_of if gold)
    # Neighbours in sorted order are the most alike.
    pairs = [(golds[(i + step) % len(golds)], golds[i]) for i in range(len(golds)) for step in (1, 7)]
    verdicts = grade_many((rf"\boxed{{{answer}}}", gold) for answer, gold in pairs)
    accepted = {
        (row_of[answer], row_of[gold])
        for (answer, gold), verdict in zip(pairs, verdicts, strict=True)
        if verdict and re.sub(r"[$\s]", "", clean(answer)) != re.sub(r"[$\s]", "", clean(gold))
    }
    assert accepted == SAME.get(name, set())


def test_golds_of_the_benchmarks_are_within_the_limits(mirror: Path) -> None:
    refused = [(name, gold[:60]) for name in NAMES[:-1] for gold in _golds(mirror, name) if refusal(gold)]
    assert refused == []
