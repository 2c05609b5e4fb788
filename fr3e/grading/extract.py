"""Which part of a response is its answer.

The last balanced box counts, whatever prose says before or after it. Without a box an announced answer counts
("the answer is X", "Answer: X", "#### X"); a number that merely stands last does not.
"""

import re
from dataclasses import dataclass

from fr3e.grading.limits import MAX_RESPONSE

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![a-zA-Z])")
_MAX_BOXES = 2_000  # from the end
_CUE = re.compile(
    r"####[ \t]*|(?:\bfinal[ \t]+)?\banswer(?:[ \t*_]*(?:to|of|for)\b[^.\n:=]{1,80}?)?[ \t*_]*"
    r"(?:(?:is|are|was|will be|must be|should be|would be|equals|becomes)\b[ \t]*(?:therefore|thus|then|hence|simply|just)?"
    r"[ \t]*:?|[:=：])[ \t*_]*",
    re.IGNORECASE,
)
_CLOSING = re.compile(r"\s*I hope it is correct\.?.*$", re.IGNORECASE | re.DOTALL)
_SENTENCE_END = re.compile(r"[.!?。](?=\s|$|\*)|\n")
_AFTERTHOUGHT = re.compile(
    r"[,;]?\s+(?:because|since|as (?:we|the|shown|required|desired)|which|so that|where we|when we|by the|from the|due to"
    r"|given that|based on)\b.*$",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Extraction:
    """`text` is the answer (None: none was given) and `source` says how it was found."""

    text: str | None
    source: str


def closing_brace(text: str, start: int) -> int:
    """Index of the "}" that closes the "{" at `start`, -1 when there is none. Escaped braces do not count."""
    level, index, length = 0, start, len(text)
    while index < length:
        character = text[index]
        if character == "\\":
            index += 2
            continue
        if character == "{":
            level += 1
        elif character == "}":
            level -= 1
            if level == 0:
                return index
        index += 1
    return -1


def _box_at(text: str, end_of_command: int) -> tuple[int, int] | None:
    """Span of the content of the box whose command ends at `end_of_command`."""
    start = end_of_command
    while start < len(text) and text[start] in " \t\n":
        start += 1
    if start >= len(text):
        return None
    if text[start] == "{":
        close = closing_brace(text, start)
        return None if close < 0 else (start + 1, close)
    match = re.compile(r"-?\d[\d.,]*\d|-?\d|[A-Za-z](?![A-Za-z])").match(text, start)
    return (match.start(), match.end()) if match else None


def last_box(text: str) -> str | None:
    """Content of the last balanced box that is not inside another, None when there is none."""
    commands = [match.end() for match in _BOX.finditer(text)][-_MAX_BOXES:]
    spans: list[tuple[int, int]] = []
    budget = 20 * len(text) + 1_000_000
    for command in reversed(commands):
        budget -= len(text) - command
        if budget < 0:
            break
        span = _box_at(text, command)
        if span is not None:
            spans.append(span)
            if len(spans) >= 64:
                break
    if not spans:
        return None
    start, end = spans[0]
    for outer_start, outer_end in spans[1:]:
        if outer_start < start and end <= outer_end:
            start, end = outer_start, outer_end
        else:
            break
    return unbox(text[start:end])


def unbox(text: str) -> str:
    """`text` with the boxes inside it opened."""
    for _ in range(8):
        match = _BOX.search(text)
        if match is None:
            return text
        span = _box_at(text, match.end())
        if span is None:
            return text
        close = span[1] + 1 if text[span[1] : span[1] + 1] == "}" else span[1]
        text = text[: match.start()] + text[span[0] : span[1]] + text[close:]
    return text


def _clause(text: str) -> str:
    """The announced answer at the beginning of `text`: up to the end of its sentence or line."""
    text = text[:4_000].lstrip(" \t*_:")
    if text.startswith(("$$", r"\[")):
        closer = "$$" if text.startswith("$$") else r"\]"
        close = text.find(closer, 2)
        if close > 0:
            return text[2:close].strip()
    end, position = len(text), 0
    while (match := _SENTENCE_END.search(text, position)) is not None:
        before = text[: match.start()]
        inside = (before.count("$") - before.count(r"\$")) % 2 == 1 or before.count("{") > before.count("}")
        abbreviation = re.search(r"\b(?:[ap]\.m|[ap]|St|Mr|Mrs|Dr|No)$", before) is not None and match[0] != "\n"
        if not inside and not abbreviation:
            end = match.start()
            break
        position = match.end()
    return _AFTERTHOUGHT.sub("", text[:end]).strip().strip("*_").strip()


def announced(text: str) -> str | None:
    """The last answer announced in prose, None when none is."""
    found = None
    for match in _CUE.finditer(text):
        found = match
    if found is None:
        return None
    rest = _CLOSING.sub("", text[found.end() : found.end() + 4_000])
    if found[0].rstrip(" *_").endswith((":", "#")) or found[0].strip() == "":
        rest = rest.lstrip()
    return _clause(rest)


def extract(response: str) -> Extraction:
    """The answer of `response`. Only the last MAX_RESPONSE characters are read."""
    response = response[-MAX_RESPONSE:]
    box = last_box(response)
    if box is not None:
        return Extraction(box, "last box") if box.strip() else Extraction(None, "empty box")
    prose = announced(response)
    if prose:
        return Extraction(prose, "announced")
    return Extraction(None, "no box and no announced answer" if prose is None else "nothing after the announcement")
