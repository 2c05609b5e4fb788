"""The eight benchmarks as one parquet each, golds ready for grading, everything doubtful said by row.

The published gold stays for the headline score unless it is unusable; a doubt stands in `reason` and in the manifest.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fr3e.data.compare import same_gold
from fr3e.data.normalise import Unusable, last_box, plain
from fr3e.data.records import Record, load_records
from fr3e.data.schema import BENCHMARK, content_sha256, write_parquet
from fr3e.data.sources import Located, Source, load_sources, locate
from fr3e.errors import UserError
from fr3e.files import replacing_all, write_json
from fr3e.progress import log

FINAL = re.compile(
    r"(?:final answer is|####)\s*:?\s*\$?([^$\n]{1,80}?)\$?\.?\s*(?:I hope it is correct|$)", re.MULTILINE
)
LEAK = re.compile(r"\banswers?\s*:\s*(\S[^\n]{0,60})$", re.IGNORECASE)
UNFINISHED = re.compile(r"(?:[,(=+]|\b(?:and|the|of|if|then|to|that|is|with|where|find|let|an|for|by))\s*$")
MANIFEST_VERSION = 1


def leak(question: str, gold: str | None) -> str:
    """What in the question gives an answer away ("" when nothing does).

    An "Answer: X" at the end is a leak whatever X is; a box or a "final answer is X" only where X is this gold, since
    Minerva's questions quote the solutions of the questions before.
    """
    end = LEAK.search(question)
    if end:
        return f"the question ends in its answer ({end.group(0).strip()})"
    if gold:
        stated = FINAL.findall(question)
        box = last_box(question)
        if any(same_gold(text.strip(), gold) for text in [*stated, *([box] if box else [])]):
            return "the question states this answer, as that of an earlier part"
    return ""


def truncated(question: str) -> str:
    """Why the question looks cut off ("" when it does not).

    It ends in an open bracket, comma or operator, in a word that wants another, or in the beginning of a word that stands
    in full earlier in the question.
    """
    text = question.strip()
    words = re.findall(r"[A-Za-z]+", text)
    last = re.search(r"[A-Za-z]{2,}$", text)
    begun = (
        last
        and last.group() not in words[:-1]
        and any(word.startswith(last.group()) and word != last.group() for word in words[:-1])
    )
    if UNFINISHED.search(text) or begun:
        return f"the question looks cut off (it ends in {text[-20:]!r})"
    if text.count(r"\begin{") != text.count(r"\end{"):
        return r"the question's LaTeX is broken (a \begin without its \end, or the reverse)"
    return ""


def _same_as_box(gold: str, box: str) -> bool:
    """Whether a solution's last box holds the gold; a box with text commands and one number holds that number."""
    digits = re.findall(r"-?\d+", box)
    if len(digits) == 1 and "\\" in box and gold.isdigit() and int(digits[0]) == int(gold):
        return True
    text = re.sub(r"(?<=\d),(?:\\!)?\s*(?=\d{3})", "", box)
    try:
        return same_gold(plain(text), re.sub(r"(?<=\d),(?=\d{3})", "", gold))
    except Unusable:
        return False


def doubts(records: Iterable[Record], sources: Mapping[str, Source]) -> dict[str, list[tuple[str, str]]]:
    """Record id -> (kind, text) of everything that speaks against its gold or question, within and across benchmarks."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    by_key: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_key[record.key].append(record)
        for kind, text in (("leak", leak(record.question, record.gold)), ("truncated", truncated(record.question))):
            if text:
                found[record.id].append((kind, text))
        if record.gold and record.box and not _same_as_box(record.gold, record.box):
            found[record.id].append(("solution", f"its own solution boxes {record.box!r}"))
        for note in sources[record.source].notes:
            if note.row == record.row and note.dispute:
                found[record.id].append(
                    ("disputed", f"disputed gold: {note.what}" + (f" ({note.url})" if note.url else ""))
                )
    for copies in by_key.values():
        for record in copies:
            for other in copies:
                if other is record:
                    continue
                if record.gold and other.gold and not same_gold(record.gold, other.gold):
                    found[record.id].append(("conflict", f"the same question has gold {other.gold!r} in {other.id}"))
                else:
                    found[record.id].append(("repeated", f"the same question is {other.id}"))
    return found


def benchmark_row(record: Record, own_doubts: list[tuple[str, str]]) -> dict[str, Any]:
    """One row of the benchmark's parquet."""
    remarks = [*record.notes, *(text for _, text in own_doubts)]
    return {
        "id": record.id,
        "question": record.question,
        "gold": record.gold or "",
        "gold_source": record.gold_source,
        "status": "ok" if record.gold is not None else "unusable",
        "reason": "; ".join([record.problem, *remarks] if record.problem else remarks),
        "unit": record.unit,
        "tolerance": record.tolerance,
        "multiple": record.multiple,
        "source_id": record.source_id,
        "source_row": record.source_row,
        "licence": record.licence,
    }


def gold_type(gold: str) -> str:
    """A rough name for the shape of a gold, for counts: integer, decimal, fraction, list, text, ..."""
    checks = [
        ("integer", r"-?\d+"),
        ("decimal", r"-?\d*\.\d+(?:e[-+]?\d+)?|-?\d+(?:\.\d+)?e[-+]?\d+"),
        ("fraction", r"-?\\[dt]?frac\s*(?:\{-?\d+\}|\d)\s*(?:\{-?\d+\}|\d)|-?\d+\s*/\s*\d+"),
        ("letter", r"[A-K]|\\text\{\(?[A-Z]\)?\}"),
        ("sentence", r"(?=.*(?:\b[a-z]{3,}\b[ ,.]+){4}).*"),
        ("matrix", r".*\\begin\{[a-z]*(?:matrix|array)\}.*"),
        ("interval or tuple", r"[\[(].*,.*[\])]"),
        ("set", r"\\\{.*\\\}"),
        ("inequality", r".*(?:<|>|\\le|\\ge).*"),
        ("equation", r"[^,]*=.*"),
        ("list", r"[^()\[\]]*,.*"),
    ]
    return next((name for name, pattern in checks if re.fullmatch(pattern, gold, re.DOTALL)), "expression")


def load_benchmarks(folder: Path, names: list[str] | None, table: Path | None = None) -> dict[str, list[Record]]:
    """Benchmark -> records, from a mirror or raw folder; everything is checked before anything is returned."""
    sources = load_sources(table).choose(names, "benchmark")
    return {name: load_records(locate(folder, name, source)) for name, source in sources.items()}


def _others(folder: Path, chosen: Mapping[str, list[Record]], table: Path | None) -> dict[str, list[Record]]:
    """Benchmarks that were not asked for but lie in the folder and are sound, to compare the chosen ones with."""
    others: dict[str, list[Record]] = {}
    for name, source in load_sources(table).choose(None, "benchmark").items():
        if name not in chosen:
            try:
                others[name] = load_records(locate(folder, name, source))
            except UserError as error:
                log.info("%s is not compared with the others: %s", name, error)
    return others


def write_benchmarks(mirror_or_raw: Path, out: Path, names: list[str] | None, table: Path | None = None) -> None:
    """Write `<out>/<name>.parquet` for the named benchmarks (all when None) and `<out>/manifest.json`.

    `mirror_or_raw` holds the sources' files (`fr3e data fetch` or a mirror). Raises `UserError` by file and row for a file
    that is missing, broken, of another set or of another version; nothing is written then. Doubts across benchmarks are
    looked for among all that the folder holds; the manifest names them.
    """
    sources = load_sources(table)
    chosen = load_benchmarks(mirror_or_raw, names, table)
    every = {**chosen, **_others(mirror_or_raw, chosen, table)}
    found = doubts((record for records in every.values() for record in records), sources.sources)
    manifest: dict[str, Any] = {"version": MANIFEST_VERSION, "benchmarks": {}, "compared": sorted(every)}
    with replacing_all(out) as temporary:
        for name, records in chosen.items():
            rows = [benchmark_row(record, found[record.id]) for record in records]
            write_parquet(temporary / f"{name}.parquet", rows, BENCHMARK)
            located = locate(mirror_or_raw, name, sources.sources[name])
            manifest["benchmarks"][name] = _summary(located, records, rows, found)
            unusable, remarks = sum(row["status"] != "ok" for row in rows), sum(bool(row["reason"]) for row in rows)
            log.info("%s: %d rows, %d unusable, %d with a remark", name, len(rows), unusable, remarks)
        write_json(temporary / "manifest.json", manifest)


def _summary(
    located: Located, records: list[Record], rows: list[dict[str, Any]], found: Mapping[str, list[tuple[str, str]]]
) -> dict[str, Any]:
    source, place = located.source, located.place
    return {
        "rows": len(rows),
        "status": dict(sorted(Counter(row["status"] for row in rows).items())),
        "unusable": [{"id": row["id"], "reason": row["reason"]} for row in rows if row["status"] == "unusable"],
        "doubts": [
            {"id": record.id, "source_id": record.source_id, "kind": kind, "what": text}
            for record in records
            for kind, text in found[record.id]
        ],
        "notes": [{"what": n.what, "url": n.url, "row": n.row, "dispute": n.dispute} for n in source.notes],
        "golds": dict(sorted(Counter(gold_type(record.gold) for record in records if record.gold).items())),
        "licences": dict(sorted(Counter(record.licence for record in records).items())),
        "source": {"repository": place.repository, "on": "hub" if place.hub else "github", "revision": place.revision},
        "files": [{"path": file.path, "sha256": file.sha256} for file in place.files],
        "content_sha256": content_sha256(rows),
    }
