"""What a worker does with a job: {"do": "grade" | "qwen", "answer": ..., "gold": ...}."""

from typing import Any

from fr3e.grading.decide import decide


def warm_up() -> None:
    """Imports and first uses, before the worker says that it is ready and before its limits are set."""
    import mpmath  # noqa: F401

    from fr3e.grading.fallback import warm_up as warm_up_fallback

    warm_up_fallback()
    decide(r"\sin x", r"\cos(x)", heavy=True)


def run(job: dict[str, Any]) -> Any:
    """The value of `job`."""
    if job["do"] == "grade":
        return list(decide(job["answer"], job["gold"], heavy=True))
    if job["do"] == "qwen":
        from fr3e.grading.qwen_compatible import equal_in_worker

        return equal_in_worker(job["answer"], job["gold"])
    raise ValueError(f"unknown job {job['do']!r}")
