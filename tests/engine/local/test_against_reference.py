"""The engine with K = 0 against plain GRPO++ written out over transformers' own forward pass: three updates."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from fr3e.engine.local import checkpoint
from fr3e.engine.local.generator import LocalGenerator
from fr3e.engine.local.loading import load_for_training, load_tokenizer
from fr3e.engine.local.problems import PromptStream, load_problems
from fr3e.engine.local.train import train
from fr3e.exploration.records import Request
from fr3e.grading import grade
from tests.engine.local.tiny_run import tiny_run
from tests.reference_grpo import advantage, clipped_loss

UPDATES, GROUPS, N = 3, 4, 5


def padded_logprobs(module: Any, rows: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> torch.Tensor:
    """Log-probs of all response tokens, one unshared, right-padded row per response."""
    width = max(len(context) + len(response) for context, response in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    for row, (context, response) in enumerate(rows):
        ids[row, : len(context) + len(response)] = torch.tensor(context + response)
    everything = torch.log_softmax(module(input_ids=ids, use_cache=False).logits, -1)
    return torch.cat(
        [
            everything[row, range(len(context) - 1, len(context) + len(response) - 1), list(response)]
            for row, (context, response) in enumerate(rows)
        ]
    )


def reference(run: Any) -> tuple[list[tuple[list[Any], float]], Any]:
    """Sample, grade, reject, subtract the mean, clip, step; surplus groups wait, the oldest first."""
    module, _ = load_for_training(run)
    tokenizer = load_tokenizer(run.base)
    stops = module.generation_config.eos_token_id
    stream = PromptStream(load_problems(run.data), "demo", tokenizer, "0", 16)
    optimiser = torch.optim.AdamW(module.parameters(), lr=0.001, betas=(0.9, 0.999), weight_decay=0.01, fused=False)
    waiting: list[tuple[int, str, tuple[int, ...], list[Any], list[float]]] = []
    log, position = [], 0
    for update in range(1, UPDATES + 1):
        while len(waiting) < GROUPS:
            taken, position = stream.take(position, 4)
            requests = [Request(p.uid, p.token_ids, N, 24, f"0/{p.uid}/b0k0") for p, _ in taken]
            sampled = LocalGenerator(module, stops, batch_rows=32).generate_batch(requests)
            for (prompt, _), completions in zip(taken, sampled, strict=True):
                texts = [tokenizer.decode(c.token_ids, skip_special_tokens=True) for c in completions]
                rewards = [1.0 if grade(text, prompt.gold) else 0.0 for text in texts]
                if min(rewards) != max(rewards):
                    waiting.append((update, prompt.uid, prompt.token_ids, completions, rewards))
        waiting.sort(key=lambda group: group[:2])
        used, waiting = waiting[:GROUPS], waiting[GROUPS:]
        rows = [(context, c.token_ids) for _, _, context, completions, _ in used for c in completions]
        old = np.concatenate([c.logprobs for *_, completions, _ in used for c in completions])
        per_token = [
            a
            for *_, completions, rewards in used
            for c, a in zip(completions, advantage(rewards), strict=True)
            for _ in c.token_ids
        ]
        loss = clipped_loss(padded_logprobs(module, rows), torch.from_numpy(old), torch.tensor(per_token), 0.22, 0.28)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimiser.step()
        log.append(([(uid, [c.token_ids for c in completions]) for _, uid, _, completions, _ in used], loss.item()))
    return log, module


def test_three_updates(tmp_path: Path, monkeypatch: Any) -> None:
    """Tokens and advantages are equal; loss and weights agree to rounding, since packed rows add up in another order."""
    run = tiny_run(tmp_path, "grpo_pp", optim={"minibatches": 1, "updates": UPDATES}, probe={"benchmarks": []})
    trained: list[tuple[list[Any], list[Any], dict[str, float]]] = []

    from fr3e.engine.local.update import Updater

    original = Updater.update

    def recorded(self: Any, groups: Any, advantages: Any, number: int) -> dict[str, float]:
        columns = original(self, groups, advantages, number)
        trained.append(([(g.prompt.uid, [r.response_ids for r in g.rollouts]) for g in groups], advantages, columns))
        return columns

    monkeypatch.setattr(Updater, "update", recorded)
    train(run, tmp_path / "out")
    log, module = reference(run)
    assert len(trained) == len(log) == UPDATES
    for (groups, found, columns), (expected, loss) in zip(trained, log, strict=True):
        assert groups == expected
        for group, a in zip(groups, found, strict=True):
            assert abs(a.modulated.sum()) < 1e-12 and len(a.modulated) == len(group[1]) == N
        assert abs(columns["loss"] - loss) < 1e-6
    weights = checkpoint.load(tmp_path / "out" / "checkpoints" / "update-000003.pt")["module"]
    start = load_for_training(run)[0].state_dict()
    # Adam divides by the gradient's size: where that is no more than rounding, a weight's step is too. So the steps are
    # compared as one vector.
    apart = torch.cat([(weights[name] - value).flatten() for name, value in module.state_dict().items()])
    moved = torch.cat([(weights[name] - value).flatten() for name, value in start.items()])
    assert moved.abs().max() > 1e-3
    assert apart.norm() < 1e-2 * moved.norm()
