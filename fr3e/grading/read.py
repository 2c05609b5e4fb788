"""From the text of an answer to its readings: the forms it can be meant as."""

import re
from fractions import Fraction

from fr3e.grading import units, words
from fr3e.grading.forms import Based, Clock, Form, Listing, Region, Value
from fr3e.grading.lead_in import without_lead_in
from fr3e.grading.normalise import join_thousands
from fr3e.grading.parts import labelled_parts
from fr3e.grading.reader import Reader
from fr3e.grading.tokens import Token, Unreadable, tokenise


def read(text: str) -> list[Form]:
    """All readings of a cleaned answer, the likeliest first; none when it cannot be read."""
    text = without_lead_in(text)
    if not text:
        return []
    if parts := labelled_parts(text):
        answers = [read(part) for part in parts]
        return [Listing("tuple", tuple(forms[0] for forms in answers), "()")] if all(answers) else []
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


def _mixed(text: str) -> str:
    """ "1 1/2" as a sum."""
    return re.sub(r"(?<![\d./^_])(\d+)[ -](\d+)\s*/\s*(\d+)(?![\d/^])", r"(\1+\2/\3)", text)
