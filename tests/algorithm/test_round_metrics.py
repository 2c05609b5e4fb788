"""Metrics of a round: prompts, anchors and cost, on explorations made to order."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fr3e.algorithm.advantage import GroupAdvantages, advantages
from fr3e.algorithm.diagnostics import (
    advantage_metrics,
    anchor_metrics,
    prompt_metrics,
    token_metrics,
    trained_metrics,
    update_metrics,
)
from fr3e.algorithm.filtering import Selection
from fr3e.config.training import AdvantageConfig, Fr3eConfig
from fr3e.exploration.records import Cost, Exploration
from tests.made_groups import group, rollout

ROOT = Path(__file__).resolve().parents[2]


def exploration(uid: str, groups=(), first=(), **facts) -> Exploration:
    """An exploration with these groups; its cost is counted from its rollouts."""
    rows = [r for g in groups if not g.first_return for r in g.rollouts]
    cost = Cost(
        rollouts_first=len(first),
        rollouts_explore=len(rows),
        generated_first=sum(len(r.response_ids) for r in first),
        generated_explore=sum(r.continuation_len for r in rows),
        context_first=3 * len(first),
        context_explore=sum(3 + r.prefix_len for r in rows),
        cached=5,
    )
    defaults = {"bases": (), "anchors": (), "dropped": None, "cost": cost}
    return Exploration(group([1], uid=uid).prompt, tuple(first), groups=tuple(groups), **(defaults | facts))


def made() -> tuple[list[Exploration], Selection]:
    """Two prompts: p0 with a mixed root (lengths 2, 4), an all-right state (5 each) and a mixed one that is carried;
    p1 dropped, all right in its first rollouts (3 tokens each). From the update before: `old`, trained, and `late`, dropped."""
    root = group([1, 0], uid="p0", lengths=[2, 4])
    right = group([1, 1], uid="p0", state=1, prefix=1)
    waiting = group([0, 1], uid="p0", state=2, prefix=2, lengths=[3, 3])
    old, late = group([1, 0], uid="p8", born=0, lengths=[7, 7]), group([1, 0], uid="p9", born=0, lengths=[10, 10])
    base = rollout(0.0, 6)
    explorations = [
        exploration(
            "p0", [root, right, waiting], [base, rollout(1.0, 4)], bases=(base,), anchors=((1, 3),), duplicates=1
        ),
        exploration("p1", [], [rollout(1.0, 3), rollout(1.0, 3)], dropped="all_correct"),
    ]
    return explorations, Selection((old, root), (waiting,), (late,))


def test_prompts_and_rewards() -> None:
    metrics = prompt_metrics(made()[0])
    assert metrics == {
        "prompts/sampled": 2,
        "prompts/all_right": 1,
        "prompts/all_wrong": 0,
        "prompts/dropped": 1,
        # First: 0 1 1 1; explored: 1 0, 1 1, 0 1.
        "reward/first": 0.75,
        "reward/explore": pytest.approx(4 / 6),
        "verdicts": {"correct": 7, "wrong": 3},
    }


def test_cost_counts_each_token_once() -> None:
    # Generated: first 6 + 4 + 3 + 3 = 16, explored 6 + 10 + 6 = 22. Of these the root (6) is trained and `waiting` (6) waits;
    # `old` was counted when it was made. `late`, made before, is given up now: 20 more.
    metrics = token_metrics(*made(), prefix_loss=False)
    assert metrics["tokens/generated_first"] == 16
    assert metrics["tokens/generated_explore"] == 22
    assert metrics["tokens/discarded"] == 38 - 12 + 20
    # By stage: no first rollout is trained on.
    assert (metrics["tokens/discarded_first"], metrics["tokens/discarded_explore"]) == (16, 22 - 12 + 20)
    assert metrics["tokens/trained"] == 14 + 6
    # 4 first rollouts of 3 context tokens; 2 of 3, 2 of 4, 2 of 5.
    assert metrics["tokens/prefill"] == 12 + 24
    assert (metrics["tokens/prefill_first"], metrics["tokens/prefill_explore"]) == (12, 24)
    assert metrics["tokens/prefill_cached"] == 10
    assert (metrics["rollouts/first"], metrics["rollouts/explore"]) == (4, 6)


def test_every_generated_token_is_discarded_or_trained_in_the_end() -> None:
    """Over two updates: what the first carries the second trains, and nothing is counted twice."""
    explorations, _ = made()
    root, _, waiting = explorations[0].groups
    first = token_metrics(explorations, Selection((root,), (waiting,), ()), False)
    second = token_metrics([], Selection((waiting,), (), ()), False)
    generated = first["tokens/generated_first"] + first["tokens/generated_explore"]
    ended = sum(m["tokens/discarded"] + m["tokens/trained"] for m in (first, second))
    assert generated == ended


def test_first_rollouts_that_are_trained_on_are_not_discarded() -> None:
    # Two first rollouts of 4 and 6 tokens are one group of their own; the root's 2 + 4 explored tokens are filtered out.
    taken = group([1, 0], uid="p0", lengths=[4, 6], first_return=True)
    found = exploration("p0", [taken, group([1, 1], uid="p0", lengths=[2, 4])], taken.rollouts)
    metrics = token_metrics([found], Selection((taken,), (), ()), prefix_loss=False)
    assert (metrics["tokens/discarded_first"], metrics["tokens/discarded_explore"]) == (0, 6)
    assert metrics["tokens/discarded"] == 6


def test_prefix_tokens_are_trained_tokens_with_prefix_loss() -> None:
    selection = Selection((group([1, 0], prefix=3, lengths=[2, 2]),), (), ())
    assert token_metrics([], selection, prefix_loss=True)["tokens/trained"] == 10
    assert token_metrics([], selection, prefix_loss=False)["tokens/trained"] == 4


def test_anchors() -> None:
    # Positions 1 and 3 of 6 tokens: 1/6 and 1/2; the tokens are 2 and 4.
    metrics = anchor_metrics(made()[0], "abcdefgh".__getitem__)
    assert metrics["anchor/position"] == pytest.approx((1 / 6 + 1 / 2) / 2)
    assert metrics["anchor/histogram"] == [0, 1, 0, 0, 0, 1, 0, 0, 0, 0]
    assert metrics["anchor/tokens"] == {"c": 1, "e": 1}
    assert metrics["states/duplicate"] == 1
    assert anchor_metrics([], str) == {"states/duplicate": 0}


def test_truncated_share() -> None:
    whole = group([1, 0, 0, 0])
    assert trained_metrics([whole], False)["truncated"] == 0.0
    cut = replace(whole, rollouts=(*whole.rollouts[:3], rollout(0.0, finished=False)))
    assert trained_metrics([cut], False)["truncated"] == 0.25


def test_token_weighted_means_before_and_after_alpha() -> None:
    # Lengths 2 and 6, A = (.5, -.5), alpha 2: raw (2 * .5 - 6 * .5) / 8 = -.25, after -.5.
    groups = [group([1, 0], lengths=[2, 6], alpha=2.0)]
    metrics = advantage_metrics(groups, advantages(groups, Fr3eConfig(), AdvantageConfig(), "u"), False)
    assert metrics["advantage_raw_token/mean"] == -0.25
    assert metrics["advantage_token/mean"] == -0.5
    # Over 8 tokens A is .5 twice and -.5 six times: variance .25 - .0625.
    assert metrics["advantage_raw_token/std"] == pytest.approx(0.1875**0.5)
    assert metrics["advantage_token/std"] == pytest.approx(2 * 0.1875**0.5)
    assert metrics["alpha/mean"] == 2.0


def test_all_columns_come_from_one_call() -> None:
    explorations, selection = made()
    results = advantages(selection.trained, Fr3eConfig(), AdvantageConfig(), "u")
    assert all(isinstance(r, GroupAdvantages) for r in results)
    metrics = update_metrics(explorations, selection, results, Fr3eConfig(), token_text=str, carried_in=2, rounds=3)
    counts = {
        k: v
        for k, v in metrics.items()
        if k in {"rounds", "groups/carried_in", "groups/carried_out", "groups/dropped", "groups/trained"}
    }
    assert counts == {
        "rounds": 3,
        "groups/carried_in": 2,
        "groups/carried_out": 1,
        "groups/dropped": 1,
        "groups/trained": 2,
    }
    # An update without a round of its own still has its columns.
    none = update_metrics([], Selection((), (), ()), [], Fr3eConfig(), token_text=str, carried_in=0, rounds=0)
    assert none["tokens/generated_first"] == 0
    assert "reward/first" not in none


def documented() -> set[str]:
    """Columns named in docs/metrics.md; `/std` after `alpha/mean` stands for alpha/std, <j> for a number."""
    names, stem = set(), ""
    for line in (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            for name in re.findall(r"`([^`]+)`", line.split("|")[1]):
                full = stem + name if name.startswith("/") else name
                stem = full.rsplit("/", 1)[0]
                names.add(full)
    return names


def test_every_column_is_documented() -> None:
    groups = [group([1, 0, 0, 1], state=j, prefix=j, alpha=1.5) for j in range(3)]
    explorations, _ = made()
    explorations.append(exploration("p3", groups))
    selection = Selection(tuple(groups), (), ())
    results = advantages(groups, Fr3eConfig(), AdvantageConfig(), "u")
    metrics = update_metrics(explorations, selection, results, Fr3eConfig(), token_text=str, carried_in=0, rounds=1)
    assert {re.sub(r"state\d+$", "state<j>", name) for name in metrics} <= documented()
    assert len(metrics) > 50
