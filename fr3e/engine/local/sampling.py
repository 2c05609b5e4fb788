"""One sampled token per row from logits and uniforms, with its exact log-prob and the distribution's entropy."""

import torch
from torch import Tensor

CELLS = 2**23
"""Logits that are turned into probabilities at once, so that no second [rows, V] buffer of a large vocabulary exists."""


def sample_tokens(
    logits: Tensor, uniforms: Tensor, temperature: float, top_p: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Token ids, log-probs and entropies, each [B], from logits [B, V] and uniforms [B] by the inverse of the CDF.

    Temperature 0 takes the likeliest token. Log-probs and entropies (nats, the paper's H_k of section 4.1) are those of
    the softmax at `temperature` (at 1 for greedy) over the full vocabulary; `top_p` restricts the choice, not them.
    """
    parts = max(1, CELLS // logits.shape[1])
    rows = [
        _sample(part, draws, temperature, top_p)
        for part, draws in zip(logits.split(parts), uniforms.split(parts), strict=True)
    ]
    ids, logprobs, entropies = zip(*rows, strict=True)
    return torch.cat(ids), torch.cat(logprobs), torch.cat(entropies)


def _sample(logits: Tensor, uniforms: Tensor, temperature: float, top_p: float) -> tuple[Tensor, Tensor, Tensor]:
    top = logits.amax(-1, keepdim=True)
    shifted = logits - top
    if temperature not in (0.0, 1.0):
        shifted /= temperature
    weights = shifted.exp()
    total = weights.sum(-1, keepdim=True)
    if temperature == 0.0:
        ids = logits.argmax(-1, keepdim=True)
    elif top_p < 1.0:
        ids = _nucleus(weights / total, uniforms, top_p)
    else:
        ids = _invert(weights, uniforms)
    # H = log Z - sum p z. Logits of -inf weigh nothing: 0 * -inf must not become NaN.
    entropies = total.log()[:, 0] - torch.linalg.vecdot(weights, shifted.clamp_min(-1e4)) / total[:, 0]
    logprobs = (shifted.gather(1, ids) - total.log())[:, 0]
    return ids[:, 0], logprobs, entropies.clamp_(min=0.0)


def _invert(weights: Tensor, uniforms: Tensor) -> Tensor:
    """First index at which the running sum exceeds u times the whole, [B, 1]; in float64, so that no weight is lost."""
    running = weights.cumsum(-1, dtype=torch.float64)
    ids = torch.searchsorted(running, uniforms[:, None].to(running.dtype) * running[:, -1:], right=True)
    return ids.clamp_(max=weights.shape[1] - 1)


def _nucleus(probabilities: Tensor, uniforms: Tensor, top_p: float) -> Tensor:
    """Sample among the likeliest tokens whose probability together reaches `top_p`, [B, 1]."""
    ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(-1, dtype=torch.float64) - ordered
    return order.gather(1, _invert(torch.where(before < top_p, ordered, 0.0), uniforms))
