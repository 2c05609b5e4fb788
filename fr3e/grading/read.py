"""From the text of an answer to its readings: the forms it can be meant as."""

import re
from fractions import Fraction

from fr3e.grading import units, words
from fr3e.grading.forms import Based, Clock, Form, Listing, Region, Value
from fr3e.grading.normalise import join_thousands
from fr3e.grading.reader import Reader
from fr3e.grading.tokens import Token, Unreadable, tokenise

_LEAD_IN = re.compile(
    r"^(?:\\text\s*\{\s*)?(?:(?:so|thus|hence|therefore),?\s*)?(?:the\s+)?(?:(?:final|correct|only|required)\s+)?(?:answer|value|solution|result|option|choice|"
    r"solution set|answers?|solutions?)\s*(?:is|are|set is|:|=)\s*:?\s*(\})?\s*"
    r"|^(?:\\text\s*\{\s*)?(?:there (?:are|is)|approximately)\b\s*(\})?\s*", re.IGNORECASE,
)  # fmt: skip


def read(text: str) -> list[Form]:
    """All readings of a cleaned answer, the likeliest first; none when it cannot be read."""
    text = _strip_lead_in(text)
    if not text:
        return []
    forms = words.read_words(text)
    for special in (*words.read_based(text), words.read_choice(text), words.read_clock(text)):
        if special is not None:
            forms.append(special)
        if isinstance(special, Based) and special.base == 10 and special.digits.isdigit():
            forms.append(Value(("n", Fraction(int(special.digits)))))
    if any(isinstance(form, Clock) and form.half for form in forms):
        return forms  # "12:00 pm" is no ratio
    joined = join_thousands(text)
    variants = [joined] if joined == text else [joined, text]
    if re.search(r"\d[eE][+-]?\d", text):
        variants.append(re.sub(r"(?<=\d)[eE](?=[+-]?\d)", " e ", joined))
    for variant in variants:
        for letters in (False, True):
            try:
                tokens = tokenise(_mixed(variant))
                if letters and not (_LONE_AT_END.search(variant) and (tokens := _as_symbols(tokens))):
                    break
                forms.append(Reader(tokens, variant).form())
            except Unreadable:
                continue
    return forms or _twice(text)


def _twice(text: str) -> list[Form]:
    """ "-1 < x : (-1, oo)": the same set of numbers, written twice."""
    left, colon, right = text.rpartition(":")
    if not colon or ":" in left:
        return []
    both = [read(part.strip()) for part in (left, right)]
    regions = [form for forms in both for form in forms if isinstance(form, Region | Listing)]
    return regions if all(both) and len(regions) >= 2 else []


_LONE_AT_END = re.compile(r"(?<![A-Za-z])[" + "".join(sorted(units.LONE)) + r"](?:\s*\^\s*\{?\s*-?\s*\d\s*\}?)?\W*$")


def _as_symbols(tokens: list[Token]) -> list[Token]:
    """Bare letters that are also units, in braces, so that they are read as symbols."""
    result: list[Token] = []
    for token in tokens:
        if token.kind == "letters" and token.value in units.LONE:
            result.extend((Token("punct", "{", token.gap), Token("letters", token.value), Token("punct", "}")))
        else:
            result.append(token)
    return result


_LABEL = re.compile(
    r"^\\text\s*\{\s*(?:[^{}]{1,40}:|exactly|only|just)\s*\}\s*:?\s*|^\\text\s*\{[^{}]{1,40}\}\s*:\s*|^(?:exactly|only|just) "
)


def _strip_lead_in(text: str) -> str:
    label = _LABEL.match(text)
    if label is not None and label.end() < len(text):
        return text[label.end() :]
    match = _LEAD_IN.match(text)
    if match is None or match.end() == len(text):
        return text
    rest = text[match.end() :]
    inside = match[0].lstrip().startswith("\\text") and match[1] is match[2] is None
    return r"\text{" + rest if inside else rest


def _mixed(text: str) -> str:
    """ "1 1/2" as a sum."""
    return re.sub(r"(?<![\d./^_])(\d+)[ -](\d+)\s*/\s*(\d+)(?![\d/^])", r"(\1+\2/\3)", text)
