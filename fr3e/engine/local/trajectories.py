"""Sampled trajectories for the report: a few bases of a probe update with their tokens, entropies, anchors and states."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fr3e.engine.local.problems import Problem
from fr3e.exploration.records import Exploration, Rollout

SAMPLED = 3


def sample_trajectories(
    explorations: Sequence[Exploration],
    problems: Mapping[str, Problem],
    tokenizer: Any,
    token_text: Callable[[int], str],
    update: int,
) -> list[dict[str, Any]]:
    """Rows of trajectories.jsonl (docs/metrics.md): the first base of the first prompts, by uid, that were explored.

    Without a base trajectory (GRPO++) the root state's first rollout stands in its place, with no anchors.
    """
    explored = [e for e in sorted(explorations, key=lambda e: e.prompt.uid) if e.bases or e.groups]
    return [
        _row(exploration, problems[exploration.prompt.uid], tokenizer, token_text, update)
        for exploration in explored[:SAMPLED]
    ]


def _row(
    exploration: Exploration, problem: Problem, tokenizer: Any, token_text: Callable[[int], str], update: int
) -> dict[str, Any]:
    base: Rollout = exploration.bases[0] if exploration.bases else exploration.groups[0].rollouts[0]
    states = [g for g in exploration.groups if g.base == 0 and not g.first_return]
    return {
        "update": update,
        "prompt": tokenizer.decode(exploration.prompt.token_ids, skip_special_tokens=False),
        "question": problem.question,
        "gold": problem.gold,
        "token_ids": list(base.response_ids),
        "tokens": [token_text(token) for token in base.response_ids],
        "entropies": [round(float(h), 5) for h in base.entropies],
        "anchors": list(exploration.anchors[0]) if exploration.anchors else [],
        "states": [{"k": g.prefix_len, "value": g.value, "previous": g.previous, "alpha": g.alpha} for g in states],
        "reward": base.reward,
    }
