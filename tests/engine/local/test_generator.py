"""The generator against transformers' forward pass, and its independence of order, batch and path."""

from collections.abc import Callable
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from fr3e.engine.local.generator import LocalGenerator
from fr3e.errors import UserError
from fr3e.exploration.records import Completion, Request

STOP = (3, 7, 11)


def requests(count: int = 9, n: int = 5, seed: int = 0, **changes: Any) -> list[Request]:
    rng = np.random.default_rng(seed)
    return [
        Request(
            prompt_uid=f"p{i}",
            context_ids=tuple(int(t) for t in rng.integers(12, 64, rng.integers(1, 14))),
            n=n,
            max_tokens=int(rng.integers(1, 40)),
            draw=f"draw{i}",
            **changes,
        )
        for i in range(count)
    ]


def ids(results: list[list[Completion]]) -> list[list[tuple[int, ...]]]:
    return [[completion.token_ids for completion in group] for group in results]


def close(one: list[list[Completion]], other: list[list[Completion]]) -> None:
    assert ids(one) == ids(other)
    for x, y in zip(chain(*one), chain(*other), strict=True):
        np.testing.assert_allclose(x.logprobs, y.logprobs, atol=1e-5)
        np.testing.assert_allclose(x.entropies, y.entropies, atol=1e-5)
        assert x.finished == y.finished


def like_the_forward_pass(model: Any, asked: list[Request], plain: bool) -> None:
    """Every completion is whole, and its log-probs and entropies are those of one forward pass over the whole text."""
    for request, group in zip(asked, LocalGenerator(model, STOP, plain=plain).generate_batch(asked), strict=True):
        assert len(group) == request.n
        for completion in group:
            response = completion.token_ids
            assert 1 <= len(response) <= request.max_tokens
            assert completion.finished == (response[-1] in STOP)
            assert completion.finished or len(response) == request.max_tokens
            assert not set(response[:-1]) & set(STOP)
            with torch.no_grad():
                whole = torch.tensor([request.context_ids + response])
                logits = model(whole).logits[0, len(request.context_ids) - 1 : -1].double() / request.temperature
            expected = torch.log_softmax(logits, -1)
            np.testing.assert_allclose(completion.logprobs, expected[range(len(response)), response], atol=1e-5)
            np.testing.assert_allclose(completion.entropies, torch.special.entr(expected.exp()).sum(-1), atol=1e-5)


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_against_the_forward_pass_of_transformers(model: Any, plain: bool, temperature: float) -> None:
    like_the_forward_pass(model, requests(temperature=temperature), plain)


def test_order_and_batch_do_not_matter(model: Any) -> None:
    asked = requests(count=12)
    whole = LocalGenerator(model, STOP).generate_batch(asked)
    shuffled = np.random.default_rng(1).permutation(len(asked))
    again = LocalGenerator(model, STOP).generate_batch([asked[i] for i in shuffled])
    for position, index in enumerate(shuffled):
        for x, y in zip(whole[index], again[position], strict=True):
            assert x.token_ids == y.token_ids
            assert np.array_equal(x.logprobs, y.logprobs) and np.array_equal(x.entropies, y.entropies)
    for rows in (1, 7, 16):
        close(whole, LocalGenerator(model, STOP, batch_rows=rows).generate_batch(asked))
    close(whole, [LocalGenerator(model, STOP).generate_batch([request])[0] for request in asked])


def test_both_paths_give_the_same(model: Any) -> None:
    asked = requests(count=10) + requests(count=4, seed=5, temperature=0.7) + requests(count=3, n=1, temperature=0.0)
    close(
        LocalGenerator(model, STOP, plain=True, batch_rows=13).generate_batch(asked),
        LocalGenerator(model, STOP, plain=False, batch_rows=32).generate_batch(asked),
    )


def test_grouped_heads_and_untied_head(tiny: Callable[..., Any]) -> None:
    module = tiny(seed=3, num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False)
    asked = requests(count=6)
    close(
        LocalGenerator(module, STOP, plain=True).generate_batch(asked),
        LocalGenerator(module, STOP, plain=False).generate_batch(asked),
    )


def test_another_architecture_takes_the_transformers_path() -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=128, initializer_range=0.3,
    )  # fmt: skip
    generator = LocalGenerator(LlamaForCausalLM(config).eval(), STOP)
    assert not generator.plain
    asked = requests(count=4)
    close(generator.generate_batch(asked), [generator.generate_batch([request])[0] for request in asked])


def test_rows_draws_and_seeds_differ(model: Any) -> None:
    request = Request("p", (20, 21), 4, 30, "a")
    other = Request("p", (20, 21), 4, 30, "b")
    group, again = LocalGenerator(model, STOP).generate_batch([request, other])
    assert len({completion.token_ids for completion in group + again}) == 8
    reseeded = LocalGenerator(model, STOP, seed=1).generate_batch([request])[0]
    assert all(x.token_ids != y.token_ids for x, y in zip(group, reseeded, strict=True))


def test_a_group_grows_by_rows(model: Any) -> None:
    """Row r of a draw is the same sample whether 3 or 8 are asked for."""
    few, many = (Request("p", (30, 31, 32), n, 20, "d") for n in (3, 8))
    generator = LocalGenerator(model, STOP)
    assert ids(generator.generate_batch([few]))[0] == ids(generator.generate_batch([many]))[0][:3]


def test_shared_prefill_is_counted(model: Any) -> None:
    group = LocalGenerator(model, STOP).generate_batch([Request("p", (20, 21, 22), 4, 5, "d")])[0]
    assert [completion.cached_tokens for completion in group] == [0, 3, 3, 3]


def test_topk_entropy(model: Any) -> None:
    request = Request("p", (20, 21), 3, 12, "d")
    for k, bound in ((2, 1.0986), (64, np.log(64))):
        for completion in LocalGenerator(model, STOP, topk_entropy_k=k).generate_batch([request])[0]:
            assert completion.topk_entropies is not None
            assert (completion.topk_entropies <= completion.entropies + 1e-5).all()
            assert (completion.topk_entropies <= bound).all()
            if k == 64:
                np.testing.assert_allclose(completion.topk_entropies, completion.entropies, atol=1e-5)


def test_edges(model: Any) -> None:
    generator = LocalGenerator(model, STOP)
    assert generator.generate_batch([]) == []
    empty = generator.generate_batch([Request("p", (20,), 2, 0, "d")])[0]
    assert [completion.token_ids for completion in empty] == [(), ()]
    assert not any(completion.finished for completion in empty)
    everything = LocalGenerator(model, range(64)).generate_batch([Request("p", (20,), 2, 9, "d")])[0]
    assert [len(completion.token_ids) for completion in everything] == [1, 1]


def test_cache_grows_past_its_first_slots(model: Any) -> None:
    request = Request("p", (20, 21), 2, 100, "d")
    close(
        LocalGenerator(model, (), plain=True).generate_batch([request]),
        LocalGenerator(model, (), plain=False).generate_batch([request]),
    )


def test_refusals(model: Any, tiny: Callable[..., Any]) -> None:
    generator = LocalGenerator(model, STOP)
    with pytest.raises(UserError, match="prompt p7: 120 context tokens \\+ 20 new tokens = 140, the model has 128"):
        generator.generate_batch([Request("p7", (20,) * 120, 1, 20, "d")])
    with pytest.raises(UserError, match="prompt p8: empty context"):
        generator.generate_batch([Request("p8", (), 1, 20, "d")])
    with pytest.raises(UserError, match="not a model folder"):
        LocalGenerator("no/such/folder", STOP)
    broken = tiny()
    broken.model.norm.weight.data.fill_(float("nan"))
    for k in (None, 3):
        with pytest.raises(UserError, match="prompt p9: the model's logits are not numbers at response token 0"):
            LocalGenerator(broken, STOP, topk_entropy_k=k).generate_batch([Request("p9", (20,), 1, 20, "d")])


def test_a_model_without_a_cache_is_refused(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`forward` would swallow the unknown word and write from the last token alone."""
    monkeypatch.setattr(model, "forward", lambda input_ids, **swallowed: None)
    with pytest.raises(UserError, match=r"Qwen2ForCausalLM: forward takes no cache .* named cache or past_key_values"):
        LocalGenerator(model, STOP, plain=False).generate_batch(requests(count=1))


def test_long_prefill_in_parts(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = requests(count=8)
    whole = LocalGenerator(model, STOP).generate_batch(asked)
    monkeypatch.setattr("fr3e.engine.local.decode.SCORES", 2 * 13 * 13 * 2)
    close(whole, LocalGenerator(model, STOP).generate_batch(asked))
    assert all(a != b for a, b in pairwise([request.draw for request in asked]))


def short_of_positions(positions: int) -> list[Request]:
    """Every request may fill the model's positions. The first ends long before the others, so that its row, still in the
    batch, is carried past them."""
    long = Request("long", tuple(range(12, 12 + 40)) * 3, 2, positions - 120, "long")
    return [long, *(Request(f"p{i}", (20 + i, 21), 3, positions - 2, f"short{i}") for i in range(6))]


@pytest.mark.parametrize("plain", [True, False])
def test_ended_rows_do_not_pass_the_last_position(model: Any, plain: bool) -> None:
    asked, generator = short_of_positions(128), LocalGenerator(model, (), plain=plain)
    together = generator.generate_batch(asked)
    assert [len(group[0].token_ids) for group in together] == [8, *[126] * 6]
    close(together, [generator.generate_batch([request])[0] for request in asked])


def test_ended_rows_do_not_pass_the_last_learned_position() -> None:
    """Where positions are a table of the model, transformers has no row for one beyond its end."""
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=2, n_positions=128, initializer_range=0.3)
    generator = LocalGenerator(GPT2LMHeadModel(config).eval(), ())
    asked = short_of_positions(128)
    close(generator.generate_batch(asked), [generator.generate_batch([request])[0] for request in asked])
