"""Rejection of groups without a gradient, and accumulation to a full update (paper, section 3.2).

Which groups an update takes depends on their names alone, never on the order in which they arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from fr3e.algorithm.seeds import rank
from fr3e.config.training import AccumulationConfig, AdvantageConfig

if TYPE_CHECKING:
    from fr3e.exploration.records import StateGroup


@dataclass(frozen=True, slots=True)
class Selection:
    """What becomes of the groups of a full pool, each sorted by (born, uid)."""

    trained: tuple[StateGroup, ...]
    carried: tuple[StateGroup, ...]
    dropped: tuple[StateGroup, ...]


def trainable(groups: Sequence[StateGroup], accum: AccumulationConfig, adv: AdvantageConfig) -> list[StateGroup]:
    """The groups that may enter an update.

    With `reject_degenerate` those whose advantages are not all zero, else all. Under `value_difference` the base
    trajectories are trained and the state groups only give their values.
    """
    chained = adv.estimator == "value_difference"
    return [g for g in groups if bool(g.chains) == chained and (g.informative or not accum.reject_degenerate)]


def full(pool: Sequence[StateGroup], accum: AccumulationConfig) -> bool:
    """True when the pool holds enough groups for an update."""
    return len(pool) >= accum.groups_per_update


def select(pool: Sequence[StateGroup], accum: AccumulationConfig, seed: str) -> Selection:
    """Take `groups_per_update` groups out of the pool of trainable groups; carry or drop the others.

    carry: the oldest first, by (born, uid). drop: by a draw that `seed` (which names run and update) and the uids fix.
    A uid that occurs twice is a `ValueError`.
    """
    if len({group.uid for group in pool}) != len(pool):
        raise ValueError("the pool holds two groups of one uid; prompt uids must be unique over the run")
    by_age = sorted(pool, key=lambda group: (group.born, group.uid))
    if accum.overflow == "carry":
        return Selection(tuple(by_age[: accum.groups_per_update]), tuple(by_age[accum.groups_per_update :]), ())
    chosen = {g.uid for g in sorted(by_age, key=lambda g: rank(seed, "overflow", g.uid))[: accum.groups_per_update]}
    return Selection(tuple(g for g in by_age if g.uid in chosen), (), tuple(g for g in by_age if g.uid not in chosen))


def minibatches(groups: Sequence[StateGroup], count: int, seed: str) -> list[list[StateGroup]]:
    """The update's groups dealt into `count` mini-batches of equal size (to one), shuffled by a draw that `seed` and the
    uids fix. Groups stay whole. Fewer groups than mini-batches is a `ValueError`."""
    if len(groups) < count:
        raise ValueError(f"{len(groups)} groups cannot fill {count} mini-batches")
    order = sorted(groups, key=lambda group: rank(seed, "minibatches", group.uid))
    if count == 1:
        return [order]
    cuts = [len(order) * i // count for i in range(count + 1)]
    return [order[start:stop] for start, stop in pairwise(cuts)]
