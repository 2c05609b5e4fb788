"""Log-probs of responses with gradient, each shared context computed once.

The rollouts of a state differ only after it. So a segment is one context and the responses that follow it: the context
passes through the network once, and a response's queries see the context's keys and their own. Nothing is padded outside
attention: all tokens of a micro-batch are packed one under the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from fr3e.algorithm.entropy import selected_logprobs
from fr3e.engine.local.model import hidden_states, is_fast, regroup, rotary_tables
from fr3e.exploration.records import Ids

Indices = NDArray[np.int64]


class Segment(Protocol):
    """What the forward pass needs of one state's rows."""

    @property
    def context(self) -> Ids: ...

    @property
    def responses(self) -> Sequence[Ids]: ...


class Policy:
    """A module with its log-probs; `plain` as in `LocalGenerator`."""

    def __init__(self, module: Any, device: str | torch.device = "cpu", plain: bool | None = None) -> None:
        self.module = module
        self.device = torch.device(device)
        self.plain = is_fast(module, self.device) if plain is None else plain
        self.tables = rotary_tables(module) if self.plain else None

    def logprobs(
        self, segments: Sequence[Segment], temperature: float, with_entropy: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Log-probs (and entropies) of all response tokens, [N] in the order segment, response, token, with gradient.

        Raises `FloatingPointError` where the logits are not numbers.
        """
        targets = [token for segment in segments for ids in segment.responses for token in ids]
        if self.tables is not None:
            weights = regroup(self.module, self.tables)
            layout = Layout(segments, weights.heads, weights.kv_heads)
            hidden = hidden_states(weights, layout.ids, layout.positions, layout.attend)
            logits = hidden.index_select(0, layout.predicting) @ weights.head
        else:
            logits = self._logits(segments).float()
        return selected_logprobs(logits, torch.tensor(targets, device=self.device), temperature, with_entropy)

    def _logits(self, segments: Sequence[Segment]) -> Tensor:
        """Logits [N, V] by transformers, one padded row per response; only predicting positions reach the head."""
        rows = [(segment.context, ids) for segment in segments for ids in segment.responses]
        ids = pad_sequence([torch.tensor(context + response[:-1]) for context, response in rows], batch_first=True)
        column = torch.arange(ids.shape[1])[None, :]
        first = torch.tensor([len(context) - 1 for context, _ in rows])[:, None]
        end = first + torch.tensor([len(response) for _, response in rows])[:, None]
        mask = (column < end).long().to(self.device)
        hidden = self.module.base_model(input_ids=ids.to(self.device), attention_mask=mask, use_cache=False)[0]
        return self.module.get_output_embeddings()(hidden[((column >= first) & (column < end)).to(self.device)])


@dataclass(frozen=True, slots=True)
class Cells:
    """Where packed (token, head) pairs stand in a padded grid of `size` cells; each cell is used at most once."""

    index: Tensor
    size: int

    def spread(self, x: Tensor) -> Tensor:
        """[tokens, heads, D] -> [size, D], zero where nothing stands."""
        return _Spread.apply(x.reshape(-1, x.shape[-1]), self.index, self.size)  # type: ignore[no-any-return]

    def collect(self, grid: Tensor) -> Tensor:
        """[size, D] -> [tokens * heads, D]."""
        return _Collect.apply(grid, self.index)  # type: ignore[no-any-return]


class Layout:
    """Packed order of a micro-batch: all context tokens, then all response tokens but each one's last.

    Grids (G segments, M responses at most, H heads in `kv` groups of g): contexts [G, kv, g, context], responses
    [G, kv, M, g, response], so that scores against the context and against itself have the same leading shape.
    """

    def __init__(self, segments: Sequence[Segment], heads: int, kv_heads: int) -> None:
        self.groups, self.kv = len(segments), kv_heads
        self.share = heads // kv_heads
        contexts = [len(segment.context) for segment in segments]
        inputs = [[len(ids) - 1 for ids in segment.responses] for segment in segments]
        self.context, self.rows = max(contexts), max(len(lengths) for lengths in inputs)
        self.response = max(length for lengths in inputs for length in lengths)
        tokens = [token for segment in segments for token in segment.context]
        self.contexts = len(tokens)
        tokens += [token for segment in segments for ids in segment.responses for token in ids[:-1]]
        self.ids = torch.tensor(tokens)
        segment_C, column_C = _ragged(contexts)
        flat = [length for lengths in inputs for length in lengths]
        row_R, column_R = _ragged(flat)
        segment_of_row = np.repeat(np.arange(self.groups), [len(lengths) for lengths in inputs])
        number_of_row = np.concatenate([np.arange(len(lengths)) for lengths in inputs])
        self.positions = torch.from_numpy(
            np.concatenate([column_C, np.array(contexts, np.int64)[segment_of_row[row_R]] + column_R])
        )
        self._cells(segment_C, column_C, segment_of_row[row_R], number_of_row[row_R], column_R)
        self.predicting = torch.from_numpy(self._predicting(contexts, flat, segment_of_row))
        masked = torch.finfo(torch.float32).min
        self.context_mask = torch.full((self.context,) * 2, masked).triu_(1).repeat(self.share, 1)
        outside = torch.arange(self.context)[None, :] >= torch.tensor(contexts)[:, None]
        self.gap_mask = torch.zeros(outside.shape).masked_fill_(outside, masked)[:, None, None, :]
        self.response_mask = torch.full((self.response,) * 2, masked).triu_(1)

    def _cells(
        self, segment_C: Indices, column_C: Indices, segment_R: Indices, row_R: Indices, column_R: Indices
    ) -> None:
        def cells(*parts: tuple[Indices | int, int]) -> Cells:
            """Row-major index over parts (value, extent)."""
            index: Any = 0
            size = 1
            for value, extent in parts:
                index, size = index * extent + value, size * extent
            return Cells(torch.from_numpy(np.ascontiguousarray(index.reshape(-1))), size)

        kv = np.arange(self.kv)[None, :]
        head = np.arange(self.kv * self.share)[None, :]
        c = [part[:, None] for part in (segment_C, column_C)]
        r = [part[:, None] for part in (segment_R, row_R, column_R)]
        groups, rows = self.groups, self.rows
        of_kv, of_share = (head // self.share, self.kv), (head % self.share, self.share)
        self.context_q = cells((c[0], groups), of_kv, of_share, (c[1], self.context))
        self.context_kv = cells((c[0], groups), (kv, self.kv), (c[1], self.context))
        self.response_q = cells((r[0], groups), of_kv, (r[1], rows), of_share, (r[2], self.response))
        self.response_kv = cells((r[0], groups), (kv, self.kv), (r[1], rows), (r[2], self.response))

    def _predicting(self, contexts: list[int], inputs: list[int], segment_of_row: Indices) -> Indices:
        """Packed position that predicts each response token: the context's last one, then the response's own."""
        last_of_context = np.cumsum(contexts) - 1
        start_of_row = self.contexts + np.cumsum([0, *inputs[:-1]])
        parts = [
            np.concatenate([[last_of_context[segment]], np.arange(start, start + length)])
            for segment, start, length in zip(segment_of_row, start_of_row, inputs, strict=True)
        ]
        return np.concatenate(parts).astype(np.int64)

    def attend(self, _: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Softmax attention of contexts to themselves and of responses to context and self (see `model.Attend`)."""
        batch, dim = self.groups * self.kv, q.shape[-1]
        (q, own_q), (k, own_k), (v, own_v) = (x.split((self.contexts, len(x) - self.contexts)) for x in (q, k, v))
        keys = self.context_kv.spread(k).view(batch, self.context, dim)
        values = self.context_kv.spread(v).view(batch, self.context, dim)
        queries = self.context_q.spread(q).view(batch, -1, dim)
        scores = torch.softmax(queries @ keys.transpose(1, 2) + self.context_mask, -1)
        of_contexts = self.context_q.collect((scores @ values).view(-1, dim))
        if not self.response:
            return of_contexts

        own = (batch * self.rows, -1, dim)
        queries = self.response_q.spread(own_q)
        to_context = (queries.view(batch, -1, dim) @ keys.transpose(1, 2)).view(self.groups, self.kv, -1, self.context)
        own_keys = self.response_kv.spread(own_k).view(own)
        to_self = (queries.view(own) @ own_keys.transpose(1, 2)).view(-1, self.share, self.response, self.response)
        both = torch.cat(
            [
                (to_context + self.gap_mask).view(-1, self.context),
                (to_self + self.response_mask).view(-1, self.response),
            ],
            -1,
        )
        on_context, on_self = torch.softmax(both, -1).split((self.context, self.response), -1)
        mixed = (on_context.reshape(batch, -1, self.context) @ values).view(-1, dim)
        own_values = self.response_kv.spread(own_v).view(own)
        mixed = mixed + (on_self.reshape(batch * self.rows, -1, self.response) @ own_values).view(-1, dim)
        return torch.cat([of_contexts, self.response_q.collect(mixed)])


def _ragged(lengths: Sequence[int]) -> tuple[Indices, Indices]:
    """(row, column) of every element of rows of the given lengths, one row after the other."""
    counts = np.array(lengths, np.int64)
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)


class _Spread(torch.autograd.Function):
    """Copy rows to distinct places of a zero matrix. The gradient is a plain selection, which autograd's own
    `index_copy` does not know and pays three times as much for."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, size: int) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(index)
        return x.new_zeros(size, x.shape[1]).index_copy_(0, index, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        return gradient.index_select(0, ctx.saved_tensors[0]), None, None


class _Collect(torch.autograd.Function):
    """Select distinct rows; the gradient is a copy instead of the sum that `index_select` needs."""

    @staticmethod
    def forward(ctx: Any, grid: Tensor, index: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(index)
        ctx.size = grid.shape[0]
        return grid.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        (index,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.size, gradient.shape[1]).index_copy_(0, index, gradient), None
