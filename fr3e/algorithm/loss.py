"""The clipped surrogate (Eq. 1-2 with Clip-Higher, paper section 3.3), its token weights and its masks.

All reductions are sums divided by a normaliser that the caller counts over the whole mini-batch, before it is cut into
micro-batches or spread over ranks; so neither cut changes the loss or its gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from fr3e.config.training import LossConfig

if TYPE_CHECKING:
    from fr3e.exploration.records import Rollout

# exp(20) is far outside any clip range; without the bound one outlier makes the ratio infinite and its gradient NaN.
LOG_RATIO_BOUND = 20.0


def trained_tokens(rollout: Rollout, prefix_loss: bool) -> NDArray[np.bool_]:
    """Response tokens that enter the loss, bool [T]: the continuation with its stop token, and with `prefix_loss` all."""
    mask_T = np.ones(len(rollout.response_ids), dtype=bool)
    if not prefix_loss:
        mask_T[: rollout.prefix_len] = False
    return mask_T


def token_weights(masks: Sequence[ArrayLike], agg: str) -> tuple[list[NDArray[np.float64]], float]:
    """Weight of each token and the normaliser of a mini-batch, from the loss masks [T] of all its rows.

    token_mean: weight 1, normaliser = trained tokens. seq_mean: weight 1 / (trained tokens of the row), normaliser =
    rows with at least one trained token. Then sum(weight * loss) / normaliser is the mean that `loss.agg` names.
    """
    arrays = [np.asarray(mask_T, dtype=np.float64) for mask_T in masks]
    if agg == "token_mean":
        return arrays, float(sum(mask_T.sum() for mask_T in arrays))
    counts = [mask_T.sum() for mask_T in arrays]
    weights = [mask_T / max(count, 1.0) for mask_T, count in zip(arrays, counts, strict=True)]
    return weights, float(sum(count > 0 for count in counts))


def highest_entropy_masks(
    entropies: Sequence[ArrayLike], masks: Sequence[ArrayLike], fraction: float
) -> list[NDArray[np.bool_]]:
    """The masks with only the share `fraction` of all trained tokens that have the highest entropy (80/20 control).

    The threshold is one number for the whole mini-batch; tokens equal to it stay, so the result does not depend on the
    order of rows. The normaliser is still to be counted over the full masks.
    """
    arrays = [np.asarray(mask_T, dtype=bool) for mask_T in masks]
    values = np.concatenate([np.asarray(e)[m] for e, m in zip(entropies, arrays, strict=True)]) if arrays else []
    if fraction >= 1.0 or len(values) == 0:
        return arrays
    kept = max(1, int(np.ceil(fraction * len(values))))
    threshold = np.partition(values, len(values) - kept)[len(values) - kept]
    return [m & (np.asarray(e) >= threshold) for e, m in zip(entropies, arrays, strict=True)]


def policy_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    loss: LossConfig,
    normaliser: float,
    *,
    entropies: Tensor | None = None,
    reference_logprobs: Tensor | None = None,
) -> tuple[Tensor, dict[str, float]]:
    """-sum(w min(rho A, clip(rho, 1 - eps_low, 1 + eps_high) A)) / normaliser over one micro-batch.

    All tensors have one shape, [T] packed or [B, T]; `mask` holds the token weights w (0 outside the loss), see
    `token_weights`; rho = exp(logprobs - old_logprobs), the exponent kept within +-20. `dual_clip` c bounds the objective
    of negative advantages at c A from below. `entropies` (with gradient) and `reference_logprobs` are needed where
    `loss.entropy` or `loss.kl` is above 0. Returns the loss and sums for `combine`. Raises `FloatingPointError` when the
    loss is not finite.
    """
    if loss.agg == "seq_mean" and mask.dtype == torch.bool:
        raise ValueError("loss.agg seq_mean needs the weights of token_weights, not a bool mask")
    log_ratio = (logprobs - old_logprobs).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)
    ratio = log_ratio.exp()
    plain = ratio * advantages
    clipped = ratio.clamp(1.0 - loss.clip_low, 1.0 + loss.clip_high) * advantages
    objective = torch.minimum(plain, clipped)
    if loss.dual_clip is not None:
        objective = torch.where(advantages < 0, torch.maximum(objective, loss.dual_clip * advantages), objective)
    per_token = -objective
    if loss.entropy > 0:
        per_token = per_token - loss.entropy * _needed(entropies, "entropies", "loss.entropy")
    if loss.kl > 0:
        per_token = per_token + loss.kl * k3(logprobs, _needed(reference_logprobs, "reference_logprobs", "loss.kl"))
    # where, not a product: outside the mask a value may be infinite, and 0 * inf is NaN.
    total = torch.where(mask > 0, per_token * mask, torch.zeros_like(per_token)).sum() / normaliser
    if not bool(torch.isfinite(total)):
        raise FloatingPointError(f"the policy loss is {total.item()}")
    return total, _sums(total, mask > 0, log_ratio.detach(), plain.detach(), clipped.detach())


def k3(logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """exp(d) - d - 1 with d = log pi_ref - log pi: an unbiased, never negative estimate of KL(pi || pi_ref) per token."""
    difference = (reference_logprobs - logprobs).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)
    return difference.exp() - difference - 1.0


def combine(parts: Sequence[dict[str, float]]) -> dict[str, float]:
    """Columns of docs/metrics.md from the sums of all micro-batches (and mini-batches) of an update: `loss` is the sum of
    the micro-batches' losses, divided by the number of mini-batches by the caller where there are several."""
    tokens = sum(part["tokens"] for part in parts)
    if tokens == 0:
        return {"loss": sum(part["loss"] for part in parts)}
    return {
        "loss": sum(part["loss"] for part in parts),
        "clip_fraction": sum(part["clipped"] for part in parts) / tokens,
        "ratio/max": max(part["ratio_max"] for part in parts),
        "policy_kl": sum(part["policy_kl"] for part in parts) / tokens,
    }


def _sums(total: Tensor, used: Tensor, log_ratio: Tensor, plain: Tensor, clipped: Tensor) -> dict[str, float]:
    tokens = int(used.sum())
    kept = log_ratio[used]
    return {
        "loss": total.item(),
        "tokens": float(tokens),
        "clipped": float((clipped < plain)[used].sum()),
        "ratio_max": float(kept.max().exp()) if tokens else 0.0,
        "policy_kl": float(-kept.sum()),
    }


def _needed(values: Tensor | None, name: str, key: str) -> Tensor:
    if values is None:
        raise ValueError(f"{key} is above 0, so policy_loss needs {name}")
    return values
