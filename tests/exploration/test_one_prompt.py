"""One prompt's exploration against a real (Markov) policy: exact prefixes, facts, edges, costs, refusals."""

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fr3e.algorithm.anchors import choose_anchors
from fr3e.algorithm.modulation import alphas
from fr3e.config.training import TrainingConfig
from fr3e.exploration import explore, explore_round
from fr3e.exploration.records import Completion, Exploration, Prompt, Request
from fr3e.grading.verdict import Verdict
from tests.markov_policy import END, SPECIAL, MarkovPolicy, grade, prompts, token_text


def configured(**changes: Any) -> TrainingConfig:
    return TrainingConfig.model_validate({"rollout": {"max_total_tokens": 24}} | changes)


def run(settings_: TrainingConfig, policy=None, prompt: Prompt | None = None, judge=grade, seed="s") -> Exploration:
    options = {"special_ids": SPECIAL, "token_text": token_text, "seed": seed, "update": 7}
    return asyncio.run(explore(prompt or prompts(1)[0], settings_, policy or MarkovPolicy(), judge, **options))


def same(a: Exploration, b: Exploration) -> bool:
    """Equal to the bit."""
    rows = [[*e.first, *(r for g in e.groups for r in g.rollouts)] for e in (a, b)]
    return (
        (a.prompt, a.anchors, a.dropped, a.duplicates, a.cost) == (b.prompt, b.anchors, b.dropped, b.duplicates, b.cost)
        and [(g.uid, g.value, g.previous, g.alpha) for g in a.groups]
        == [(g.uid, g.value, g.previous, g.alpha) for g in b.groups]
        and all(
            x.response_ids == y.response_ids
            and np.array_equal(x.logprobs, y.logprobs)
            and np.array_equal(x.entropies, y.entropies)
            for x, y in zip(*rows, strict=True)
        )
    )


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    inside=st.booleans(),
    root=st.booleans(),
    bases=st.sampled_from(["one_correct_else_wrong", "correct_and_wrong", "any", "all"]),
    kind=st.sampled_from(["entropy", "surprisal", "random", "uniform", "percentile"]),
)
def test_states_are_exact_prefixes_and_groups_carry_their_facts(seed, inside, root, bases, kind) -> None:
    fr3e = {
        "anchor_in_prefix": inside,
        "include_root": root,
        "base_select": bases,
        "anchor_score": kind,
        "rollouts_per_state": 3,
        "first_filter": "none",
    }
    policy = MarkovPolicy(seed=seed)
    config = configured(fr3e=fr3e)
    result = run(config, policy, seed=str(seed))
    for b, base in enumerate(result.bases):
        chain = [g for g in result.groups if g.base == b]
        assert [g.state for g in chain] == list(range(0 if root else 1, len(chain) + (0 if root else 1)))
        wanted = {0} if root else set()
        wanted |= {a + inside for a in result.anchors[b]}
        assert [g.prefix_len for g in chain] == sorted(k for k in wanted if k < 24)
        assert alphas([g.value for g in chain], config.fr3e) == [g.alpha for g in chain]
        for before, g in zip([None, *chain], chain, strict=False):
            assert g.previous == (before.value if before else None)
            assert g.value == sum(r.reward for r in g.rollouts) / 3
            assert g.born == 7
            for r in g.rollouts:
                k = g.prefix_len
                assert r.prefix_len == k
                assert r.response_ids[:k] == base.response_ids[:k]
                assert np.array_equal(r.logprobs[:k], base.logprobs[:k])
                assert np.array_equal(r.entropies[:k], base.entropies[:k])
                assert len(r.response_ids) == len(r.logprobs) == len(r.entropies) <= 24
                assert r.finished == (r.response_ids[-1] == END)
        assert not any(base.response_ids[a] == END for a in result.anchors[b])
    # The contexts that were asked for are the prompt and the prefix in ids, and each state was asked for once.
    explored = [call for call in policy.calls if not call.draw.endswith("/first")]
    assert len({call.draw for call in explored}) == len(explored) == len(result.groups)
    for call, g in zip(explored, result.groups, strict=True):
        prefix = result.bases[g.base].response_ids[: g.prefix_len] if result.bases else ()
        assert call.context_ids == result.prompt.token_ids + prefix
        assert call.max_tokens == 24 - g.prefix_len


def test_nothing_depends_on_other_prompts_or_on_their_order() -> None:
    config, many = configured(fr3e={"rollouts_per_state": 4}), prompts(6)
    options = {"special_ids": SPECIAL, "token_text": token_text, "seed": "s", "update": 7}
    together = asyncio.run(explore_round(many, config, MarkovPolicy(), grade, **options))
    backwards = asyncio.run(explore_round(many[::-1], config, MarkovPolicy(), grade, **options))
    assert all(same(a, b) for a, b in zip(together, backwards[::-1], strict=True))
    assert all(same(a, run(config, prompt=p)) for a, p in zip(together, many, strict=True))
    assert not same(together[0], run(config, prompt=many[0], seed="t"))


def test_nothing_depends_on_timing() -> None:
    """A generator and a grader that answer late and out of order give the same exploration."""

    async def slow_grade(prompt: Prompt, ids: tuple[int, ...]) -> Verdict:
        await asyncio.sleep((sum(ids) % 5) * 1e-4)
        return await grade(prompt, ids)

    policy = MarkovPolicy()

    async def slow(request: Request) -> list[Completion]:
        await asyncio.sleep((sum(request.context_ids) % 7) * 1e-3)
        return await policy(request)

    assert same(run(configured()), run(configured(), slow, judge=slow_grade))


def scripted(*responses: str):
    """A policy whose first rollouts are given; later ones come from the Markov policy."""
    policy = MarkovPolicy()

    async def generate(request: Request) -> list[Completion]:
        if not request.draw.endswith("/first"):
            return await policy(request)
        result = []
        for text in responses:
            ids = tuple(END if c == "." else ord(c) - 96 for c in text)
            t = np.linspace(0.1, 1.0, len(ids), dtype=np.float32)
            result.append(Completion(ids, -t, t, finished=bool(ids) and ids[-1] == END))
        return result

    return generate


def judged(*right: str):
    """Right are exactly these full responses."""
    wanted = {tuple(END if c == "." else ord(c) - 96 for c in text) for text in right}

    async def judge(prompt: Prompt, ids: tuple[int, ...]) -> Verdict:
        return Verdict("correct" if ids in wanted else "wrong", None, "list")

    return judge


@pytest.mark.parametrize(
    ("select", "right", "expected"),
    [
        ("one_correct_else_wrong", ("bc.",), ["bc."]),
        ("one_correct_else_wrong", (), ["any wrong"]),
        ("one_correct", ("bc.",), ["bc."]),
        ("correct_and_wrong", ("bc.",), ["bc.", "any wrong"]),
        ("correct_and_wrong", (), ["any wrong"]),
        ("all", ("bc.",), ["bb.", "bc.", "bd.", "be."]),
    ],
)
def test_base_selection(select, right, expected) -> None:
    config = configured(fr3e={"base_select": select, "first_filter": "none", "num_anchors": 1})
    result = run(config, scripted("bb.", "bc.", "bd.", "be."), judge=judged(*right))
    bases = ["".join("." if t == END else chr(96 + t) for t in b.response_ids) for b in result.bases]
    wrong = {"bb.", "bc.", "bd.", "be."} - set(right)
    assert len(bases) == len(expected)
    assert all(b == e or (e == "any wrong" and b in wrong) for b, e in zip(bases, expected, strict=True))


def test_bases_are_drawn_among_equals() -> None:
    config = configured(fr3e={"num_anchors": 1, "rollouts_per_state": 1})
    policy = scripted("bb.", "bc.", "bd.", "be.")
    drawn = {run(config, policy, judge=judged("bc.", "be."), seed=str(s)).bases[0].response_ids for s in range(30)}
    assert drawn == {(2, 3, 0), (2, 5, 0)}


@pytest.mark.parametrize(
    ("settings_", "right", "reason"),
    [
        ({"first_filter": "all_correct"}, ("bb.", "bc."), "all_correct"),
        ({"first_filter": "degenerate"}, ("bb.", "bc."), "all_correct"),
        ({"first_filter": "none"}, ("bb.", "bc."), None),
        ({"first_filter": "all_correct"}, (), None),
        ({"first_filter": "degenerate"}, (), "all_wrong"),
        ({"base_select": "one_correct"}, (), "no_base"),
    ],
)
def test_prompts_that_leave_after_first_return(settings_, right, reason) -> None:
    result = run(configured(fr3e=settings_ | {"first_n": 2}), scripted("bb.", "bc."), judge=judged(*right))
    assert result.dropped == reason
    assert bool(result.groups) == (reason is None)
    assert result.cost.rollouts_explore == sum(len(g.rollouts) for g in result.groups)


@pytest.mark.parametrize("first", ["", ".", "b", "b."])
def test_short_bases_leave_at_least_the_root(first: str) -> None:
    """An empty response, EOS at once, and fewer tokens than K; anchors at position 0 equal the root and are counted."""
    result = run(configured(fr3e={"first_n": 1, "num_anchors": 4}), scripted(first), judge=judged())
    assert [g.prefix_len for g in result.groups] == [0]
    assert result.anchors == (((0,) if "b" in first else ()),)
    assert result.duplicates == (1 if "b" in first else 0)


def test_a_state_at_the_budget_leaves_no_token_to_draw() -> None:
    config = TrainingConfig.model_validate(
        {"rollout": {"max_total_tokens": 3}, "fr3e": {"first_n": 1, "anchor_in_prefix": True}}
    )
    result = run(config, scripted("bcd"), judge=judged())
    assert result.anchors == ((0, 1, 2),)
    assert [g.prefix_len for g in result.groups] == [0, 1, 2]


def test_without_root_and_anchors_there_is_no_group() -> None:
    for scope in ("state", "prompt"):
        config = configured(fr3e={"first_n": 1, "include_root": False}, adv={"group": scope})
        assert run(config, scripted("."), judge=judged()).groups == ()


def test_the_graded_text() -> None:
    seen: list[tuple[int, ...]] = []

    async def judge(prompt: Prompt, ids: tuple[int, ...]) -> Verdict:
        seen.append(ids)
        return await grade(prompt, ids)

    for scope in ("full", "continuation"):
        seen.clear()
        result = run(configured(reward={"scope": scope}, fr3e={"first_n": 1}), judge=judge)
        rows = [r for g in result.groups for r in g.rollouts]
        start = 0 if scope == "full" else None
        expected = [r.response_ids[r.prefix_len if start is None else 0 :] for r in rows]
        assert sorted(seen[1:]) == sorted(expected)
        assert any(r.prefix_len for r in rows)


def test_costs_are_counted() -> None:
    result = run(configured(fr3e={"rollouts_per_state": 4}))
    rows = [r for g in result.groups for r in g.rollouts]
    assert result.cost.rollouts_first == 4
    assert result.cost.rollouts_explore == len(rows)
    assert result.cost.generated_first == sum(len(r.response_ids) for r in result.first)
    assert result.cost.generated_explore == sum(r.continuation_len for r in rows)
    assert result.cost.context_explore == sum(2 + r.prefix_len for r in rows)


def test_grpo_pp_is_the_root_alone() -> None:
    policy = MarkovPolicy()
    result = run(configured(fr3e={"first_n": 0, "num_anchors": 0}), policy)
    assert [(g.uid, g.state, g.prefix_len, g.alpha, g.previous) for g in result.groups] == [
        ("0-0000/b0s0", 0, 0, 1.0, None)
    ]
    assert (result.first, result.bases, result.anchors, result.dropped) == ((), (), (), None)
    assert [call.n for call in policy.calls] == [16]


def test_first_rollouts_can_be_trained() -> None:
    result = run(configured(fr3e={"train_first_rollouts": True}))
    *_, first = result.groups
    assert first.first_return
    assert first.uid == "0-0000/first"
    assert first.rollouts == result.first
    assert first.alpha == 1.0


def test_value_differences_carry_the_chain_of_each_base() -> None:
    config = configured(
        fr3e={"base_select": "all", "first_filter": "none", "rollouts_per_state": 2, "anchor_score": "uniform"},
        adv={"estimator": "value_difference"},
    )
    result = run(config)
    *states, bases = result.groups
    assert bases.rollouts == result.bases == result.first
    for b, chain in enumerate(bases.chains):
        assert list(chain) == [(g.prefix_len, g.value) for g in states if g.base == b]


def test_a_shared_baseline_spans_all_states_of_the_prompt() -> None:
    result = run(configured(adv={"group": "prompt"}))
    rewards = [r.reward for g in result.groups for r in g.rollouts]
    assert {g.scope for g in result.groups} == {(float(np.mean(rewards)), float(np.std(rewards, ddof=1)))}


def test_nan_is_refused_with_update_and_prompt() -> None:
    policy = MarkovPolicy()

    async def broken(request: Request) -> list[Completion]:
        completions = await policy(request)
        entropies = completions[-1].entropies.copy()
        entropies[0] = np.nan
        return [*completions[:-1], replace(completions[-1], entropies=entropies)]

    with pytest.raises(FloatingPointError, match="update 7, prompt 0-0000"):
        run(configured(), broken)


def test_an_engine_that_breaks_the_protocol_is_refused() -> None:
    policy = MarkovPolicy()

    async def too_few(request: Request) -> list[Completion]:
        return (await policy(request))[1:]

    async def too_long(request: Request) -> list[Completion]:
        return await policy(replace(request, max_tokens=request.max_tokens + 200))

    async def unequal(request: Request) -> list[Completion]:
        return [replace(c, logprobs=c.logprobs[1:]) for c in await policy(request)]

    with pytest.raises(ValueError, match="4 completions were asked for, 3 came"):
        run(configured(), too_few)
    with pytest.raises(ValueError, match="log-probs"):
        run(configured(), unequal)
    with pytest.raises(ValueError, match="tokens of at most 2"):
        run(TrainingConfig.model_validate({"rollout": {"max_total_tokens": 2}}), too_long)


def test_the_released_fault_takes_anchors_from_other_rows() -> None:
    """Base i's anchors are the top tokens of another first rollout's surprisal profile."""
    fr3e = {"anchor_score": "surprisal", "base_select": "all", "first_filter": "none", "rollouts_per_state": 1}
    many = prompts(5)
    options = {"special_ids": SPECIAL, "token_text": token_text, "seed": "s", "update": 7}
    honest, faulty = (
        asyncio.run(
            explore_round(
                many, configured(fr3e=fr3e | {"released_row_permutation": r}), MarkovPolicy(), grade, **options
            )
        )
        for r in (0, 4)
    )
    changed = [a != b for h, f in zip(honest, faulty, strict=True) for a, b in zip(h.anchors, f.anchors, strict=True)]
    assert np.mean(changed) > 0.8
    profiles = [r for e in honest for r in e.first]
    for exploration in faulty:
        assert [r.response_ids for r in exploration.first] == [r.response_ids for r in exploration.bases]
        for base, anchors in zip(exploration.bases, exploration.anchors, strict=True):
            assert any(anchors == _top_surprisal(base, profile) for profile in profiles)


def _top_surprisal(base, profile) -> tuple[int, ...]:
    n = min(len(base.response_ids), len(profile.response_ids))
    config = configured(fr3e={"anchor_score": "surprisal"}).fr3e
    eligible = [token != END for token in base.response_ids[:n]]
    return choose_anchors(
        profile.entropies[:n], config, eligible_T=eligible, surprisal_T=-profile.logprobs[:n], seed=""
    )


def test_records_with_arrays_have_a_short_repr() -> None:
    """asyncio.run makes the repr of its task's result; with whole arrays that took longer than the exploration."""
    result = run(configured())
    rollout = result.groups[0].rollouts[0]
    for record in (result, result.groups[0], rollout):
        assert len(repr(record)) < 120
    assert repr(rollout) == f"<Rollout 0 + {rollout.continuation_len} tokens, {rollout.verdict.kind}>"
