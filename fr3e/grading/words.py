"""Answers that are words: texts, choice letters, times of day, numbers written out."""

import re
from fractions import Fraction

from fr3e.grading.forms import EVERYTHING, HALF_LINES, NOTHING, Based, Choice, Clock, Form, Value, Words
from fr3e.grading.units import blocking, read_unit

_UNITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
NUMBERS = {word: value for value, word in enumerate(_UNITS)} | {
    word: 10 * (value + 2) for value, word in enumerate(_TENS)
}
_PARTS = {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4,
          "fifth": 5, "fifths": 5, "sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10}  # fmt: skip
_NOTHING = {
    "no solution", "no solutions", "no real solution", "no real solutions", "none", "empty set", "null set", "empty",
    "there is no solution", "there are no solutions", "no such", "no roots", "no real roots", "no root",
}  # fmt: skip
_EVERYTHING = {
    "all real numbers", "all reals", "all real", "all real x", "real numbers", "every real number", "any real number",
    "all real numbers x", "set of all real numbers", "set of real numbers", "all real values", "all real values of x",
}  # fmt: skip
_HALF_LINE = re.compile(
    r"(?:(?:set of )?all |every |any )?(positive|negative|non ?negative|non ?positive) real(?: number)?s?(?: x)?"
)
_SAME = {"dne": "does not exist", "undefined": "does not exist", "yes": "yes", "true": "true", "infinitely many solutions":
         "infinitely many", "infinite number of solutions": "infinitely many", "infinite": "infinitely many"}  # fmt: skip
_ROMAN = {"first": "i", "second": "ii", "third": "iii", "fourth": "iv"}
_DROPPED = {"a", "an", "the"}
_FILLERS = {"series", "sequence", "integral", "number", "numbers", "function", "on"}
_WRAPPER = re.compile(r"\\text\s*\{([^{}]*)\}")
_CLOCK = re.compile(
    r"(\d{1,2})(?:\s*:\s*(\d{2}))?\s*\(?\s*(a\.?\s*m\.?|p\.?\s*m\.?|noon|midnight|o'?clock)?\s*\)?\.?", re.IGNORECASE
)
_CHOICE = re.compile(
    r"(?:(?i:option|choice|answer)\s*:?\s*)?(?:\(\s*([A-Ka-e])\s*\)|([A-K])(?=\s*(?:[).:]|$)))\s*[).:]?\s*(.*)",
    re.DOTALL,
)
_CHOICES = re.compile(r"\(?[A-H]\)?(?:\s*(?:,|;|,?\s*and\b)?\s*\(?[A-H]\)?)+")
_BASED = re.compile(r"\(?\s*([0-9A-Z]+)\s*\)?\s*_\s*\{?\s*\(?\s*(\d{1,2}|[a-z]+)\s*\)?\s*\}?")
_BASE_NAMES = {word: value for word, value in NUMBERS.items() if 2 <= value <= 16} | {"hex": 16, "bin": 2, "oct": 8}


def unwrapped(text: str) -> str:
    r"""`text` without \text{...} around its words."""
    return " ".join(_WRAPPER.sub(r" \1 ", text).replace("~", " ").split())


def normal_text(text: str) -> str:
    """Words in lower case without punctuation and articles; symbols that carry meaning make the result empty."""
    plain = unwrapped(text)
    plain = plain.replace("$", " ").replace(r"\ ", " ")
    if re.search(r"[\\^_=<>+*/{}|]", plain):
        return ""
    plain = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", plain.lower())
    plain = re.sub(r"^\s*(?:it is|it's|this is|they are|that is|it|they)\s+", "", plain)
    plain = re.sub(r"^\s*the [a-z]+(?: [a-z]+)? (?:is|are) (?!not\b)", "", plain)
    plain = re.sub(r"\b(first|second|third|fourth) quadrant\b", lambda m: f"quadrant {_ROMAN[m[1]]}", plain)
    plain = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", plain)
    words = re.findall(r"[a-z]+(?:'[a-z]+)?|\d+(?:\.\d+)?", plain)
    return " ".join(word for word in words if word not in _DROPPED)


def same_words(answer: str, gold: str) -> bool:
    """Whether two normal texts agree up to the order around "and" and to nouns that say nothing ("odd number")."""
    return _kernel(answer) == _kernel(gold)


def _kernel(text: str) -> list[str]:
    kept = " ".join(word for word in text.split() if word not in _FILLERS)
    return sorted((kept or text).split(" and "))


def number_words(text: str) -> Fraction | None:
    """ "twenty-one" as 21, "minus two thirds" as -2/3, None when `text` is no number in words (below a million)."""
    words = [w for w in re.split(r"[\s-]+", text.lower().strip()) if w and w != "and"]
    if words and words[0] in ("negative", "minus"):
        size = number_words(" ".join(words[1:]))
        return None if size is None else -size
    if words and words[-1] in _PARTS:
        top = _whole(words[:-1]) if words[:-1] not in ([], ["a"]) else 1
        return None if top is None or (len(words) == 1 and words[0] != "half") else Fraction(top, _PARTS[words[-1]])
    whole = _whole(words)
    return None if whole is None else Fraction(whole)


def _whole(words: list[str]) -> int | None:
    for name, size in (("thousand", 1000), ("hundred", 100)):
        if name in words:
            at = words.index(name)
            head, rest = _whole(words[:at]), _whole(words[at + 1 :]) if words[at + 1 :] else 0
            return None if head is None or rest is None else head * size + rest
    if len(words) == 1 and words[0] in NUMBERS:
        return NUMBERS[words[0]]
    if len(words) == 2 and words[0] in _TENS and words[1] in _UNITS[1:10]:
        return NUMBERS[words[0]] + NUMBERS[words[1]]
    return None


def read_clock(text: str) -> Clock | None:
    """A time of day; "1:58" alone may also be a ratio, which is the caller's matter."""
    plain = unwrapped(text).strip()
    match = _CLOCK.fullmatch(plain)
    if match is None:
        return None
    hour, minute = int(match[1]), int(match[2] or 0)
    half = re.sub(r"[^a-z]", "", (match[3] or "").lower())
    if (not match[2] and not half) or hour > 24 or minute > 59:
        return None
    if half == "oclock":
        half = ""
    if half in ("noon", "midnight"):
        half = "pm" if half == "noon" else "am"
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    return Clock(60 * hour + minute, half)


def read_choice(text: str) -> Choice | None:
    """(B), B, B. 12, \\text{(B)}, option B."""
    plain = unwrapped(text).strip()
    match = _CHOICE.fullmatch(plain)
    if match is None:
        return None
    return Choice((match[1] or match[2]).upper(), match[3].strip())


def read_based(text: str) -> list[Based]:
    """204_5, x = 204_{\\text{five}}, 1011_2 = 11_{10} (the same number in several bases)."""
    parts = unwrapped(text).split("=")
    if len(parts) > 1 and re.fullmatch(r"\s*[A-Za-z]\s*", parts[0]):
        parts = parts[1:]
    found = [_one_based(part.strip()) for part in parts]
    return [based for based in found if based is not None] if len({_worth(based) for based in found}) == 1 else []


def _worth(based: Based | None) -> int | None:
    """The number that `based` stands for, None for no number and for digits that its base does not have."""
    try:
        return None if based is None else int(based.digits, based.base)
    except ValueError:
        return None


def _one_based(text: str) -> Based | None:
    match = _BASED.fullmatch(text)
    if match is None:
        return None
    base = int(match[2]) if match[2].isdigit() else _BASE_NAMES.get(match[2], 0)
    digits = any(c.isdigit() for c in match[1]) or (base > 10 and len(match[1]) > 1)
    if not digits or not 2 <= base <= 36:
        return None
    return Based(match[1].lstrip("0") or "0", base)


def wordy(text: str) -> bool:
    r"""Whether `text` is written in words: letters only (in and outside \text) with a word that is no formula."""
    normal = normal_text(text)
    if not normal:
        return False
    from fr3e.grading.tokens import FUNCTIONS, GREEK

    words = re.findall(r"[a-z]+", normal)
    marked = bool(_WRAPPER.search(text)) and not re.search(r"\d", text)
    plain = unwrapped(text)
    long = [
        w for w in words if len(w) >= 3 and w not in FUNCTIONS and w not in GREEK and w not in ("sqrt", "infty", "inf")
    ]
    letters_only = not re.search(r"\d", plain) and "(" not in plain
    return (bool(long) and letters_only) or (marked and any(len(w) > 1 for w in words))


def read_words(text: str) -> list[Form]:
    """Readings of `text` as words, none when it is not written in words."""
    forms: list[Form] = []
    normal = normal_text(text)
    if not normal:
        return forms
    if (letters := _CHOICES.fullmatch(unwrapped(text))) is not None:
        forms.append(Words(re.sub("[^A-H]", "", letters[0]).lower()))
    number = number_words(unwrapped(text))
    if number is not None:
        forms.append(Value(("n", number)))
    head, _, noun = unwrapped(text).rpartition(" ")
    if number is None and not blocking(noun) and (counted := number_words(head)) is not None:
        forms.append(Value(("n", counted), unit=read_unit(noun)))  # five apples
    if normal == "infinity":
        return [Value(("oo",))]
    if normal in _NOTHING:
        forms.append(NOTHING)
    if (half := _HALF_LINE.fullmatch(normal)) is not None:
        forms.append(HALF_LINES[half[1].replace(" ", "")])
    if normal in _EVERYTHING:
        forms.append(EVERYTHING)
    if wordy(text) or normal == "no":
        forms.append(Words(_SAME.get(normal, normal)))
    return forms
