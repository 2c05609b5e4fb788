"""Rows on their way through the filters of the mix, and the counts that say what became of them."""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fr3e.config.mix import Mix
from fr3e.config.scenario import RealData
from fr3e.data.benchmarks import gold_type
from fr3e.data.overlap import count_found
from fr3e.data.records import Record
from fr3e.data.sources import Located, load_sources
from fr3e.files import read_json

VERSION = 1
FILTERS = {
    "level": "the mix does not take this level",
    "gold": "the gold or the question is unusable",
    "markup": "the question already holds a chat template",
    "conflict": "the same question has another gold",
    "duplicate": "the same question stands in an earlier row",
    "overlap": "the question stands in a benchmark, and the mix removes such rows",
    "length": "the prompt has more tokens than allowed",
}


@dataclass
class Row:
    """A record on its way through the filters."""

    record: Record
    order: int
    overlap: dict[str, list[str]] = field(default_factory=dict)
    tokens: int | None = None
    filter: str = ""
    reason: str = ""

    def drop(self, name: str, reason: str) -> None:
        self.filter, self.reason = name, reason


def manifest(rows: list[Row], mix: Mix, located: dict[str, Located], extra: dict[str, Any]) -> dict[str, Any]:
    """The counts of one assembly: what was read, what each filter took, levels, overlap, golds, licences, origins.

    `extra` holds `overlap_pairs` and `length_filter` (applied, max_prompt_tokens).
    """
    kept = [row for row in rows if not row.filter]
    gone = [row for row in rows if row.filter]
    return {
        "version": VERSION,
        "mix": {**mix.model_dump(mode="json"), "precedence": list(mix.parts)},
        "sources": {name: _source_entry(found) for name, found in located.items()},
        "filters": {
            name: {"what": what, "rows": _count(gone, lambda row, name=name: row.filter == name)}
            for name, what in FILTERS.items()
        },
        "filter_order": list(FILTERS),
        "rows": {"read": _count(rows), "kept": _count(kept), "dropped": _count(gone)},
        "levels": _levels(rows),
        "length_filter": _length_entry(extra["length_filter"], kept),
        "shared_questions": _shared(rows),
        "overlap": {
            "counts": count_found((row.record.source, row.overlap) for row in rows),
            "pairs": extra["overlap_pairs"],
        },
        "golds": dict(sorted(Counter(gold_type(str(row.record.gold)) for row in kept).items())),
        "licences": dict(sorted(Counter(row.record.licence for row in kept).items())),
    }


def contradictions(source: Path, wanted: RealData) -> list[str]:
    """Where the assembly whose manifest is `source` is not what a scenario's data section asks for, key by key."""
    made = read_json(source, "mix", "length_filter", "sources")
    mix, applied = wanted.chosen_mix, wanted.chosen_mix is not wanted.mix
    asked = {
        **{f"mix.{key}": value for key, value in mix.model_dump(mode="json").items()},
        "the order of mix.parts": list(mix.parts),
    }
    found = {
        **{f"mix.{key}": value for key, value in made["mix"].items()},
        "the order of mix.parts": made["mix"].get("precedence"),
    }
    if made["length_filter"].get("applied"):  # without a tokenizer no row is left out for its length
        asked["max_prompt_tokens"] = wanted.max_prompt_tokens
        found["max_prompt_tokens"] = made["length_filter"]["max_prompt_tokens"]
    for name, entry in load_sources(Path(wanted.sources)).choose(list(mix.parts), "train").items():
        places = [f"{place.repository}@{place.revision[:8]}" for place in entry.places]
        origin = made["sources"].get(name, {})
        used = f"{origin.get('repository')}@{str(origin.get('revision'))[:8]}"
        asked[f"the place of {name}"], found[f"the place of {name}"] = used if used in places else places, used
    named = {"mix.overlap": "mix.overlap (with remove_overlap: true)"} if applied else {}
    return [
        f"{named.get(key, key)} {found.get(key)!r} instead of {value!r}"
        for key, value in asked.items()
        if found.get(key) != value
    ]


def _count(rows: list[Row], accept: Callable[[Row], bool] = lambda row: True) -> dict[str, int]:
    return dict(sorted(Counter(row.record.source for row in rows if accept(row)).items()))


def _source_entry(located: Located) -> dict[str, Any]:
    place = located.place
    return {
        "repository": place.repository,
        "on": "hub" if place.hub else "github",
        "revision": place.revision,
        "licence": located.source.licence,
        "files": [{"path": file.path, "sha256": file.sha256} for file in place.files],
    }


def _levels(rows: list[Row]) -> dict[str, dict[str, dict[str, int]]]:
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for row in rows:
        level = "none" if row.record.level is None else str(row.record.level)
        entry = counts.setdefault(row.record.source, {}).setdefault(level, {"read": 0, "kept": 0})
        entry["read"] += 1
        entry["kept"] += not row.filter
    return counts


def _length_entry(applied: dict[str, Any], kept: list[Row]) -> dict[str, Any]:
    # Byte-level tokenizers never give more tokens than bytes, so only longer questions can be too long.
    limit = applied["max_prompt_tokens"]
    entry = {**applied, "questions_longer_in_bytes": sum(len(row.record.question.encode()) > limit for row in kept)}
    if not applied["applied"]:
        entry["why_not"] = "no tokenizer was given; the training stage drops longer prompts with its own"
    return entry


def _shared(rows: list[Row]) -> dict[str, int]:
    """Distinct questions that stand in two sources, by pair of sources; and the distinct questions of all."""
    keys: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        keys[row.record.source].add(row.record.key)
    names = sorted(keys)
    shared = {f"{a} and {b}": len(keys[a] & keys[b]) for i, a in enumerate(names) for b in names[i + 1 :]}
    return {**shared, "distinct in all": len(set().union(*keys.values()))}
