"""The surrogate: worked tokens, slow reference, weights, invariance under micro-batches, masks, refusals."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fr3e.algorithm.loss import combine, highest_entropy_masks, k3, policy_loss, token_weights, trained_tokens
from fr3e.config.training import LossConfig
from tests.algorithm import slow_references
from tests.made_groups import rollout
from tests.reference_grpo import clipped_loss_by_loops


def loss_of(ratios, advantages, mask=None, normaliser=None, **options):
    """Loss of tokens with these ratios."""
    logprobs = torch.tensor([math.log(r) for r in ratios], dtype=torch.float64, requires_grad=True)
    mask = torch.ones(len(ratios), dtype=torch.float64) if mask is None else torch.tensor(mask, dtype=torch.float64)
    total, sums = policy_loss(
        logprobs,
        torch.zeros(len(ratios), dtype=torch.float64),
        torch.tensor(advantages, dtype=torch.float64),
        mask,
        LossConfig(**options),
        normaliser or float(mask.sum()),
    )
    total.backward()
    return total.item(), sums, logprobs.grad


def test_worked_tokens() -> None:
    # eps .22 / .28. A = +1: rho 1.5 is cut to 1.28, 0.5 stays. A = -1: rho 0.5 is cut to .78, 1.5 stays.
    # Objective: 1.28 + .5 - .78 - 1.5 = -.5, loss = .5 / 4.
    loss, sums, gradient = loss_of([1.5, 0.5, 0.5, 1.5], [1.0, 1.0, -1.0, -1.0])
    assert loss == pytest.approx(0.125)
    # No gradient where the clip acts; elsewhere -rho A / 4.
    assert gradient.tolist() == pytest.approx([0.0, -0.125, 0.0, 0.375])
    assert combine([sums]) == pytest.approx(
        {
            "loss": 0.125,
            "clip_fraction": 0.5,
            "ratio/max": 1.5,
            "policy_kl": -(2 * math.log(1.5) + 2 * math.log(0.5)) / 4,
        }
    )


def test_dual_clip_bounds_negative_advantages() -> None:
    # A = -1, rho = 10: objective -10, bounded at c A = -3; A = +1 is untouched by it.
    assert loss_of([10.0], [-1.0])[0] == pytest.approx(10.0)
    assert loss_of([10.0], [-1.0], dual_clip=3.0)[0] == pytest.approx(3.0)
    assert loss_of([10.0], [1.0], dual_clip=3.0)[0] == pytest.approx(-1.28)


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 30))
def test_equals_the_loop_reference(seed, count) -> None:
    rng = np.random.default_rng(seed)
    new, old, a = -rng.random(count), -rng.random(count), rng.normal(size=count)
    expected = clipped_loss_by_loops(new, old, a, 0.22, 0.28)
    got, _ = policy_loss(*map(torch.tensor, (new, old, a, np.ones(count))), LossConfig(), float(count))
    assert got.item() == pytest.approx(expected, abs=1e-12)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), agg=st.sampled_from(["token_mean", "seq_mean"]), parts=st.integers(1, 4))
def test_micro_batches_and_ranks_change_nothing(seed, agg, parts) -> None:
    """The loss and its gradient are sums over rows: however the rows are dealt out, and in whatever order."""
    rng = np.random.default_rng(seed)
    masks = [rng.integers(0, 2, rng.integers(1, 7)).astype(bool) for _ in range(8)]
    if not any(m.any() for m in masks):
        masks[0][:] = True
    weights, normaliser = token_weights(masks, agg)
    rows = [[torch.tensor(rng.normal(size=len(m))) for _ in range(3)] for m in masks]

    def gradient(shares: list[np.ndarray]) -> tuple[float, list[torch.Tensor]]:
        leaves = [row[0].clone().requires_grad_() for row in rows]
        total = 0.0
        for share in shares:
            packed = [torch.cat(parts) for parts in zip(*((leaves[i], *rows[i][1:]) for i in share), strict=True)]
            weight = torch.tensor(np.concatenate([weights[i] for i in share]))
            part, _ = policy_loss(*packed, weight, LossConfig(agg=agg), normaliser)
            part.backward()
            total += part.item()
        return total, [leaf.grad for leaf in leaves]

    whole, expected = gradient([np.arange(8)])
    dealt, got = gradient([s for s in np.array_split(rng.permutation(8), parts) if len(s)])
    assert dealt == pytest.approx(whole, abs=1e-12)
    assert all(torch.allclose(a, b, atol=1e-13) for a, b in zip(got, expected, strict=True))


def test_token_weights() -> None:
    masks = [[False, True, True], [True], [False]]
    assert token_weights(masks, "token_mean")[1] == 3.0
    weights, rows = token_weights(masks, "seq_mean")
    assert [w.tolist() for w in weights] == [[0.0, 0.5, 0.5], [1.0], [0.0]]
    assert rows == 2.0
    with pytest.raises(ValueError, match="seq_mean"):
        policy_loss(*[torch.zeros(2)] * 3, torch.ones(2, dtype=torch.bool), LossConfig(agg="seq_mean"), 1.0)


def test_prefix_tokens_enter_the_loss_only_on_request() -> None:
    row = rollout(1.0, continuation=3, prefix=2)
    assert trained_tokens(row, prefix_loss=False).tolist() == [False, False, True, True, True]
    assert trained_tokens(row, prefix_loss=True).all()


def test_masked_tokens_have_no_part_even_when_infinite() -> None:
    logprobs = torch.tensor([0.0, -math.inf], requires_grad=True)
    total, sums = policy_loss(
        logprobs, torch.tensor([0.0, 0.0]), torch.tensor([1.0, 1.0]), torch.tensor([1.0, 0.0]), LossConfig(), 1.0
    )
    total.backward()
    assert total.item() == -1.0
    assert logprobs.grad.tolist() == [-1.0, 0.0]
    assert sums["tokens"] == 1.0


def test_extreme_ratios_stay_finite_and_nan_is_refused() -> None:
    loss, _, gradient = loss_of([math.exp(300.0)], [-1.0])
    assert loss == pytest.approx(math.exp(20))
    assert torch.isfinite(gradient).all()
    with pytest.raises(FloatingPointError, match="nan"):
        policy_loss(torch.tensor([math.nan]), *[torch.zeros(1)] * 2, torch.ones(1), LossConfig(), 1.0)


def test_entropy_bonus_and_kl() -> None:
    logprobs, zeros = torch.tensor([-1.0, -2.0]), torch.zeros(2)
    loss, _ = policy_loss(
        logprobs, logprobs, zeros, torch.ones(2), LossConfig(entropy=0.1), 2.0, entropies=torch.tensor([1.0, 3.0])
    )
    assert loss.item() == pytest.approx(-0.2)
    # d = log(ref) - log(pi) = (1, 0): k3 = (e - 2, 0).
    reference = torch.tensor([0.0, -2.0])
    assert k3(logprobs, reference).tolist() == pytest.approx([math.e - 2, 0.0], abs=1e-6)
    loss, _ = policy_loss(
        logprobs, logprobs, zeros, torch.ones(2), LossConfig(kl=0.5), 2.0, reference_logprobs=reference
    )
    assert loss.item() == pytest.approx(0.5 * (math.e - 2) / 2)
    with pytest.raises(ValueError, match="entropies"):
        policy_loss(*[zeros] * 3, torch.ones(2), LossConfig(entropy=0.1), 1.0)


def test_the_most_uncertain_fifth_of_a_mini_batch() -> None:
    # Ten trained tokens of two rows; 20 % keeps the two highest, .9 and .8, wherever they stand; 5.0 is not trained.
    entropies = [[5.0, 0.1, 0.2, 0.9, 0.3, 0.0], [0.4, 0.5, 0.6, 0.7, 0.8]]
    masks = [[False, True, True, True, True, True], [True] * 5]
    kept = highest_entropy_masks(entropies, masks, 0.2)
    assert [np.flatnonzero(m).tolist() for m in kept] == [[3], [4]]
    assert [m.tolist() for m in highest_entropy_masks(entropies, masks, 1.0)] == masks
    # Ties at the threshold all stay, so the order of rows is of no account.
    assert [m.tolist() for m in highest_entropy_masks([[1.0, 1.0], [1.0]], [[True, True], [True]], 0.2)] == [
        [True, True],
        [True],
    ]
    assert highest_entropy_masks([], [], 0.2) == []


rows_of_masks = st.lists(st.lists(st.booleans(), max_size=8), max_size=6)


@given(masks=rows_of_masks, agg=st.sampled_from(["token_mean", "seq_mean"]))
def test_token_weights_equal_the_slow_reference(masks, agg) -> None:
    weights, normaliser = token_weights(masks, agg)
    assert ([w.tolist() for w in weights], normaliser) == slow_references.token_weights(masks, agg)


@given(masks=rows_of_masks, fraction=st.sampled_from([0.05, 0.2, 0.5, 0.99, 1.0]), data=st.data())
def test_the_most_uncertain_tokens_equal_the_slow_reference(masks, fraction, data) -> None:
    entropies = [data.draw(st.lists(st.integers(0, 9), min_size=len(m), max_size=len(m))) for m in masks]
    found = highest_entropy_masks(entropies, masks, fraction)
    assert [m.tolist() for m in found] == slow_references.highest_entropy_masks(entropies, masks, fraction)
