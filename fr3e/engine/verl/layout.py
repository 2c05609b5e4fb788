"""Where rows stand among ranks and mini-batches, and what the loss needs of each: pure, without verl."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fr3e.algorithm.advantage import GroupAdvantages
from fr3e.algorithm.loss import highest_entropy_masks, token_weights, trained_tokens
from fr3e.config.training import TrainingConfig
from fr3e.exploration.records import StateGroup

Reals = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where rows stand: cell (rank, mini-batch) holds `cell_rows` rows, ranks outermost; negative entries are padding.

    `order` [ranks x mini-batches x cell_rows] holds row numbers of the batch as stored; -1 - i is padding row i.
    """

    order: tuple[int, ...]
    cell_rows: int
    padding: int


def layout(lengths: Sequence[Sequence[int]], ranks: int) -> Layout:
    """Deal the rows of each mini-batch to the ranks so that every (rank, mini-batch) has the same number of rows.

    `lengths[m]` are the sequence lengths of mini-batch m's rows, whose numbers run on from mini-batch to mini-batch. In
    each mini-batch the longest rows are dealt first, each to the rank with the fewest tokens that has room.
    """
    cell_rows = max(math.ceil(len(rows) / ranks) for rows in lengths)
    cells: list[list[list[int]]] = [[[] for _ in lengths] for _ in range(ranks)]
    first, padding = 0, 0
    for m, rows in enumerate(lengths):
        tokens = [0] * ranks
        for index in sorted(range(len(rows)), key=lambda i: (-rows[i], i)):
            rank = min((r for r in range(ranks) if len(cells[r][m]) < cell_rows), key=lambda r: (tokens[r], r))
            cells[rank][m].append(first + index)
            tokens[rank] += rows[index]
        for rank in range(ranks):
            while len(cells[rank][m]) < cell_rows:
                cells[rank][m].append(-1 - padding)
                padding += 1
        first += len(rows)
    return Layout(tuple(row for rank in cells for cell in rank for row in cell), cell_rows, padding)


@dataclass(frozen=True, slots=True, eq=False)
class RowLoss:
    """What the loss needs of one row: A' [T], token weights [T], the mini-batch's normaliser, and old log-probs [T].

    `old` is None for a group of this update: the trainer's own log-probs before the first step are taken, so that the
    ratio begins at 1. A carried group was sampled by an older policy; its rollouts' log-probs are kept, as in the local
    engine, and clipping acts on it.
    """

    advantages: Reals
    weights: Reals
    normaliser: float
    old: Reals | None


def row_losses(
    minibatches: Sequence[Sequence[StateGroup]],
    advantages: dict[str, GroupAdvantages],
    training: TrainingConfig,
    update: int,
) -> dict[tuple[str, int], RowLoss]:
    """(group uid, member) -> what its loss needs. `advantages` is by group uid."""
    found: dict[tuple[str, int], RowLoss] = {}
    for groups in minibatches:
        members = [(group, i, rollout) for group in groups for i, rollout in enumerate(group.rollouts)]
        masks = [trained_tokens(rollout, training.fr3e.prefix_loss) for _, _, rollout in members]
        weights, normaliser = token_weights(masks, training.loss.agg)
        if training.loss.entropy_token_fraction < 1.0:
            entropies = [rollout.entropies for _, _, rollout in members]
            kept = highest_entropy_masks(entropies, masks, training.loss.entropy_token_fraction)
            weights = [w * k for w, k in zip(weights, kept, strict=True)]
        for (group, i, rollout), weight in zip(members, weights, strict=True):
            per_token = advantages[group.uid].per_token(i, len(rollout.response_ids))
            old = None if group.born == update else rollout.logprobs
            found[group.uid, i] = RowLoss(per_token, weight, normaliser, old)
    return found
