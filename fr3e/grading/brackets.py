"""Brackets in a list of tokens: where one closes, and how the list falls apart at separators outside of all of them."""

from fr3e.grading.tokens import Token

OPENERS = {"(": ")", "[": "]", "{": "}", "\\{": "\\}"}
_CLOSERS = set(OPENERS.values())


def _step(token: Token) -> int:
    """By how much `token` changes the depth."""
    if (token.kind == "punct" and token.value in OPENERS) or (token.kind == "cmd" and token.value == "langle"):
        return 1
    if (token.kind == "punct" and token.value in _CLOSERS) or (token.kind == "cmd" and token.value == "rangle"):
        return -1
    return 0


def split(tokens: list[Token], separators: set[tuple[str, str]]) -> tuple[list[list[Token]], list[str]]:
    """`tokens` cut at the separators (kind, value) that stand outside all brackets, and those separators' values."""
    parts: list[list[Token]] = [[]]
    found: list[str] = []
    depth = 0
    for token in tokens:
        depth += _step(token)
        if depth == 0 and (token.kind, token.value) in separators:
            parts.append([])
            found.append(token.value)
        else:
            parts[-1].append(token)
    return parts, found


def closes(tokens: list[Token], start: int) -> int:
    """Index of the bracket that closes the one at `start`, -1 when none does."""
    depth = 0
    for index in range(start, len(tokens)):
        step = _step(tokens[index])
        depth += step
        if step < 0 and depth == 0:
            return index
    return -1
