"""Batches form when every coroutine waits, never by time."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from fr3e.engine.local.batching import BatchingGenerator
from fr3e.exploration.records import Completion, Ids, Prompt, Request
from fr3e.grading.verdict import Verdict

EMPTY = np.zeros(0, np.float32)


class Recorder:
    """A generator of batches that notes which requests stood together."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def __call__(self, requests: Sequence[Request]) -> list[list[Completion]]:
        self.batches.append([request.draw for request in requests])
        return [[Completion((len(r.draw),), EMPTY, EMPTY, True)] for r in requests]


def explore(batching: BatchingGenerator, uid: str, rounds: int) -> "asyncio.Future[list[Ids]]":
    """A prompt that asks, grades and asks again, two states at a time."""

    async def work() -> list[Ids]:
        found: list[Ids] = []
        for turn in range(rounds):
            requests = [Request(uid, (1,), 1, 5, f"{uid}/{turn}/{state}") for state in range(2)]
            for completions in await asyncio.gather(*(batching(request) for request in requests)):
                await asyncio.gather(*(batching.graded(Prompt(uid, (1,), "1"), c.token_ids) for c in completions))
                found += [c.token_ids for c in completions]
        return found

    return work()  # type: ignore[return-value]


@pytest.mark.parametrize("delays", [(0.0, 0.0, 0.0), (0.02, 0.0, 0.005), (0.0, 0.03, 0.001)])
def test_batches_do_not_depend_on_how_long_grading_takes(delays: tuple[float, ...]) -> None:
    calls = 0

    async def grade(prompt: Prompt, _: Ids) -> Verdict:
        nonlocal calls
        calls += 1
        if delay := delays[int(prompt.uid[1:]) % 3]:
            await asyncio.sleep(delay)
        return Verdict("correct", None, "")

    recorder = Recorder()
    batching = BatchingGenerator(recorder, grade)

    async def everything() -> list[list[Ids]]:
        return await asyncio.gather(*(explore(batching, f"p{i}", 1 + i % 3) for i in range(5)))

    results = batching.run(everything(), 1)
    assert [len(found) for found in results] == [2, 4, 6, 2, 4]
    expected = [[f"p{i}/{turn}/{s}" for i in range(5) if turn < 1 + i % 3 for s in range(2)] for turn in range(3)]
    assert recorder.batches == expected
    assert calls == 18
    assert batching.grade_seconds >= max(delays)


def test_an_error_ends_the_round() -> None:
    async def grade(prompt: Prompt, _: Ids) -> Verdict:
        raise RuntimeError(f"grading {prompt.uid}")

    batching = BatchingGenerator(Recorder(), grade)
    with pytest.raises(RuntimeError, match="grading p0"):
        batching.run(explore(batching, "p0", 1), 1)


def test_work_without_requests() -> None:
    async def nothing() -> int:
        return 3

    async def grade(prompt: Prompt, _: Ids) -> Verdict:
        return Verdict("wrong", None, "")

    assert BatchingGenerator(Recorder(), grade).run(nothing(), 1) == 3
