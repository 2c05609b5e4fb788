"""Golds and questions in one form each.

A gold of a source becomes text that `fr3e.grading.grade` takes: no dollar signs around it, no currency sign, no thousands
separators, AIME's and AMC's as plain integers. Mathematics is never rewritten. One normaliser per shape of gold; each
raises `Unusable` for a gold that no answer could match and `TypeError` for a value of the wrong type.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

BOX = re.compile(r"\\(?:boxed|fbox)\s*(?=\{)")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)")
SEPARATOR = re.compile(r"(?<=\d)(?:,\\!\s*|\{,\}\s*)(?=\d{3}(?!\d))")
THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
# "\f" of "\frac" read as an escape by some converter of a source: a form feed, then "rac".
FORM_FEED_COMMAND = re.compile("\x0c(?=rac|orall)")

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Unusable(ValueError):
    """The gold cannot be graded against; the message says why."""


def last_box(text: str) -> str | None:
    r"""Content of the last balanced `\boxed{...}` or `\fbox{...}`; None when there is none."""
    found = None
    for match in BOX.finditer(text):
        depth = 0
        for end in range(match.end(), len(text)):
            escaped = text[end - 1] == "\\"
            depth += (text[end] == "{" and not escaped) - (text[end] == "}" and not escaped)
            if depth == 0:
                found = text[match.end() + 1 : end]
                break
    return found


def plain(value: Any) -> str:
    """Text or number; `{"target": ...}` (verl) is looked into."""
    if isinstance(value, Mapping) and "target" in value:
        value = value["target"]
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise TypeError(f"gold is a {type(value).__name__}; text or a number is allowed")
    if value is None:
        raise Unusable("empty gold")
    if isinstance(value, float) and not math.isfinite(value):
        raise Unusable(f"gold {value} is not a finite number")
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    text = FORM_FEED_COMMAND.sub(r"\\f", text)
    text = re.sub(r"\\\$\s*", "", text)
    text = SEPARATOR.sub("", text.replace("$", "")).replace(r"\!", "")
    text = " ".join(text.split())
    if re.search(r"[\d})\]]\.$", text):
        text = text[:-1]
    if THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    whole = re.fullmatch(r"(?:\\\[|\\\()?\s*(\\boxed\s*\{.*\})\s*(?:\\\]|\\\))?", text)
    text = (last_box(whole.group(1)) or "").strip() if whole else text
    if not text:
        raise Unusable("empty gold")
    if not _balanced(text):
        raise Unusable(f"the gold is cut off (a brace is missing in {text[-30:]!r})")
    return text


def _balanced(text: str) -> bool:
    return len(re.findall(r"(?<!\\)\{", text)) == len(re.findall(r"(?<!\\)\}", text))


def integer(value: Any) -> str:
    """AIME and AMC: a whole number as text, int or float; leading zeros go ("025" is 25, 27.0 is 27)."""
    text = plain(value)
    if not re.fullmatch(r"-?\d+(?:\.0+)?", text):
        raise Unusable(f"gold {text!r} is not a whole number")
    return str(int(text.split(".")[0]))


def boxed_integer(value: Any) -> str:
    """A solution whose last box holds one whole number, perhaps inside text commands or brackets."""
    if not isinstance(value, str):
        raise TypeError(f"gold is a {type(value).__name__}; a solution text is allowed")
    box = last_box(value)
    digits = re.findall(r"-?\d+", box or "")
    if len(digits) != 1:
        raise Unusable("no box with one whole number in the solution" if box is None else f"box {box!r} is no number")
    return str(int(digits[0]))


def after_hashes(value: Any) -> str:
    """GSM8K: the number after the last `####`."""
    if not isinstance(value, str):
        raise TypeError(f"gold is a {type(value).__name__}; a solution that ends in '#### N' is allowed")
    _, hashes, answer = value.rpartition("####")
    number = plain(answer).replace(",", "") if hashes else ""
    if not NUMBER.fullmatch(number):
        raise Unusable("no number after '####'")
    return number


def minerva(value: Any) -> str:
    """The last box of an OCW solution; Python spellings in it (`np.arcsin`, `-1./3`) become mathematics."""
    if not isinstance(value, str):
        raise TypeError(f"gold is a {type(value).__name__}; a solution with a box is allowed")
    box = last_box(value)
    if box is None:
        raise Unusable("no box in the solution")
    text = re.sub(r"\bnp\.(?=[a-z])", r"\\", plain(box))
    return re.sub(r"(?<=\d)\.(?=/)", "", text)


def gaokao(value: Any) -> str:
    """Several answers joined by "and" or "or" become a list; a "solution:" that slipped in behind is cut."""
    if not isinstance(value, str):
        return plain(value)
    text = re.sub(r"\s*solution:\s*$", "", value.strip())
    if re.fullmatch(r"\$[^$]+\$(?:\s*(?:,|and|or)\s*\$[^$]+\$)+", text):
        text = ", ".join(re.findall(r"\$([^$]+)\$", text))
    return plain(text)


def olympiad(value: Any) -> str:
    """OlympiadBench: a list of one text, which may itself hold several answers separated by commas."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"gold is a {type(value).__name__}; a list of texts is allowed")
    if not value:
        raise Unusable("empty gold")
    # plain() would take "221,108" for a number with a thousands separator; here the comma separates answers.
    parts = [plain(part) for part in ",".join(value).split(",") if part.strip(" $")]
    if not parts:
        raise Unusable("empty gold")
    return ",".join(parts)


GOLDS: dict[str, Callable[[Any], str]] = {
    "plain": plain,
    "integer": integer,
    "boxed_integer": boxed_integer,
    "after_hashes": after_hashes,
    "minerva": minerva,
    "gaokao": gaokao,
    "olympiad": olympiad,
}


def repair_question(text: str) -> tuple[str, str]:
    r"""Undo what converters broke: form feeds that were `\f`, Windows line ends, control characters.

    Returns the text and what was done ("" when nothing was).
    """
    fixed = FORM_FEED_COMMAND.sub(r"\\f", text)
    done = ["a form feed was the command \\f"] if fixed != text else []
    lines = fixed.replace("\r\n", "\n").replace("\r", "\n")
    cleaned = CONTROL.sub("", lines)
    if cleaned != fixed:
        done.append("control characters or Windows line ends taken out")
    return cleaned, "; ".join(done)


_SPELLINGS = [
    (re.compile(r"\\plus\{\}"), "+"),
    (re.compile(r"\\minus\{\}"), "-"),
    (re.compile(r"\\equal\{\}"), "="),
    (re.compile(r"\\(?:begin|end)\s*\{(?:align|aligned|equation|gather|gathered|center)\*?\}"), " "),
    (re.compile(r"\\[dt]frac"), r"\\frac"),
    (re.compile(r"\\(?:left|right|displaystyle|limits|big|Big|bigg|Bigg|quad|qquad)(?![a-zA-Z])"), " "),
    (re.compile(r"\\[()\[\],;:!> ]|\$|~|\\\\"), " "),
    (re.compile(r"\\(?:text|textbf|textit|mathrm|mbox|emph|textrm|operatorname)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\leq(?:slant)?(?![a-zA-Z])"), r"\\le"),
    (re.compile(r"\\geq(?:slant)?(?![a-zA-Z])"), r"\\ge"),
    (re.compile(r"\\neq(?![a-zA-Z])"), r"\\ne"),
    (re.compile(r"\\(?:ldots|cdots|dotsc|dotsb)(?![a-zA-Z])|\.\.\.|…"), r"\\dots"),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?|°"), r"\\degree"),
    (re.compile('["`“”&]'), " "),
    (re.compile(r"\[([biu])\](.*?)\[/\1\]", re.DOTALL), r"\2"),
    (re.compile(r"\[/?list\]|\[\*\]|\\tag\s*\{?\w+\}?"), " "),
]


def question_text(question: str) -> str:
    """A question with one spelling of LaTeX: operators, digits and letters stay, layout goes. Words stay apart."""
    text = unicodedata.normalize("NFKC", question).lower()
    text = text.replace("−", "-").replace("×", r"\times ").replace("·", r"\cdot ").replace("’", "'").replace("‘", "'")
    for pattern, replacement in _SPELLINGS:
        text = pattern.sub(replacement, text)
    return text


def question_key(question: str) -> str:
    """What two copies of one question share, whatever their layout; questions that differ in an operator differ."""
    text = "".join(question_text(question).split())
    text = re.sub(r"\{(\\?[a-z0-9])\}", r"\1", text)
    # Punctuation counts between digits alone: "1, 23" and "12, 3" differ, "then, find" and "then find" do not.
    return re.sub(r"(?<!\d)[.,:;?!]|[.,:;?!](?!\d)", "", text)


TOKEN = re.compile(r"\\?[a-z]+|\d+|[^\sa-z\d]")
_LAYOUT = frozenset("{}.,:;?!\"'")


def question_tokens(question: str) -> list[str]:
    """Words, numbers and operators of a question, for n-grams."""
    return [token for token in TOKEN.findall(question_text(question)) if token not in _LAYOUT]
