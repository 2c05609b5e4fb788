"""Supervised warm start of the demo's base model on imperfect worked solutions.

What makes a model of this size learn in a few hundred steps (docs/demo.md): short problems first; Muon (momentum
orthogonalised by a Newton-Schulz iteration, Jordan et al. 2024) for the matrices and AdamW for embeddings, norms and
biases; batches of solutions of like length. The iteration runs in float32: torch.optim.Muon's runs in bfloat16, which a
CPU without bfloat16 instructions takes about a hundred times longer for.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedTokenizerBase

from fr3e.config.scenario import SyntheticModel
from fr3e.data import chains
from fr3e.evaluation.prompts import render_text
from fr3e.progress import log, track

# Fewest and most operations of a problem: the facts first, then problems that grow, then those of the demo.
SHORT, LONG = (1, 2), (4, 9)
SHORT_UNTIL, GROWN_AT = 0.15, 0.5  # shares of the steps
OPERATORS = "+-*"
WARM_UP, COOL_DOWN = 0.03, 0.4  # shares of the steps in which the learning rate rises from 0, and falls to 0
MUON_LR = 0.02
MOMENTUM = 0.95
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # coefficients of the quintic iteration, as published with Muon
BUCKET = 8  # batches that are sorted by length together
IGNORED = -100


@dataclass(frozen=True, slots=True)
class Batch:
    """Token ids [B, T], right-padded, and labels [B, T]: the ids of the response, elsewhere `IGNORED`."""

    ids: Tensor
    labels: Tensor


def lengths(progress: float) -> tuple[int, int]:
    """Fewest and most operations of a problem when `progress` of the steps is done: the curriculum."""
    if progress < SHORT_UNTIL:
        return SHORT
    if progress < GROWN_AT:
        grown = (progress - SHORT_UNTIL) / (GROWN_AT - SHORT_UNTIL)
        return SHORT[0], SHORT[1] + 1 + int(grown * (LONG[1] - SHORT[1]))
    return LONG


def corpus(seed: int, steps: int, batch: int) -> Iterator[list[tuple[str, str]]]:
    """Per step `batch` pairs (question, worked solution), sorted into steps by length. Nothing held out occurs."""
    rng = random.Random(f"warm start {seed}")
    flaws = chains.Flaws()
    for first in range(0, steps, BUCKET):
        count = min(BUCKET, steps - first)
        pairs: list[tuple[str, str]] = []
        while len(pairs) < count * batch:
            chain = chains.draw(rng, *lengths((first + len(pairs) / batch) / steps), OPERATORS)
            if not chain.held_out:
                pairs.append((chain.question, chains.demonstrate(chain, rng, flaws)))
        pairs.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
        groups = [pairs[i * batch : (i + 1) * batch] for i in range(count)]
        while groups:
            yield groups.pop(chains.below(rng, len(groups)))


def encode(pairs: list[tuple[str, str]], template: str, tokenizer: PreTrainedTokenizerBase) -> Batch:
    """Prompt and solution with the end-of-turn token as one right-padded batch."""
    prompts = tokenizer([render_text(template, question) for question, _ in pairs], add_special_tokens=False).input_ids
    answers = tokenizer(
        [solution + str(tokenizer.eos_token) for _, solution in pairs], add_special_tokens=False
    ).input_ids
    width = max(len(prompt) + len(answer) for prompt, answer in zip(prompts, answers, strict=True))
    ids = torch.full((len(pairs), width), int(tokenizer.pad_token_id))
    labels = torch.full_like(ids, IGNORED)
    for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        end = len(prompt) + len(answer)
        ids[row, :end] = torch.tensor(prompt + answer)
        labels[row, len(prompt) : end] = torch.tensor(answer)
    return Batch(ids, labels)


def orthogonalise(matrices: Tensor, iterations: int = 5) -> Tensor:
    """Matrices [N, R, C] with their singular values drawn towards 1: the direction of Muon's step."""
    a, b, c = NEWTON_SCHULZ
    wide = matrices.size(1) > matrices.size(2)
    x = matrices.mT if wide else matrices
    x = x / (x.flatten(1).norm(dim=1).view(-1, 1, 1) + 1e-7)
    for _ in range(iterations):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if wide else x


class Muon:
    """Muon in float32; matrices of one shape are orthogonalised as one batch. Nesterov momentum, no weight decay."""

    def __init__(self, matrices: list[nn.Parameter]) -> None:
        shapes: dict[tuple[int, ...], list[nn.Parameter]] = {}
        for matrix in matrices:
            shapes.setdefault(tuple(matrix.shape), []).append(matrix)
        self.groups = [(group, torch.zeros(len(group), *shape)) for shape, group in shapes.items()]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """One update from the gradients that are there."""
        for group, momentum in self.groups:
            gradient = torch.stack([parameter.grad for parameter in group])  # type: ignore[misc]
            momentum.lerp_(gradient, 1 - MOMENTUM)
            update = orthogonalise(gradient.lerp(momentum, MOMENTUM))
            rows, columns = update.shape[1:]
            update *= lr * max(1.0, rows / columns) ** 0.5
            for parameter, change in zip(group, update, strict=True):
                parameter.sub_(change)


def schedule(step: int, steps: int) -> float:
    """Factor of the learning rates at `step` of `steps`: up, level, down to 0."""
    return min(1.0, (step + 1) / (WARM_UP * steps + 1), (steps - step) / (COOL_DOWN * steps))


def train(model: nn.Module, tokenizer: PreTrainedTokenizerBase, base: SyntheticModel, template: str) -> list[float]:
    """Train `model` in place for `base.steps` steps; returns the loss (nats per response token) of every step."""
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in named if p.ndim != 2 or "embed" in name]
    muon, adam = Muon(matrices), torch.optim.AdamW(others, lr=base.lr, betas=(0.9, 0.95), weight_decay=0.0)
    losses: list[float] = []
    model.train()
    for step, pairs in enumerate(track(corpus(base.seed, base.steps, base.batch), "warm start", base.steps)):
        batch = encode(pairs, template, tokenizer)
        # No attention mask: with right padding the causal mask alone keeps padding out of every row's past.
        logits = model(input_ids=batch.ids, use_cache=False).logits
        loss = functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), batch.labels[:, 1:].flatten(), ignore_index=IGNORED
        )
        loss.backward()
        factor = schedule(step, base.steps)
        adam.param_groups[0]["lr"] = base.lr * factor
        muon.step(MUON_LR * factor)
        adam.step()
        model.zero_grad(set_to_none=True)
        losses.append(loss.item())
    tail = losses[-max(1, len(losses) // 20) :]
    log.info("warm start: loss %.3f after %d steps", sum(tail) / len(tail), base.steps)
    return losses
