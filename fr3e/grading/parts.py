"""Answers in labelled parts: "(a) 3; (b) 5" answers two questions, in their order."""

import re

from fr3e.grading.words import unwrapped

_LABEL = re.compile(r"(?<![^\s,;.])(?:\((?P<round>[a-h]|[iv]{1,4}|\d)\)|(?P<half>[a-h]|[iv]{1,4})\))\s*:?")
_ORDERS = (list("abcdefgh"), ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii"], list("123456789"))


def labelled_parts(text: str) -> list[str]:
    """The answers after (a), (b), ... or (i), (ii), ... or (1), (2), ..., in order; none where `text` has no two such parts."""
    plain = unwrapped(text)
    labels = list(_LABEL.finditer(plain))
    names = [match["round"] or match["half"] for match in labels]
    if len(labels) < 2 or labels[0].start() != 0 or names not in [order[: len(names)] for order in _ORDERS]:
        return []
    ends = [*(match.start() for match in labels[1:]), len(plain)]
    parts = [plain[match.end() : end] for match, end in zip(labels, ends, strict=True)]
    if names[0] == "1" and any(part.rstrip()[-1:] not in (",", ";") for part in parts[:-1]):
        return []  # (1) x (2) y is a product
    parts = [re.sub(r"[\s,;.]*(?:\band\b)?[\s,;.]*$", "", part).strip() for part in parts]
    return parts if all(parts) else []
