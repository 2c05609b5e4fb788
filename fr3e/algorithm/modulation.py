"""Adaptive advantage modulation, alpha_j = 1 / exp(V(S_j) - V(S_{j-1})) (Eq. 14, paper section 4.3).

Progress between two states of one base gives alpha < 1 (brake), stagnation or loss alpha >= 1 (amplify); alpha lies in
[1/e, e]. The paper leaves the first state's predecessor undefined: its alpha is 1 here, or exp(-(1 - V_0)) as released
(`root_alpha`). A state whose rewards are all equal leaves the batch, yet its V, exactly 0 or 1, stays the predecessor of
the next one (`prev_value: true`); the released code skips it (`surviving`).
"""

import math
from collections.abc import Sequence

from fr3e.algorithm.seeds import generator
from fr3e.config.training import Fr3eConfig


def previous_values(values_S: Sequence[float], settings: Fr3eConfig) -> list[float | None]:
    """V(S_{j-1}) of each state of one base, states in order; None for the first (`surviving`: for the first that survives)."""
    previous: list[float | None] = []
    last: float | None = None
    for value in values_S:
        previous.append(last)
        if settings.prev_value == "true" or 0.0 < value < 1.0:
            last = value
    return previous


def deltas(values_S: Sequence[float], previous_S: Sequence[float | None], settings: Fr3eConfig) -> list[float]:
    """V(S_j) - V(S_{j-1}), for a state without predecessor 0 (alpha 1) or 1 - V_0 (`root_alpha`), then sharpened.

    sharpen_power p > 0: delta_j becomes sign(delta_j) |delta_j|^p / sum_i |delta_i|^p, over the states of the base, with
    `surviving` over the surviving ones. Where all deltas are 0 they stay 0.
    """
    raw = [
        value - before if before is not None else (1.0 - value if settings.root_alpha == "one_minus_v" else 0.0)
        for value, before in zip(values_S, previous_S, strict=True)
    ]
    if settings.prev_value == "surviving":
        raw = [delta if 0.0 < value < 1.0 else 0.0 for delta, value in zip(raw, values_S, strict=True)]
    return sharpen(raw, settings.sharpen_power)


def sharpen(raw_S: Sequence[float], power: float) -> list[float]:
    """sign(delta)|delta|^p / sum |delta|^p; unchanged for p = 0 and where every delta is 0."""
    total = sum(abs(delta) ** power for delta in raw_S if delta != 0.0)
    if power == 0.0 or total == 0.0:
        return list(raw_S)
    return [math.copysign(abs(delta) ** power, delta) / total for delta in raw_S]


def alphas(
    values_S: Sequence[float], settings: Fr3eConfig, previous_S: Sequence[float | None] | None = None
) -> list[float]:
    """alpha_j of each state of one base, states in order (Eq. 14), after `alpha_mode`.

    `shuffled` leaves Eq. 14 as it is here: the dealing out needs the whole update (`shuffle`).
    """
    if settings.alpha_mode == "none":
        return [1.0] * len(values_S)
    previous_S = previous_values(values_S, settings) if previous_S is None else previous_S
    return [bounded(math.exp(-delta), settings) for delta in deltas(values_S, previous_S, settings)]


def bounded(alpha: float, settings: Fr3eConfig) -> float:
    """max(1, alpha) for amplify_only, min(1, alpha) for brake_only, else alpha."""
    if settings.alpha_mode == "amplify_only":
        return max(1.0, alpha)
    return min(1.0, alpha) if settings.alpha_mode == "brake_only" else alpha


def shuffle(alpha_of: dict[str, float], seed: str) -> dict[str, float]:
    """The alphas dealt out at random among the groups, by group uid; independent of the order of the mapping."""
    uids = sorted(alpha_of)
    order = generator(seed, "shuffled alpha").permutation(len(uids))
    return {uid: alpha_of[uids[other]] for uid, other in zip(uids, order.tolist(), strict=True)}
