"""What a step's groups say about the method: the columns of docs/metrics.md that derive from them, as pure functions.

A column that has no value is left out. Shares and means over nothing have no value; counts of nothing are 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fr3e.algorithm.loss import trained_tokens
from fr3e.algorithm.values import delta_standard_error
from fr3e.config.training import Fr3eConfig

if TYPE_CHECKING:
    from fr3e.algorithm.advantage import GroupAdvantages
    from fr3e.algorithm.filtering import Selection
    from fr3e.exploration.records import Exploration, Rollout, StateGroup

ALPHA_BINS = np.linspace(np.log(0.36), np.log(2.72), 21)
POSITION_BINS = np.linspace(0.0, 1.0, 11)


def update_metrics(
    explorations: Sequence[Exploration],
    selection: Selection,
    advantages: Sequence[GroupAdvantages],
    fr3e: Fr3eConfig,
    *,
    token_text: Callable[[int], str],
    carried_in: int,
    rounds: int,
) -> dict[str, Any]:
    """All columns of docs/metrics.md that derive from groups.

    `explorations` are those of the update's own rounds, `selection` what became of the pool, `advantages` those of
    `selection.trained` in its order, `carried_in` the groups that waited from the update before. The engine adds loss,
    seconds and probe columns.
    """
    states = [group for e in explorations for group in e.groups if not group.first_return]
    counts = {
        "groups/carried_in": carried_in,
        "groups/carried_out": len(selection.carried),
        "groups/dropped": len(selection.dropped),
        "groups/trained": len(selection.trained),
        "rounds": rounds,
    }
    return (
        prompt_metrics(explorations)
        | group_metrics(states)
        | counts
        | chain_metrics(states)
        | anchor_metrics(explorations, token_text)
        | trained_metrics(selection.trained, fr3e.prefix_loss)
        | advantage_metrics(selection.trained, advantages, fr3e.prefix_loss)
        | token_metrics(explorations, selection, fr3e.prefix_loss)
    )


def prompt_metrics(explorations: Sequence[Exploration]) -> dict[str, Any]:
    """Prompts and rewards of the rounds. A prompt's full rollouts are its first rollouts and those of its root states."""
    full = [_full_rollouts(e) for e in explorations]
    result = {
        "prompts/sampled": len(explorations),
        "prompts/all_right": sum(bool(rollouts) and all(r.reward for r in rollouts) for rollouts in full),
        "prompts/all_wrong": sum(bool(rollouts) and not any(r.reward for r in rollouts) for rollouts in full),
        "prompts/dropped": sum(e.dropped is not None for e in explorations),
        "verdicts": dict(sorted(Counter(r.verdict.kind for e in explorations for r in _rollouts(e)).items())),
    }
    explored = [r.reward for e in explorations for g in e.groups if not g.first_return for r in g.rollouts]
    return (
        result
        | _mean("reward/first", [r.reward for e in explorations for r in e.first])
        | _mean("reward/explore", explored)
    )


def group_metrics(states: Sequence[StateGroup]) -> dict[str, Any]:
    """All-Right, All-Wrong and mixed state groups before filtering, and successes per group (Fig. 7-9)."""
    result = {
        "groups/all_right": sum(g.value == 1.0 for g in states),
        "groups/all_wrong": sum(g.value == 0.0 for g in states),
        "groups/mixed": sum(g.mixed for g in states),
        "successes": successes_histogram(states),
    }
    roots = [g for g in states if g.prefix_len == 0]
    return result | ({"successes_root": successes_histogram(roots)} if roots else {})


def successes_histogram(groups: Sequence[StateGroup]) -> list[int]:
    """Groups with 0, 1, .. M right continuations, M the largest group's size; smaller groups count at V M, rounded."""
    m = max((len(g.rollouts) for g in groups), default=0)
    return np.bincount([round(g.value * m) for g in groups], minlength=m + 1).tolist() if groups else []


def chain_metrics(states: Sequence[StateGroup]) -> dict[str, Any]:
    """V by state index, and V_j - V_{j-1} between true neighbours of one base with the noise expected of it.

    The neighbours are those of the chain, whatever `prev_value` says, so that arms can be compared.
    """
    result: dict[str, Any] = {}
    for j in sorted({g.state for g in states}):
        values = [g.value for g in states if g.state == j]
        result |= {f"value/state{j}": float(np.mean(values)), f"value_count/state{j}": len(values)}
    at = {(g.prompt.uid, g.base, g.state): g for g in states}
    pairs = [(g, at.get((g.prompt.uid, g.base, g.state - 1))) for g in states]
    deltas = [g.value - before.value for g, before in pairs if before]
    noise = [
        delta_standard_error(g.value, before.value, len(g.rollouts), len(before.rollouts))
        for g, before in pairs
        if before
    ]
    if deltas:
        result |= {"delta_noise": float(np.mean(noise)), "delta_std": float(np.std(deltas))}
    return result


def noise_share(deltas: ArrayLike, standard_errors: ArrayLike) -> float | None:
    """Share of the variance of V_j - V_{j-1} that sampling alone explains, mean(SE^2) / var(delta), at most 1.

    None when the deltas do not vary. alpha is exp(-delta), so this is also the share of log alpha's variance.
    """
    variance = float(np.var(np.asarray(deltas, dtype=np.float64)))
    if variance == 0.0:
        return None
    return min(1.0, float(np.mean(np.square(np.asarray(standard_errors, dtype=np.float64)))) / variance)


def anchor_metrics(explorations: Sequence[Exploration], token_text: Callable[[int], str]) -> dict[str, Any]:
    """Where the anchors lie in their bases and which tokens they are; states left out as equal to another."""
    found = [(b, p) for e in explorations for b, ps in zip(e.bases, e.anchors, strict=True) for p in ps]
    result: dict[str, Any] = {"states/duplicate": sum(e.duplicates for e in explorations)}
    if not found:
        return result
    where = np.array([position / len(base.response_ids) for base, position in found])
    # Equal counts in order of text, so that the row does not depend on the order of prompts.
    tokens = Counter(token_text(base.response_ids[position]) for base, position in found)
    commonest = sorted(tokens.items(), key=lambda item: (-item[1], item[0]))[:10]
    return result | {
        "anchor/position": float(where.mean()),
        "anchor/histogram": np.histogram(where, POSITION_BINS)[0].tolist(),
        "anchor/tokens": dict(commonest),
    }


def trained_metrics(trained: Sequence[StateGroup], prefix_loss: bool) -> dict[str, Any]:
    """Entropy and lengths of what is trained on, the share cut by the token budget, and Cov_m(L, r) of the groups."""
    rollouts = [r for g in trained for r in g.rollouts]
    if not rollouts:
        return {}
    entropies = np.concatenate([r.entropies[trained_tokens(r, prefix_loss)] for r in rollouts])
    covariances = [length_reward_covariance(g.rollouts) for g in trained]
    return _mean("entropy/trained", entropies) | {
        "length/trained": float(np.mean([r.continuation_len for r in rollouts])),
        "length/full": float(np.mean([len(r.response_ids) for r in rollouts])),
        "truncated": float(np.mean([not r.finished for r in rollouts])),
        "length_reward_covariance": float(np.mean(covariances)),
    }


def length_reward_covariance(rollouts: Sequence[Rollout]) -> float:
    """Cov_m(L, r) = mean(L r) - mean(L) mean(r) over one group, L the continuation's length in tokens."""
    lengths = np.array([r.continuation_len for r in rollouts], dtype=np.float64)
    rewards = np.array([r.reward for r in rollouts])
    return float((lengths * rewards).mean() - lengths.mean() * rewards.mean())


def token_weighted_mean(advantages: Sequence[ArrayLike], lengths: Sequence[ArrayLike]) -> float:
    """sum_j sum_m L_jm A_jm / sum L: the mean advantage over tokens; arrays [M] of each group."""
    total = sum(float(np.sum(lengths_M)) for lengths_M in lengths)
    return sum(float(np.dot(a, length)) for a, length in zip(advantages, lengths, strict=True)) / total


def covariance_expression(
    alphas: Sequence[float], advantages: Sequence[ArrayLike], lengths: Sequence[ArrayLike]
) -> float:
    """sum_j alpha_j M_j Cov_m(L_jm, A_jm) / sum L, which equals the token-weighted mean of alpha A when A sums to zero in
    every group (paper, appendix C, made exact: sequence-level means vanish for any lengths, token-level ones need this)."""
    total = sum(float(np.sum(lengths_M)) for lengths_M in lengths)
    return (
        sum(
            alpha * len(np.asarray(a)) * float(np.cov(length, a, ddof=0)[0, 1])
            for alpha, a, length in zip(alphas, advantages, lengths, strict=True)
        )
        / total
    )


def advantage_metrics(
    trained: Sequence[StateGroup], advantages: Sequence[GroupAdvantages], prefix_loss: bool
) -> dict[str, Any]:
    """A and A' over sequences and over trained tokens (Fig. 5), and alpha over trained groups (Eq. 14)."""
    if not trained:
        return {}
    raw, after = (np.concatenate([getattr(a, name) for a in advantages]) for name in ("raw", "modulated"))
    alpha = np.array([float(np.mean(a.alpha)) for a in advantages])
    result = {
        "advantage/mean": after.mean(),
        "advantage/std": after.std(),
        "advantage/min": after.min(),
        "advantage/max": after.max(),
        "advantage_raw/mean": raw.mean(),
        "advantage_raw/std": raw.std(),
        "alpha/mean": alpha.mean(),
        "alpha/std": alpha.std(),
        "alpha/min": min(a.alpha.min() for a in advantages),
        "alpha/max": max(a.alpha.max() for a in advantages),
    }
    result = {name: float(value) for name, value in result.items()}
    result["alpha/histogram"] = np.histogram(np.log(alpha), ALPHA_BINS)[0].tolist()
    for j in sorted({g.state for g in trained if not g.first_return}):
        of_state = [a for g, a in zip(trained, alpha, strict=True) if g.state == j and not g.first_return]
        result[f"alpha/state{j}"] = float(np.mean(of_state))
    return result | _token_weighted(trained, advantages, prefix_loss)


def _token_weighted(
    trained: Sequence[StateGroup], advantages: Sequence[GroupAdvantages], prefix_loss: bool
) -> dict[str, float]:
    tokens, sums = 0, {"advantage_token": 0.0, "advantage_raw_token": 0.0}
    values: dict[str, list[NDArray[np.float64]]] = {name: [] for name in sums}
    for group, a in zip(trained, advantages, strict=True):
        for m, rollout in enumerate(group.rollouts):
            mask_T = trained_tokens(rollout, prefix_loss)
            after: NDArray[np.float64] = a.per_token(m, len(mask_T))[mask_T]
            before = np.full(len(after), a.raw[m]) if a.tokens is None else after
            tokens += len(after)
            sums["advantage_token"] += float(after.sum())
            sums["advantage_raw_token"] += float(a.raw[m] * len(after) if a.tokens is None else after.sum())
            values["advantage_token"].append(after)
            values["advantage_raw_token"].append(before)
    if not tokens:
        return {}
    means = {f"{name}/mean": total / tokens for name, total in sums.items()}
    return means | {f"{name}/std": float(np.concatenate(parts).std()) for name, parts in values.items()}


def token_metrics(explorations: Sequence[Exploration], selection: Selection, prefix_loss: bool) -> dict[str, Any]:
    """Cost of the update's own rounds: tokens generated, prefilled and never trained on, rollouts; tokens trained."""
    cost = {
        name: sum(getattr(e.cost, name) for e in explorations)
        for name in (
            "rollouts_first",
            "rollouts_explore",
            "generated_first",
            "generated_explore",
            "context_first",
            "context_explore",
            "cached",
        )
    }
    # Trained or still waiting, and made in this update's rounds; a group that was carried in was counted when made.
    made = {g.uid for e in explorations for g in e.groups}
    used = [g for g in (*selection.trained, *selection.carried) if g.uid in made]
    late = [g for g in selection.dropped if g.uid not in made]
    discarded = {
        stage: cost[f"generated_{stage}"] - _generated(used, stage) + _generated(late, stage)
        for stage in ("first", "explore")
    }
    return {
        "tokens/generated_first": cost["generated_first"],
        "tokens/generated_explore": cost["generated_explore"],
        "tokens/discarded": sum(discarded.values()),
        "tokens/discarded_first": discarded["first"],
        "tokens/discarded_explore": discarded["explore"],
        "tokens/trained": sum(int(trained_tokens(r, prefix_loss).sum()) for g in selection.trained for r in g.rollouts),
        "tokens/prefill": cost["context_first"] + cost["context_explore"],
        "tokens/prefill_first": cost["context_first"],
        "tokens/prefill_explore": cost["context_explore"],
        "tokens/prefill_cached": cost["cached"],
        "rollouts/first": cost["rollouts_first"],
        "rollouts/explore": cost["rollouts_explore"],
    }


def _generated(groups: Iterable[StateGroup], stage: str) -> int:
    """Tokens of the groups that the stage generated; only a group of first rollouts comes from First Return."""
    return sum(r.continuation_len for g in groups if g.first_return == (stage == "first") for r in g.rollouts)


def _full_rollouts(exploration: Exploration) -> list[Rollout]:
    roots = (g for g in exploration.groups if not g.first_return and g.prefix_len == 0)
    return [*exploration.first, *(r for g in roots for r in g.rollouts)]


def _rollouts(exploration: Exploration) -> list[Rollout]:
    """Every rollout of a prompt once; a group of first rollouts repeats `first`."""
    return [*exploration.first, *(r for g in exploration.groups if not g.first_return for r in g.rollouts)]


def _mean(name: str, values: ArrayLike) -> dict[str, float]:
    array = np.asarray(values, dtype=np.float64)
    return {name: float(array.mean())} if len(array) else {}
