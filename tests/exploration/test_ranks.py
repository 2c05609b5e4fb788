"""Prompts of a round spread over data-parallel ranks: the same groups, anchors, alphas and advantages, to the bit."""

import asyncio

import numpy as np
import pytest

from fr3e.algorithm.advantage import advantages
from fr3e.algorithm.filtering import select, trainable
from fr3e.config.training import TrainingConfig
from fr3e.exploration import explore_round
from fr3e.exploration.records import Exploration, Prompt
from tests.exploration.test_golden import settings_of
from tests.exploration.test_one_prompt import same
from tests.markov_policy import SPECIAL, MarkovPolicy, grade, prompts, token_text


def explored(config: TrainingConfig, share: list[Prompt]) -> list[Exploration]:
    """One rank's share, with its own copy of the policy."""
    options = {"special_ids": SPECIAL, "token_text": token_text, "seed": "r", "update": 3}
    return asyncio.run(explore_round(share, config, MarkovPolicy(seed=1), grade, **options))


@pytest.mark.parametrize(
    "arm", ["fr3e", "grpo_pp", "random_anchors", "percentile_anchors", "fr3e_token_matched", "vineppo"]
)
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_change_no_group_anchor_alpha_or_advantage(arm: str, ranks: int) -> None:
    config, many = settings_of(arm), prompts(7)
    whole = explored(config, many)
    shares = [explored(config, many[rank::ranks]) for rank in range(ranks)]
    joined = {e.prompt.uid: e for share in shares for e in share}
    assert all(same(e, joined[e.prompt.uid]) for e in whole) and len(joined) == len(whole)
    dealt = {}
    for share in shares:
        pool = [g for e in share for g in trainable(e.groups, config.accum, config.adv)]
        results = advantages(pool, config.fr3e, config.adv, "r/3")
        dealt |= {g.uid: r for g, r in zip(pool, results, strict=True)}
    pool = [g for e in whole for g in trainable(e.groups, config.accum, config.adv)]
    assert len(pool) == len(dealt) > 0
    for g, result in zip(pool, advantages(pool, config.fr3e, config.adv, "r/3"), strict=True):
        assert np.array_equal(result.alpha, dealt[g.uid].alpha)
        assert np.array_equal(result.modulated, dealt[g.uid].modulated)


@pytest.mark.parametrize("arm", ["fr3e", "shuffled_alpha"])
def test_what_spans_the_update_depends_on_the_joined_pool_alone(arm: str) -> None:
    """Overflow and shuffled alphas are decided over all ranks' groups, in whatever order these arrive."""
    config, many = settings_of(arm), prompts(7)
    found = []
    for shares in ([many], [many[0::2], many[1::2]], [many[4:], many[:4]]):
        pool = [g for s in shares for e in explored(config, s) for g in trainable(e.groups, config.accum, config.adv)]
        selection = select(pool, config.accum, "r/3")
        results = advantages(selection.trained, config.fr3e, config.adv, "r/3")
        alphas = {g.uid: float(r.alpha[0]) for g, r in zip(selection.trained, results, strict=True)}
        found.append((alphas, sorted(g.uid for g in selection.carried)))
    assert found[0] == found[1] == found[2] and found[0][1]
