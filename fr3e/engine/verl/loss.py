"""The project's policy loss as a loss function of verl's training workers.

verl hands a loss function the micro-batch and the model's output and averages gradients over the ranks. The normaliser was
counted over the whole mini-batch before it was spread (see `rows`), so neither ranks nor micro-batches change the loss.
"""

from functools import partial
from typing import Any

from torch import Tensor
from verl.workers.utils.padding import no_padding_2_padding

from fr3e.algorithm.loss import policy_loss
from fr3e.config.training import LossConfig

SUMS = "fr3e/"
"""Prefix under which each micro-batch's sums travel through verl's metrics."""


def fr3e_loss(
    model_output: dict[str, Any], data: Any, dp_group: Any = None, *, loss: LossConfig
) -> tuple[Tensor, dict[str, float]]:
    """Loss of one micro-batch (Eq. 1-2 with Clip-Higher), scaled so that the mean over ranks is the mini-batch's loss.

    `data` is a TensorDict of nested rows with `prompts`, `responses`, `old_log_probs`, `advantages`, `fr3e_weights` [T],
    `fr3e_normaliser` and, with `loss.kl`, `ref_log_prob`.
    """
    logprobs = no_padding_2_padding(model_output["log_probs"], data)
    entropies = model_output.get("entropy")
    names = ["old_log_probs", "advantages", "fr3e_weights", *(["ref_log_prob"] if loss.kl > 0 else [])]
    rows = data.select(*names).to_padded_tensor()
    # Padding rows carry 1, the real rows of a mini-batch one number of at least 1.
    normaliser = float(data["fr3e_normaliser"].max()) / data["dp_size"]
    value, sums = policy_loss(
        logprobs,
        rows["old_log_probs"],
        rows["advantages"],
        rows["fr3e_weights"],
        loss,
        normaliser,
        entropies=None if entropies is None else no_padding_2_padding(entropies, data),
        reference_logprobs=rows["ref_log_prob"] if loss.kl > 0 else None,
    )
    return value, {f"{SUMS}{name}": amount for name, amount in sums.items()}


def make_loss(loss: LossConfig) -> Any:
    """The loss function for `set_loss_fn`."""
    return partial(fr3e_loss, loss=loss)
