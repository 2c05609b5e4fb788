"""The update: micro-batches of any size, mini-batches, loss switches, refusal of NaN."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fr3e.algorithm.advantage import GroupAdvantages, advantages
from fr3e.config.load import merge
from fr3e.config.training import TrainingConfig
from fr3e.engine.local.forward import Policy
from fr3e.engine.local.generator import LocalGenerator
from fr3e.engine.local.update import Updater, optimiser_for, packed, trained_groups
from fr3e.errors import UserError
from fr3e.exploration.records import Prompt, Request, Rollout, StateGroup
from fr3e.grading.verdict import Verdict

STOP = (3, 7, 11)


def settings(**changes: Any) -> TrainingConfig:
    base = {"optim": {"minibatches": 1, "lr": 0.01, "weight_decay": 0.0, "micro_batch_tokens": 10_000}}
    return TrainingConfig.model_validate(merge(base, changes))


def sampled(module: Any, count: int = 5, m: int = 4, born: int = 1, seed: int = 0) -> list[StateGroup]:
    """Groups of real samples from random prefixes; rewards by the parity of the length."""
    rng = np.random.default_rng(seed)
    groups = []
    for i in range(count):
        prompt = Prompt(f"0/p{i}", tuple(int(t) for t in rng.integers(12, 64, 3 + i)), "1")
        prefix = tuple(int(t) for t in rng.integers(12, 64, i))
        request = Request(prompt.uid, prompt.token_ids + prefix, m, int(rng.integers(6, 30)), f"d{seed}{i}")
        filler = np.zeros(len(prefix), np.float32)
        rollouts = tuple(
            Rollout(
                prefix + c.token_ids,
                np.concatenate([filler - 1.0, c.logprobs]),
                np.concatenate([filler + 0.5, c.entropies]),
                len(prefix),
                c.finished,
                Verdict("correct" if (len(c.token_ids) + n) % 2 else "wrong", None, ""),
            )
            for n, c in enumerate(LocalGenerator(module, STOP).generate_batch([request])[0])
        )
        value = float(np.mean([r.reward for r in rollouts]))
        groups.append(StateGroup(prompt, 0, int(i > 0), len(prefix), value, None, 1.0 + 0.1 * i, rollouts, born))
    return groups


def run(
    module: Any, groups: Sequence[StateGroup], config: TrainingConfig, plain: bool | None = None, reference: Any = None
) -> tuple[dict[str, float], torch.Tensor]:
    """Columns of one update on a copy of the module, and the copy's weights as one vector."""
    module = copy.deepcopy(module)
    updater = Updater(
        Policy(module, plain=plain),
        None if reference is None else Policy(reference),
        optimiser_for(module, config.optim),
        config,
        "0",
    )
    columns = updater.update(groups, advantages(groups, config.fr3e, config.adv, "0/update1"), 1)
    return columns, torch.cat([p.detach().flatten() for p in module.parameters()])


def gradient(module: Any, groups: Sequence[StateGroup], config: TrainingConfig) -> torch.Tensor:
    """The gradient that one mini-batch adds up to."""
    module = copy.deepcopy(module)
    updater = Updater(Policy(module), None, optimiser_for(module, config.optim), config, "0")
    found = advantages(groups, config.fr3e, config.adv, "s")
    rows, normaliser = trained_groups(groups, found, config, 1)
    for piece in packed([row.tokens for row in rows], config.optim.micro_batch_tokens):
        updater._backward(rows[piece], normaliser, 1)
    return torch.cat([p.grad.flatten() for p in module.parameters()])


def test_packed_by_hand() -> None:
    assert list(packed([3, 4, 2, 9, 1], 7)) == [slice(0, 2), slice(2, 3), slice(3, 4), slice(4, 5)]
    assert list(packed([], 7)) == []


@pytest.mark.parametrize("agg", ["token_mean", "seq_mean"])
def test_micro_batches_of_any_size_give_one_gradient(tiny: Callable[..., Any], agg: str) -> None:
    module = tiny()
    groups = sampled(module)
    whole = gradient(module, groups, settings(loss={"agg": agg}))
    for tokens in (1, 37, 90):
        config = settings(loss={"agg": agg}, optim={"micro_batch_tokens": tokens})
        assert torch.allclose(gradient(module, groups, config), whole, atol=1e-6), tokens
    assert whole.abs().max() > 1e-3


def test_both_paths_and_row_order(tiny: Callable[..., Any]) -> None:
    module = tiny()
    groups = sampled(module)
    config = settings(optim={"minibatches": 2})
    columns, weights = run(module, groups, config)
    again, reversed_weights = run(module, groups[::-1], config)
    assert columns == again and torch.equal(weights, reversed_weights)
    by_transformers, others = run(module, groups, config, plain=False)
    assert columns == pytest.approx(by_transformers, rel=1e-3, abs=2e-6)
    assert (weights - others).norm() < 1e-2 * (weights - run(module, groups, settings())[1]).norm()


def test_first_step_is_on_policy_and_a_carried_group_is_clipped(tiny: Callable[..., Any]) -> None:
    module = tiny()
    groups = sampled(module)
    columns, _ = run(module, groups, settings())
    assert columns["ratio/max"] == pytest.approx(1.0, abs=1e-4)
    assert columns["clip_fraction"] == 0.0
    assert columns["mismatch/max"] < 2e-5
    # The same groups, carried over from an update whose policy was another: nothing to compare, and ratios off 1.
    other = tiny(seed=1)
    carried = [replace(g, born=0) for g in sampled(other)]
    columns, _ = run(module, carried, settings())
    assert "mismatch/max" not in columns
    assert columns["clip_fraction"] > 0.1 and columns["ratio/max"] > 1.28


def test_loss_by_hand(tiny: Callable[..., Any]) -> None:
    """On policy the ratio is 1, so the loss is minus the token mean of the advantages."""
    module = tiny()
    groups = sampled(module)
    found = advantages(groups, settings().fr3e, settings().adv, "0/update1")
    lengths = [[r.continuation_len for r in g.rollouts] for g in groups]
    total = sum(float(np.dot(a.modulated, n)) for a, n in zip(found, lengths, strict=True))
    columns, _ = run(module, groups, settings())
    assert columns["loss"] == pytest.approx(-total / sum(map(sum, lengths)), abs=1e-6)


def test_prefix_loss_trains_the_prefix(tiny: Callable[..., Any]) -> None:
    module = tiny()
    groups = sampled(module)
    rows, normaliser = trained_groups(
        groups, advantages(groups, settings().fr3e, settings().adv, "s"), settings(fr3e={"prefix_loss": True}), 1
    )
    assert normaliser == sum(len(r.response_ids) for g in groups for r in g.rollouts)
    assert {row.context for row in rows} == {g.prompt.token_ids for g in groups}


def test_kl_and_entropy_terms(tiny: Callable[..., Any]) -> None:
    module, other = tiny(), tiny(seed=1)
    groups = sampled(module)
    plain, _ = run(module, groups, settings())
    with_kl, _ = run(module, groups, settings(loss={"kl": 0.5}), reference=other)
    itself, _ = run(module, groups, settings(loss={"kl": 0.5}), reference=module)
    assert with_kl["loss"] > plain["loss"] + 0.1
    assert itself["loss"] == pytest.approx(plain["loss"], abs=1e-6)
    bonus, _ = run(module, groups, settings(loss={"entropy": 0.1}))
    entropies = np.concatenate([r.entropies[r.prefix_len :] for g in groups for r in g.rollouts])
    assert bonus["loss"] == pytest.approx(plain["loss"] - 0.1 * float(entropies.mean()), abs=1e-5)


def test_nan_is_refused_with_update_and_prompt(tiny: Callable[..., Any]) -> None:
    module = tiny()
    groups = sampled(module)
    bad = groups[2].rollouts[1]
    broken = replace(bad, logprobs=np.full_like(bad.logprobs, np.nan))
    damaged = [*groups[:2], replace(groups[2], rollouts=(groups[2].rollouts[0], broken)), *groups[3:]]
    with pytest.raises(UserError, match="update 1, prompt 0/p2: the policy loss is nan; nothing was changed"):
        run(module, damaged, settings())
    module.model.norm.weight.data[0] = float("nan")
    with pytest.raises(UserError, match="update 1, prompt 0/p0: logits hold NaN"):
        run(module, groups, settings())


def test_token_advantages_of_chains(tiny: Callable[..., Any]) -> None:
    """VinePPO's advantages differ by token; the loss on policy is minus their token mean."""
    module = tiny()
    groups = sampled(module, count=2)
    tokens = tuple(np.arange(len(r.response_ids), dtype=np.float64) for r in groups[0].rollouts)
    mean = np.array([t.mean() for t in tokens])
    found = [
        GroupAdvantages(mean, mean, np.ones(4), tokens),
        advantages(groups, settings().fr3e, settings().adv, "")[1],
    ]
    config = settings()
    updater = Updater(Policy(copy.deepcopy(module)), None, optimiser_for(module, config.optim), config, "0")
    columns = updater.update(groups, found, 1)
    counted = [len(r.response_ids) for r in groups[0].rollouts], [r.continuation_len for r in groups[1].rollouts]
    total = sum(t.sum() for t in tokens) + float(np.dot(found[1].modulated, counted[1]))
    assert columns["loss"] == pytest.approx(-total / (sum(counted[0]) + sum(counted[1])), abs=1e-5)
