"""A source's rows as records: columns found, types checked, ids and golds made, nothing dropped."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fr3e.data.normalise import GOLDS, Unusable, last_box, question_key, repair_question
from fr3e.data.read import read_rows
from fr3e.data.sources import Located, Place, SourceFile, check_sha256
from fr3e.errors import UserError


@dataclass(frozen=True)
class Record:
    """One question of a source. `gold` is None where it is unusable, and `problem` says why; `notes` are remarks."""

    id: str
    source: str
    source_row: str
    source_id: str | None
    row: int
    question: str
    key: str
    gold: str | None
    gold_source: str
    problem: str
    notes: tuple[str, ...]
    level: int | None
    subject: str | None
    licence: str
    unit: str | None
    tolerance: float | None
    multiple: bool | None
    box: str | None


def _dig(row: dict[str, Any], path: str, where: str) -> Any:
    """Follow a dotted path; a missing step is a `UserError` that lists what is there."""
    here: Any = row
    for step in path.split("."):
        if isinstance(here, dict) and step in here:
            here = here[step]
        elif isinstance(here, list) and step.isdigit() and int(step) < len(here):
            here = here[int(step)]
        else:
            there = ", ".join(sorted(map(str, here))) if isinstance(here, dict) else type(here).__name__
            raise UserError(f"{where}: no column {path!r}; the row has {there}")
    return here


def _optional(row: dict[str, Any], path: str | None, where: str) -> Any:
    return None if path is None else _dig(row, path, where)


def load_records(located: Located) -> list[Record]:
    """All records of a located source, ordered by part and row.

    Raises `UserError` by file and row for a broken file, a missing column, a value of the wrong type, a repeated id, a
    wrong number of rows, and for bytes that differ from the pinned ones.
    """
    place = located.place
    pairs = sorted(zip(place.files, located.paths, strict=True), key=lambda pair: pair[0].part or "")
    records: list[Record] = []
    for file, path in pairs:
        rows = read_rows(path)
        _refuse_other_variant(located.name, path, rows)
        seen: dict[str, int] = {}
        for number, row in enumerate(rows):
            records.append(_record(located, file, number, row, f"{path} row {number}"))
            own = records[-1].source_id
            if own is not None:
                if own in seen:
                    raise UserError(
                        f"{path} row {number}: id {own!r} stands in row {seen[own]} too; ids must be unique"
                    )
                seen[own] = number
    if len(records) != place.rows:
        listed = ", ".join(str(path) for path in located.paths[:2]) + (", ..." if len(located.paths) > 2 else "")
        raise UserError(
            f"{listed}: {len(records)} rows, {located.name} has {place.rows}{_known_count(located.name, len(records))}"
        )
    for file, path in pairs:
        check_sha256(path, file)
    return records


def _known_count(name: str, rows: int) -> str:
    if name == "amc23" and rows == 83:
        return "; a set with 83 rows is AMC 2022 and 2023 together, not AMC23"
    return "; this is another set or another version"


def _refuse_other_variant(name: str, path: Path, rows: list[dict[str, Any]]) -> None:
    """Minerva files with an `answer` column that is not the solution's box hold golds of sub-questions."""
    if name != "minerva_math" or not all("solution" in row and "answer" in row for row in rows):
        return
    for number, row in enumerate(rows):
        answers = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
        box = last_box(str(row["solution"])) or ""
        if box.strip() not in [str(answer).strip() for answer in answers]:
            raise UserError(
                f"{path} row {number}: answer {answers} is not the box {box!r} of its own solution; "
                "this Minerva file has answers of sub-questions as golds, use the one named in config/sources.yaml"
            )


def _record(located: Located, file: SourceFile, number: int, row: dict[str, Any], where: str) -> Record:
    place, source, columns = located.place, located.source, located.place.columns
    question = _dig(row, columns.question, where)
    if not isinstance(question, str):
        raise UserError(f"{where}: question is a {type(question).__name__}; text is allowed")
    question, repaired = repair_question(question)
    published = _dig(row, columns.gold, where)
    gold, problem, notes = _gold(place, located, published, where)
    if not question.strip():
        gold, problem = None, "empty question"
    key = question_key(question)
    source_row = f"{file.part}:{number}" if file.part else str(number)
    own_level = _optional(row, columns.level, where)
    unit, multiple = _optional(row, columns.unit, where), _optional(row, columns.multiple, where)
    solution, own = _optional(row, columns.solution, where), _optional(row, columns.id, where)
    return Record(
        id=f"{located.name}:{source_row}:{hashlib.sha256(key.encode()).hexdigest()[:8]}",
        source=located.name,
        source_row=source_row,
        source_id=None if own is None else str(own),
        row=number,
        question=question,
        key=key,
        gold=gold,
        gold_source=published if isinstance(published, str) else json.dumps(published, ensure_ascii=False),
        problem=problem,
        notes=tuple(([f"question repaired: {repaired}"] if repaired else []) + notes),
        level=int(own_level) if own_level is not None else file.level,
        subject=_optional(row, columns.subject, where),
        licence=_optional(row, columns.licence, where) or source.licence,
        unit=str(unit) if unit else None,
        tolerance=_tolerance(_optional(row, columns.tolerance, where), where),
        multiple=None if multiple is None else bool(multiple),
        box=last_box(solution) if isinstance(solution, str) else None,
    )


def _gold(place: Place, located: Located, published: Any, where: str) -> tuple[str | None, str, list[str]]:
    """(gold, why it is unusable, notes)."""
    listed = published[0] if isinstance(published, list) and len(published) == 1 else published
    for repair in located.source.repairs:
        if listed == repair.from_:
            return repair.to, "", [f"gold repaired: {repair.why}"]
    try:
        return GOLDS[place.gold or located.source.gold](published), "", []
    except Unusable as error:
        return None, str(error), []
    except TypeError as error:
        raise UserError(f"{where}: {error}") from error


def _tolerance(published: Any, where: str) -> float | None:
    if published in (None, ""):
        return None
    try:
        return float(published)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: tolerance {published!r} is not a number") from error
