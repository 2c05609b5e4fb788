"""Two ways to advance many sequences by one token: plain matrix products for small Qwen2 models, transformers for the rest.

Both prefill each context once, repeat its keys and values for the rows that continue it, and forget rows on request.
Nothing is padded on the left in the plain form: contexts start at slot 0, new tokens share the slots after the longest
context, and an additive mask hides the gap between the two.
"""

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from fr3e.engine.local.model import Weights, hidden_states
from fr3e.errors import UserError
from fr3e.exploration.records import Ids

SLOTS = 32
"""Cache slots are added this many at a time."""
SCORES = 2**24
"""Attention scores that a prefill holds at once."""


CACHE_KEYWORDS = ("cache", "past_key_values")


class Decoder(Protocol):
    """Rows of one chunk. Logits are [rows, V], for the next token."""

    def prefill(self, contexts: Sequence[Ids], repeats: Sequence[int]) -> Tensor: ...

    def step(self, tokens_B: Tensor) -> Tensor: ...

    def keep(self, rows: Tensor) -> None: ...


def next_positions(positions_B: Tensor, limit: int) -> Tensor:
    """Positions [B] of the tokens after these, at most `limit` - 1.

    Only rows that have ended reach the limit: they stay in the batch until it is compacted, and nobody reads what they
    write, but a position the model lacks is an error, or changes every row's rotary frequencies.
    """
    return (positions_B + 1).clamp_(max=limit - 1)


class PlainDecoder:
    """Plain matmul and softmax over a cache of keys [B, kv, D, slots] and values [B, kv, slots, D] per layer.

    Against fused attention this is never slower for one query per row, and at 512 rows up to half as fast again.
    """

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self.mask = torch.empty(0)
        self.lengths = torch.empty(0, dtype=torch.long)
        self.used = 0

    def prefill(self, contexts: Sequence[Ids], repeats: Sequence[int]) -> Tensor:
        width = max(len(ids) for ids in contexts)
        per_part = max(1, SCORES // (width * width * self.weights.heads))
        parts = [self._prefill(contexts[i : i + per_part], width) for i in range(0, len(contexts), per_part)]
        rows = torch.repeat_interleave(torch.arange(len(contexts)), torch.tensor(list(repeats)))
        self.lengths = torch.tensor([len(ids) for ids in contexts])[rows]
        self.used = width
        layers = range(len(self.weights.layers))
        self.keys = [torch.cat([part[1][i] for part in parts])[rows] for i in layers]
        self.values = [torch.cat([part[2][i] for part in parts])[rows] for i in layers]
        gap = torch.arange(width)[None, :] >= self.lengths[:, None]
        self.mask = torch.zeros(gap.shape).masked_fill_(gap, -torch.inf)[:, None, None, :]
        return torch.cat([part[0] for part in parts])[rows] @ self.weights.head

    def _prefill(self, contexts: Sequence[Ids], width: int) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Last hidden states [S, hidden], and per layer keys [S, kv, D, width] and values [S, kv, width, D]."""
        w = self.weights
        lengths = torch.tensor([len(ids) for ids in contexts])
        cells = (torch.arange(width)[None, :] < lengths[:, None]).flatten().nonzero()[:, 0]
        causal = torch.full((width, width), -torch.inf).triu_(1).repeat(w.heads // w.kv_heads, 1)
        keys, values = [], []

        def padded(x: Tensor) -> Tensor:
            heads = x.shape[1]
            grid = x.new_zeros(len(contexts) * width, heads, w.head_dim).index_copy_(0, cells, x)
            return grid.view(len(contexts), width, heads, w.head_dim).transpose(1, 2)

        def attend(_: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys.append(padded(k).transpose(2, 3).contiguous())
            values.append(padded(v).contiguous())
            grouped = padded(q).reshape(len(contexts), w.kv_heads, -1, w.head_dim)
            scores = torch.softmax(grouped @ keys[-1] + causal, -1)
            mixed = (scores @ values[-1]).view(len(contexts), w.heads, width, w.head_dim)
            return mixed.transpose(1, 2).reshape(-1, w.heads * w.head_dim)[cells]

        ids = torch.tensor([token for context in contexts for token in context])
        hidden = hidden_states(w, ids, cells % width, attend)
        return hidden[lengths.cumsum(0) - 1], keys, values

    def step(self, tokens_B: Tensor) -> Tensor:
        w, slot, rows = self.weights, self.used, len(tokens_B)
        if slot == self.mask.shape[-1]:
            self._grow()
        end = slot + 1
        mask = self.mask.expand(rows, w.kv_heads, 1, -1).reshape(rows * w.kv_heads, 1, -1)[..., :end]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = self.keys[layer], self.values[layer]
            keys[..., slot] = k
            values[:, :, slot] = v
            flat = (rows * w.kv_heads, -1, w.head_dim)
            scores = torch.baddbmm(mask, q.reshape(flat), keys.flatten(0, 1)[..., :end])
            return torch.bmm(torch.softmax(scores, -1), values.flatten(0, 1)[:, :end])

        hidden = hidden_states(w, tokens_B, self.lengths, attend)
        self.lengths = next_positions(self.lengths, len(w.cos))
        self.used = end
        return hidden @ w.head

    def keep(self, rows: Tensor) -> None:
        self.keys = [keys.index_select(0, rows) for keys in self.keys]
        self.values = [values.index_select(0, rows) for values in self.values]
        self.mask, self.lengths = self.mask[rows], self.lengths[rows]

    def _grow(self) -> None:
        pad = torch.nn.functional.pad
        self.keys = [pad(keys, (0, SLOTS)) for keys in self.keys]
        self.values = [pad(values, (0, 0, 0, SLOTS)) for values in self.values]
        self.mask = pad(self.mask, (0, SLOTS))


def cache_keyword(module: Any) -> str:
    """What `module.forward` calls its cache: `cache`, in older versions of transformers `past_key_values`.

    Raises `UserError` where it is neither: `forward` swallows words that it does not know, and would sample from the last
    token alone.
    """
    known = inspect.signature(module.forward).parameters
    for name in CACHE_KEYWORDS:
        if name in known:
            return name
    raise UserError(
        f"{type(module).__name__}: forward takes no cache of keys and values; it needs an argument named "
        + " or ".join(CACHE_KEYWORDS)
    )


class TransformersDecoder:
    """Any causal language model of transformers, with its own cache; contexts are padded on the left."""

    def __init__(self, module: Any, device: torch.device) -> None:
        self.module = module
        self.device = device
        self.cache: Any = None
        self.cache_keyword = cache_keyword(module)
        self.mask = torch.empty(0)
        self.lengths = torch.empty(0)

    def prefill(self, contexts: Sequence[Ids], repeats: Sequence[int]) -> Tensor:
        from transformers import DynamicCache

        width = max(len(ids) for ids in contexts)
        ids = torch.zeros(len(contexts), width, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, context in enumerate(contexts):
            ids[row, width - len(context) :] = torch.tensor(context)
            mask[row, width - len(context) :] = 1
        rows = torch.repeat_interleave(torch.arange(len(contexts)), torch.tensor(list(repeats))).to(self.device)
        self.cache = DynamicCache(config=self.module.config)
        mask = mask.to(self.device)
        logits = self._forward(ids.to(self.device), mask, (mask.cumsum(1) - 1).clamp_(min=0))
        self.cache.batch_select_indices(rows)
        self.mask, self.lengths = mask[rows], mask.sum(1)[rows]
        return logits[rows]

    def step(self, tokens_B: Tensor) -> Tensor:
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(tokens_B), 1)], 1)
        logits = self._forward(tokens_B[:, None], self.mask, self.lengths[:, None])
        self.lengths = next_positions(self.lengths, self.module.config.max_position_embeddings)
        return logits

    def keep(self, rows: Tensor) -> None:
        self.cache.batch_select_indices(rows)
        self.mask, self.lengths = self.mask[rows], self.lengths[rows]

    def _forward(self, ids: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        output = self.module(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=1,
            **{self.cache_keyword: self.cache},
        )
        return output.logits[:, -1].float()
