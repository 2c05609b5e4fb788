"""FR3E with K = 0 and no first return is plain GRPO++ to the bit: tokens, advantages, loss, weights after three updates."""

import asyncio

import numpy as np
import pytest
import torch

from fr3e.algorithm.advantage import advantages
from fr3e.algorithm.entropy import selected_logprobs
from fr3e.algorithm.filtering import full, select, trainable
from fr3e.algorithm.loss import policy_loss, token_weights, trained_tokens
from fr3e.config import TrainingConfig, load_scenario
from fr3e.config.load import training
from fr3e.exploration import explore_round
from tests.markov_policy import SPECIAL, MarkovPolicy, grade, prompts, token_text
from tests.reference_grpo import advantage, clipped_loss, keep_mixed

UPDATES, PER_ROUND, GROUPS, N, LIMIT = 3, 4, 6, 5, 20
CONFIG = TrainingConfig.model_validate(
    {
        "rollout": {"max_total_tokens": LIMIT, "prompts_per_round": PER_ROUND},
        "fr3e": {"first_n": 0, "num_anchors": 0, "rollouts_per_state": N},
        "accum": {"groups_per_update": GROUPS, "overflow": "drop"},
        "optim": {"lr": 0.05, "minibatches": 1},
    }
)


def forward(table: torch.Tensor, before: list[int], tokens: list[int]) -> torch.Tensor:
    """Log-probs of `tokens`, each after the token in `before`; the policy itself, the same for both trainers."""
    return selected_logprobs(table[torch.tensor(before)], torch.tensor(tokens))[0]


def fr3e_run() -> tuple[list, torch.Tensor]:
    """Three updates through the package."""
    policy = MarkovPolicy(seed=3)
    policy.table.requires_grad_()
    optimiser = torch.optim.AdamW([policy.table], lr=CONFIG.optim.lr)
    options = {"special_ids": SPECIAL, "token_text": token_text, "seed": "s"}
    log, start = [], 0
    for update in range(UPDATES):
        pool = []
        while not full(pool, CONFIG.accum):
            batch = prompts(PER_ROUND, start=start)
            start += PER_ROUND
            found = asyncio.run(explore_round(batch, CONFIG, policy, grade, update=update, **options))
            pool += [g for e in found for g in trainable(e.groups, CONFIG.accum, CONFIG.adv)]
        # Carrying is switched off by hand: the oldest are taken, the others forgotten, as the reference does.
        trained = select(pool, CONFIG.accum.model_copy(update={"overflow": "carry"}), "s").trained
        found = advantages(trained, CONFIG.fr3e, CONFIG.adv, "s")
        rows = [
            (g.prompt.token_ids[-1], r, a.per_token(m, len(r.response_ids)))
            for g, a in zip(trained, found, strict=True)
            for m, r in enumerate(g.rollouts)
        ]
        before = [t for last, r, _ in rows for t in (last, *r.response_ids[:-1])]
        tokens = [t for _, r, _ in rows for t in r.response_ids]
        weights, normaliser = token_weights([trained_tokens(r, False) for _, r, _ in rows], CONFIG.loss.agg)
        loss, _ = policy_loss(
            forward(policy.table, before, tokens),
            torch.tensor(np.concatenate([r.logprobs for _, r, _ in rows]), dtype=torch.float64),
            torch.tensor(np.concatenate([a for _, _, a in rows])),
            torch.tensor(np.concatenate(weights)),
            CONFIG.loss,
            normaliser,
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        log.append(([r.response_ids for _, r, _ in rows], [a.modulated.tolist() for a in found], loss.item()))
    return log, policy.table.detach()


def reference_run() -> tuple[list, torch.Tensor]:
    """Three updates written out: sample, grade, reject, subtract the mean, clip, step."""
    policy = MarkovPolicy(seed=3)
    policy.table.requires_grad_()
    optimiser = torch.optim.AdamW([policy.table], lr=0.05)
    log, start = [], 0
    for _ in range(UPDATES):
        answers, rewards, lasts = {}, {}, {}
        while sum(min(r) != max(r) for r in rewards.values()) < GROUPS:
            for prompt in prompts(PER_ROUND, start=start):
                logprobs, last = policy.logprobs(), prompt.token_ids[-1]
                answers[prompt.uid] = [
                    policy.sample(logprobs, last, f"s/{prompt.uid}/b0k0", i, LIMIT) for i in range(N)
                ]
                rewards[prompt.uid] = [
                    1.0 if sum(c.token_ids) % int(prompt.gold) == 0 else 0.0 for c in answers[prompt.uid]
                ]
                lasts[prompt.uid] = last
            start += PER_ROUND
        kept = keep_mixed(list(rewards.items()), GROUPS)
        before, tokens, old, per_token, per_row = [], [], [], [], []
        for uid in kept:
            per_row.append(advantage(rewards[uid]))
            for completion, a in zip(answers[uid], per_row[-1], strict=True):
                before += [lasts[uid], *completion.token_ids[:-1]]
                tokens += completion.token_ids
                old += completion.logprobs.tolist()
                per_token += [a] * len(completion.token_ids)
        loss = clipped_loss(
            forward(policy.table, before, tokens),
            torch.tensor(old, dtype=torch.float64),
            torch.tensor(per_token, dtype=torch.float64),
            0.22,
            0.28,
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        log.append(([c.token_ids for uid in kept for c in answers[uid]], per_row, loss.item()))
    return log, policy.table.detach()


def test_three_updates_are_equal_to_the_bit() -> None:
    ours, our_weights = fr3e_run()
    theirs, their_weights = reference_run()
    assert len(ours) == UPDATES
    for (tokens, found, loss), (other_tokens, other, other_loss) in zip(ours, theirs, strict=True):
        assert tokens == other_tokens
        assert found == other
        assert loss == other_loss
    assert torch.equal(our_weights, their_weights)
    assert not torch.equal(our_weights, MarkovPolicy(seed=3).table)


@pytest.mark.parametrize("scenario", ["demo", "paper"])
def test_the_baseline_arm_is_that_reduction(scenario: str) -> None:
    loaded = load_scenario(f"config/{scenario}.yaml")
    settings = training(loaded, "grpo_pp", next(iter(loaded.models))).fr3e
    assert (settings.first_n, settings.num_anchors, settings.include_root, settings.rollouts_per_state) == (
        0,
        0,
        True,
        16,
    )
