"""State groups made to order, for tests of everything that comes after sampling."""

from collections.abc import Sequence

import numpy as np

from fr3e.exploration.records import Prompt, Rollout, StateGroup
from fr3e.grading.verdict import Verdict


def rollout(reward: float, continuation: int = 5, prefix: int = 0, finished: bool = True) -> Rollout:
    """A rollout of `prefix + continuation` tokens 1, 2, .. with log-probs -t / 100 and entropies t / 10."""
    t = np.arange(1, prefix + continuation + 1, dtype=np.float32)
    kind = "correct" if reward else "wrong"
    ids = tuple(range(1, len(t) + 1))
    return Rollout(ids, -t / 100, t / 10, prefix, finished, Verdict(kind, None, "made"))


def group(
    rewards: Sequence[float],
    uid: str = "p0",
    state: int = 0,
    prefix: int = 0,
    lengths: Sequence[int] | None = None,
    **facts: object,
) -> StateGroup:
    """The group of a state with these rewards; `facts` override the fields of `StateGroup`."""
    lengths = [5] * len(rewards) if lengths is None else lengths
    defaults = {"base": 0, "previous": None, "alpha": 1.0, "born": 1}
    return StateGroup(
        prompt=Prompt(uid, (1, 2, 3), "1"),
        state=state,
        prefix_len=prefix,
        value=float(np.mean(rewards)),
        rollouts=tuple(rollout(r, length, prefix) for r, length in zip(rewards, lengths, strict=True)),
        **(defaults | facts),
    )


def random_groups(seed: int, prompts: int = 4, states: int = 3, m: int = 6) -> list[StateGroup]:
    """Groups with random rewards, lengths and alphas in [1/e, e]."""
    rng = np.random.default_rng(seed)
    return [
        group(
            rng.integers(0, 2, m).astype(float).tolist(),
            uid=f"p{p}",
            state=j,
            prefix=2 * j,
            lengths=rng.integers(1, 9, m).tolist(),
            alpha=float(np.exp(rng.uniform(-1, 1))),
        )
        for p in range(prompts)
        for j in range(states)
    ]
