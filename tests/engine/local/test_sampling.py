"""Sampling by the inverse CDF, against hand-worked and obvious references."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fr3e.engine.local.sampling import sample_tokens

ROOT = Path(__file__).resolve().parents[3]


def test_worked_example() -> None:
    # p = (1/2, 1/4, 1/4); the running sum is .5 .75 1.
    logits = torch.tensor([[math.log(2.0), 0.0, 0.0]] * 4)
    ids, logprobs, entropies = sample_tokens(logits, torch.tensor([0.49, 0.51, 0.76, 0.999]), 1.0)
    assert ids.tolist() == [0, 1, 2, 2]
    assert logprobs.tolist() == pytest.approx([math.log(0.5)] + [math.log(0.25)] * 3, abs=1e-6)
    # H = 1/2 log 2 + 2 * 1/4 log 4 = 1.5 log 2
    assert entropies.tolist() == pytest.approx([1.5 * math.log(2)] * 4, abs=1e-6)


def test_temperature_changes_the_distribution_that_is_reported() -> None:
    # At T = 1/2 the logits double: p = (4, 1, 1) / 6.
    logits = torch.tensor([[math.log(2.0), 0.0, 0.0]])
    ids, logprobs, entropies = sample_tokens(logits, torch.tensor([0.7]), 0.5)
    assert ids.tolist() == [1]
    assert logprobs.item() == pytest.approx(math.log(1 / 6), abs=1e-6)
    assert entropies.item() == pytest.approx(-(4 / 6 * math.log(4 / 6) + 2 / 6 * math.log(1 / 6)), abs=1e-6)


def test_greedy_takes_the_likeliest() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0], [2.0, 2.0, 1.0]])
    ids, logprobs, _ = sample_tokens(logits, torch.tensor([0.99, 0.99]), 0.0)
    assert ids.tolist() == [1, 0]
    assert logprobs[0].item() == pytest.approx(torch.log_softmax(logits, -1)[0, 1].item(), abs=1e-6)


def test_nucleus_keeps_the_smallest_set_that_reaches_the_mass() -> None:
    # p = (.1, .5, .4): with top_p .6 tokens 1 and 2 remain at 5/9 and 4/9; log-probs stay those of the full softmax.
    logits = torch.tensor([[0.1, 0.5, 0.4]]).log().repeat(3, 1)
    ids, logprobs, _ = sample_tokens(logits, torch.tensor([0.01, 0.55, 0.56]), 1.0, top_p=0.6)
    assert ids.tolist() == [1, 1, 2]
    assert logprobs[2].item() == pytest.approx(math.log(0.4), abs=1e-6)


def test_excluded_tokens_and_chunks() -> None:
    torch.manual_seed(0)
    logits = torch.randn(50, 40) * 3
    logits[:, 7] = -torch.inf
    draws = torch.rand(50, dtype=torch.float64)
    whole = sample_tokens(logits, draws, 1.0)
    p = torch.softmax(logits.double(), -1)
    expected = [int((row.cumsum(0) <= draw).sum()) for row, draw in zip(p, draws, strict=True)]
    assert whole[0].tolist() == expected
    assert 7 not in whole[0]
    assert torch.allclose(whole[2].double(), torch.special.entr(p).sum(-1), atol=1e-5)
    for temperature, top_p in ((1.0, 1.0), (0.7, 1.0), (0.0, 1.0), (1.0, 0.8)):
        whole = sample_tokens(logits, draws, temperature, top_p)
        for chunk_bytes in (1, 5000, 60_000):
            for one, other in zip(whole, sample_tokens(logits, draws, temperature, top_p, chunk_bytes), strict=True):
                assert torch.equal(one, other)


MEMORY = """
import resource, torch
from fr3e.algorithm.entropy import CPU_CHUNK_BYTES
from fr3e.engine.local.generator import topk_entropies
from fr3e.engine.local.sampling import sample_tokens
torch.set_num_threads(1)
logits, draws = torch.randn(200, 151936), torch.rand(200, dtype=torch.float64)
work = lambda rows: {work}
work(slice(0, 1))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
work(slice(0, 200))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, CPU_CHUNK_BYTES, logits.numel() * 4)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read in Linux's unit")
@pytest.mark.parametrize(
    "work",
    [
        "sample_tokens(logits[rows], draws[rows], 1.0)",
        "sample_tokens(logits[rows], draws[rows], 0.7)",
        "sample_tokens(logits[rows], draws[rows], 1.0, 0.9)",
        "topk_entropies(logits[rows], 20, 0.7)",
    ],
)
def test_peak_memory_at_the_vocabulary_of_qwen(work: str) -> None:
    """200 rows of 151,936 logits are 116 MiB; beside them no more than about one chunk may live."""
    run = subprocess.run(
        [sys.executable, "-c", MEMORY.format(work=work)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    extra, chunk, logits = map(int, run.stdout.split())
    assert logits > 7 * chunk
    assert extra <= 1.25 * chunk, f"{extra / 2**20:.1f} MiB"
