"""Batched generation for training and evaluation: token ids with exact log-probs and entropies, the same whatever the batch.

Which requests stand together is fixed by their contents: sorted by temperature, context length and draw name, cut into
chunks of `batch_rows` sequences. A context is prefilled once for all its rows, and rows that have ended are dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fr3e.algorithm.entropy import topk_entropy
from fr3e.engine.local.decode import Decoder, PlainDecoder, TransformersDecoder
from fr3e.engine.local.draws import stream_key, uniforms
from fr3e.engine.local.model import Weights, is_fast, regroup, rotary_tables
from fr3e.engine.local.sampling import sample_tokens
from fr3e.errors import UserError
from fr3e.exploration.records import Completion, Request

ALIVE = 0.8
"""Rows are compacted when fewer than this share are still being written."""
DRAWS = 64
"""Uniforms are made for this many tokens at a time."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows first .. first + n - 1 of request number `index`, prefilled together."""

    index: int
    request: Request
    first: int
    n: int


@dataclass(slots=True)
class Written:
    """What a chunk of B rows wrote: ids, log-probs, entropies [B, T] and lengths [B], on the CPU."""

    ids: Tensor
    logprobs: Tensor
    entropies: Tensor
    topk: Tensor | None
    lengths: Tensor
    finished: Tensor


def load_model(folder: str | Path, device: str | torch.device = "cpu") -> Any:
    """A causal language model from a local folder, for inference; float32 on the CPU, the stored type elsewhere."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    if not (Path(folder) / "config.json").is_file():
        raise UserError(f"{folder}: not a model folder (no config.json); give the folder of a transformers model")
    dtype: Any = torch.float32 if torch.device(device).type == "cpu" else "auto"
    model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=dtype, local_files_only=True)
    return model.to(device).eval()


class LocalGenerator:
    """Samples from a module that the trainer may change between calls of `generate_batch`.

    `model` is a folder or a transformers module. `seed` keys all draws. `plain` forces the plain (True) or the
    transformers path (False); by default small Qwen2 models on the CPU take the plain one. `topk_entropy_k` adds the
    entropy over the k likeliest tokens, the rest as one mass, to every completion.
    """

    def __init__(
        self,
        model: Any,
        stop_ids: Sequence[int],
        *,
        device: str | torch.device = "cpu",
        seed: int = 0,
        batch_rows: int = 512,
        topk_entropy_k: int | None = None,
        plain: bool | None = None,
    ) -> None:
        self.module = load_model(model, device) if isinstance(model, str | Path) else model
        self.device = torch.device(device)
        self.stop_ids = torch.tensor(sorted(set(stop_ids)), device=self.device)
        self.seed = seed
        self.batch_rows = batch_rows
        self.topk_entropy_k = topk_entropy_k
        self.plain = is_fast(self.module, self.device) if plain is None else plain
        self.tables = rotary_tables(self.module) if self.plain else None
        self.positions = int(self.module.config.max_position_embeddings)

    @torch.no_grad()
    def generate_batch(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """Completions of each request, in the order given. Raises `UserError` for a context that does not fit the
        model's positions and for logits that are not numbers, naming the prompt."""
        for request in requests:
            self._check(request)
        results: list[list[Completion]] = [[] for _ in requests]
        weights = regroup(self.module, self.tables) if self.tables is not None else None
        for chunk in self._chunks(requests):
            temperature, top_p = chunk[0].request.temperature, chunk[0].request.top_p
            written = self._write(self._decoder(weights), chunk, temperature, top_p)
            row = 0
            for piece in chunk:
                results[piece.index].extend(_completions(piece, written, row))
                row += piece.n
        return results

    def _check(self, request: Request) -> None:
        needed = len(request.context_ids) + request.max_tokens
        if not request.context_ids:
            raise UserError(f"prompt {request.prompt_uid}: empty context; a prompt needs at least one token")
        if needed > self.positions:
            raise UserError(
                f"prompt {request.prompt_uid}: {len(request.context_ids)} context tokens + {request.max_tokens} new tokens "
                f"= {needed}, the model has {self.positions} positions; shorten the prompt or lower the token limit"
            )

    def _decoder(self, weights: Weights | None) -> Decoder:
        return TransformersDecoder(self.module, self.device) if weights is None else PlainDecoder(weights)

    def _chunks(self, requests: Sequence[Request]) -> list[list[Piece]]:
        def key(index: int) -> tuple[float, float, int, str]:
            request = requests[index]
            return request.temperature, request.top_p, len(request.context_ids), request.draw

        chunks: list[list[Piece]] = []
        free, kind = 0, None
        for index in sorted(range(len(requests)), key=key):
            request, first = requests[index], 0
            if (request.temperature, request.top_p) != kind:
                free, kind = 0, (request.temperature, request.top_p)
            while first < request.n:
                if not free:
                    chunks.append([])
                    free = self.batch_rows
                n = min(free, request.n - first)
                chunks[-1].append(Piece(index, request, first, n))
                first, free = first + n, free - n
        return chunks

    def _write(self, decoder: Decoder, chunk: list[Piece], temperature: float, top_p: float) -> Written:
        repeats = torch.tensor([piece.n for piece in chunk])
        budgets = torch.repeat_interleave(torch.tensor([piece.request.max_tokens for piece in chunk]), repeats)
        keys = np.repeat(
            np.array([stream_key(self.seed, piece.request.draw) for piece in chunk], np.uint64), repeats.numpy()
        )
        numbers = np.concatenate([np.arange(piece.first, piece.first + piece.n, dtype=np.uint64) for piece in chunk])
        steps, device = int(budgets.max()), self.device
        shape = (len(budgets), max(steps, 1))
        written = Written(
            ids=torch.zeros(shape, dtype=torch.long, device=device),
            logprobs=torch.zeros(shape, device=device),
            entropies=torch.zeros(shape, device=device),
            topk=torch.zeros(shape, device=device) if self.topk_entropy_k else None,
            lengths=budgets.clone().to(device),
            finished=torch.zeros(len(budgets), dtype=torch.bool, device=device),
        )
        budgets = budgets.to(device)
        rows = torch.arange(len(budgets), device=device)
        logits = decoder.prefill([piece.request.context_ids for piece in chunk], repeats.tolist())
        alive = budgets > 0
        for step in range(steps):
            if int(alive.sum()) < ALIVE * len(rows):
                kept = alive.nonzero()[:, 0]
                rows, alive, logits = rows[kept], alive[kept], logits[kept]
                decoder.keep(kept)
            if step % DRAWS == 0:
                draws = torch.from_numpy(uniforms(keys, numbers, step, min(DRAWS, steps - step))).to(device)
            ids, logprobs, entropies = sample_tokens(logits, draws[rows, step % DRAWS], temperature, top_p)
            written.ids[rows, step], written.logprobs[rows, step] = ids, logprobs
            written.entropies[rows, step] = entropies
            if written.topk is not None:
                written.topk[rows, step] = topk_entropies(logits, self.topk_entropy_k or 1, temperature)
            ended = torch.isin(ids, self.stop_ids) & alive
            written.lengths[rows[ended]] = step + 1
            written.finished[rows[ended]] = True
            alive = alive & ~ended & (budgets[rows] > step + 1)
            if not bool(alive.any()):
                break
            logits = decoder.step(ids)
        return Written(*(None if x is None else x.cpu() for x in _fields(written)))


def _fields(written: Written) -> tuple[Tensor | None, ...]:
    return tuple(getattr(written, name) for name in written.__dataclass_fields__)


def topk_entropies(logits: Tensor, k: int, temperature: float) -> Tensor:
    """Entropy [B] over the k likeliest tokens with the rest as one residual mass, at `temperature` (1 for greedy). NaN where
    logits are not numbers: which prompt's they are is said where its completions are made."""
    try:
        return topk_entropy(logits, k, temperature or 1.0)
    except FloatingPointError:
        return logits.new_full(logits.shape[:1], torch.nan)


def _completions(piece: Piece, written: Written, row: int) -> list[Completion]:
    completions = []
    for offset in range(piece.n):
        length = int(written.lengths[row + offset])
        logprobs = written.logprobs[row + offset, :length].numpy().copy()
        if not np.isfinite(logprobs).all():
            raise UserError(
                f"prompt {piece.request.prompt_uid}: the model's logits are not numbers at response token "
                f"{int(np.argmin(np.isfinite(logprobs)))}; its weights are damaged or training has diverged"
            )
        completions.append(
            Completion(
                token_ids=tuple(written.ids[row + offset, :length].tolist()),
                logprobs=logprobs,
                entropies=written.entropies[row + offset, :length].numpy().copy(),
                finished=bool(written.finished[row + offset]),
                cached_tokens=0 if offset == 0 else len(piece.request.context_ids),
                topk_entropies=None if written.topk is None else written.topk[row + offset, :length].numpy().copy(),
            )
        )
    return completions
