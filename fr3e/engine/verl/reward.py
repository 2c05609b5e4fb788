"""verl's custom reward function: the project's own grader, run in verl's reward workers.

The verdict travels back beside the score, so that a time-out is never counted as a wrong answer.
"""

from typing import Any

from fr3e.grading import grade_async
from fr3e.grading.verdict import Verdict


async def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None, **kwargs: Any
) -> dict[str, Any]:
    """{"score": r in {0, 1} (Eq. 12), "kind", "answer", "rule"} of one response, graded in the pool of killable workers."""
    verdict = await grade_async(solution_str, ground_truth)
    return {"score": float(bool(verdict)), **verdict.as_dict()}


def verdict_of(reward: dict[str, Any]) -> Verdict:
    """The verdict in what `compute_score` returned."""
    return Verdict(kind=reward["kind"], answer=reward["answer"], rule=reward["rule"])
