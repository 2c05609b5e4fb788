"""A tiny Qwen2 with random weights, for tests of the local engine."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM


def _tiny(vocab: int = 64, seed: int = 0, **changes: Any) -> Any:
    """Random weights wide enough that distributions are uneven, as a trained model's are."""
    torch.manual_seed(seed)
    settings: dict[str, Any] = {
        "vocab_size": vocab,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 128,
        "tie_word_embeddings": True,
        "initializer_range": 0.2,
    }
    return Qwen2ForCausalLM(Qwen2Config(**settings | changes)).eval()


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Thread count is part of a run's identity."""
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def model() -> Any:
    return _tiny()


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Any]:
    """tiny(vocab, seed, **config changes)"""
    return _tiny
