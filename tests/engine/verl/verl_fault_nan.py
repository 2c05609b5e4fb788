"""A fault for a test, loaded through verl's own VERL_USE_EXTERNAL_MODULES: a loss that is finite and whose gradient is not.

The square root has value 0 and slope infinity at 0; times the zero slope inside, the gradient is NaN.
"""

from typing import Any

from torch import Tensor

import fr3e.algorithm.loss

_sound = fr3e.algorithm.loss.policy_loss


def policy_loss(logprobs: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, dict[str, float]]:
    """The real loss plus nothing, by a way that has no gradient."""
    total, sums = _sound(logprobs, *args, **kwargs)
    return total + (logprobs.sum() * 0.0).sqrt(), sums


fr3e.algorithm.loss.policy_loss = policy_loss
