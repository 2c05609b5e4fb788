"""From graded continuations to state groups that carry their own facts: V, the predecessor's V, alpha, the baseline's scope."""

from collections.abc import Sequence

from fr3e.algorithm.advantage import moments
from fr3e.algorithm.modulation import alphas, previous_values
from fr3e.algorithm.values import state_value
from fr3e.config.training import TrainingConfig
from fr3e.exploration.first_return import FirstReturn
from fr3e.exploration.records import Prompt, Rollout, StateGroup


def state_groups(
    prompt: Prompt,
    prefixes: Sequence[Sequence[int]],
    sampled: Sequence[tuple[Rollout, ...]],
    settings: TrainingConfig,
    update: int,
) -> tuple[StateGroup, ...]:
    """Groups of all bases in order of base and state (Eq. 12-14).

    `prefixes[b]` are the prefix lengths of base b's states, `sampled` the rollouts of all states in the same order.
    """
    fr3e = settings.fr3e
    rewards = [r.reward for rollouts in sampled for r in rollouts]
    scope = moments(rewards) if settings.adv.group == "prompt" and rewards else None
    groups, remaining = [], iter(sampled)
    for b, lengths in enumerate(prefixes):
        rollouts_S = [next(remaining) for _ in lengths]
        values_S = [state_value([r.reward for r in rollouts]) for rollouts in rollouts_S]
        previous_S = previous_values(values_S, fr3e)
        alpha_S = alphas(values_S, fr3e, previous_S)
        for j, k in enumerate(lengths):
            group = StateGroup(
                prompt=prompt,
                base=b,
                state=j if fr3e.include_root else j + 1,
                prefix_len=k,
                value=values_S[j],
                previous=previous_S[j],
                alpha=alpha_S[j],
                rollouts=rollouts_S[j],
                born=update,
                scope=scope,
            )
            groups.append(group)
    return tuple(groups)


def first_return_group(first: FirstReturn, update: int) -> StateGroup:
    """All first rollouts as one group with alpha 1 (`train_first_rollouts`)."""
    return _group(first, first.rollouts, (), update)


def base_group(first: FirstReturn, bases: Sequence[Rollout], groups: Sequence[StateGroup], update: int) -> StateGroup:
    """The bases as one group, each with the values of its own states (`adv.estimator: value_difference`)."""
    chains = tuple(tuple((g.prefix_len, g.value) for g in groups if g.base == b) for b in range(len(bases)))
    return _group(first, tuple(bases), chains, update)


def _group(
    first: FirstReturn, rollouts: tuple[Rollout, ...], chains: tuple[tuple[tuple[int, float], ...], ...], update: int
) -> StateGroup:
    return StateGroup(
        prompt=first.prompt,
        base=0,
        state=0,
        prefix_len=0,
        value=state_value([rollout.reward for rollout in rollouts]),
        previous=None,
        alpha=1.0,
        rollouts=rollouts,
        born=update,
        first_return=True,
        chains=chains,
    )
