"""Token entropy H_k = -sum_v p_v log p_v (paper, section 4.1) and log-probs from logits, exact over the full vocabulary.

Everything is computed in float32 (float64 for float64 logits) in chunks of rows, so that besides the logits only one
buffer of at most `chunk_bytes` (or two rows, if those are larger) is alive. A logit of -inf is a token that cannot be drawn
and adds nothing to the entropy; NaN, +inf or a row of nothing but -inf is refused with `FloatingPointError`.

Entropies are in nats, at the given temperature: of softmax(logits / temperature).
"""

from collections.abc import Iterator

import torch
from torch import Tensor

# Measured (benchmarks/entropy.py): on CPUs smaller chunks leave threads idle and larger ones pay for fresh pages; on a GPU
# few large launches beat many small ones.
CPU_CHUNK_BYTES = 1 << 24
GPU_CHUNK_BYTES = 1 << 28


def entropy_and_logprobs(
    logits: Tensor, token_ids: Tensor, temperature: float = 1.0, chunk_bytes: int | None = None
) -> tuple[Tensor, Tensor]:
    """Entropy and the log-prob of the given token at each position, without gradient.

    logits [T, V], token_ids [T] -> (entropy [T], logprob [T]), float32 (float64 for float64 logits).
    Raises `ValueError` on shapes that do not fit, `FloatingPointError` on NaN.
    """
    _check(logits, token_ids)
    with torch.no_grad():
        entropy_T, logprob_T, _ = _forward(logits, token_ids, temperature, chunk_bytes)
    return entropy_T, logprob_T


def selected_logprobs(
    logits: Tensor,
    token_ids: Tensor,
    temperature: float = 1.0,
    with_entropy: bool = False,
    chunk_bytes: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Log-prob of the given token at each position with gradient, and on request the entropy with gradient.

    logits [T, V], token_ids [T] -> (logprob [T], entropy [T] or None). The backward pass makes the gradient of the
    logits (in their dtype) chunk by chunk and keeps no [T, V] log-softmax from the forward pass.
    """
    _check(logits, token_ids)
    logprob_T, entropy_T = _Selected.apply(logits, token_ids, temperature, chunk_bytes)
    return logprob_T, entropy_T if with_entropy else None


def topk_entropy(logits: Tensor, k: int, temperature: float = 1.0, chunk_bytes: int | None = None) -> Tensor:
    """Entropy of the k most probable tokens with all others as one residual mass; never above the exact entropy.

    logits [T, V] -> [T]. With k >= V it is the exact entropy.
    """
    if logits.ndim != 2:
        raise ValueError(f"logits have shape {list(logits.shape)}; [T, V] is needed")
    k = min(k, logits.shape[1])
    result = logits.new_empty(logits.shape[0], dtype=_work_dtype(logits))
    with torch.no_grad():
        for rows, shifted, buffer in chunks(logits, temperature, chunk_bytes):
            total = torch.exp(shifted, out=buffer).sum(-1, keepdim=True)
            result[rows] = topk_entropy_from_logprobs(shifted.topk(k, dim=-1).values - total.log())
    _refuse_nan(result)
    return result


def topk_entropy_from_logprobs(top_logprobs: Tensor) -> Tensor:
    """The same from the log-probs of the k most probable tokens, [T, k] -> [T]."""
    p = top_logprobs.exp()
    residual = (1.0 - p.sum(-1)).clamp_min(0.0)
    return torch.special.entr(p).sum(-1) + torch.special.entr(residual)


def _check(logits: Tensor, token_ids: Tensor) -> None:
    if logits.ndim != 2 or token_ids.shape != logits.shape[:1]:
        raise ValueError(
            f"logits have shape {list(logits.shape)} and token_ids {list(token_ids.shape)}; [T, V] and [T] are needed"
        )


def _work_dtype(logits: Tensor) -> torch.dtype:
    return torch.float64 if logits.dtype == torch.float64 else torch.float32


def default_chunk_bytes(device: torch.device) -> int:
    """Bytes that a chunk may take on `device`."""
    return CPU_CHUNK_BYTES if device.type == "cpu" else GPU_CHUNK_BYTES


def chunks(logits: Tensor, temperature: float, chunk_bytes: int | None) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """For each range of rows: x = (logits - row maximum) / temperature, an empty buffer of the same shape.

    Both tensors are halves of one allocation that every chunk uses again.
    """
    count, vocabulary = logits.shape
    dtype = _work_dtype(logits)
    chunk_bytes = chunk_bytes or default_chunk_bytes(logits.device)
    size = max(1, min(count, chunk_bytes // (2 * max(vocabulary, 1) * dtype.itemsize)))
    halves = torch.empty((2, size, vocabulary), dtype=dtype, device=logits.device)
    for start in range(0, count, size):
        rows = slice(start, min(start + size, count))
        shifted, buffer = halves[:, : rows.stop - start]
        peak = logits[rows].amax(-1, keepdim=True).to(dtype)
        if logits.dtype == dtype:
            torch.sub(logits[rows], peak, out=shifted)
        else:
            shifted.copy_(logits[rows]).sub_(peak)
        if temperature != 1.0:
            shifted.div_(temperature)
        yield rows, shifted, buffer


def _forward(
    logits: Tensor, token_ids: Tensor, temperature: float, chunk_bytes: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """(entropy [T], logprob [T], log Z [T]), with Z = sum exp(x) and x less its maximum: H = log Z - sum x exp(x) / Z."""
    dtype = _work_dtype(logits)
    entropy_T, logprob_T, norm_T = (torch.empty(logits.shape[0], dtype=dtype, device=logits.device) for _ in range(3))
    for rows, shifted, buffer in chunks(logits, temperature, chunk_bytes):
        chosen = shifted.gather(-1, token_ids[rows, None]).squeeze(-1)
        exponentials = torch.exp(shifted, out=buffer)
        total = exponentials.sum(-1)
        weighted = exponentials.mul_(shifted).sum(-1)
        if bool(weighted.isnan().any()):
            # 0 * -inf: such a token adds nothing. A NaN among the logits lives on in `total` and is refused below.
            weighted = exponentials.nan_to_num_(nan=0.0).sum(-1)
        norm_T[rows] = total.log()
        logprob_T[rows] = chosen - total.log()
        entropy_T[rows] = total.log() - weighted / total
    _refuse_nan(entropy_T)
    # Rounding can leave a certain token with -1e-8 nat.
    return entropy_T.clamp_min_(0.0), logprob_T, norm_T


def _refuse_nan(values_T: Tensor) -> None:
    bad = values_T.isnan()
    if bool(bad.any()):
        raise FloatingPointError(
            f"logits hold NaN, +inf or no finite value at {int(bad.sum())} of {len(values_T)} positions, "
            f"first at position {int(bad.nonzero()[0, 0])}"
        )


class _Selected(torch.autograd.Function):
    """d logprob / d x_v = [v = token] - p_v and dH / d x_v = -p_v (log p_v + H), with x = logits / temperature."""

    @staticmethod
    def forward(ctx, logits, token_ids, temperature, chunk_bytes):  # type: ignore[no-untyped-def, override]
        entropy_T, logprob_T, norm_T = _forward(logits, token_ids, temperature, chunk_bytes)
        ctx.save_for_backward(logits, token_ids, entropy_T, norm_T)
        ctx.temperature, ctx.chunk_bytes = temperature, chunk_bytes
        ctx.set_materialize_grads(False)
        return logprob_T, entropy_T

    @staticmethod
    def backward(ctx, grad_logprob, grad_entropy):  # type: ignore[no-untyped-def, override]
        if grad_logprob is None and grad_entropy is None:
            return None, None, None, None
        logits, token_ids, entropy_T, norm_T = ctx.saved_tensors
        gradient = torch.empty_like(logits)
        for rows, shifted, buffer in chunks(logits, ctx.temperature, ctx.chunk_bytes):
            p = shifted.sub_(norm_T[rows, None]).exp_()
            if grad_entropy is None:
                out = p.mul_(-grad_logprob[rows, None])
            else:
                # -p (log p + H) = entr(p) - p H
                scaled = torch.special.entr(p, out=buffer).mul_(grad_entropy[rows, None])
                linear = entropy_T[rows] * grad_entropy[rows]
                if grad_logprob is not None:
                    linear = linear + grad_logprob[rows]
                out = scaled.sub_(p.mul_(linear[:, None]))
            if grad_logprob is not None:
                out.scatter_add_(-1, token_ids[rows, None], grad_logprob[rows, None])
            gradient[rows] = out.div_(ctx.temperature)
        return gradient, None, None, None
