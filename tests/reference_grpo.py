"""Plain GRPO++ written from its definition, with loops, and nothing imported from the package but the configuration's numbers.

For every prompt n responses; r in {0, 1}; A = r - mean over the prompt's n; prompts whose rewards are all equal are
rejected; the first G others, in order of age and name, make the update; the loss is the clipped surrogate, averaged over
all tokens of the update. `tests/exploration` holds FR3E with K = 0 to it exactly.
"""

from collections.abc import Sequence

import torch


def keep_mixed(groups: Sequence[tuple[str, list[float]]], wanted: int) -> list[str]:
    """Names of the first `wanted` groups, by name, whose rewards are not all equal."""
    kept = [name for name, rewards in sorted(groups) if min(rewards) != max(rewards)]
    return kept[:wanted]


def advantage(rewards: Sequence[float]) -> list[float]:
    """r - mean(r)."""
    mean = sum(rewards) / len(rewards)
    return [reward - mean for reward in rewards]


def clipped_loss(
    logprobs: torch.Tensor, old_logprobs: torch.Tensor, advantages: torch.Tensor, low: float, high: float
) -> torch.Tensor:
    """-mean over tokens of min(rho A, clip(rho) A), all [T]."""
    ratio = torch.exp(logprobs - old_logprobs)
    surrogate = torch.min(ratio * advantages, torch.clip(ratio, 1 - low, 1 + high) * advantages)
    return -surrogate.sum() / len(surrogate)


def clipped_loss_by_loops(
    logprobs: Sequence[float], old_logprobs: Sequence[float], advantages: Sequence[float], low: float, high: float
) -> float:
    """The same one token at a time, in plain Python."""
    import math

    total = 0.0
    for new, old, a in zip(logprobs, old_logprobs, advantages, strict=True):
        ratio = math.exp(new - old)
        bounded = min(max(ratio, 1 - low), 1 + high)
        total += min(ratio * a, bounded * a)
    return -total / len(logprobs)
