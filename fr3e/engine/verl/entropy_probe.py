"""Exact token entropies from inside vLLM: a logits processor that reads the distribution that is sampled, and its way out.

vLLM applies an argmax-invariant processor after the temperature, so that `apply` sees the logits of the very
distribution the token is drawn from (paper, section 4.1: H_k over the full vocabulary). The values stay on the device
until the request is done and leave in one copy per request, through a method of vLLM's worker.

A request is watched when its `SamplingParams.extra_args` hold `entropy_key` (a name that is not used twice) and,
for the top-k score, `entropy_topk`. Only vLLM's V1 model runner calls custom logits processors; `server` asserts it.
"""

import os
from collections import deque
from typing import Any

import torch
from torch import Tensor
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension
from vllm.v1.sample.logits_processor import LogitsProcessor
from vllm.v1.sample.logits_processor.builtin import process_dict_updates

from fr3e.algorithm.entropy import topk_entropy_from_logprobs

if os.environ.get("VERL_PLATFORM", "").strip().lower() == "cpu":
    from fr3e.engine.verl.cpu_platform import keep_plain_weights

    keep_plain_weights()

_PROBES: list["EntropyProbe"] = []


class EntropyProbe(LogitsProcessor):
    """Entropies [slots, T] of the watched requests, in nats, float32, on the device.

    A request keeps its slot from its first token until `pop`, also when it is preempted and recomputed: the position
    is the number of tokens it has, so that a value computed again overwrites the first, and a discarded one (a prompt
    prefilled in pieces, a token after the end under asynchronous scheduling) is overwritten or cut off.
    """

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self._device = device
        self._length = int(vllm_config.model_config.max_model_len)
        self._free: deque[int] = deque()
        self._values = torch.empty((0, self._length), dtype=torch.float32, device=device)
        self._topk_values = torch.empty((0, self._length), dtype=torch.float32, device=device)
        self._slots: dict[str, int] = {}
        self._watched: dict[int, tuple[str, int, list[int]]] = {}
        self._grow(2 * int(vllm_config.scheduler_config.max_num_seqs))
        _PROBES.append(self)

    def is_argmax_invariant(self) -> bool:
        """The logits are only read."""
        return True

    def update_state(self, batch_update: Any) -> None:
        """Follow requests through the batch: added, removed, moved."""
        process_dict_updates(self._watched, batch_update, self._added)

    def apply(self, logits: Tensor) -> Tensor:
        """Note H of each watched row of `logits` [B, V] (already divided by the temperature); returns them unchanged.

        Logits of -inf (verl masks ids beyond the tokenizer) have p = 0 and add nothing; p log p would be NaN there.
        """
        rows = sorted(row for row in self._watched if row < logits.shape[0])
        if not rows:
            return logits
        watched = [self._watched[row] for row in rows]
        where = torch.tensor(
            [rows, [self._slots[key] for key, _, _ in watched], [len(tokens) for _, _, tokens in watched]]
        ).to(self._device, non_blocking=True)
        chosen = logits if len(rows) == logits.shape[0] else logits.index_select(0, where[0])
        p = torch.softmax(chosen.float(), dim=-1)
        # A request that vLLM runs past its end writes to a last column that nobody reads.
        position = where[2].clamp_max(self._length - 1)
        self._values[where[1], position] = torch.special.entr(p).sum(-1)
        top = max(topk for _, topk, _ in watched)
        if top:
            largest = p.topk(min(top, p.shape[-1]), dim=-1).values
            self._topk_values[where[1], position] = topk_entropy_from_logprobs(largest.log())
        return logits

    def pop(self, key: str, length: int) -> tuple[Tensor, Tensor] | None:
        """(entropies [length], top-k entropies [length]) of a finished request, forgotten here; None if never seen."""
        slot = self._slots.pop(key, None)
        if slot is None:
            return None
        values = self._values[slot, :length].cpu(), self._topk_values[slot, :length].cpu()
        self._free.append(slot)
        return values

    def _added(self, params: Any, prompt_ids: list[int] | None, tokens: list[int]) -> tuple[str, int, list[int]] | None:
        """What is watched of a request that enters the batch; the token list is the running one, not a copy."""
        extra = params.extra_args or {}
        key = extra.get("entropy_key")
        if key is None:
            return None
        if key not in self._slots:
            if not self._free:
                self._grow(self._values.shape[0])
            self._slots[key] = self._free.popleft()
        return key, int(extra.get("entropy_topk", 0)), tokens

    def _grow(self, more: int) -> None:
        """Add slots: finished requests hold theirs until they are fetched."""
        first = self._values.shape[0]
        extra = torch.zeros((more, self._length), dtype=torch.float32, device=self._device)
        self._values = torch.cat([self._values, extra])
        self._topk_values = torch.cat([self._topk_values, extra.clone()])
        self._free.extend(range(first, first + more))


class FR3EWorkerExtension(vLLMColocateWorkerExtension):
    """verl's extension of vLLM's worker (weight updates), and the way out for entropies."""

    def pop_entropies(self, key: str, length: int) -> tuple[bytes, bytes] | None:
        """Float32 bytes of the entropies and top-k entropies of request `key`; None when no logits of it were seen."""
        for probe in _PROBES:
            found = probe.pop(key, length)
            if found is not None:
                return found[0].numpy().tobytes(), found[1].numpy().tobytes()
        return None
