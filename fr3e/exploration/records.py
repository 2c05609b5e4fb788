"""The facts that travel through training: each row carries its own, and nothing is looked up by row position.

One prompt's exploration yields state groups; one group holds a state's M rollouts with the state's V, its predecessor's V
and its alpha. Token ids go end to end: a state is `prompt.token_ids + base.response_ids[:k]`, never text.

Records that hold arrays have a short repr: asyncio.run makes the repr of its main task's result (CPython 3.11, 3.12), which
with whole arrays took longer than the exploration itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fr3e.config.training import TrainingConfig
from fr3e.grading.verdict import Verdict

Ids = tuple[int, ...]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One problem as a training step sees it. `uid` is unique over the whole run: epoch and row id."""

    uid: str
    token_ids: Ids
    gold: str


@dataclass(frozen=True, slots=True)
class Request:
    """n completions of one context. `draw` names the random stream: (draw, row, token index) fixes every sample."""

    prompt_uid: str
    context_ids: Ids
    n: int
    max_tokens: int
    draw: str
    temperature: float = 1.0
    top_p: float = 1.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Completion:
    """What the policy wrote: ids [T] with the stop token where there is one, log-probs [T] and entropies [T] (nats)
    at the request's temperature over the full vocabulary; `finished` is False where the token budget ended it."""

    token_ids: Ids
    logprobs: Floats
    entropies: Floats
    finished: bool
    cached_tokens: int = 0
    topk_entropies: Floats | None = None

    def __repr__(self) -> str:
        return f"<Completion of {len(self.token_ids)} tokens>"


class Generate(Protocol):
    """Sample completions from the current policy."""

    async def __call__(self, request: Request) -> list[Completion]: ...


class Grade(Protocol):
    """Grade a response's ids (decoded by the engine) against the prompt's gold."""

    async def __call__(self, prompt: Prompt, response_ids: Ids) -> Verdict: ...


@dataclass(frozen=True, slots=True)
class Means:
    """What an exploration works with; see `fr3e.exploration.explore`."""

    settings: TrainingConfig
    generate: Generate
    grade: Grade
    special_ids: frozenset[int]
    token_text: Callable[[int], str]
    seed: str | int
    update: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rollout:
    """One response = prefix + continuation, arrays over the whole response [T]; the prefix's are the base's own."""

    response_ids: Ids
    logprobs: Floats
    entropies: Floats
    prefix_len: int
    finished: bool
    verdict: Verdict
    topk_entropies: Floats | None = None

    @property
    def reward(self) -> float:
        """r in {0, 1} (Eq. 12)."""
        return float(self.verdict.kind == "correct")

    def __repr__(self) -> str:
        return f"<Rollout {self.prefix_len} + {self.continuation_len} tokens, {self.verdict.kind}>"

    @property
    def continuation_len(self) -> int:
        """Tokens that were generated for this rollout."""
        return len(self.response_ids) - self.prefix_len


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StateGroup:
    """The M rollouts of one state S_j with the facts of Eq. 13-14.

    `state` is j (0 = root); `base` numbers the prompt's base trajectories; `prefix_len` is k; `previous` is V(S_{j-1}) or
    None for the first state; `alpha` is Eq. 14 before any update-wide change (`shuffled`); `born` is the update in whose
    rounds the group was sampled.

    `scope` is (mean, standard deviation) of the rewards of all states of the prompt where `adv.group: prompt` makes them
    share one baseline; None where the group is its own scope. `first_return` marks the group of full rollouts from stage
    one. Such a group holds `chains` under `adv.estimator: value_difference`: for each rollout the pairs (k_j, V(S_j)) of
    its own states, k rising; from these and its reward alone follow the advantages of its tokens.
    """

    prompt: Prompt
    base: int
    state: int
    prefix_len: int
    value: float
    previous: float | None
    alpha: float
    rollouts: tuple[Rollout, ...]
    born: int = 0
    first_return: bool = False
    scope: tuple[float, float] | None = None
    chains: tuple[tuple[tuple[int, float], ...], ...] = ()

    def __repr__(self) -> str:
        return f"<StateGroup {self.uid}, {len(self.rollouts)} rollouts, V {self.value:.3f}>"

    @property
    def uid(self) -> str:
        """Unique over the run."""
        return f"{self.prompt.uid}/{'first' if self.first_return else f'b{self.base}s{self.state}'}"

    @property
    def mixed(self) -> bool:
        """True when the group's rewards differ (neither All-Right nor All-Wrong)."""
        return 0.0 < self.value < 1.0

    @property
    def informative(self) -> bool:
        """True when the group carries a gradient: its advantages are not all zero (paper, section 3.2)."""
        if self.chains:
            ends = ((*(value for _, value in chain), rollout.reward) for chain, rollout in self._chained())
            return any(len(set(values)) > 1 for values in ends)
        return self.mixed if self.scope is None else 0.0 < self.scope[0] < 1.0

    def _chained(self) -> zip:  # pairs of (chain, rollout)
        return zip(self.chains, self.rollouts, strict=True)


@dataclass(slots=True)
class Cost:
    """Tokens and rollouts of one prompt's exploration, by stage (1 = First Return, 2 = Explore)."""

    rollouts_first: int = 0
    rollouts_explore: int = 0
    generated_first: int = 0
    generated_explore: int = 0
    context_first: int = 0
    context_explore: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exploration:
    """Everything one prompt gave: its first rollouts, base trajectories, anchors, and all state groups (also filtered ones).

    `dropped` says why the prompt stopped after First Return (`all_correct`, `all_wrong`, `no_base`), else None.
    `anchors[b]` are the anchor positions of base b; `duplicates` counts states left out because an equal one exists.
    """

    prompt: Prompt
    first: tuple[Rollout, ...]
    bases: tuple[Rollout, ...]
    anchors: tuple[tuple[int, ...], ...]
    groups: tuple[StateGroup, ...]
    dropped: str | None
    duplicates: int = 0
    cost: Cost = field(default_factory=Cost)

    def __repr__(self) -> str:
        return f"<Exploration of {self.prompt.uid}, {len(self.groups)} groups>"
