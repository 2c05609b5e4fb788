"""Grading whole files: generations.parquet and a benchmark become verdicts.parquet."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fr3e.errors import UserError
from fr3e.files import replacing
from fr3e.grading.api import grade_many, tolerated
from fr3e.grading.decide import with_unit
from fr3e.grading.pool import Pool
from fr3e.grading.qwen_compatible import qwen_compatible
from fr3e.grading.verdict import KINDS
from fr3e.progress import log, track

COLUMNS = ("benchmark", "id", "protocol", "sample", "response", "finish", "response_tokens")
BATCH_ROWS = 1_000


def _golds(path: Path) -> tuple[dict[str, tuple[str, float | None]], set[str]]:
    """(gold with its unit, tolerance) by id, and the ids of the rows that are left out as unusable."""
    table = _opened(path, ("id", "gold")).read()
    columns = ["id", "gold", *(name for name in ("status", "unit", "tolerance") if name in table.column_names)]
    golds: dict[str, tuple[str, float | None]] = {}
    unusable: set[str] = set()
    for row in table.select(columns).to_pylist():
        if row.get("status") == "unusable":
            unusable.add(str(row["id"]))
        else:
            gold = "" if row["gold"] is None else str(row["gold"])
            golds[str(row["id"])] = with_unit(gold, row.get("unit")), row.get("tolerance")
    return golds, unusable


def _opened(path: Path, needed: tuple[str, ...]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: not a parquet file ({error})") from error
    found = file.schema_arrow.names
    missing = [name for name in needed if name not in found]
    if missing:
        raise UserError(f"{path}: no column {', '.join(missing)}; found {', '.join(found)}; needed {', '.join(needed)}")
    return file


def _schema(source: Any) -> Any:
    import pyarrow as pa

    kept = [source.field(name) for name in ("benchmark", "id", "protocol", "sample")]
    own = [("verdict", pa.string()), ("correct", pa.bool_()), ("answer", pa.string()), ("rule", pa.string()),
           ("qwen_compatible", pa.bool_())]  # fmt: skip
    return pa.schema([*kept, *own, source.field("finish"), source.field("response_tokens")])


def _text(value: str | None) -> str | None:
    """UTF-8 for the file: lone surrogates become question marks."""
    return None if value is None else value.encode("utf-8", "replace").decode("utf-8")


def grade_file(generations: Path, gold: Path, out: Path, workers: int) -> None:
    """Grade every generation against its benchmark's gold; write verdicts.parquet whole or not at all.

    generations  columns benchmark, id, protocol, sample, response, finish, response_tokens
    gold         the benchmark's parquet with id, gold and perhaps status, unit, tolerance; rows with status "unusable" are left out
    out          benchmark, id, protocol, sample, verdict, correct, answer, rule, qwen_compatible, finish, response_tokens
    workers      grading processes
    Raises UserError for a missing column or a generation without a gold. Memory does not grow with the rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    golds, unusable = _golds(gold)
    source = _opened(generations, COLUMNS)
    schema = _schema(source.schema_arrow)
    counts: Counter[str] = Counter()
    left_out = 0
    batches = track(source.iter_batches(batch_size=BATCH_ROWS, columns=list(COLUMNS)), f"grade {Path(generations).name}",
                    total=-(-source.metadata.num_rows // BATCH_ROWS), unit="batch")  # fmt: skip
    with replacing(out) as temporary, pq.ParquetWriter(temporary, schema) as writer, Pool(workers) as pool:
        for batch in batches:
            rows = batch.to_pylist()
            graded = [row for row in rows if str(row["id"]) not in unusable]
            left_out += len(rows) - len(graded)
            unknown = next((row["id"] for row in graded if str(row["id"]) not in golds), None)
            if unknown is not None:
                raise UserError(
                    f"{generations}: id {unknown!r} has no gold in {gold}; grade a file against its own benchmark"
                )
            verdicts = _graded(graded, golds, pool)
            counts.update(row["verdict"] for row in verdicts)
            writer.write_table(pa.Table.from_pylist(verdicts, schema=schema))
    if left_out:
        log.info(
            "%s: %d generations left out, their %d benchmark rows are unusable", generations, left_out, len(unusable)
        )
    log.info("%s: %s", out, ", ".join(f"{kind} {counts[kind]}" for kind in KINDS))


def _graded(rows: list[dict[str, Any]], golds: dict[str, tuple[str, float | None]], pool: Pool) -> list[dict[str, Any]]:
    wanted = [golds[str(row["id"])] for row in rows]
    pairs = [(row["response"] or "", gold) for row, (gold, _) in zip(rows, wanted, strict=True)]
    plain = grade_many(pairs, pool=pool)
    verdicts = [tolerated(verdict, *want) for verdict, want in zip(plain, wanted, strict=True)]
    with ThreadPoolExecutor(pool.size) as threads:
        second = list(threads.map(lambda pair: qwen_compatible(*pair, pool=pool), pairs))
    return [
        {
            **{name: row[name] for name in ("benchmark", "id", "protocol", "sample", "finish", "response_tokens")},
            "verdict": verdict.kind,
            "correct": bool(verdict),
            "answer": _text(verdict.answer),
            "rule": _text(verdict.rule),
            "qwen_compatible": compatible,
        }
        for row, verdict, compatible in zip(rows, verdicts, second, strict=True)
    ]
