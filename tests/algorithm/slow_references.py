"""Vectorised functions once more, as their docstrings read: plain loops, one element at a time, exact fractions."""

from collections.abc import Sequence
from fractions import Fraction


def spread(candidates: Sequence[int], count: int) -> list[int]:
    """All of them, or for each j the candidate that stands furthest without being past j / (count + 1) of the list."""
    if len(candidates) <= count:
        return list(candidates)
    chosen = []
    for j in range(1, count + 1):
        index = 0
        while Fraction(index + 1, len(candidates)) <= Fraction(j, count + 1):
            index += 1
        chosen.append(candidates[index])
    return chosen


def peaks(scores: Sequence[float], eligible: Sequence[int], percentile: int, distance: int) -> list[int]:
    """From left to right: a token above the percentile joins the one before it when that is near, else it is a new point."""
    ranked = sorted(Fraction(scores[t]) for t in eligible)
    rank = Fraction(percentile, 100) * (len(ranked) - 1)
    below, above = ranked[int(rank)], ranked[min(int(rank) + 1, len(ranked) - 1)]
    threshold = below + (rank - int(rank)) * (above - below)
    points: list[int] = []
    before = None
    for t in eligible:
        if Fraction(scores[t]) <= threshold:
            continue
        if before is None or t - before > distance:
            points.append(t)
        elif scores[t] > scores[points[-1]]:
            points[-1] = t
        before = t
    return points


def paragraph_starts(texts: Sequence[str]) -> list[int]:
    """Every character after a break, then the first token that begins there or later."""
    whole = "".join(texts)
    needed = 2 if "\n\n" in whole.strip("\n") else 1
    begins = [sum(len(text) for text in texts[:i]) for i in range(len(texts))]
    starts: list[int] = []
    run = 0
    for at, character in enumerate(whole):
        if character == "\n":
            run += 1
            continue
        if run >= needed:
            later = [i for i, begin in enumerate(begins) if begin >= at]
            if later and later[0] > 0 and later[0] not in starts:
                starts.append(later[0])
        run = 0
    return starts


def continuation_counts(
    prefixes: Sequence[Sequence[int]], base_lengths: Sequence[int], first_lengths: Sequence[int], budget: str, m: int
) -> list[list[int]]:
    """Continuations handed out one at a time, or one more for each state as long as the budget holds."""
    states = [(b, k) for b, lengths in enumerate(prefixes) for k in lengths]
    counts = [m] * len(states)
    if budget == "per_prompt" and states:
        counts = [0] * len(states)
        for given in range(m):
            counts[-1 - given % len(states)] += 1
        counts = [max(2, count) for count in counts]
    if budget == "token_matched" and states:
        allowed = Fraction(m * sum(first_lengths), len(first_lengths)) if first_lengths else Fraction(m)
        lengths = base_lengths or [1] * len(prefixes)
        each = 2
        while sum(first_lengths) + sum((each + 1) * max(lengths[b] - k, 1) for b, k in states) <= allowed:
            each += 1
        counts = [each] * len(states)
    dealt = iter(counts)
    return [[next(dealt) for _ in lengths] for lengths in prefixes]


def token_weights(masks: Sequence[Sequence[bool]], agg: str) -> tuple[list[list[float]], float]:
    """Token by token, row by row."""
    weights, tokens, rows = [], 0, 0
    for mask in masks:
        trained = 0
        for entry in mask:
            trained += 1 if entry else 0
        tokens += trained
        rows += 1 if trained else 0
        each = 1.0 if agg == "token_mean" else 1.0 / max(trained, 1)
        weights.append([each if entry else 0.0 for entry in mask])
    return weights, float(tokens if agg == "token_mean" else rows)


def highest_entropy_masks(
    entropies: Sequence[Sequence[float]], masks: Sequence[Sequence[bool]], fraction: float
) -> list[list[bool]]:
    """A trained token stays when fewer than the wanted number of trained tokens have a higher entropy."""
    trained = [
        h for row, mask in zip(entropies, masks, strict=True) for h, entry in zip(row, mask, strict=True) if entry
    ]
    wanted = 1
    while wanted < fraction * len(trained):
        wanted += 1
    return [
        [entry and sum(other > h for other in trained) < wanted for h, entry in zip(row, mask, strict=True)]
        for row, mask in zip(entropies, masks, strict=True)
    ]


def successes_histogram(rewards: Sequence[Sequence[float]]) -> list[int]:
    """Rewards counted group by group; a smaller group's count is scaled to the largest, halves to the even neighbour."""
    if not rewards:
        return []
    m = max(len(group) for group in rewards)
    histogram = [0] * (m + 1)
    for group in rewards:
        right = 0
        for reward in group:
            right += 1 if reward else 0
        histogram[round(Fraction(right * m, len(group)))] += 1
    return histogram
