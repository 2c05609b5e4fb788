"""From rewards to advantages: the group baseline (Eq. 1-2), alpha (Eq. 15), and VinePPO's value differences.

Every group and every rollout carries the facts that its advantage needs, so nothing is looked up by row position and no
result depends on the order of the groups. Two rules span the update by their nature: `alpha_mode: shuffled` and
`released_row_permutation`; both work on the groups sorted by uid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fr3e.algorithm.modulation import shuffle
from fr3e.algorithm.released import permuted_alphas
from fr3e.config.training import AdvantageConfig, Fr3eConfig

if TYPE_CHECKING:
    from fr3e.exploration.records import StateGroup

Reals = NDArray[np.float64]
STD_EPSILON = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class GroupAdvantages:
    """A before and A' = alpha A after modulation of one group's rollouts, all float64 [M].

    `tokens` is set under `value_difference` alone: for each rollout the advantage of each response token [T]; `raw` and
    `modulated` are then its means over the response.
    """

    raw: Reals
    modulated: Reals
    alpha: Reals
    tokens: tuple[Reals, ...] | None = None

    def per_token(self, rollout: int, length: int) -> Reals:
        """A' of each response token of one rollout, [length]; the loss mask decides which of them are trained."""
        return np.full(length, self.modulated[rollout]) if self.tokens is None else self.tokens[rollout]


def centred(rewards_M: Reals, std_norm: bool, scope: tuple[float, float] | None = None) -> Reals:
    """A = r - mean (Eq. 1), divided by (standard deviation + 1e-6) with `std_norm` (Eq. 2); [M].

    Mean and standard deviation are the group's own, or those of `scope`. The standard deviation is the unbiased one; a
    group of one has advantage 0.
    """
    if scope is None:
        scope = moments(rewards_M)
    mean, std = scope
    return (rewards_M - mean) / (std + STD_EPSILON) if std_norm else rewards_M - mean


def moments(rewards: Sequence[float] | Reals) -> tuple[float, float]:
    """Mean and unbiased standard deviation (0 for a single reward)."""
    rewards = np.asarray(rewards, dtype=np.float64)
    return float(rewards.mean()), float(rewards.std(ddof=1)) if len(rewards) > 1 else 0.0


def value_differences(chain: Sequence[tuple[int, float]], reward: float, length: int) -> Reals:
    """A_t = V(next state) - V(state) on the tokens between two states of one trajectory, [T] (VinePPO).

    `chain` holds (k_j, V(S_j)), k rising; after the last state the trajectory's own reward takes V's place. Tokens before
    the first state have advantage 0.
    """
    advantage_T = np.zeros(length)
    ends = [*((k, value) for k, value in chain[1:]), (length, reward)]
    for (k, value), (end, following) in zip(chain, ends, strict=True):
        advantage_T[k:end] = following - value
    return advantage_T


def advantages(
    groups: Sequence[StateGroup], fr3e: Fr3eConfig, adv: AdvantageConfig, seed: str
) -> list[GroupAdvantages]:
    """A and A' of each group, in the order given; `groups` are all groups of one update, `seed` names the update."""
    raw = [centred(np.array([r.reward for r in g.rollouts]), adv.std_norm, g.scope) for g in groups]
    if fr3e.released_row_permutation > 1:
        alpha = permuted_alphas(groups, raw, fr3e)
    else:
        alpha_of = {g.uid: g.alpha for g in groups}
        if fr3e.alpha_mode == "shuffled":
            # The group of full rollouts has no state, so no alpha to give or take.
            alpha_of |= shuffle({g.uid: g.alpha for g in groups if not g.first_return}, seed)
        alpha = [np.full(len(g.rollouts), alpha_of[g.uid]) for g in groups]
    result = []
    for group, raw_M, alpha_M in zip(groups, raw, alpha, strict=True):
        if group.chains:
            result.append(_of_chains(group))
        else:
            result.append(GroupAdvantages(raw_M, alpha_M * raw_M, alpha_M))
    return result


def _of_chains(group: StateGroup) -> GroupAdvantages:
    tokens = tuple(
        value_differences(chain, rollout.reward, len(rollout.response_ids))
        for chain, rollout in zip(group.chains, group.rollouts, strict=True)
    )
    means = np.array([advantage_T.mean() if len(advantage_T) else 0.0 for advantage_T in tokens])
    return GroupAdvantages(means, means.copy(), np.ones(len(tokens)), tokens)
