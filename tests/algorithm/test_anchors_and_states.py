"""Anchors (Eq. 7), blocks and states (Eq. 8-10): worked example, slow references, edges."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fr3e.algorithm.anchors import choose_anchors, peaks, spread, take
from fr3e.algorithm.states import (
    answer_start,
    continuation_counts,
    eligible_tokens,
    paragraph_starts,
    prefix_lengths,
)
from fr3e.config.training import Fr3eConfig
from tests.algorithm import slow_references

# The worked example of a published teaching page: t1..t12, anchors counted from 1 there and from 0 here.
WORKED = [1.2, 3.6, 0.8, 3.1, 1.9, 2.9, 0.6, 2.5, 1.4, 2.2, 0.9, 1.7]


def choose(entropies, seed="s", eligible=None, surprisal=None, topk=None, starts=(), **settings):
    eligible = [True] * len(entropies) if eligible is None else eligible
    surprisal = [0.0] * len(entropies) if surprisal is None else surprisal
    return choose_anchors(
        entropies,
        Fr3eConfig(**settings),
        eligible_T=eligible,
        surprisal_T=surprisal,
        topk_entropy_T=topk,
        paragraph_starts=starts,
        seed=seed,
    )


def test_worked_example() -> None:
    # K = 2: {t2, t4}; K = 4: {t2, t4, t6, t8}.
    assert choose(WORKED, num_anchors=2) == (1, 3)
    assert choose(WORKED, num_anchors=4) == (1, 3, 5, 7)
    # Anchor included (Eq. 8-10): blocks t1-t2, t3-t4, t5-t12, so the states end after 2 and 4 tokens.
    lengths, duplicates = prefix_lengths((1, 3), anchor_in_prefix=True, include_root=False, limit=100)
    assert (lengths, duplicates) == ((2, 4), 0)
    tokens = [f"t{i}" for i in range(1, 13)]
    blocks = [tokens[a:b] for a, b in zip((0, *lengths), (*lengths, 12), strict=True)]
    assert blocks == [["t1", "t2"], ["t3", "t4"], tokens[4:]]
    assert prefix_lengths((1, 3, 5, 7), anchor_in_prefix=True, include_root=False, limit=100)[0] == (2, 4, 6, 8)
    # Anchor drawn anew (the default), with the root: q, q+t1, q+t1..t3.
    assert prefix_lengths((1, 3), anchor_in_prefix=False, include_root=True, limit=100)[0] == (0, 1, 3)


def slow_top(scores, eligible, k, gap, skip):
    """K times the best token that is left: a plain loop over all positions."""
    taken: list[int] = []
    for _ in range(k):
        best = None
        for t, score in enumerate(scores):
            free = eligible[t] and t >= skip and t not in taken and all(abs(t - u) >= gap for u in taken)
            if free and (best is None or score > scores[best]):
                best = t
        if best is None:
            break
        taken.append(best)
    return tuple(sorted(taken))


@given(
    scores=st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0]), max_size=25),
    k=st.integers(1, 8),
    gap=st.integers(0, 4),
    skip=st.integers(0, 4),
    data=st.data(),
)
def test_scored_anchors_equal_the_slow_reference(scores, k, gap, skip, data) -> None:
    eligible = data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores)))
    options = {"num_anchors": k, "min_gap": gap, "skip_first": skip, "eligible": eligible}
    zeros = [0.0] * len(scores)
    assert choose(scores, **options) == slow_top(scores, eligible, k, gap, skip)
    low = slow_top([-s for s in scores], eligible, k, gap, skip)
    assert choose(scores, anchor_score="low_entropy", **options) == low
    assert choose(zeros, surprisal=scores, anchor_score="surprisal", **options) == slow_top(
        scores, eligible, k, gap, skip
    )
    assert choose(zeros, topk=scores, anchor_score="topk_entropy", **options) == slow_top(
        scores, eligible, k, gap, skip
    )


KINDS = ["entropy", "surprisal", "topk_entropy", "random", "uniform", "paragraph", "low_entropy", "percentile"]


@given(
    kind=st.sampled_from(KINDS), length=st.integers(0, 40), k=st.integers(0, 9), seed=st.integers(0, 99), data=st.data()
)
def test_every_kind_keeps_the_contract(kind, length, k, seed, data) -> None:
    """Sorted, distinct, eligible, at most K, min_gap apart, and a function of its inputs alone."""
    rng = np.random.default_rng(seed)
    scores = rng.random(length)
    eligible = data.draw(st.lists(st.booleans(), min_size=length, max_size=length))
    starts = tuple(np.flatnonzero(rng.random(length) < 0.3).tolist())
    first, again = (
        choose(
            scores,
            seed=str(seed),
            eligible=eligible,
            surprisal=scores,
            topk=scores,
            starts=starts,
            anchor_score=kind,
            num_anchors=k,
            min_gap=2,
        )
        for _ in range(2)
    )
    assert first == again
    assert len(first) <= k
    assert all(eligible[t] for t in first)
    assert all(b - a >= 2 for a, b in itertools.pairwise(first))
    if kind == "paragraph":
        assert set(first) <= set(starts)


def test_random_anchors_follow_the_seed_and_are_uniform() -> None:
    draws = [choose([0.0] * 10, seed=f"s{i}", anchor_score="random", num_anchors=2) for i in range(600)]
    counts = np.bincount([t for draw in draws for t in draw], minlength=10)
    # 1200 draws over 10 positions: 120 each, standard deviation sqrt(600 * .2 * .8) = 9.8.
    assert counts.min() > 80
    assert counts.max() < 160


def test_uniform_and_paragraph_anchors_are_spread() -> None:
    # 12 tokens, K = 2: at the fractions 1/3 and 2/3, so 4 and 8.
    assert choose(WORKED, anchor_score="uniform", num_anchors=2) == (4, 8)
    assert spread(np.arange(3), 4).tolist() == [0, 1, 2]
    # Six paragraphs, K = 2: the second and fourth of the list (6 // 3, 12 // 3).
    assert choose(WORKED, anchor_score="paragraph", starts=(1, 3, 5, 7, 9, 11), num_anchors=2) == (5, 9)
    assert choose(WORKED, anchor_score="paragraph", starts=(), num_anchors=2) == ()


def test_percentile_groups_neighbours_into_decision_points() -> None:
    # Above the 50th percentile (2.0): 3, 4, 9 at 0, 1, 8 and 5 at 12. 0 and 1 are one point (peak 1); 8 and 12 are 4 apart.
    scores = np.array([3.0, 4, 0, 0, 0, 0, 0, 1, 9, 2, 2, 2, 5, 2])
    assert np.percentile(scores, 50) == 2.0
    assert peaks(scores, np.arange(14), 50.0, 3).tolist() == [1, 8, 12]
    assert peaks(scores, np.arange(14), 50.0, 4).tolist() == [1, 8]
    assert choose(scores, anchor_score="percentile", percentile=50, num_anchors=2) == (8, 12)
    assert choose(np.ones(5), anchor_score="percentile", num_anchors=2) == ()


def test_edges_of_anchor_choice() -> None:
    assert choose([], num_anchors=4) == ()
    assert choose([1.0], num_anchors=4) == (0,)
    assert choose([1.0, 2.0], num_anchors=4) == (0, 1)
    assert choose([1.0, 2.0], eligible=[False, False], num_anchors=4) == ()
    assert choose([1.0, 2.0, 3.0], num_anchors=0) == ()
    assert take(np.array([5, 4, 3]), 2, 0) == (4, 5)


def test_nan_scores_are_refused_where_they_count() -> None:
    with pytest.raises(FloatingPointError, match="first at position 1"):
        choose([1.0, float("nan")], num_anchors=1)
    assert choose([1.0, float("nan")], eligible=[True, False], num_anchors=1) == (0,)
    with pytest.raises(ValueError, match="topk_entropy"):
        choose([1.0], anchor_score="topk_entropy", num_anchors=1)
    with pytest.raises(ValueError, match="scores for 2 tokens"):
        choose([1.0], eligible=[True, True], num_anchors=1)


@given(
    anchors=st.sets(st.integers(0, 20), max_size=8), inside=st.booleans(), root=st.booleans(), limit=st.integers(1, 22)
)
def test_states_are_distinct_rising_and_counted(anchors, inside, root, limit) -> None:
    lengths, duplicates = prefix_lengths(
        tuple(sorted(anchors)), anchor_in_prefix=inside, include_root=root, limit=limit
    )
    wanted = ([0] if root else []) + [a + 1 if inside else a for a in sorted(anchors)]
    wanted = [k for k in wanted if k < limit]
    assert list(lengths) == sorted(set(wanted))
    assert duplicates == len(wanted) - len(set(wanted))


def test_all_anchors_at_position_0_leave_the_root_alone() -> None:
    assert prefix_lengths((0,), anchor_in_prefix=False, include_root=True, limit=10) == ((0,), 1)
    assert prefix_lengths((0,), anchor_in_prefix=True, include_root=True, limit=10) == ((0, 1), 0)


def test_special_tokens_and_the_answer_are_never_anchors() -> None:
    texts = {1: "so ", 2: "\\bo", 3: "xed", 4: "{7", 5: "}", 0: "<end>"}
    ids = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 0]
    # The last box begins in token 6.
    mask = eligible_tokens(ids, {0}, texts.__getitem__, exclude_answer_span=True)
    assert np.flatnonzero(mask).tolist() == [0, 1, 2, 3, 4, 5]
    assert np.flatnonzero(eligible_tokens(ids, {0}, texts.__getitem__)).tolist() == list(range(10))
    assert eligible_tokens([], {0}, texts.__getitem__, exclude_answer_span=True).tolist() == []


@given(st.lists(st.sampled_from(["\\boxed{", "\\box", "ed{", "x", "", "1}"]), max_size=12))
def test_answer_start_equals_a_slow_search(texts) -> None:
    whole, expected = "".join(texts), len(texts)
    at = whole.rfind("\\boxed{")
    if at >= 0:
        owner = [i for i, text in enumerate(texts) for _ in text]
        expected = owner[at]
    assert answer_start(texts) == expected


def test_paragraphs() -> None:
    assert paragraph_starts(["a", "\n", "b", "c", "\n", "d", "\n"]) == (2, 5)
    # With a blank line somewhere, single line ends do not part paragraphs.
    assert paragraph_starts(["a", "\n", "b", "\n\n", "d", ".\n\n", "e"]) == (4, 6)
    assert paragraph_starts(["a", "\n", "\n", "b"]) == (3,)
    assert paragraph_starts(["a\nb", "c"]) == (1,)
    assert paragraph_starts(["\n", "a"]) == (1,)
    assert paragraph_starts([]) == ()


def test_budgets() -> None:
    # Two bases with 2 and 3 states of bases of 10 and 20 tokens.
    prefixes, bases, firsts = [(0, 5), (0, 10, 15)], [10, 20], [10, 20, 30]
    assert continuation_counts(prefixes, bases, firsts, "per_state", 16) == [[16, 16], [16, 16, 16]]
    # 16 over 5 states: 3 each and 1 left, for the last.
    assert continuation_counts(prefixes, bases, firsts, "per_prompt", 16) == [[3, 3], [3, 3, 4]]
    # A group of one would never carry a gradient: at least two of each, even where the budget is smaller.
    assert continuation_counts(prefixes, bases, firsts, "per_prompt", 3) == [[2, 2], [2, 2, 2]]
    assert continuation_counts(prefixes, bases, firsts, "token_matched", 4) == [[2, 2], [2, 2, 2]]
    # One continuation of each state costs 10 + 5 + 20 + 10 + 5 = 50 tokens; 16 full rollouts of 20 are 320, of which the
    # first three took 60: 260 // 50 = 5.
    assert continuation_counts(prefixes, bases, firsts, "token_matched", 16) == [[5, 5], [5, 5, 5]]
    # GRPO++: no first rollouts, the root alone.
    for budget in ("per_state", "per_prompt", "token_matched"):
        assert continuation_counts([(0,)], [], [], budget, 16) == [[16]]
    assert continuation_counts([()], [5], [5], "per_prompt", 16) == [[]]


positions = st.sets(st.integers(0, 39), max_size=25).map(sorted)


@given(candidates=positions, count=st.integers(1, 8))
def test_spread_equals_the_slow_reference(candidates, count) -> None:
    found = spread(np.array(candidates, dtype=np.int64), count)
    assert found.tolist() == slow_references.spread(candidates, count)


@given(
    scores=st.lists(st.integers(0, 6), min_size=40, max_size=40),
    eligible=positions.filter(len),
    percentile=st.sampled_from([0, 20, 50, 75, 80, 90, 100]),
    distance=st.integers(0, 5),
)
def test_peaks_equal_the_slow_reference(scores, eligible, percentile, distance) -> None:
    found = peaks(np.array(scores, dtype=np.float64), np.array(eligible, dtype=np.int64), percentile, distance)
    assert found.tolist() == slow_references.peaks(scores, eligible, percentile, distance)


@given(st.lists(st.sampled_from(["a", "b\nc", "\n", "\n\n", ".\n\nd", "", "e\n"]), max_size=14))
def test_paragraph_starts_equal_the_slow_reference(texts) -> None:
    assert list(paragraph_starts(texts)) == slow_references.paragraph_starts(texts)


@given(
    prefixes=st.lists(st.lists(st.integers(0, 25), max_size=5), max_size=4),
    firsts=st.lists(st.integers(1, 30), max_size=4).filter(lambda lengths: len(lengths) != 3),  # exact means
    budget=st.sampled_from(["per_state", "per_prompt", "token_matched"]),
    m=st.integers(1, 40),
    data=st.data(),
)
def test_continuation_counts_equal_the_slow_reference(prefixes, firsts, budget, m, data) -> None:
    lengths = data.draw(st.lists(st.integers(1, 30), min_size=len(prefixes), max_size=len(prefixes)))
    bases = lengths if firsts else []
    found = continuation_counts(prefixes, bases, firsts, budget, m)
    assert found == slow_references.continuation_counts(prefixes, bases, firsts, budget, m)
