"""What is said before an answer and is no part of it: "the answer is", "exactly", "Janet makes"."""

import re

_LEAD_IN = re.compile(
    r"^(?:\\text\s*\{\s*)?(?:(?:so|thus|hence|therefore),?\s*)?(?:the\s+)?(?:(?:final|correct|only|required)\s+)?(?:answer|value|solution|result|option|choice|"
    r"solution set|answers?|solutions?)\s*(?:is|are|set is|:|=)\s*:?\s*(\})?\s*"
    r"|^(?:\\text\s*\{\s*)?(?:there (?:are|is)|approximately)\b\s*(\})?\s*", re.IGNORECASE,
)  # fmt: skip
_LABEL = re.compile(
    r"^\\text\s*\{\s*(?:[^{}]{1,40}:|exactly|only|just)\s*\}\s*:?\s*|^\\text\s*\{[^{}]{1,40}\}\s*:\s*|^(?:exactly|only|just) "
)
_NAMED = re.compile(r"\\text\s*\{[^{}]*:\s*\}")  # another name: then the first one is no announcement
_SENTENCE = re.compile(
    r"\\text\s*\{\s*(?P<words>[A-Za-z][A-Za-z' ,]{1,100}?)\s*(?:(?P<close>\})\s*(?=[-\d\\(.])|(?=-?(?:\\\$)?\d))"
)
_VERBS = {
    "is", "are", "was", "were", "equals", "has", "have", "had", "needs", "need", "takes", "take", "took", "costs", "cost", "earns",
    "earn", "earned", "makes", "make", "made", "pays", "pay", "paid", "spends", "spend", "spent", "gets", "get", "saves", "save",
    "saved", "weighs", "contains", "gives", "travels", "walks", "reads", "sells", "sold", "buys", "bought",
}  # fmt: skip
# Words before a value that make it something else than the answer: bounds, doubts, choices, parts and multiples.
_HEDGES = {
    "not", "never", "no", "none", "nothing", "neither", "nor", "without", "except", "least", "most", "more", "less", "fewer",
    "greater", "larger", "smaller", "than", "about", "around", "roughly", "almost", "nearly", "over", "under", "above", "below",
    "between", "from", "up", "within", "half", "third", "quarter", "twice", "double", "triple", "thrice", "times", "or", "either",
    "if", "unless", "when", "could", "may", "might", "maybe", "perhaps", "possibly", "probably", "can", "should", "would", "one",
    "two", "three", "four", "five", "other", "others", "another", "some", "any", "all", "every", "both", "few", "several", "mod",
    "modulo", "base", "negative", "minus", "plus", "multiple", "divisible", "square", "squared", "cube", "cubed", "root",
    "logarithm", "reciprocal", "inverse", "opposite", "divided", "multiplied", "increased", "decreased", "prime", "even", "odd",
    "t", "doesn", "isn", "wrong", "false", "incorrect", "cannot", "hardly", "only", "first", "initially", "originally", "instead",
}  # fmt: skip


def _announces(words: str) -> bool:
    """Whether `words` are a subject and a verb after which its value follows, and nothing besides."""
    spoken = re.findall(r"[a-z]+", words.lower())
    if spoken[-2:] in (["is", "at"], ["are", "at"]):
        spoken.pop()
    return len(spoken) > 1 and spoken[-1] in _VERBS and not _HEDGES & set(spoken)


def without_lead_in(text: str) -> str:
    """`text` without the words that announce its answer; unchanged where they may say more than that."""
    sentence = _SENTENCE.match(text)
    if sentence is not None and _announces(sentence["words"]):
        rest = text[sentence.end() :]
        return rest if sentence["close"] else rf"\text{{{rest}"
    label = _LABEL.match(text)
    if label is not None and label.end() < len(text) and not _NAMED.search(text, label.end()):
        return text[label.end() :]
    match = _LEAD_IN.match(text)
    if match is None or match.end() == len(text):
        return text
    rest = text[match.end() :]
    inside = match[0].lstrip().startswith("\\text") and match[1] is match[2] is None
    return r"\text{" + rest if inside else rest
