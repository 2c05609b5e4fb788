"""Spelling: one text for all the ways to write the same answer down.

`clean` rewrites unicode and typographic LaTeX into a small dialect; it changes no value and decides nothing.
"""

import functools
import re
import unicodedata

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣʸᵃᵇᵐᵏᵗ", "0123456789+-=()nixyabmkt", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙᵢₓₐₘₖₜₑₒⱼ", "0123456789+-=()nixamkteoj", strict=True))
_VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5),
    "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅐": (1, 7), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8),
    "⅑": (1, 9), "⅒": (1, 10),
}  # fmt: skip
_GREEK_NAMES = """alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi omega
Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega phi epsilon ell hbar"""
_GREEK = dict(zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩϕϵℓℏ", _GREEK_NAMES.split(), strict=True))
_UNICODE = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "﹣": "-", "×": r" \times ", "✕": r" \times ", "⋅": r" \cdot ",
    "·": r" \cdot ", "∙": r" \cdot ", "•": r" \cdot ", "÷": r" \div ", "∕": "/", "⁄": "/", "∗": "*", "±": r" \pm ",
    "∓": r" \mp ", "≤": r" \le ", "⩽": r" \le ", "≦": r" \le ", "≥": r" \ge ", "⩾": r" \ge ", "≧": r" \ge ",
    "≠": r" \ne ", "≈": r" \approx ", "≃": r" \approx ", "≅": r" \approx ", "∞": r" \infty ", "∪": r" \cup ",
    "⋃": r" \cup ", "∩": r" \cap ", "∈": r" \in ", "∖": r" \setminus ", "∅": r" \emptyset ", "Ø": r" \emptyset ",
    "ø": r" \emptyset ", "°": r"^{\circ}", "º": r"^{\circ}", "˚": r"^{\circ}", "′": "'", "″": "''", "’": "'",
    "‘": "'", "“": '"', "”": '"', "∣": "|", "｜": "|", "⟨": r" \langle ", "⟩": r" \rangle ", "〈": r" \langle ",
    "〉": r" \rangle ", "⌊": r" \lfloor ", "⌋": r" \rfloor ", "⌈": r" \lceil ", "⌉": r" \rceil ", "…": r" \ldots ",
    "⋯": r" \ldots ", "，": ",", "、": ",", "；": ";", "：": ":", "。": ".", "（": "(", "）": ")", "【": "[", "】": "]",
    "ℝ": r" \mathbb{R} ", "ℤ": r" \mathbb{Z} ", "ℕ": r" \mathbb{N} ", "ℚ": r" \mathbb{Q} ", "ℂ": r" \mathbb{C} ",
    "∨": r" \lor ", "∧": r" \land ", "→": r" \to ", "⇒": r" \Rightarrow ", "∠": r" \angle ", "△": r" \triangle ",
    "∶": ":", "€": r" \text{euros} ", "£": r" \text{pounds} ", "¥": r" \text{yen} ", "¢": r" \text{cents} ",
    "∑": r" \sum ", "∫": r" \int ", "∏": r" \prod ", "µ": r"\mu ", "Å": r" \text{angstroms} ", "₹": r" \text{rupees} ",
}  # fmt: skip
_INVISIBLE = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\u202a-\u202e]")
_SUPER_RUN = re.compile(f"[{''.join(map(re.escape, _SUPERSCRIPTS))}]+")
_SUB_RUN = re.compile(f"[{''.join(map(re.escape, _SUBSCRIPTS))}]+")
_VULGAR_ONE = re.compile(f"[{''.join(_VULGAR)}]")
_OTHER = _UNICODE | {key: rf"\{name} " for key, name in _GREEK.items()}
_OTHER_ONE = re.compile(f"[{''.join(map(re.escape, _OTHER))}]")
_ROOT = re.compile(r"([√∛∜])\s*(\d+(?:\.\d+)?|[A-Za-z]|\\[a-z]+)?")
_NON_ASCII = re.compile(r"[^\x00-\x7f]")


def _vulgar(match: re.Match[str]) -> str:
    top, bottom = _VULGAR[match[0]]
    return rf"\frac{{{top}}}{{{bottom}}}"


def _root(match: re.Match[str]) -> str:
    order = {"√": "", "∛": "[3]", "∜": "[4]"}[match[1]]
    return rf"\sqrt{order}" + (f"{{{match[2]}}}" if match[2] else " ")


def from_unicode(text: str) -> str:
    """Unicode mathematics as LaTeX: "√2 ≤ x²" becomes "\\sqrt{2} \\le  x^{2}". ASCII text comes back unchanged."""
    if not _NON_ASCII.search(text):
        return text
    text = _INVISIBLE.sub("", text)
    text = _SUPER_RUN.sub(lambda m: "^{" + "".join(_SUPERSCRIPTS[c] for c in m[0]) + "}", text)
    text = _SUB_RUN.sub(lambda m: "_{" + "".join(_SUBSCRIPTS[c] for c in m[0]) + "}", text)
    text = _VULGAR_ONE.sub(_vulgar, text)
    text = _OTHER_ONE.sub(lambda m: _OTHER[m[0]], text)
    text = unicodedata.normalize("NFKC", text)
    text = _OTHER_ONE.sub(lambda m: _OTHER[m[0]], text)
    return _ROOT.sub(_root, text)


_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<!\\)\\\\(?=(?:d|t|c)?frac|sqrt|pi|text|left|right|cdot|times|infty|cup|pm|boxed|circ|mathrm|le|ge)", r"\\"),
        (r"\\\\\s*\[-?[\d.]+(?:pt|em|ex|mm|cm)\]", r"\\\\ "),
        (r"(?<!\\)\\[\[\]()]", " "),  # delimiters of mathematics
        (r"(?<!\\)\$", " "),
        (r"(?<!\\)\\!\s*", ""),
        (r"(?:\{\s*\})?[_^]\s*\{?\s*(\d+|[a-z])\s*\}?\s*(?:\\(?:text|mathrm)\s*\{\s*C\s*\}|C)\s*_\s*\{?\s*(\d+|[a-z])\s*\}?", r"\\binom{\1}{\2}"),
        (r"\{,\}|\{ , \}", ","),
        (r"\\&", " and "),
        (r"\\text(?:rm)?\s*\{\s*(\^\{\\circ\}\s*[CF])\s*\}", r"\1"),
        (r"\\(?:text|mathrm)?\s*\{?\s*\\mathring\s*\{?\s*A\s*\}?\s*\}?", r" \\text{angstroms}"),
        (r"^\s*([A-Za-z])\s*:\s*([a-z])\s*\\mapsto", r"\1(\2) = "),
        (r"_\s*\{?\s*\\(max|min)(?![a-z])\s*\}?", r"_{\1}"),
        (r"^\s*\\?\|\s*\\(?:vec|overrightarrow|mathbf)\s*\{?\s*[A-Za-z]+\s*\}?\s*\\?\|(?=\s*=)", "d"),
        (r"(?:\\text\s*)?\{\s*:\s*\}|\\colon(?![a-z])", ":"),
        (r"(?<=\d)\s*[xX]\s*(?=10\s*\^)", r" \\times "),
        (r"(?<![\d.])(\d*\.\d*?)(?:(\d)\2{2,}|(\d{2,9})\3+)\s*(?:\\(?:ldots|dots|cdots)(?![a-z])|\.{3})", r"\1\\overline{\2\3}"),
        (r"(?<!\\)\\(?:[,;:> ]|quad(?![a-z])|qquad(?![a-z])|thinspace|enspace|hfill|noindent|displaystyle|textstyle"
         r"|scriptstyle|limits|nolimits|strut|null(?![a-z]))", " "),
        (r"\\(?:hspace|vspace|phantom|hphantom|vphantom|label|tag)\*?\{[^{}]*\}", " "),
        (r"\\(?:left|right|middle)\s*\.", " "),
        (r"\\(?:left|right|middle|[bB]igg?[lrm]?)(?![a-zA-Z])", " "),
        (r"\\(?:d|t|c|x)frac(?![a-z])", r"\\frac"),
        (r"\\(?:s|nice)frac(?![a-z])", r"\\frac"),
        (r"\\[dt]binom(?![a-z])", r"\\binom"),
        (r"\\(?:operatorname|operatornamewithlimits|mathop)\*?\s*\{\s*([a-zA-Z ]+?)\s*\}", r"\\\1 "),
        (r"\\(?:mbox|textrm|textbf|textit|texttt|textsf|textnormal|mathrm|mathbf|mathit|mathsf|mathtt|boldsymbol|bm"
         r"|bold|emph|hbox|mathnormal|unit|rm)\s*\{", r"\\text{"),
        (r"\\(?:rm|bf|it|cal)(?![a-z])", " "),
        (r"\\(?:leqslant|leq|leqq)(?![a-z])", r"\\le "),
        (r"\\(?:geqslant|geq|geqq)(?![a-z])", r"\\ge "),
        (r"\\(?:neq|not\s*=)(?![a-z])", r"\\ne "),
        (r"\\lt(?![a-z])", " < "),
        (r"\\gt(?![a-z])", " > "),
        (r"\\(?:varnothing|emptyset|oslash)(?![a-z])", r"\\emptyset "),
        (r"\\(?:bigcup|union)(?![a-z])", r"\\cup "),
        (r"\\(?:bigcap)(?![a-z])", r"\\cap "),
        (r"\\(?:backslash)(?![a-z])|(?<=[}\])RZ])\s*\\(?= *\\?\{)", r"\\setminus "),
        (r"\\(?:dots|cdots|dotsc|dotsb|ldots)(?![a-z])", r"\\ldots "),
        (r"\\(?:ast|star)(?![a-z])", "*"),
        (r"\\(?:lbrace)(?![a-z])", r"\\{"),
        (r"\\(?:rbrace)(?![a-z])", r"\\}"),
        (r"\\(?:lbrack)(?![a-z])", "["),
        (r"\\(?:rbrack)(?![a-z])", "]"),
        (r"\\(?:vert|lvert|rvert|mid)(?![a-z])", "|"),
        (r"\\(?:overline|bar)\s*\{([A-Z]{2})\}", r"\1"),
        (r"\\var(epsilon|phi|theta|rho|sigma|pi)(?![a-z])", r"\\\1"),
        (r"\\in\s*\\text\s*\{\s*([RZNQC])\s*\}", r"\\in \\mathbb{\1}"),
        (r"\\in\s*([RZ])(?![A-Za-z_])", r"\\in \\mathbb{\1}"),
        (r"\\(?:mathbb|mathds)\s*\{?\s*([RZNQC])\s*\}?", r"\\mathbb{\1}"),
        (r"\\(?:arc)(sin|cos|tan|cot|sec|csc)(?![a-z])", r"\\arc\1 "),
        (r"(?:\\?textdegree|\\degrees?)(?![a-z])", r"^{\\circ}"),
        (r"\^\s*\\circ(?![a-z])", r"^{\\circ}"),
        (r"\^\s*\{\s*\\circ\s*\}", r"^{\\circ}"),
        (r"\\(?:implies|Rightarrow|Longrightarrow)(?![a-z])", r"\\Rightarrow "),
        (r"(\^\{\\circ\})\s*(?:\\text\s*\{\s*C\s*\}|C)\s*$", r"\1 \\text{celsius}"),
        (r"(\^\{\\circ\})\s*(?:\\text\s*\{\s*F\s*\}|F)\s*$", r"\1 \\text{fahrenheit}"),
        (r"\\frac\s*\{\s*\\text\s*\{([A-Za-z ]+)\}\s*\}\s*\{\s*\\text\s*\{([A-Za-z ]+)\}\s*((?:\^\s*\{?\d\}?)?)\s*\}", r"\\text{\1/\2}\3"),
        (r"\\text\s*\{[~\s]*\\mu\s*([msgFACLV])\s*\}", r"\\text{u\1}"),
        (r"(?<=[\d}])\s*[MLR]_\s*\{?\s*\\odot\s*\}?\s*$", r" \\text{solar}"),
        (r"(?<=\d)\s*\\text\s*\{\s*C\s*\}\s*$", r" \\text{celsius}"),
        (r"(?<=\d)\s*(?:''|\")\s*$", r" \\text{arcseconds}"),
        (r"(?<=[0-9A-Z])\s*(?:\\text\s*\{\s*)?\(?\s*(?:in\s+)?base[\s}]+(\d+|[a-z]+)[\s)}]*$", r"_{\1}"),
        (r"\\(?:AA|angstrom)(?![a-z])", r" \\text{angstroms}"),
        (r"(?<=\d)\s*(?:(?:\\text\s*\{\s*)?[kM]\s*\}?\s*)?\\Omega\s*$", r" \\text{ohms}"),
        (r"(?<=[\d}])\s*\\mu\s*(?:\\text\{\s*)?([msgFACLV])\s*\}?\s*$", r" \\text{u\1}"),
        (r"\^\s*\{?\s*\\text\s*\{\s*(st|nd|rd|th)\s*\}\s*\}?|(?<=\d)\s*\^\s*\{\s*(st|nd|rd|th)\s*\}", r" \\text{th}"),
        (r"(?<=[a-z]{2})\.(?=\s+[a-z])", ""),
        (r"\\(?:text)?color\s*\{[^{}]*\}|\\(?:tiny|small|normalsize|large|Large|LARGE|huge|Huge|checkmark|blacksquare|qed|therefore|because"
         r"|underline|cancel|uline|centering|mathstrut|ensuremath)(?![a-zA-Z])|~", " "),
        (r"\\text\s*\{([\d\s.,;/-]*(?:\b(?:and|or)\b[\d\s.,;/-]*)+)\}", r" \1 "),
        (r"\\text\s*\{\s*[,;]\s*\}", ", "),
        (r"\\text\s*\{\s*[.:!]*\s*\}", " "),
        (r"[_^]\s*\{\s*\}|\\(?=#)", " "),
        (r"\b(seconds?|meters?|metres?|centimeters?|inches|feet|units?|hours?) squared\b", r"\1^2"),
        (r"\b(meters?|metres?|centimeters?|inches|feet|units?) cubed\b", r"\1^3"),
        (r"\bdegrees? ([Cc]elsius|[Ff]ahrenheit)\b", r"\1"),
        (r"(?s)^(?!.*\\begin)(.*[)\]])\s*\^\s*\{?\s*(?:T|\\top|\\text\s*\{\s*T\s*\})\s*\}?\s*$", r"\1"),
        (r"\\text\s*\{\s*[,;]?\s*\(?\s*(?:since|because|for (?:all|any|every|each|some|integers?))\b.*$", ""),
        (r"(?<=[^|:,;\s])\s*[,;]?\s*(?:\\text\s*\{[ ,(]*(?:where|with|for)?\s*\}\s*)?\(?\b[kmn]\s*\\in\s*\\mathbb\{?[ZN]\}?[)\s]*$", ""),
        (r"^\s*(?:\\text\s*\{\s*)?([A-Z]{2,6})\s*\}?\s*=\s*(?:\\text\s*\{\s*)?([A-Z]{2,6})\s*\}?\s*$", r"\1=\2"),
        (r"(?<=[\d}])(\s*\\text\s*\{\s*(?:days?|hours?|hrs?|minutes?|mins?|feet|foot|ft|yards?|pounds?|lbs?|gallons?))\s+and\s*\}(?=\s*\d)", r"\1} "),
        (r"<=|=<", r" \\le "),
        (r">=|=>", r" \\ge "),
        (r"!=|<>|=/=", r" \\ne "),
        (r"==", "="),
        (r"\*\*", "^"),
        (r"\+\s*/?\s*-(?=\s*(?:\d|\\sqrt|\\frac|\())", r" \\pm "),
    )
)  # fmt: skip
_ALIGNED = re.compile(
    r"\\begin\s*\{(aligned|align\*?|gathered|gather\*?|split|equation\*?|cases)\}(.*)\\end\s*\{\1\}", re.DOTALL
)
_ROW_END = re.compile(r"\\\\\s*$|\\\\(?=\s*&\s*=)")


def _one_line(match: re.Match[str]) -> str:
    """Rows that only arrange equations as one line; a function defined by cases (with "&") stays as it is."""
    if match[1] == "cases" and "&" in match[2]:
        return match[0]
    return _ROW_END.sub("", match[2].strip()).replace("&", " ").replace("\\\\", ", ")


_TEXT_BRACES = re.compile(r"\\text\s*\{")
_SPACES = re.compile(r"\s+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_GROUPED = re.compile(r"(?<![\d.,])(\d{1,3})((?:,\d{3})+)(?![\d,])")
_SPACED = re.compile(r"(?<![\d.,])(\d{1,3})((?: \d{3})+)(?![\d,])")
_TRAILING = re.compile(r"(?:[\s.,;:]|\\\\)+$")


@functools.lru_cache(maxsize=4096)
def clean(text: str) -> str:
    """The text of an answer in the small dialect the tokeniser reads. Idempotent in practice, never raises.

    Kept for repeated texts: one comparison asks for the same two several times, and golds come back.
    """
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.replace("\x0crac", r"\frac").replace("\x08oxed", r"\boxed")
    text = _CONTROL.sub("", text)
    text = from_unicode(text)
    stripped = text.strip()
    if stripped.startswith("**") and stripped.endswith("**") and len(stripped) > 4:
        text = stripped[2:-2]
    if len(stripped) > 2 and stripped[0] == stripped[-1] and stripped[0] in "\"'":
        text = stripped[1:-1]
    if stripped.startswith("`") and stripped.endswith("`"):
        text = stripped.strip("`")
    text = _ALIGNED.sub(_one_line, text)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    text = _SPACES.sub(" ", text).strip()
    return _TRAILING.sub("", text).strip()


def join_thousands(text: str) -> str:
    """ "12,345" as "12345", also "12 345"; a comma followed by a space stays a separator."""
    text = _GROUPED.sub(lambda m: m[1] + m[2].replace(",", ""), text)
    return _SPACED.sub(lambda m: m[1] + m[2].replace(" ", ""), text)
