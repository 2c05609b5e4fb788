"""Log-probs with shared contexts against transformers' plain forward pass, values and gradients."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fr3e.engine.local.forward import Policy


def segments(seed: int, groups: int = 4) -> list[Any]:
    rng = np.random.default_rng(seed)

    def ids(low: int, high: int) -> tuple[int, ...]:
        return tuple(int(t) for t in rng.integers(0, 64, rng.integers(low, high)))

    return [
        SimpleNamespace(context=ids(1, 12), responses=[ids(1, 14) for _ in range(rng.integers(1, 5))])
        for _ in range(groups)
    ]


def expected(module: Any, parts: list[Any], temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """One forward pass per response, nothing shared, nothing padded."""
    logprobs, entropies = [], []
    for part in parts:
        for response in part.responses:
            whole = torch.tensor([part.context + response])
            logits = module(whole, use_cache=False).logits[0, len(part.context) - 1 : -1] / temperature
            p = torch.log_softmax(logits, -1)
            logprobs.append(p[range(len(response)), list(response)])
            entropies.append(-(p.exp() * p).sum(-1))
    return torch.cat(logprobs), torch.cat(entropies)


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize(("heads", "kv_heads"), [(2, 1), (4, 2), (2, 2)])
def test_values_and_gradients(tiny: Callable[..., Any], plain: bool, heads: int, kv_heads: int) -> None:
    module = tiny(num_attention_heads=heads, num_key_value_heads=kv_heads)
    for seed in range(3):
        parts = segments(seed)
        pulls = torch.randn(sum(len(r) for part in parts for r in part.responses))
        found = Policy(module, plain=plain).logprobs(parts, 0.8, with_entropy=True)
        wanted = expected(module, parts, 0.8)
        gradients = []
        for logprobs, entropies in (found, wanted):
            module.zero_grad()
            ((logprobs - 0.3 * entropies) * pulls).sum().backward()
            gradients.append(torch.cat([p.grad.flatten() for p in module.parameters()]))
        assert torch.allclose(found[0], wanted[0], atol=1e-5)
        assert torch.allclose(found[1], wanted[1], atol=1e-5)
        assert (gradients[0] - gradients[1]).norm() < 1e-5 * gradients[1].norm()


def test_responses_of_one_token_and_contexts_of_one_token(tiny: Callable[..., Any]) -> None:
    module = tiny()
    parts = [SimpleNamespace(context=(5,), responses=[(9,), (8,)]), SimpleNamespace(context=(6, 7), responses=[(1,)])]
    assert torch.allclose(Policy(module).logprobs(parts, 1.0)[0], expected(module, parts, 1.0)[0], atol=1e-5)


def test_nan_is_refused(tiny: Callable[..., Any]) -> None:
    module = tiny()
    module.model.norm.weight.data[3] = float("nan")
    with pytest.raises(FloatingPointError):
        Policy(module).logprobs(segments(0), 1.0)
