"""The suite of cases, the same through every door."""

import asyncio

import pytest

from fr3e.grading import KINDS, Verdict, grade, grade_async, grade_many
from tests.grading.cases import CASES, response, rows


@pytest.mark.parametrize("kind", CASES)
def test_every_case_of_a_kind(kind: str) -> None:
    mistakes = []
    for gold, answer, right in CASES[kind]:
        verdict = grade(response(answer), gold)
        if bool(verdict) != right:
            mistakes.append(f"gold {gold!r}, answer {answer!r}: {verdict.kind} ({verdict.rule})")
    assert not mistakes, "\n".join(mistakes)


def test_the_suite_is_large_and_goes_both_ways() -> None:
    all_rows = rows()
    assert len(all_rows) >= 400
    assert len({(gold, text) for _, gold, text, _ in all_rows}) > 0.97 * len(all_rows)
    for kind, table in CASES.items():
        wrong = sum(not right for _, _, right in table)
        assert wrong >= 1, kind
        if kind != "hedges":
            assert len(table) - wrong >= 2, kind


def test_grade_many_keeps_the_order() -> None:
    sample = rows()[::7]
    verdicts = list(grade_many(((text, gold) for _, gold, text, _ in sample), workers=1))
    assert [bool(v) for v in verdicts] == [right for _, _, _, right in sample]


def test_grade_async_gives_the_same() -> None:
    sample = rows()[::11]

    async def run() -> list[Verdict]:
        return await asyncio.gather(*(grade_async(text, gold) for _, gold, text, _ in sample))

    assert [bool(v) for v in asyncio.run(run())] == [right for _, _, _, right in sample]


@pytest.mark.parametrize(
    ("text", "gold", "kind"),
    [
        (r"\boxed{5}", "5", "correct"),
        (r"\boxed{5}", "6", "wrong"),
        ("no idea, 5", "5", "no_answer"),
        (r"\boxed{}", "5", "no_answer"),
        (r"\boxed{\foo{5}{}{}}", "5", "unparseable"),
        (r"\boxed{9^{9^{9^{9}}}}", "5", "refused"),
        (r"\boxed{" + "1+" * 2_000 + "1}", "5", "refused"),
    ],
)
def test_kinds_are_told_apart(text: str, gold: str, kind: str) -> None:
    verdict = grade(text, gold)
    assert verdict.kind == kind
    assert verdict.kind in KINDS
    assert bool(verdict) == (kind == "correct")
    assert verdict.rule


def test_a_kind_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="allowed are correct"):
        Verdict("right", None, "")  # type: ignore[arg-type]
