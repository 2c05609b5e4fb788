"""One update: advantages, mini-batches, the clipped surrogate with a global token mean, AdamW (paper, sections 3.3, 4.3).

Old log-probs are those of the rollout. A group born in this update was sampled by the very weights that the first
mini-batch starts from, so its ratio is 1; a carried group was sampled by older ones, and clipping acts on it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fr3e.algorithm.advantage import GroupAdvantages
from fr3e.algorithm.filtering import minibatches
from fr3e.algorithm.loss import combine, highest_entropy_masks, policy_loss, token_weights, trained_tokens
from fr3e.config.training import LossConfig, OptimConfig, TrainingConfig
from fr3e.engine.local.forward import Policy
from fr3e.errors import UserError
from fr3e.exploration.records import Ids, StateGroup

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The part of one rollout that follows the shared context, [T]; `weight` is 0 outside the loss."""

    response: Ids
    old: Reals
    advantage: Reals
    weight: Reals


@dataclass(frozen=True, slots=True, eq=False)
class TrainedGroup:
    """Rows of one state with their common context (a `forward.Segment`); `fresh` where this update's policy wrote them."""

    uid: str
    context: Ids
    rows: tuple[Row, ...]
    fresh: bool

    @property
    def responses(self) -> tuple[Ids, ...]:
        return tuple(row.response for row in self.rows)

    @property
    def tokens(self) -> int:
        """Tokens that pass through the network."""
        return len(self.context) + sum(len(row.response) for row in self.rows)

    def flat(self, name: str) -> Reals:
        """One field of all rows, concatenated, [N]."""
        return np.concatenate([getattr(row, name) for row in self.rows])


def optimiser_for(module: Any, optim: OptimConfig) -> torch.optim.AdamW:
    """AdamW over all parameters at a constant rate."""
    betas = (optim.beta1, optim.beta2)
    return torch.optim.AdamW(module.parameters(), lr=optim.lr, betas=betas, weight_decay=optim.weight_decay, fused=True)


def trained_groups(
    groups: Sequence[StateGroup], advantages: Sequence[GroupAdvantages], settings: TrainingConfig, update: int
) -> tuple[list[TrainedGroup], float]:
    """The rows of one mini-batch and the normaliser of its loss, counted over all of them before any cut.

    A group with more tokens than a micro-batch holds is cut by rows; rows without a trained token are left out.
    """
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    masks = [trained_tokens(rollout, settings.fr3e.prefix_loss) for rollout in rollouts]
    weights, normaliser = token_weights(masks, settings.loss.agg)
    kept = highest_entropy_masks([r.entropies for r in rollouts], masks, settings.loss.entropy_token_fraction)
    weight_of = iter([weight * mask for weight, mask in zip(weights, kept, strict=True)])
    result = []
    for group, advantage in zip(groups, advantages, strict=True):
        shared = 0 if settings.fr3e.prefix_loss else group.rollouts[0].prefix_len
        context = group.prompt.token_ids + group.rollouts[0].response_ids[:shared]
        rows = [
            Row(
                response=rollout.response_ids[shared:],
                old=rollout.logprobs[shared:].astype(np.float64),
                advantage=advantage.per_token(index, len(rollout.response_ids))[shared:],
                weight=next(weight_of)[shared:],
            )
            for index, rollout in enumerate(group.rollouts)
        ]
        rows = [row for row in rows if row.weight.any()]
        limit = settings.optim.micro_batch_tokens - len(context)
        for piece in packed([len(row.response) for row in rows], limit):
            result.append(TrainedGroup(group.uid, context, tuple(rows[piece]), group.born == update))
    # By length, so that the groups of a micro-batch pad little; by uid, so that their order is fixed.
    return sorted(result, key=lambda g: (len(g.context), g.tokens, g.uid, g.rows[0].response)), normaliser


def packed(lengths: Sequence[int], limit: int) -> Iterator[slice]:
    """Consecutive slices whose lengths add up to at most `limit`; a longer item stands alone."""
    start = total = 0
    for index, length in enumerate(lengths):
        if index > start and total + length > limit:
            yield slice(start, index)
            start, total = index, 0
        total += length
    if start < len(lengths):
        yield slice(start, len(lengths))


@dataclass(frozen=True, slots=True)
class Updater:
    """The policy, its optimiser, and the base model where the loss has a KL term."""

    policy: Policy
    reference: Policy | None
    optimiser: torch.optim.Optimizer
    settings: TrainingConfig
    seed: str

    def update(
        self, groups: Sequence[StateGroup], advantages: Sequence[GroupAdvantages], number: int
    ) -> dict[str, float]:
        """Train on the groups of update `number`, one optimiser step per mini-batch; the columns of docs/metrics.md.

        Raises `UserError`, naming update and prompt, where log-probs, loss or gradient are not numbers. Weights are
        unchanged by the mini-batch that failed.
        """
        optim = self.settings.optim
        of_group = {group.uid: advantage for group, advantage in zip(groups, advantages, strict=True)}
        parts: list[dict[str, float]] = []
        norms: list[float] = []
        differences: list[Tensor] = []
        for index, batch in enumerate(minibatches(groups, optim.minibatches, f"{self.seed}/update{number}")):
            rows, normaliser = trained_groups(batch, [of_group[g.uid] for g in batch], self.settings, number)
            self.optimiser.zero_grad(set_to_none=True)
            for piece in packed([group.tokens for group in rows], optim.micro_batch_tokens):
                part, difference = self._backward(rows[piece], normaliser, number)
                parts.append(part)
                differences += [difference] if index == 0 else []
            parameters = self.policy.module.parameters()
            norm = float(torch.nn.utils.clip_grad_norm_(parameters, optim.clip_norm))
            if not np.isfinite(norm):
                raise UserError(
                    f"update {number}, prompts {_prompts(rows)}: the gradient's norm is {norm}; nothing was changed"
                )
            norms.append(norm)
            self.optimiser.step()
        fresh = torch.cat(differences)
        columns = combine(parts) | {"grad_norm": float(np.mean(norms)), "lr": optim.lr}
        columns["loss"] /= optim.minibatches
        if len(fresh):
            columns |= {"mismatch/mean": float(fresh.mean()), "mismatch/max": float(fresh.max())}
        return columns

    def _backward(
        self, rows: Sequence[TrainedGroup], normaliser: float, number: int
    ) -> tuple[dict[str, float], Tensor]:
        """Add one micro-batch's gradient; the loss's sums, and |rollout - trainer| log-probs of fresh tokens."""
        loss: LossConfig = self.settings.loss
        old, advantage, weight = (
            torch.from_numpy(np.concatenate([g.flat(name) for g in rows])).to(self.policy.device, torch.float32)
            for name in ("old", "advantage", "weight")
        )
        try:
            logprobs, entropies = self._logprobs(self.policy, rows, with_entropy=loss.entropy > 0)
            anchor = None
            if self.reference is not None:
                with torch.no_grad():
                    anchor = self._logprobs(self.reference, rows)[0]
            total, sums = policy_loss(
                logprobs, old, advantage, weight, loss, normaliser, entropies=entropies, reference_logprobs=anchor
            )
        except FloatingPointError as error:
            raise UserError(f"update {number}, {self._culprit(rows)}: {error}; nothing was changed") from error
        total.backward()
        fresh = np.concatenate([np.full(sum(map(len, g.responses)), g.fresh) for g in rows])
        used = torch.from_numpy(fresh).to(weight.device) & (weight > 0)
        return sums, (logprobs.detach() - old)[used].abs()

    def _logprobs(
        self, policy: Policy, rows: Sequence[TrainedGroup], with_entropy: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        return policy.logprobs(rows, self.settings.rollout.temperature, with_entropy)

    def _culprit(self, rows: Sequence[TrainedGroup]) -> str:
        """The first group of a failed micro-batch that fails alone, else all its prompts."""
        for group in rows:
            try:
                with torch.no_grad():
                    logprobs = self._logprobs(self.policy, [group])[0]
                finite = bool(torch.isfinite(logprobs).all()) and all(
                    np.isfinite(group.flat(name)).all() for name in ("old", "advantage", "weight")
                )
            except FloatingPointError:
                finite = False
            if not finite:
                return f"prompt {group.uid.rsplit('/', 1)[0]}"
        return f"prompts {_prompts(rows)}"


def _prompts(rows: Sequence[TrainedGroup]) -> str:
    names = sorted({group.uid.rsplit("/", 1)[0] for group in rows})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
