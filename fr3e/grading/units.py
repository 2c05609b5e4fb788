"""Units: which words are units, and whether two of them contradict each other.

A unit may be missing or added. A unit that says something else than the gold's ("5 m" for "5 km") is wrong, and one that
says the same in other words ("5000 m") is right.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

_TABLE = """
length m:1 meter:1 metre:1 km:1000 kilometer:1000 kilometre:1000 cm:1/100 centimeter:1/100 centimetre:1/100
length mm:1/1000 millimeter:1/1000 millimetre:1/1000 dm:1/10 angstrom:1/10000000000 nm:1/1000000000 um:1/1000000 in:127/5000 inch:127/5000 inche:127/5000
length ft:381/1250 foot:381/1250 feet:381/1250 yd:1143/1250 yard:1143/1250 mi:201168/125 mile:201168/125
mass kg:1000 kilogram:1000 g:1 gram:1 mg:1/1000 milligram:1/1000 lb:45359237/100000 pound:45359237/100000 oz:45359237/1600000
mass ounce:45359237/1600000 ton:1000000 tonne:1000000
time s:1 sec:1 second:1 min:60 minute:60 h:3600 hr:3600 hour:3600 day:86400 week:604800 ms:1/1000
month month:1 year:12 yr:12
money dollar:1 usd:1 cent:1/100 buck:1
euro euro:1 eur:1
yen yen:1
rupee rupee:1 rs:1
volume l:1 liter:1 litre:1 ml:1/1000 milliliter:1/1000 millilitre:1/1000 gallon:1/0 quart:1/0 pint:1/0 cup:1/0
angle degree:1 deg:1 radian:1/0 rad:1/0
speed mph:1 kph:1000/1609344*1000 kmh:1000/1609344*1000 kmph:1000/1609344*1000
force n:1 newton:1 kn:1000
energy j:1 joule:1 kj:1000 kilojoule:1000 ev:1/0 cal:1/0 kcal:1/0 erg:1/10000000
power w:1 watt:1 kw:1000
pressure pa:1 pascal:1 kpa:1000 atm:101325
voltage v:1 volt:1
current a:1 ampere:1 amp:1
frequency hz:1 hertz:1 khz:1000 mhz:1000000
amount mol:1 mole:1
temperature k:1/0 kelvin:1/0 c:1/0 celsius:1/0 f:1/0 fahrenheit:1/0
percent percent:1 pct:1
bare unit:1 square:1 people:1 person:1 apple:1 way:1 student:1 point:1 piece:1 item:1 time:1 mole:1 molecule:1 digit:1 step:1
bare marble:1 book:1 card:1 coin:1 ball:1 car:1 page:1 child:1 children:1 men:1 women:1 boy:1 girl:1 solution:1 root:1 value:1
"""
_DERIVED = {"mph": ("length/time", Fraction(201168, 125) / 3600), "kph": ("length/time", Fraction(1000, 3600)),
            "kmh": ("length/time", Fraction(1000, 3600)), "kmph": ("length/time", Fraction(1000, 3600))}  # fmt: skip
LONE = set("mshgNJWVLKl")  # letters that are units after a plain number
_CONNECTORS = {
    "or", "and", "to", "if", "when", "not", "than", "except", "between", "at", "but", "unless", "where",
    "maybe", "perhaps", "possibly", "about", "through", "until", "either", "both", "almost", "nearly", "for", "with", "is",
    "are", "was", "mod", "modulo", "base", "choose", "factorial", "squared", "plus", "minus", "over", "divided", "am", "pm",
    "a.m", "p.m", "oclock", "no", "none", "any", "all", "some", "even", "odd",
}  # fmt: skip
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12, "hundred": 100}


def _table() -> dict[str, tuple[str, Fraction | None]]:
    table: dict[str, tuple[str, Fraction | None]] = {}
    for line in _TABLE.strip().splitlines():
        dimension, *entries = line.split()
        for entry in entries:
            name, factor = entry.split(":")
            known = not factor.endswith("/0") and "*" not in factor
            table[name] = (dimension, Fraction(factor) if known else None)
    return table | _DERIVED


UNITS = _table()


@dataclass(frozen=True, slots=True)
class Unit:
    """A product of known units: `dimension` maps base words to powers, `factor` converts to base units (None: unknown).

    `needed` marks the unit of a measure in several units, whose number alone may be meant in any of them.
    A unit of which no word is known has an empty `dimension` and contradicts nothing. `lone` marks a bare letter, which may
    also be a variable.
    """

    words: str
    lone: bool = False
    dimension: tuple[tuple[str, int], ...] = ()
    factor: Fraction | None = None
    needed: bool = False


def singular(word: str) -> str:
    """The table's form of a unit word."""
    lower = word.lower().rstrip(".")
    for candidate in (lower, lower.removesuffix("s"), lower.removesuffix("es")):
        if candidate in UNITS:
            return candidate
    return lower


def known(word: str) -> bool:
    """Whether `word` is in the table, also as a plural."""
    return singular(word) in UNITS and UNITS[singular(word)][0] != "bare"


def blocking(text: str) -> bool:
    """Whether the words of `text` say more than a unit does (alternatives, conditions, hedges, numbers)."""
    text = re.sub(r"\^\s*\{?\s*-?\s*\d\s*\}?", "", text)
    words = re.findall(r"[a-z.]+", text.lower())
    return bool(re.search(r"[\d?=<>]", text)) or any(w.strip(".") in _CONNECTORS for w in words)


ORDINALS = {"st", "nd", "rd", "th"}
POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}


def read_unit(text: str, lone: bool = False) -> Unit:
    """Reads "cm^2", "square inches", "km/h", "miles per hour", "apples"."""
    spelled = re.sub(r"[{}$~\\()]", " ", text.lower()).replace("*", " ").replace("·", " ").replace("cdot", " ")
    spelled = re.sub(r"\bper\b", "/", spelled)
    powers: dict[str, int] = {}
    factor: Fraction | None = Fraction(1)
    sign, pending, found = 1, 1, False
    for word, exponent in re.findall(r"(/|[a-z.]+|-)\s*(?:\^\s*(-?\s*\d))?", spelled):
        if word == "/":
            sign = -1
            continue
        if word in ("-", "of", "the") or (word == "in" and found):
            continue
        if word in POWERS:
            pending = POWERS[word]
            continue
        name = singular(word)
        if name not in UNITS:
            continue
        dimension, size = UNITS[name]
        if dimension == "bare":
            continue
        power = sign * (int(exponent.replace(" ", "")) if exponent else pending)
        pending = 1
        found = True
        for base, direction in _bases(dimension):
            powers[base] = powers.get(base, 0) + direction * power
        factor = None if factor is None or size is None else factor * size**power
    items = tuple(sorted((base, power) for base, power in powers.items() if power))
    return Unit(" ".join(text.split()), lone and text.strip() in LONE, items, factor if found else None)


def _bases(dimension: str) -> list[tuple[str, int]]:
    top, _, bottom = dimension.partition("/")
    return [(top, 1)] + ([(bottom, -1)] if bottom else [])


def conversion(answer: Unit | None, gold: Unit | None) -> Fraction | None:
    """What the answer's number is to be multiplied with before it is compared; None when the units contradict."""
    if gold is not None and gold.lone and answer is None:
        return None  # "2s" may be twice s: the letter cannot be missing
    bare = answer is None or gold is None or not answer.dimension or not gold.dimension
    if bare and any(unit is not None and unit.needed for unit in (answer, gold)):
        return None
    if answer is None or gold is None or not answer.dimension or not gold.dimension:
        return Fraction(1)
    if answer.dimension != gold.dimension:
        return None
    if answer.factor is None or gold.factor is None:
        return Fraction(1) if singular(answer.words) == singular(gold.words) else None
    return answer.factor / gold.factor
