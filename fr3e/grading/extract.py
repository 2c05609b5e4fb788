"""Which part of a response is its answer.

The last balanced box counts, whatever prose says before or after it. Without a box an announced answer counts
("the answer is X", "Answer: X", "#### X"); a number that merely stands last does not.
"""

import re
from dataclasses import dataclass

from fr3e.grading.limits import MAX_RESPONSE, MAX_SEARCHED

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![a-zA-Z])")
_BRACES = re.compile(r"\\.|[{}]", re.DOTALL)
_SPACE = re.compile(r"\s*")
_BARE = re.compile(r"-?\d[\d.,]*\d|-?\d|[A-Za-z](?![A-Za-z])")
_CUE = re.compile(
    r"####[ \t]*|(?:\bfinal[ \t]+)?\banswers?(?:[ \t*_]*\b(?:to|of|for)\b[^.\n:=]{1,80}?)?[ \t*_]*"
    r"(?:,?[ \t]*\b(?:therefore|thus|then|hence)\b,?[ \t]*)?"
    r"(?:\b(?:is|are|was|will be|must be|should be|would be|equals|becomes)\b"
    r"(?:[ \t]*\b(?:therefore|thus|then|hence|simply|just|clearly|obviously|indeed|now|exactly|actually|still)\b,?)?"
    r"[ \t]*:?|[:=：])[ \t*_]*",
    re.IGNORECASE,
)
_CLOSING = re.compile(r"\s*I hope it is correct\.?.*$", re.IGNORECASE | re.DOTALL)
_SENTENCE_END = re.compile(r"[.!?。](?=\s|$|\*)|\n")
_AFTERTHOUGHT = re.compile(
    r"(?:,\s+|\s*\()not\b.*$|\s+and (?:I|we|that|this)\b.*$|[,;]?\s+\(?(?:because|since|as (?:we|the|shown|required|desired)|which|so that|where we|when we|by the|from the|due to"
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


def _closings(text: str) -> dict[int, int]:
    """Where each "{" is closed, in one pass; escaped braces do not count and stray ones are passed over."""
    closings: dict[int, int] = {}
    open_: list[int] = []
    for match in _BRACES.finditer(text):
        if match[0] == "{":
            open_.append(match.start())
        elif match[0] == "}" and open_:
            closings[open_.pop()] = match.start()
    return closings


def _box_at(text: str, end_of_command: int, closings: dict[int, int]) -> tuple[int, int] | None:
    """Span of the content of the box whose command ends at `end_of_command`."""
    start = _SPACE.match(text, end_of_command).end()  # type: ignore[union-attr]
    if text[start : start + 1] == "{":
        close = closings.get(start, -1)
        return None if close < 0 else (start + 1, close)
    match = _BARE.match(text, start)
    return (match.start(), match.end()) if match else None


def last_box(text: str) -> str | None:
    """Content of the last balanced box that is not inside another, None when there is none."""
    commands = [match.end() for match in _BOX.finditer(text)]
    if not commands:
        return None
    closings = _closings(text)
    last: tuple[int, int] | None = None
    for command in commands:
        span = _box_at(text, command, closings)
        if span is not None and (last is None or span[0] > last[1]):
            last = span
    return None if last is None else unbox(text[last[0] : last[1]])


def _early_box(text: str) -> str | None:
    """The last balanced box of a very long response that ends without one: 64 boxes are tried, of 10,000 characters."""
    commands = [match.end() for match in _BOX.finditer(text)]
    for command in reversed(commands[-64:]):
        piece = text[command : command + 10_000]
        span = _box_at(piece, 0, _closings(piece))
        if span is not None:
            return unbox(piece[span[0] : span[1]])
    return None


def unbox(text: str) -> str:
    """`text` with the boxes inside it opened."""
    for _ in range(8):
        match = _BOX.search(text)
        if match is None:
            return text
        span = _box_at(text, match.end(), _closings(text))
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
    return _clause(rest.lstrip())


def extract(response: str) -> Extraction:
    """The answer of `response`. Of a response longer than MAX_RESPONSE only the end and its boxes are read."""
    box = last_box(response[-MAX_RESPONSE:])
    if box is None and len(response) > MAX_RESPONSE:
        box = _early_box(response[-MAX_SEARCHED:])
    response = response[-MAX_RESPONSE:]
    if box is not None:
        return Extraction(box, "last box") if box.strip() else Extraction(None, "empty box")
    prose = announced(response)
    if prose:
        return Extraction(prose, "announced")
    return Extraction(None, "no box and no announced answer" if prose is None else "nothing after the announcement")
