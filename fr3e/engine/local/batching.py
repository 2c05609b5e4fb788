"""Runs the prompts' coroutines of a round and decides when a batch is generated: when all of them wait, and never by time.

Grading may finish in any order. So nothing is generated while a grading is under way or a coroutine can still go on;
then every request that waits is sampled in one batch, whose order the generator fixes by the requests' contents.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from fr3e.errors import UserError
from fr3e.exploration.records import Completion, Grade, Ids, Prompt, Request
from fr3e.grading import Verdict

T = TypeVar("T")

QUIET_TURNS = 16
"""Turns of the event loop without an event after which all coroutines wait; between two events lie at most a few."""


class BatchingGenerator:
    """The protocols `Generate` (the object itself) and `Grade` (`graded`) over a generator of batches.

    `generate_seconds` and `grade_seconds` add up wall time.
    """

    def __init__(self, generate_batch: Callable[[Sequence[Request]], list[list[Completion]]], grade: Grade) -> None:
        self.generate_batch = generate_batch
        self.grade = grade
        self.generate_seconds = 0.0
        self.grade_seconds = 0.0
        self._waiting: list[tuple[Request, asyncio.Future[list[Completion]]]] = []
        self._gradings = 0
        self._grading_since = 0.0
        self._events = 0

    async def __call__(self, request: Request) -> list[Completion]:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        self._events += 1
        return await future

    async def graded(self, prompt: Prompt, response_ids: Ids) -> Verdict:
        """Grade a response; no batch is formed meanwhile."""
        if self._gradings == 0:
            self._grading_since = time.perf_counter()
        self._gradings += 1
        self._events += 1
        try:
            return await self.grade(prompt, response_ids)
        finally:
            self._gradings -= 1
            self._events += 1
            if self._gradings == 0:
                self.grade_seconds += time.perf_counter() - self._grading_since

    def run(self, work: Awaitable[T], update: int) -> T:
        """Run `work` of an update to its end, generating whenever all of it waits. A `UserError` in it (a prompt that is too
        long, logits that are not numbers) names the update."""
        try:
            return asyncio.run(self._drive(work))
        except UserError as error:
            raise UserError(f"update {update}, {error}") from error

    async def _drive(self, work: Awaitable[T]) -> T:
        task = asyncio.ensure_future(work)
        while not await self._quiet(task):
            self._flush()
        return await task

    async def _quiet(self, task: "asyncio.Future[T]") -> bool:
        """Wait until every coroutine waits for a batch (False) or the work is done (True)."""
        turns = seen = 0
        while not task.done():
            if self._gradings:
                await asyncio.sleep(0.0005)
                turns = 0
                continue
            await asyncio.sleep(0)
            turns = turns + 1 if seen == self._events else 0
            seen = self._events
            if turns >= QUIET_TURNS and self._waiting:
                return False
        return True

    def _flush(self) -> None:
        waiting = sorted(self._waiting, key=lambda pair: pair[0].draw)
        self._waiting = []
        started = time.perf_counter()
        results = self.generate_batch([request for request, _ in waiting])
        self.generate_seconds += time.perf_counter() - started
        for (_, future), completions in zip(waiting, results, strict=True):
            future.set_result(completions)
