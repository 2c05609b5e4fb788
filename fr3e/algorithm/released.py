"""A fault of the released code, reproduced on request (`released_row_permutation: R`) so that its effect can be measured.

On R > 1 ranks the released trainer reorders rows so that every rank gets equally many rows and about equally many tokens.
It does so between computing something per row and using it, so both of FR3E's own ideas lose their rows:

- anchors: the surprisal profiles are taken before the rows of a round are reordered and used after it, so a base's
  anchors come from some other row's profile (`donors`);
- alpha: rows of an update are reordered, then those of one base are cut, in their new order, into chunks of M that are
  taken for its states, so V and alpha are those of mixed states and differ inside a state (`permuted_alphas`).

With R = 1 the reordering is the identity and both faults vanish. Not reproduced: merging of different prompts whose bases
have the same row number in two rounds, and truncation to a multiple of R.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fr3e.algorithm.modulation import alphas
from fr3e.config.training import Fr3eConfig

if TYPE_CHECKING:
    from fr3e.exploration.records import StateGroup


def balanced(lengths: Sequence[int], ranks: int) -> list[int]:
    """The order in which balanced rows stand: new row i holds old row `balanced(...)[i]`.

    Rows are dealt to `ranks` equal shares of nearly equal token sums by the largest differencing method, kept to equal
    counts (Karmarkar and Karp 1982; Michiels et al. 2003): rows are taken in tuples of `ranks`, longest first; the two
    tuples with the widest spread of sums are merged, largest sum to smallest, until one is left. Shares follow each
    other, rows inside a share keep their order. `ranks` <= 1 is the identity.
    """
    if ranks <= 1 or not lengths:
        return list(range(len(lengths)))
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    heap: list[tuple[int, int, list[tuple[int, list[int]]]]] = []
    for number, start in enumerate(range(0, len(order), ranks)):
        shares = [(lengths[row], [row]) for row in order[start : start + ranks]]
        shares += [(0, [])] * (ranks - len(shares))
        heapq.heappush(heap, (shares[-1][0] - shares[0][0], number, shares))
    while len(heap) > 1:
        (_, number, wide), (_, _, other) = heapq.heappop(heap), heapq.heappop(heap)
        other = sorted(other, key=lambda share: (share[0], share[1]))
        merged = [(a + b, x + y) for (a, x), (b, y) in zip(wide, other, strict=True)]
        merged.sort(key=lambda share: (-share[0], share[1]))
        heapq.heappush(heap, (merged[-1][0] - merged[0][0], number, merged))
    return [row for _, rows in heap[0][2] for row in sorted(rows)]


def donors(lengths: Sequence[int], ranks: int) -> list[int]:
    """For each row of a round the row whose surprisal profile the released code reads for it.

    Profiles keep the old order, rows stand in the new one: old row `balanced[i]` meets the profile of old row i.
    """
    result = [0] * len(lengths)
    for new, old in enumerate(balanced(lengths, ranks)):
        result[old] = new
    return result


def permuted_alphas(
    groups: Sequence[StateGroup], raw: Sequence[NDArray[np.float64]], fr3e: Fr3eConfig
) -> list[NDArray[np.float64]]:
    """alpha of each rollout as the released code finds it on R ranks: arrays [M] in the order of `groups`.

    The chunk's V is the share of its rows with A > 0, which is the success rate only if the chunk is one mixed state.
    """
    by_uid = sorted(range(len(groups)), key=lambda g: (groups[g].born, groups[g].uid))
    rows = [(g, m) for g in by_uid for m in range(len(groups[g].rollouts))]
    lengths = [len(groups[g].prompt.token_ids) + len(groups[g].rollouts[m].response_ids) for g, m in rows]
    of_base: dict[tuple[str, int, bool], list[tuple[int, int]]] = {}
    for row in balanced(lengths, fr3e.released_row_permutation):
        group = groups[rows[row][0]]
        of_base.setdefault((group.prompt.uid, group.base, group.first_return), []).append(rows[row])
    result = [np.ones(len(group.rollouts)) for group in groups]
    for (_, _, first_return), members in of_base.items():
        if first_return:
            continue
        chunks = _chunks(members, sorted({g for g, _ in members}, key=lambda g: groups[g].state), groups)
        values_S = [float(np.mean([raw[g][m] > 0 for g, m in chunk])) for chunk in chunks]
        for chunk, alpha in zip(chunks, _chain_alphas(values_S, fr3e), strict=True):
            for g, m in chunk:
                result[g][m] = alpha
    return result


def _chunks(
    members: list[tuple[int, int]], states: list[int], groups: Sequence[StateGroup]
) -> list[list[tuple[int, int]]]:
    """The rows of one base cut, in their order, into as many chunks as states, each of its state's size."""
    cuts = np.cumsum([len(groups[g].rollouts) for g in states]).tolist()
    return [members[start:stop] for start, stop in zip([0, *cuts[:-1]], cuts, strict=True)]


def _chain_alphas(values_S: Sequence[float], fr3e: Fr3eConfig) -> list[float]:
    """Eq. 14 over the chunks of one base. Every chunk counts as a surviving state, also one whose V is 0 or 1."""
    previous_S = [None, *values_S[:-1]]
    return alphas(values_S, fr3e.model_copy(update={"prev_value": "true"}), previous_S)
