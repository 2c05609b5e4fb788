"""Rewards and empirical state values (Eq. 12-13)."""

from collections.abc import Sequence

import numpy as np


def state_value(rewards_M: Sequence[float]) -> float:
    """V(S_j) = (1/M) sum_m r_{j,m}, the share of right continuations (Eq. 13). No continuation is a `ValueError`."""
    if len(rewards_M) == 0:
        raise ValueError("a state without continuations has no value")
    return float(sum(rewards_M) / len(rewards_M))


def delta_standard_error(value: float, previous: float, m: int, m_previous: int) -> float:
    """Standard error of V_j - V_{j-1} as a difference of two shares of m and m_previous draws."""
    return float(np.sqrt(value * (1 - value) / m + previous * (1 - previous) / m_previous))
