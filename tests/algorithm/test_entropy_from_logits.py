"""Entropy and log-probs from logits: worked values, a slow reference, gradients, refusals, memory."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fr3e.algorithm.entropy import (
    entropy_and_logprobs,
    selected_logprobs,
    topk_entropy,
    topk_entropy_from_logprobs,
)

ROOT = Path(__file__).resolve().parents[2]


def slow_entropy(row: list[float], temperature: float) -> tuple[float, list[float]]:
    """Entropy and log-probs of one row, one token at a time, in float64."""
    scaled = [x / temperature for x in row]
    peak = max(scaled)
    norm = peak + math.log(sum(math.exp(x - peak) for x in scaled))
    logprobs = [x - norm for x in scaled]
    return -sum(math.exp(lp) * lp for lp in logprobs if lp > -math.inf), logprobs


def test_worked_values() -> None:
    # p = (1/2, 1/4, 1/4): H = 1/2 log 2 + 2 * 1/4 log 4 = 1.5 log 2.  p = (1, 0, 0): H = 0.  Uniform over 3: H = log 3.
    logits = torch.tensor([[math.log(2), 0.0, 0.0], [7.0, -math.inf, -math.inf], [5.0, 5.0, 5.0]])
    entropy_T, logprob_T = entropy_and_logprobs(logits, torch.tensor([0, 0, 2]))
    assert entropy_T.tolist() == pytest.approx([1.5 * math.log(2), 0.0, math.log(3)], abs=1e-6)
    assert logprob_T.tolist() == pytest.approx([-math.log(2), 0.0, -math.log(3)], abs=1e-6)
    # Top 2 and the rest as one mass: (1/2, 1/4 | 1/4) is the same here; top 1: (1/2 | 1/2), H = log 2.
    assert topk_entropy(logits[:1], 2).item() == pytest.approx(1.5 * math.log(2), abs=1e-6)
    assert topk_entropy(logits[:1], 1).item() == pytest.approx(math.log(2), abs=1e-6)


def test_temperature_flattens() -> None:
    # Logits (2 log 2, 0) at temperature 2 are (log 2, 0): p = (2/3, 1/3).
    entropy_T, logprob_T = entropy_and_logprobs(torch.tensor([[2 * math.log(2), 0.0]]), torch.tensor([1]), 2.0)
    assert entropy_T.item() == pytest.approx(math.log(3) - 2 / 3 * math.log(2), abs=1e-6)
    assert logprob_T.item() == pytest.approx(-math.log(3), abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    count=st.integers(1, 7),
    vocabulary=st.integers(1, 60),
    temperature=st.sampled_from([0.3, 1.0, 1.7]),
    chunk_bytes=st.sampled_from([1, 300, None]),
    banned=st.booleans(),
)
def test_equals_the_slow_reference(seed, count, vocabulary, temperature, chunk_bytes, banned) -> None:
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, vocabulary, generator=rng) * 4 + 20
    token_ids = torch.randint(0, vocabulary, (count,), generator=rng)
    if banned and vocabulary > 1:
        logits[:, int(torch.randint(0, vocabulary, (1,), generator=rng))] = -math.inf
    entropy_T, logprob_T = entropy_and_logprobs(logits, token_ids, temperature, chunk_bytes)
    approximate_T = topk_entropy(logits, 5, temperature, chunk_bytes)
    for t in range(count):
        entropy, logprobs = slow_entropy(logits[t].tolist(), temperature)
        assert entropy_T[t].item() == pytest.approx(entropy, abs=5e-6)
        assert logprob_T[t].item() == pytest.approx(logprobs[token_ids[t]], abs=5e-5)
        top = sorted(logprobs, reverse=True)[:5]
        rest = max(0.0, 1 - sum(map(math.exp, top)))
        expected = -sum(math.exp(lp) * lp for lp in top if lp > -math.inf) - (rest * math.log(rest) if rest else 0)
        assert approximate_T[t].item() == pytest.approx(expected, abs=2e-5)
        assert approximate_T[t].item() <= entropy_T[t].item() + 2e-5


def test_chunks_do_not_change_a_bit() -> None:
    logits, token_ids = torch.randn(33, 257), torch.arange(33)
    whole = entropy_and_logprobs(logits, token_ids, chunk_bytes=1 << 30)
    for chunk_bytes in (1, 5000, 20000):
        for a, b in zip(whole, entropy_and_logprobs(logits, token_ids, chunk_bytes=chunk_bytes), strict=True):
            assert torch.equal(a, b)


def test_low_precision_logits_are_read_exactly() -> None:
    logits, token_ids = (torch.randn(5, 100) * 5).bfloat16(), torch.arange(5)
    for low, full in zip(
        entropy_and_logprobs(logits, token_ids), entropy_and_logprobs(logits.float(), token_ids), strict=True
    ):
        assert low.dtype == torch.float32
        assert torch.equal(low, full)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nan_is_refused_with_its_position(bad: float) -> None:
    logits = torch.zeros(6, 10)
    logits[4, 3] = bad
    for function in (entropy_and_logprobs, selected_logprobs):
        with pytest.raises(FloatingPointError, match="first at position 4"):
            function(logits, torch.zeros(6, dtype=torch.long))
    with pytest.raises(FloatingPointError):
        topk_entropy(logits, 3)
    with pytest.raises(FloatingPointError):
        entropy_and_logprobs(torch.full((1, 4), -math.inf), torch.tensor([0]))


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match="token_ids"):
        entropy_and_logprobs(torch.zeros(3, 5), torch.zeros(2, dtype=torch.long))
    empty, nothing = entropy_and_logprobs(torch.zeros(0, 5), torch.zeros(0, dtype=torch.long))
    assert len(empty) == len(nothing) == 0


@pytest.mark.parametrize("chunk_bytes", [1, None])
def test_gradients_are_those_of_log_softmax(chunk_bytes: int | None) -> None:
    torch.manual_seed(0)
    logits = torch.randn(6, 9, dtype=torch.float64, requires_grad=True)
    token_ids, weight, other = torch.randint(0, 9, (6,)), torch.randn(6).double(), torch.randn(6).double()
    logprob_T, entropy_T = selected_logprobs(logits, token_ids, 0.7, with_entropy=True, chunk_bytes=chunk_bytes)
    ((logprob_T * weight).sum() + (entropy_T * other).sum()).backward()
    ours, logits.grad = logits.grad, None
    full = torch.log_softmax(logits / 0.7, -1)
    expected_H = -(full.exp() * full).sum(-1)
    ((full[torch.arange(6), token_ids] * weight).sum() + (expected_H * other).sum()).backward()
    assert torch.allclose(entropy_T, expected_H, atol=1e-13)
    assert torch.allclose(ours, logits.grad, atol=1e-13)
    assert torch.autograd.gradcheck(lambda x: selected_logprobs(x, token_ids, 0.7, True, chunk_bytes), (logits,))


def test_gradient_passes_banned_tokens_by() -> None:
    logits = torch.tensor([[0.0, -math.inf, 1.0]], requires_grad=True)
    logprob_T, entropy_T = selected_logprobs(logits, torch.tensor([2]), with_entropy=True)
    (logprob_T + entropy_T).sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert logits.grad[0, 1] == 0


def test_approximate_entropy_of_logprobs_with_nothing_left() -> None:
    p = torch.tensor([[0.5, 0.25, 0.25]])
    assert topk_entropy_from_logprobs(p.log()).item() == pytest.approx(1.5 * math.log(2), abs=1e-6)


MEMORY = """
import resource, torch
from fr3e.algorithm.entropy import CPU_CHUNK_BYTES, entropy_and_logprobs
torch.set_num_threads(1)
logits, ids = torch.randn(200, 151936), torch.arange(200)
entropy_and_logprobs(logits[:1], ids[:1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
entropy_and_logprobs(logits, ids)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, CPU_CHUNK_BYTES, logits.numel() * 4)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read in Linux's unit")
def test_peak_memory_at_the_vocabulary_of_qwen() -> None:
    """200 rows of 151,936 logits are 116 MiB; beside them no more than one chunk may live."""
    run = subprocess.run(
        [sys.executable, "-c", MEMORY],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    extra, chunk, logits = map(int, run.stdout.split())
    assert logits > 7 * chunk
    assert extra <= chunk + (2 << 20)
