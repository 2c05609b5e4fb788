"""One sampled token per row from logits and uniforms, with its exact log-prob and the distribution's entropy."""

import torch
from torch import Tensor

from fr3e.algorithm.entropy import chunks, default_chunk_bytes


def sample_tokens(
    logits: Tensor, uniforms: Tensor, temperature: float, top_p: float = 1.0, chunk_bytes: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Token ids, log-probs and entropies, each [B], from logits [B, V] and uniforms [B] by the inverse of the CDF.

    Temperature 0 takes the likeliest token. Log-probs and entropies (nats, the paper's H_k of section 4.1) are those of
    the softmax at `temperature` (at 1 for greedy) over the full vocabulary; `top_p` restricts the choice, not them. Beside
    the logits about `chunk_bytes` live, those of `fr3e.algorithm.entropy` by default.
    """
    # The two buffers of a chunk and their float64 sums are equally large; sorted values, order and their sums are six more.
    chunk_bytes = (chunk_bytes or default_chunk_bytes(logits.device)) // (2 if top_p == 1.0 else 8)
    ids_B = torch.empty(len(logits), dtype=torch.long, device=logits.device)
    logprobs_B, entropies_B = (torch.empty(len(logits), dtype=logits.dtype, device=logits.device) for _ in range(2))
    running: Tensor | None = None  # made once: freed and made again, such blocks pile up on the heap
    for rows, shifted, weights in chunks(logits, temperature or 1.0, chunk_bytes):
        torch.exp(shifted, out=weights)
        total = weights.sum(-1, keepdim=True)
        if temperature == 0.0:
            ids = logits[rows].argmax(-1, keepdim=True)
        elif top_p < 1.0:
            ids = _nucleus(weights / total, uniforms[rows], top_p)
        else:
            running = weights.double() if running is None else running[: len(weights)].copy_(weights)
            ids = _invert(running, uniforms[rows])
        ids_B[rows] = ids[:, 0]
        logprobs_B[rows] = (shifted.gather(1, ids) - total.log())[:, 0]
        # H = log Z - sum p z. Logits of -inf weigh nothing: 0 * -inf must not become NaN.
        entropies_B[rows] = total.log()[:, 0] - torch.linalg.vecdot(weights, shifted.clamp_min_(-1e4)) / total[:, 0]
    return ids_B, logprobs_B, entropies_B.clamp_(min=0.0)


def _invert(weights: Tensor, uniforms: Tensor) -> Tensor:
    """First index at which the running sum exceeds u times the whole, [B, 1]. `weights` are float64, so that none is lost,
    and become the running sum."""
    running = weights.cumsum_(-1)
    ids = torch.searchsorted(running, uniforms[:, None].to(running.dtype) * running[:, -1:], right=True)
    return ids.clamp_(max=weights.shape[1] - 1)


def _nucleus(probabilities: Tensor, uniforms: Tensor, top_p: float) -> Tensor:
    """Sample among the likeliest tokens whose probability together reaches `top_p`, [B, 1]."""
    ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(-1, dtype=torch.float64) - ordered
    return order.gather(1, _invert(torch.where(before < top_p, ordered, 0.0).double(), uniforms))
