"""Grading answers: `grade(response, gold) -> Verdict` and what belongs to it. The rules are in docs/grading.md."""

from fr3e.grading.api import close, grade, grade_async, grade_many
from fr3e.grading.explain import explain, explain_text
from fr3e.grading.verdict import KINDS, Verdict

__all__ = ["KINDS", "Verdict", "close", "explain", "explain_text", "grade", "grade_async", "grade_many"]
