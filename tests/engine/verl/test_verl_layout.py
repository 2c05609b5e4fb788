"""Rows among ranks and mini-batches, and what the loss needs of each: nothing may depend on where a row stands."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fr3e.algorithm.advantage import advantages
from fr3e.config.training import TrainingConfig
from fr3e.engine.verl.layout import layout, row_losses
from tests.made_groups import group, random_groups

MINIBATCHES = st.lists(st.lists(st.integers(1, 500), min_size=1, max_size=40), min_size=1, max_size=5)


@given(MINIBATCHES, st.integers(1, 8))
def test_verls_plain_cut_gives_our_minibatches(lengths: list[list[int]], ranks: int) -> None:
    placed = layout(lengths, ranks)
    per_rank = len(lengths) * placed.cell_rows
    assert len(placed.order) == ranks * per_rank
    numbers = np.cumsum([0, *map(len, lengths)])
    for m in range(len(lengths)):
        # verl gives rank r a run of equal length, and cuts that into mini-batches of equal length.
        starts = [rank * per_rank + m * placed.cell_rows for rank in range(ranks)]
        cell_rows = [row for s in starts for row in placed.order[s : s + placed.cell_rows]]
        assert sorted(row for row in cell_rows if row >= 0) == list(range(numbers[m], numbers[m + 1]))
    padding = sorted(-1 - row for row in placed.order if row < 0)
    assert padding == list(range(placed.padding)), "each padding row stands once"


def test_ranks_get_alike_amounts_of_tokens() -> None:
    # Longest first, each to the rank with fewer tokens: 9 | 8, then 3 to the second (11), then 2 to the first (11).
    placed = layout([[2, 9, 8, 3]], 2)
    assert placed.order == (1, 0, 2, 3) and placed.padding == 0


def test_uneven_minibatches_are_padded_to_equal_cells() -> None:
    placed = layout([[5, 5, 5], [5]], 2)
    assert placed.cell_rows == 2 and placed.padding == 4 and len(placed.order) == 8


def training(**loss: object) -> TrainingConfig:
    return TrainingConfig.model_validate({"loss": loss})


def by_uid(groups: list, settings: TrainingConfig) -> dict:
    found = advantages(groups, settings.fr3e, settings.adv, "seed")
    return {g.uid: a for g, a in zip(groups, found, strict=True)}


def test_weights_and_normaliser_by_hand() -> None:
    # Two rollouts of 2 and 4 trained tokens behind a prefix of 3: token mean divides by 6, sequence mean by 2 rows.
    one = group([1.0, 0.0], prefix=3, lengths=[2, 4], alpha=2.0)
    settings = training()
    losses = row_losses([[one]], by_uid([one], settings), settings, update=1)
    first, second = losses[one.uid, 0], losses[one.uid, 1]
    assert first.weights.tolist() == [0, 0, 0, 1, 1] and second.weights.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert first.normaliser == second.normaliser == 6
    assert first.advantages.tolist() == [1.0] * 5 and second.advantages.tolist() == [-1.0] * 7  # 2 x (r - 0.5)
    settings = training(agg="seq_mean")
    losses = row_losses([[one]], by_uid([one], settings), settings, update=1)
    assert losses[one.uid, 0].weights.tolist() == [0, 0, 0, 0.5, 0.5] and losses[one.uid, 0].normaliser == 2


def test_normalisers_are_counted_per_minibatch() -> None:
    a, b = group([1.0, 0.0], uid="a", lengths=[3, 3]), group([1.0, 0.0], uid="b", lengths=[1, 1])
    settings = training()
    losses = row_losses([[a], [b]], by_uid([a, b], settings), settings, update=1)
    assert losses[a.uid, 0].normaliser == 6 and losses[b.uid, 0].normaliser == 2


def test_a_carried_group_keeps_the_log_probs_it_was_sampled_with() -> None:
    old, new = group([1.0, 0.0], uid="old", born=1), group([1.0, 0.0], uid="new", born=2)
    settings = training()
    losses = row_losses([[old, new]], by_uid([old, new], settings), settings, update=2)
    assert losses[new.uid, 0].old is None
    np.testing.assert_array_equal(losses[old.uid, 1].old, old.rollouts[1].logprobs)


def test_only_the_most_uncertain_tokens_keep_their_loss_under_the_80_20_control() -> None:
    # Entropies are t / 10 of token t, so of 2 x 5 tokens the share 0.2 are the last token of each.
    one = group([1.0, 0.0], lengths=[5, 5])
    settings = training(entropy_token_fraction=0.2)
    losses = row_losses([[one]], by_uid([one], settings), settings, update=1)
    assert losses[one.uid, 0].weights.tolist() == [0, 0, 0, 0, 1] and losses[one.uid, 0].normaliser == 10


@pytest.mark.parametrize("seed", range(5))
def test_every_rollout_has_its_row_whatever_the_order_of_groups(seed: int) -> None:
    groups = random_groups(seed)
    settings = training()
    forwards = row_losses([groups], by_uid(groups, settings), settings, update=1)
    backwards = row_losses([groups[::-1]], by_uid(groups[::-1], settings), settings, update=1)
    assert forwards.keys() == backwards.keys() == {(g.uid, i) for g in groups for i in range(len(g.rollouts))}
    for key, row in forwards.items():
        np.testing.assert_allclose(row.advantages, backwards[key].advantages)
        assert row.normaliser == backwards[key].normaliser
