"""Golden values of the whole chain from sampling to loss: a refactor leaves them identical to the bit.

The policy is a table of logits in float64 and everything before the loss is plain Python and numpy, whose results do not
depend on the processor. To accept an intended change: `python -m tests.exploration.test_golden`.
"""

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fr3e.algorithm.advantage import advantages
from fr3e.algorithm.diagnostics import update_metrics
from fr3e.algorithm.filtering import select, trainable
from fr3e.algorithm.loss import policy_loss, token_weights, trained_tokens
from fr3e.config import TrainingConfig, merge
from fr3e.config.load import arm_chain
from fr3e.exploration import explore_round
from fr3e.files import read_yaml
from tests.markov_policy import SPECIAL, MarkovPolicy, grade, prompts, token_text

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "algorithm.json"
ARMS = [
    "fr3e",
    "grpo_pp",
    "as_released",
    "shuffled_alpha",
    "random_anchors",
    "percentile_anchors",
    "fr3e_token_matched",
]


def settings_of(arm: str) -> TrainingConfig:
    """The arm on fixed sizes, so that no scenario's edit moves the values."""
    values: dict[str, Any] = {
        "rollout": {"max_total_tokens": 20},
        "fr3e": {"num_anchors": 3, "rollouts_per_state": 8},
        "accum": {"groups_per_update": 8},
    }
    for name in arm_chain(arm, ROOT / "config" / "arms"):
        values = merge(values, read_yaml(ROOT / "config" / "arms" / f"{name}.yaml").get("train") or {})
    return TrainingConfig.model_validate(values)


def computed(arm: str) -> dict[str, Any]:
    """What one update of the arm comes to: floats as hexadecimal, so that nothing is rounded."""
    config = settings_of(arm)
    found = asyncio.run(
        explore_round(
            prompts(6),
            config,
            MarkovPolicy(seed=1),
            grade,
            special_ids=SPECIAL,
            token_text=token_text,
            seed="g",
            update=1,
        )
    )
    pool = [g for e in found for g in trainable(e.groups, config.accum, config.adv)]
    selection = select(pool, config.accum, "g/1")
    results = advantages(selection.trained, config.fr3e, config.adv, "g/1")
    metrics = update_metrics(found, selection, results, config.fr3e, token_text=token_text, carried_in=0, rounds=1)
    rows = [
        (r, a.per_token(m, len(r.response_ids)))
        for g, a in zip(selection.trained, results, strict=True)
        for m, r in enumerate(g.rollouts)
    ]
    weights, normaliser = token_weights([trained_tokens(r, config.fr3e.prefix_loss) for r, _ in rows], config.loss.agg)
    old = torch.tensor(np.concatenate([r.logprobs for r, _ in rows]), dtype=torch.float64)
    shift = 0.4 * torch.sin(torch.arange(len(old), dtype=torch.float64))
    a, w = (torch.tensor(np.concatenate(x)) for x in ([a for _, a in rows], weights))
    loss, _ = policy_loss(old + shift, old, a, w, config.loss, normaliser)
    return {
        "anchors": [[list(positions) for positions in e.anchors] for e in found],
        "groups": [[g.uid, g.prefix_len, g.value.hex(), g.alpha.hex()] for e in found for g in e.groups],
        "trained": [
            [g.uid, *(float(x).hex() for x in a.modulated)] for g, a in zip(selection.trained, results, strict=True)
        ],
        "tokens": hashlib.sha256(repr([r.response_ids for r, _ in rows]).encode()).hexdigest(),
        "metrics": {name: value.hex() if isinstance(value, float) else value for name, value in metrics.items()},
        "loss": loss.item(),
    }


@pytest.mark.parametrize("arm", ARMS)
def test_golden_values(arm: str) -> None:
    expected = json.loads(GOLDEN.read_text(encoding="utf-8"))[arm]
    got = json.loads(json.dumps(computed(arm)))
    # exp in torch is vectorised differently on different processors; on one it is exact.
    assert got.pop("loss") == pytest.approx(expected.pop("loss"), rel=1e-12)
    assert got == expected


if __name__ == "__main__":
    GOLDEN.write_text(
        json.dumps({arm: computed(arm) for arm in ARMS}, indent=None, sort_keys=True) + "\n", encoding="utf-8"
    )
