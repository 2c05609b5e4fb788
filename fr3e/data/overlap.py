"""Which benchmark questions stand in a training set: three methods, from strict to loose.

- `exact`: the same text up to outer blanks.
- `latex`: the same text in one spelling of LaTeX, operators kept (`fr3e.data.normalise.question_key`).
- `ngram`: at least 60 % of the benchmark question's 8-grams of tokens stand in one training question. It also finds
  look-alikes made from one template, so it counts too many, as the two others count too few.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fr3e.data.normalise import question_key, question_tokens

METHODS = ("exact", "latex", "ngram")
N = 8
CONTAINMENT = 0.6


def ngrams(tokens: Sequence[str], n: int = N) -> set[tuple[str, ...]]:
    """All runs of `n` tokens; empty for a text with fewer."""
    return {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}


@dataclass
class Index:
    """Benchmark questions, ready to be looked up: `add` them, then `find` training questions."""

    exact: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    latex: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    grams: dict[tuple[str, ...], list[str]] = field(default_factory=lambda: defaultdict(list))
    sizes: dict[str, int] = field(default_factory=dict)

    def add(self, identifier: str, question: str) -> None:
        """Enter one benchmark question under its id."""
        self.exact[question.strip()].append(identifier)
        self.latex[question_key(question)].append(identifier)
        own = ngrams(question_tokens(question))
        self.sizes[identifier] = len(own)
        for gram in own:
            self.grams[gram].append(identifier)

    def find(self, question: str, key: str) -> dict[str, list[str]]:
        """Method -> sorted ids of the benchmark questions found in one training question whose key is `key`."""
        shared: Counter[str] = Counter()
        for gram in ngrams(question_tokens(question)):
            if gram in self.grams:
                shared.update(self.grams[gram])
        # Integer comparison: hits/size >= 6/10 without a rounding at the edge.
        near = [own for own, hits in shared.items() if 10 * hits >= round(10 * CONTAINMENT) * self.sizes[own]]
        return {
            "exact": sorted(self.exact.get(question.strip(), [])),
            "latex": sorted(self.latex.get(key, [])),
            "ngram": sorted(near),
        }


def count_found(found: Iterable[tuple[str, dict[str, list[str]]]]) -> dict[str, dict[str, dict[str, int]]]:
    """From (source, `Index.find` result) pairs: source -> benchmark -> method -> distinct benchmark questions found."""
    seen: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for source, methods in found:
        for method, identifiers in methods.items():
            for identifier in identifiers:
                seen[source, identifier.split(":")[0], method].add(identifier)
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for (source, benchmark, method), identifiers in sorted(seen.items()):
        counts.setdefault(source, {}).setdefault(benchmark, dict.fromkeys(METHODS, 0))[method] = len(identifiers)
    return counts
