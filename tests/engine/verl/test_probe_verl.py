"""The entropy probe as vLLM drives it: requests come, move, are preempted and end; values leave by request.

vLLM itself calls it in test_training_verl.py, where its entropies are compared with a forward pass.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("vllm")

from vllm.v1.sample.logits_processor.interface import BatchUpdate, MoveDirectionality

from fr3e.algorithm.entropy import entropy_and_logprobs, topk_entropy
from fr3e.engine.verl import entropy_probe
from fr3e.engine.verl.entropy_probe import EntropyProbe

pytestmark = pytest.mark.verl
VOCABULARY, SLOTS = 50, 2


@pytest.fixture
def probe() -> EntropyProbe:
    sizes = SimpleNamespace(
        model_config=SimpleNamespace(max_model_len=16), scheduler_config=SimpleNamespace(max_num_seqs=SLOTS)
    )
    return EntropyProbe(sizes, torch.device("cpu"), False)


def params(key: str | None, topk: int = 0) -> Any:
    return SimpleNamespace(extra_args=None if key is None else {"entropy_key": key, "entropy_topk": topk})


def update(size: int, added: Any = (), removed: Any = (), moved: Any = ()) -> BatchUpdate:
    return BatchUpdate(batch_size=size, removed=list(removed), added=list(added), moved=list(moved))


def step(probe: EntropyProbe, rows: list[list[int]], generator: torch.Generator) -> torch.Tensor:
    """One decoding step: exact entropies [B] of random logits; each row's token list then grows by one."""
    logits = torch.randn(len(rows), VOCABULARY, generator=generator) * 3
    before = logits.clone()
    assert torch.equal(probe.apply(logits), before), "logits are only read"
    for tokens in rows:
        tokens.append(7)
    return entropy_and_logprobs(before, torch.zeros(len(rows), dtype=torch.long))[0]


def test_values_follow_requests_through_moves_and_removals(probe: EntropyProbe) -> None:
    generator = torch.Generator().manual_seed(0)
    a, b, c = [], [], []
    probe.update_state(
        update(3, added=[(0, params("a"), None, a), (1, params("b"), None, b), (2, params(None), None, c)])
    )
    first = step(probe, [a, b, c], generator)
    # c, which nobody watches, changes places with a; b ends and its place is taken by c.
    probe.update_state(update(3, moved=[(0, 2, MoveDirectionality.SWAP)]))
    second = step(probe, [c, b, a], generator)
    probe.update_state(update(2, removed=[1], moved=[(2, 1, MoveDirectionality.UNIDIRECTIONAL)]))
    third = step(probe, [c, a], generator)
    values_a, _ = probe.pop("a", 3)
    values_b, _ = probe.pop("b", 2)
    np.testing.assert_allclose(values_a, torch.stack([first[0], second[2], third[1]]), atol=1e-6)
    np.testing.assert_allclose(values_b, torch.stack([first[1], second[1]]), atol=1e-6)
    assert probe.pop("a", 3) is None, "a request is forgotten once fetched"


def test_a_token_computed_twice_counts_once(probe: EntropyProbe) -> None:
    """A prompt prefilled in two pieces is sampled twice for its first token; a preempted request comes back with its tokens."""
    generator = torch.Generator().manual_seed(1)
    tokens: list[int] = []
    probe.update_state(update(1, added=[(0, params("a"), None, tokens)]))
    step(probe, [[]], generator)  # the first piece's sample is thrown away: the token list does not grow
    kept = step(probe, [tokens], generator)
    probe.update_state(update(0, removed=[0]))
    probe.update_state(update(1, added=[(0, params("a"), None, tokens)]))
    after = step(probe, [tokens], generator)
    np.testing.assert_allclose(probe.pop("a", 2)[0], torch.cat([kept, after]), atol=1e-6)


def test_more_requests_than_slots_make_room(probe: EntropyProbe) -> None:
    generator = torch.Generator().manual_seed(2)
    expected = {}
    for number in range(3 * SLOTS):  # none is fetched before all are done
        tokens: list[int] = []
        probe.update_state(update(1, added=[(0, params(str(number)), None, tokens)]))
        expected[str(number)] = step(probe, [tokens], generator)
        probe.update_state(update(0, removed=[0]))
    for key, value in expected.items():
        np.testing.assert_allclose(probe.pop(key, 1)[0], value, atol=1e-6)


def test_masked_ids_add_nothing_and_top_k_leaves_a_rest(probe: EntropyProbe) -> None:
    tokens: list[int] = []
    probe.update_state(update(1, added=[(0, params("a", topk=5), None, tokens)]))
    logits = torch.randn(1, VOCABULARY, generator=torch.Generator().manual_seed(3))
    logits[:, 40:] = float("-inf")  # verl masks the ids that the tokenizer does not have
    probe.apply(logits)
    exact, top = probe.pop("a", 1)
    assert float(exact) == pytest.approx(
        float(entropy_and_logprobs(logits[:, :40], torch.zeros(1, dtype=torch.long))[0]), abs=1e-6
    )
    assert float(top) == pytest.approx(float(topk_entropy(logits, 5)), abs=1e-6)
    assert float(top) < float(exact)


def test_a_request_past_the_models_length_disturbs_no_other(probe: EntropyProbe) -> None:
    long, other = [7] * 20, []
    probe.update_state(update(2, added=[(0, params("long"), None, long), (1, params("other"), None, other)]))
    expected = step(probe, [long, other], torch.Generator().manual_seed(4))
    np.testing.assert_allclose(probe.pop("other", 1)[0], expected[1:], atol=1e-6)


def test_values_leave_the_worker_as_bytes(probe: EntropyProbe) -> None:
    tokens: list[int] = []
    probe.update_state(update(1, added=[(0, params("bytes"), None, tokens)]))
    expected = step(probe, [tokens], torch.Generator().manual_seed(5))
    extension = entropy_probe.FR3EWorkerExtension.pop_entropies
    values, top = extension(None, "bytes", 1)
    np.testing.assert_allclose(np.frombuffer(values, np.float32), expected, atol=1e-6)
    assert extension(None, "bytes", 1) is None and len(top) == 4
