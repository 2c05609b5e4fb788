"""States: exact token prefixes of a base trajectory (Eq. 8-10), and which tokens may be anchors.

A state is S_j = q + o[:k_j] in token ids, never text that is tokenised again. With the anchor outside the prefix (the
default: section 4.1.4 and the released code) k_j is the anchor's position, so the uncertain token is drawn anew; with
`anchor_in_prefix` (Eq. 8-10) it is one more, and the anchor ends block B_j.
"""

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

ANSWER_MARK = "\\boxed{"


def eligible_tokens(
    token_ids: Sequence[int],
    special_ids: Collection[int],
    token_text: Callable[[int], str] | None = None,
    exclude_answer_span: bool = False,
) -> NDArray[np.bool_]:
    """Tokens that may be anchors, bool [T]: no special token, and on request none from the final answer's box on."""
    eligible_T = np.array([token not in special_ids for token in token_ids], dtype=bool)
    if exclude_answer_span and token_text is not None:
        eligible_T[answer_start([token_text(token) for token in token_ids]) :] = False
    return eligible_T


def answer_start(texts: Sequence[str]) -> int:
    """Index of the token in which the last `\\boxed{` begins; the number of tokens when there is none."""
    at = "".join(texts).rfind(ANSWER_MARK)
    if at < 0:
        return len(texts)
    ends = np.cumsum([len(text) for text in texts])
    return int(np.searchsorted(ends, at, side="right"))


def paragraph_starts(texts: Sequence[str]) -> tuple[int, ...]:
    """Index of each token that begins a paragraph after the first.

    Paragraphs are parted by blank lines, or by line ends in a text without a blank line. A token that holds the break
    and the beginning of the next paragraph belongs to the former.
    """
    whole = "".join(texts)
    mark = "\n\n" if "\n\n" in whole.strip("\n") else "\n"
    ends = np.cumsum([len(text) for text in texts])
    starts: list[int] = []
    at = whole.find(mark)
    while at >= 0:
        while at < len(whole) and whole[at] == "\n":
            at += 1
        if at >= len(whole):
            break
        # The first token that begins at or after the break.
        token = int(np.searchsorted(ends - [len(text) for text in texts], at, side="left"))
        if token < len(texts) and token > 0 and token not in starts:
            starts.append(token)
        at = whole.find(mark, at)
    return tuple(starts)


def prefix_lengths(
    anchors: Sequence[int], *, anchor_in_prefix: bool, include_root: bool, limit: int
) -> tuple[tuple[int, ...], int]:
    """Prefix lengths k of the states in rising order, and how many states were left out as equal to another.

    The root has k = 0. Lengths at `limit` (the budget of prefix + continuation) or above leave no token to draw and give
    no state.
    """
    wanted = [0] if include_root else []
    wanted += [anchor + anchor_in_prefix for anchor in anchors]
    distinct = sorted({k for k in wanted if k < limit})
    return tuple(distinct), sum(k < limit for k in wanted) - len(distinct)


def continuation_counts(
    prefixes: Sequence[Sequence[int]], base_lengths: Sequence[int], first_lengths: Sequence[int], budget: str, m: int
) -> list[list[int]]:
    """Continuations of each state of each base of a prompt, [bases][states].

    per_state: M each. per_prompt: M in all, split evenly, the later states taking the remainder. token_matched: the same
    number for each state, the largest whose expected tokens, sum_j (L - k_j) each, together with the first rollouts cost
    no more than M full rollouts of their mean length. A budget that is too small for two of each state is exceeded: a
    group of one has nothing to compare with and never carries a gradient.
    """
    states = sum(len(lengths) for lengths in prefixes)
    if budget == "per_state" or states == 0:
        return [[m] * len(lengths) for lengths in prefixes]
    if budget == "per_prompt":
        share, rest = divmod(m, states)
        flat = [max(2, share + (index >= states - rest)) for index in range(states)]
        cut = np.cumsum([len(lengths) for lengths in prefixes])[:-1]
        return [part.tolist() for part in np.split(np.array(flat), cut)]
    mean = float(np.mean(first_lengths)) if len(first_lengths) else 1.0
    once = sum(
        max(length - k, 1)
        for lengths, length in zip(prefixes, base_lengths or [mean] * len(prefixes), strict=True)
        for k in lengths
    )
    each = max(2, int((m * mean - sum(first_lengths)) // once))
    return [[each] * len(lengths) for lengths in prefixes]
