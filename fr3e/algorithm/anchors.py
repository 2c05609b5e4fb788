"""Anchors: the K positions of a base trajectory from which exploration starts (Eq. 7, paper section 4.1.3).

The paper takes the K largest token entropies. The other scores are the released code's (surprisal), an approximation
(topk_entropy) and controls. Every kind is a list of candidates in order of preference, from which positions are taken
greedily so that no two are closer than `min_gap`; ties in a score go to the earlier position.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fr3e.algorithm.seeds import generator
from fr3e.config.training import Fr3eConfig

Positions = NDArray[np.int64]


def choose_anchors(
    entropies_T: ArrayLike,
    settings: Fr3eConfig,
    *,
    eligible_T: ArrayLike,
    surprisal_T: ArrayLike,
    topk_entropy_T: ArrayLike | None = None,
    paragraph_starts: Sequence[int] = (),
    seed: str,
) -> tuple[int, ...]:
    """Sorted 0-based positions of at most K anchors among the eligible tokens.

    entropies_T, surprisal_T = -log p(sampled token), topk_entropy_T in nats [T]; eligible_T bool [T]; `seed` fixes the
    draw of `random`. Fewer than K eligible tokens give fewer anchors; none gives an empty tuple. Raises
    `FloatingPointError` when the score of an eligible token is NaN, `ValueError` when lengths differ or the score that
    the settings ask for is absent.
    """
    eligible = np.flatnonzero(np.asarray(eligible_T, dtype=bool))
    eligible = eligible[eligible >= settings.skip_first]
    if settings.num_anchors == 0 or len(eligible) == 0:
        return ()
    kind = settings.anchor_score
    if kind == "random":
        order = generator(seed, "random anchors").permutation(eligible)
    elif kind == "uniform":
        order = spread(eligible, settings.num_anchors)
    elif kind == "paragraph":
        order = spread(eligible[np.isin(eligible, np.asarray(paragraph_starts))], settings.num_anchors)
    else:
        scores = {"surprisal": surprisal_T, "topk_entropy": topk_entropy_T}.get(kind, entropies_T)
        if scores is None:
            raise ValueError(f"anchor_score {kind} needs scores that this generator does not give")
        scores_T = _checked(scores, len(np.asarray(eligible_T)), eligible, kind)
        if kind == "percentile":
            eligible = peaks(scores_T, eligible, settings.percentile, settings.peak_distance)
        order = by_score(-scores_T if kind == "low_entropy" else scores_T, eligible)
    return take(order, settings.num_anchors, settings.min_gap)


def by_score(scores_T: NDArray[np.float64], candidates: Positions) -> Positions:
    """Candidates from the highest score to the lowest, equal scores from the earliest position on."""
    return candidates[np.lexsort((candidates, -scores_T[candidates]))]


def spread(candidates: Positions, count: int) -> Positions:
    """`count` candidates at even distances: the j-th of them stands at the fraction j / (count + 1) of the list.

    When there are no more than `count`, all of them.
    """
    if len(candidates) <= count:
        return candidates
    return candidates[[len(candidates) * j // (count + 1) for j in range(1, count + 1)]]


def peaks(scores_T: NDArray[np.float64], eligible: Positions, percentile: float, distance: int) -> Positions:
    """One position per decision point: tokens above the percentile of the eligible scores, those at most `distance`
    apart grouped together, and of each group the token with the highest score (the earliest of equal ones).

    Where all scores are equal no token is above the percentile, and there is no decision point.
    """
    above = eligible[scores_T[eligible] > np.percentile(scores_T[eligible], percentile)]
    groups = np.split(above, np.flatnonzero(np.diff(above) > distance) + 1)
    return np.array([group[np.argmax(scores_T[group])] for group in groups if len(group)], dtype=np.int64)


def take(order: Positions, count: int, min_gap: int) -> tuple[int, ...]:
    """The first `count` positions of `order`, each at least `min_gap` from those before it, sorted."""
    taken: list[int] = []
    for position in order.tolist():
        if all(abs(position - other) >= min_gap for other in taken):
            taken.append(position)
            if len(taken) == count:
                break
    return tuple(sorted(taken))


def _checked(scores: ArrayLike, length: int, eligible: Positions, kind: str) -> NDArray[np.float64]:
    scores_T = np.asarray(scores, dtype=np.float64)
    if scores_T.shape != (length,):
        raise ValueError(f"anchor_score {kind}: {scores_T.shape} scores for {length} tokens")
    bad = eligible[np.isnan(scores_T[eligible])]
    if len(bad):
        raise FloatingPointError(f"anchor_score {kind} is NaN at {len(bad)} tokens, first at position {bad[0]}")
    return scores_T
