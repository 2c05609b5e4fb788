"""Accumulation in the place of verl's replay buffer: rounds of prompts until enough groups carry a gradient (paper, 3.2).

verl counts prompts and drops the surplus; an update here takes `groups_per_update` state groups, and what is left over
waits as the carry, which is saved with each checkpoint.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transfer_queue import KVBatchMeta

from fr3e.algorithm.filtering import Selection, full, minibatches, select, trainable
from fr3e.config.scenario import RunConfig
from fr3e.engine.verl import rows
from fr3e.errors import UserError
from fr3e.exploration.records import Exploration, StateGroup

POLL_SECONDS = 0.2
HEALTH_SECONDS = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """What the rounds of one update gave, and what becomes of it."""

    explorations: tuple[Exploration, ...]
    selection: Selection
    minibatches: tuple[tuple[StateGroup, ...], ...]
    carried_in: int
    rounds: int


class Explorers:
    """Prompts sent to the rollout workers and waited for.

    `send(n)` starts n prompts and returns their uids; `alive()` raises when a rollout worker is dead, which verl itself
    would not notice; `beat()` tells the watching process that there is progress.
    """

    def __init__(self, send: Callable[[int], list[str]], alive: Callable[[], None], beat: Callable[[], None]) -> None:
        self._send, self._alive, self._beat = send, alive, beat

    def explore(self, prompts: int) -> list[Exploration]:
        """Start a round and wait for all of it; explorations in the order of the prompts."""
        return self.wait(self._send(prompts), rows.TRAIN)

    def wait(self, uids: Sequence[str], partition: str) -> list:
        """The results of prompts that were sent, in the order of `uids`. A failed prompt is a `RuntimeError`."""
        results: dict[str, object] = {}
        checked = time.monotonic()
        while len(results) < len(uids):
            tags = rows.statuses(partition)
            ended = [uid for uid in uids if uid not in results and tags[uid]["status"] in ("finished", "failure")]
            for uid in ended:
                if tags[uid]["status"] == "failure":
                    raise RuntimeError(f"prompt {uid} failed in its rollout worker: {tags[uid].get('reason', '')}")
                results[uid] = rows.collect(uid, partition)
                self._beat()
            if not ended:
                time.sleep(POLL_SECONDS)
            if time.monotonic() - checked > HEALTH_SECONDS:
                self._alive()
                checked = time.monotonic()
        return [results[uid] for uid in uids]


class GroupSampler:
    """The part of verl's `ReplayBuffer` that its synchronous trainer uses."""

    def __init__(self, run: RunConfig, explorers: Explorers) -> None:
        self._run, self._explorers = run, explorers
        self.pool: list[StateGroup] = []
        self.last: Round | None = None

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[KVBatchMeta, dict[str, float]]:
        """Gather groups for update `global_steps` and store their rows; `batch_size` counts prompts and means nothing here.

        Raises `UserError` after `accum.max_rounds` rounds without a full batch: data on which every group is right, or
        wrong, gives no gradient.
        """
        training, accum = self._run.training, self._run.training.accum
        carried_in, rounds, explorations = len(self.pool), 0, []
        while not full(self.pool, accum):
            if rounds == accum.max_rounds:
                raise UserError(self._starved(global_steps, explorations))
            found = self._explorers.explore(training.rollout.prompts_per_round)
            rounds += 1
            explorations += found
            for exploration in found:
                self.pool += trainable(exploration.groups, accum, training.adv)
        selection = select(self.pool, accum, self.name(global_steps))
        self.pool = list(selection.carried)
        parts = minibatches(selection.trained, training.optim.minibatches, self.name(global_steps))
        self.last = Round(tuple(explorations), selection, tuple(tuple(part) for part in parts), carried_in, rounds)
        return rows.put_groups([group for part in parts for group in part], training, global_steps), {}

    def _starved(self, update: int, explorations: list[Exploration]) -> str:
        accum, states = self._run.training.accum, [group for e in explorations for group in e.groups]
        right, wrong = (sum(group.value == value for group in states) for value in (1.0, 0.0))
        dropped = sum(e.dropped is not None for e in explorations)
        return (
            f"update {update}: after {accum.max_rounds} rounds of {self._run.training.rollout.prompts_per_round} prompts "
            f"only {len(self.pool)} of {accum.groups_per_update} groups have mixed rewards ({right} all right, {wrong} all "
            f"wrong, {dropped} prompts left after First Return); the model solves these problems always or never: change the "
            "data, lower accum.groups_per_update or raise accum.max_rounds"
        )

    def name(self, update: int) -> str:
        """Names the draws of an update, as in the local engine."""
        return f"{self._run.seed}/update{update}"
