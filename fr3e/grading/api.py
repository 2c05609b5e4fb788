"""The public functions: grade one answer, many, or without blocking an event loop."""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from fr3e.grading import pool as pools
from fr3e.grading.decide import decide, with_unit, within
from fr3e.grading.extract import extract
from fr3e.grading.oracle import Undecided
from fr3e.grading.verdict import Verdict

_LONG = 20_000  # characters; extraction from longer responses is kept off the event loop


def grade(response: str, gold: str, unit: str | None = None, tolerance: float | None = None) -> Verdict:
    """Whether the answer that `response` ends with is right for `gold`.

    `unit` and `tolerance` are what a data set states beside a gold (OlympiadBench does): the unit that the gold is in, and
    by how much a number may differ from it. Everywhere else numbers are exact.

    Never raises on any text and never takes longer than the limits in limits.py. Safe from any thread, event loop or
    process; a worker process is started only when the answer needs one.
    """
    gold = with_unit(gold, unit)
    found = _at_once(response, gold)
    verdict = found if isinstance(found, Verdict) else _in_worker(found, gold, pools.shared())
    return tolerated(verdict, gold, tolerance)


def tolerated(verdict: Verdict, gold: str, tolerance: float | None) -> Verdict:
    """`verdict`, or right where a wrong number is within the stated tolerance."""
    if tolerance and verdict.kind == "wrong" and verdict.answer is not None and within(verdict.answer, gold, tolerance):
        return Verdict("correct", verdict.answer, f"within the stated error of {tolerance:g}")
    return verdict


async def grade_async(response: str, gold: str) -> Verdict:
    """`grade` for coroutines: the event loop is never blocked for more than a fast path takes."""
    if len(response) > _LONG:
        return await asyncio.to_thread(grade, response, gold)
    verdict = _at_once(response, gold)
    if isinstance(verdict, Verdict):
        return verdict
    return await asyncio.to_thread(_in_worker, verdict, gold, pools.shared())


def grade_many(
    pairs: Iterable[tuple[str, str]], workers: int | None = None, pool: pools.Pool | None = None
) -> Iterator[Verdict]:
    """Verdicts of (response, gold) pairs, in their order, at constant memory.

    `workers` makes a pool of that many processes for this call; `pool` uses a given one; neither, this process's own.
    """
    own = pools.Pool(workers) if workers is not None else None
    pool = own or pool or pools.shared()
    waiting: deque[Verdict | Future[Verdict]] = deque()
    try:
        with ThreadPoolExecutor(pool.size, thread_name_prefix="grading") as threads:
            for response, gold in pairs:
                verdict = _at_once(response, gold)
                if isinstance(verdict, Verdict):
                    waiting.append(verdict)
                else:
                    waiting.append(threads.submit(_in_worker, verdict, gold, pool))
                while waiting and (len(waiting) > 16 * pool.size or _done(waiting[0])):
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
    finally:
        if own is not None:
            own.close()


def close() -> None:
    """End this process's workers now instead of at exit."""
    pools.close()


def _done(entry: "Verdict | Future[Verdict]") -> bool:
    return isinstance(entry, Verdict) or entry.done()


def _result(entry: "Verdict | Future[Verdict]") -> Verdict:
    return entry if isinstance(entry, Verdict) else entry.result()


def _at_once(response: str, gold: str) -> Verdict | str:
    """The verdict, or the extracted answer when a worker has to decide."""
    try:
        found = extract(response)
        if found.text is None:
            return Verdict("no_answer", None, found.source)
        try:
            kind, rule = decide(found.text, gold, heavy=False)
        except Undecided:
            return found.text
        return Verdict(kind, found.text, rule)
    except RecursionError:
        return Verdict("refused", None, "nested too deeply")
    except Exception as error:  # a fault of ours, and named so: it is no evidence about the answer
        return Verdict("fault", None, f"{type(error).__name__}: {error}"[:300])


def _in_worker(answer: str, gold: str, pool: pools.Pool) -> Verdict:
    reply = pool.ask({"do": "grade", "answer": answer, "gold": gold})
    if "value" in reply:
        kind, rule = reply["value"]
        return Verdict(kind, answer, rule)
    ((kind, rule),) = reply.items()
    return Verdict(kind, answer, rule)
