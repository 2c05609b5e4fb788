"""Supervised warm start of the demo's base model on imperfect worked solutions.

What makes a model of this size learn in a few hundred steps (docs/demo.md): short problems first; Muon (momentum
orthogonalised by a Newton-Schulz iteration, Jordan et al. 2024) for the matrices and AdamW for embeddings, norms and
biases; batches of solutions of like length. The iteration runs in float32: torch.optim.Muon's runs in bfloat16, which a
CPU without bfloat16 instructions takes about a hundred times longer for.
"""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedTokenizerBase, Qwen2ForCausalLM

from fr3e.config.scenario import SyntheticModel
from fr3e.data import chains
from fr3e.evaluation.prompts import render_text
from fr3e.progress import log, track

# Fewest and most operations of a problem: the facts first, then problems that grow, then those of the demo.
SHORT, LONG = (1, 2), (4, 9)
SHORT_UNTIL, GROWN_AT = 0.15, 0.5  # shares of the steps
OPERATORS = "+-*"
# Copying is learned from solutions that are mostly careful; the flaws come when it is there, as the learning rate falls.
EARLY, FLAWED_FROM = chains.Flaws(careful=0.8, jump=0.0, slip=0.0), 0.6
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
    for first in range(0, steps, BUCKET):
        count = min(BUCKET, steps - first)
        pairs: list[tuple[str, str]] = []
        while len(pairs) < count * batch:
            progress = (first + len(pairs) / batch) / steps
            chain = chains.draw(rng, *lengths(progress), OPERATORS)
            if not chain.held_out:
                flaws = EARLY if progress < FLAWED_FROM else chains.Flaws()
                pairs.append((chain.question, chains.demonstrate(chain, rng, flaws)))
        pairs.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
        groups = [pairs[i * batch : (i + 1) * batch] for i in range(count)]
        while groups:
            yield groups.pop(chains.below(rng, len(groups)))


def encode(pairs: list[tuple[str, str]], template: str, tokenizer: PreTrainedTokenizerBase) -> Batch:
    """Prompt and solution with the end-of-turn token as one right-padded batch."""
    prompts = _ids([render_text(template, question) for question, _ in pairs], tokenizer)
    answers = _ids([solution + str(tokenizer.eos_token) for _, solution in pairs], tokenizer)
    width = max(len(prompt) + len(answer) for prompt, answer in zip(prompts, answers, strict=True))
    pad = [int(tokenizer.pad_token_id)] * width
    rows = [(prompt + answer + pad)[:width] for prompt, answer in zip(prompts, answers, strict=True)]
    ignored = [IGNORED] * width
    labels = [
        (ignored[: len(prompt)] + answer + ignored)[:width] for prompt, answer in zip(prompts, answers, strict=True)
    ]
    return Batch(torch.tensor(rows), torch.tensor(labels))


def _ids(texts: list[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    # The back end itself: the wrapper's bookkeeping would take a tenth of the training time.
    backend = tokenizer.backend_tokenizer  # type: ignore[attr-defined]
    return [encoding.ids for encoding in backend.encode_batch_fast(texts, add_special_tokens=False)]


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


def gradients(
    model: Qwen2ForCausalLM, batch: Batch, parameters: list[nn.Parameter]
) -> tuple[float, int, tuple[Tensor, ...]]:
    """Summed loss (nats), number of labelled tokens, and the gradients of that sum."""
    # No attention mask: with right padding the causal mask alone keeps padding out of every row's past.
    hidden = model.model(input_ids=batch.ids, use_cache=False).last_hidden_state[:, :-1]
    labels = batch.labels[:, 1:]
    kept = labels != IGNORED
    loss = functional.cross_entropy(model.lm_head(hidden[kept]), labels[kept], reduction="sum")
    return loss.item(), int(kept.sum()), torch.autograd.grad(loss, parameters)


def train(
    model: Qwen2ForCausalLM, tokenizer: PreTrainedTokenizerBase, base: SyntheticModel, template: str
) -> list[float]:
    """Train `model` in place for `base.steps` steps; returns the loss (nats per response token) of every step.

    Each of `base.threads` threads takes its share of a batch, which uses the cores better than threads inside the small
    matrix products do. Shares are summed in a fixed order, so the same number of threads gives the same weights. Torch's
    own threads should be 1.
    """
    named = list(model.named_parameters())
    parameters = [parameter for _, parameter in named]
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in named if p.ndim != 2 or "embed" in name]
    muon, adam = Muon(matrices), torch.optim.AdamW(others, lr=base.lr, betas=(0.9, 0.95), weight_decay=0.0)
    losses: list[float] = []
    model.train()
    with ThreadPoolExecutor(base.threads) as pool:
        steps = track(corpus(base.seed, base.steps, base.batch), "warm start", base.steps, "steps")
        for step, pairs in enumerate(steps):
            shares = [share for i in range(base.threads) if (share := pairs[i :: base.threads])]
            jobs = [
                pool.submit(lambda s: gradients(model, encode(s, template, tokenizer), parameters), s) for s in shares
            ]
            done = [job.result() for job in jobs]
            tokens = sum(count for _, count, _ in done)
            for parameter, *parts in zip(parameters, *(grads for _, _, grads in done), strict=True):
                parameter.grad = sum(parts[1:], start=parts[0]) / tokens
            losses.append(sum(loss for loss, _, _ in done) / tokens)
            factor = schedule(step, base.steps)
            adam.param_groups[0]["lr"] = base.lr * factor
            muon.step(MUON_LR * factor)
            adam.step()
    tail = losses[-max(1, len(losses) // 20) :]
    log.info("warm start: loss %.3f after %d steps", sum(tail) / len(tail), base.steps)
    return losses
