"""The training mix: records of several sources, filtered in a fixed order, every row that leaves with its reason.

The order of the filters is `FILTERS`. The same sources, mix and tokenizer give the same bytes on any machine: rows are
ordered by source, part and row, and nothing depends on time, file order or hashing seeds.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

from fr3e.config.mix import Mix
from fr3e.config.scenario import RealData
from fr3e.data.benchmarks import load_benchmarks
from fr3e.data.compare import same_gold
from fr3e.data.manifest import FILTERS, Row, manifest
from fr3e.data.overlap import METHODS, Index
from fr3e.data.records import Record, load_records
from fr3e.data.schema import DROPPED, TRAIN, content_sha256, write_parquet
from fr3e.data.sources import load_sources, locate
from fr3e.data.tokens import load_tokenizer, prompt_lengths
from fr3e.errors import UserError
from fr3e.evaluation.prompts import TEMPLATED
from fr3e.files import replacing_all, write_json
from fr3e.progress import log


def assemble(mirror_or_raw: Path, out: Path, data: RealData, tokenizer: str | None = None) -> None:
    """Write `<out>/train.parquet`, `<out>/dropped.parquet` and `<out>/manifest.json`.

    `mirror_or_raw` holds the sources' files; `data` is a scenario's section of that name. Prompts longer than its
    `max_prompt_tokens` in the mix's template are dropped; without a `tokenizer` (folder or hub id) nothing can be counted,
    the manifest says so, and whoever trains has to filter. Raises `UserError` for a broken source or mix.
    """
    mix, table, limit = data.chosen_mix, Path(data.sources), data.max_prompt_tokens
    located = {
        name: locate(mirror_or_raw, name, source)
        for name, source in load_sources(table).choose(list(mix.parts), "train").items()
    }
    encoder = load_tokenizer(tokenizer) if tokenizer else None
    benchmarks = load_benchmarks(mirror_or_raw, None, table)
    rows = [Row(record, order) for order, name in enumerate(mix.parts) for record in load_records(located[name])]
    pairs = _find_overlap(rows, benchmarks)
    _filter_alone(rows, mix)
    _filter_copies(rows, mix)
    _filter_overlap(rows, mix)
    if encoder is not None:
        _filter_length(rows, mix, encoder, limit)
    length = {"applied": encoder is not None, "max_prompt_tokens": limit}
    _write(out, rows, manifest(rows, mix, located, {"overlap_pairs": pairs, "length_filter": length}))


def _find_overlap(rows: list[Row], benchmarks: dict[str, list[Record]]) -> list[dict[str, Any]]:
    """Look every row up among the benchmarks; returns one entry per pair with both golds."""
    index = Index()
    known = {record.id: record for records in benchmarks.values() for record in records}
    for record in known.values():
        index.add(record.id, record.question)
    pairs = []
    for row in rows:
        row.overlap = index.find(row.record.question, row.record.key)
        for identifier in sorted({found for method in METHODS for found in row.overlap[method]}):
            other = known[identifier]
            agree = bool(row.record.gold and other.gold and same_gold(row.record.gold, other.gold))
            pairs.append(
                {
                    "row": row.record.id,
                    "benchmark": identifier,
                    "methods": [method for method in METHODS if identifier in row.overlap[method]],
                    "gold": row.record.gold,
                    "benchmark_gold": other.gold,
                    "golds_agree": agree,
                }
            )
    return pairs


def _filter_alone(rows: list[Row], mix: Mix) -> None:
    """Filters that look at one row: level, gold, markup."""
    for row in rows:
        levels = mix.parts[row.record.source].levels
        if levels is not None and row.record.level is None:
            raise UserError(
                f"data.mix.parts.{row.record.source}.levels: {row.record.id} has no level; the file in use holds none, "
                "take all levels (null) or fetch the place with levels (config/sources.yaml)"
            )
        if levels is not None and row.record.level not in levels:
            row.drop("level", f"level {row.record.level} is not among {levels}")
        elif row.record.gold is None:
            row.drop("gold", row.record.problem)
        elif TEMPLATED.search(row.record.question):
            row.drop("markup", FILTERS["markup"])


def _filter_copies(rows: list[Row], mix: Mix) -> None:
    """Contradicting golds of one question, then copies; the earlier source in the mix and the earlier row stay."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if not row.filter:
            groups[row.record.key].append(row)
    for copies in groups.values():
        first = copies[0]
        other = next((row for row in copies if not same_gold(str(row.record.gold), str(first.record.gold))), None)
        if other is not None and mix.conflicts == "drop":
            for row in copies:
                against = other if same_gold(str(row.record.gold), str(first.record.gold)) else first
                row.drop("conflict", f"gold {row.record.gold!r}; {against.record.gold!r} in {against.record.id}")
        elif mix.copies == "first":
            for row in copies[1:]:
                row.drop("duplicate", f"the same question as {first.record.id}")


def _filter_overlap(rows: list[Row], mix: Mix) -> None:
    if mix.overlap == "keep":
        return
    # A stricter method's finds belong to a looser one's: text that is equal is equal in LaTeX too.
    methods = METHODS[: METHODS.index(mix.overlap) + 1]
    for row in rows:
        found = sorted({identifier for method in methods for identifier in row.overlap[method]})
        if found and not row.filter:
            row.drop("overlap", f"stands in {', '.join(found)} ({mix.overlap})")


def _filter_length(rows: list[Row], mix: Mix, tokenizer: Any, limit: int) -> None:
    left = [row for row in rows if not row.filter]
    lengths = prompt_lengths([row.record.question for row in left], mix.template, tokenizer)
    for row, tokens in zip(left, lengths, strict=True):
        row.tokens = tokens
        if tokens > limit:
            row.drop("length", f"{tokens} tokens in template {mix.template}; at most {limit} are allowed")


def _own_columns(row: Row) -> dict[str, Any]:
    record = row.record
    found = sorted({identifier for method in METHODS for identifier in row.overlap[method]})
    return {
        "id": record.id,
        "source": record.source,
        "source_row": record.source_row,
        "question": record.question,
        "gold": record.gold or "",
        "gold_source": record.gold_source,
        "level": record.level,
        "subject": record.subject,
        "licence": record.licence,
        "status": "dropped" if row.filter else "ok",
        "reason": "; ".join([*([row.reason] if row.filter else []), *record.notes]),
        "overlap": " ".join(
            f"{identifier}={'+'.join(m for m in METHODS if identifier in row.overlap[m])}" for identifier in found
        ),
        "prompt_tokens": row.tokens,
    }


def _train_row(row: Row, index: int) -> dict[str, Any]:
    own = _own_columns(row)
    return {
        "data_source": own["source"],
        "prompt": [{"role": "user", "content": own["question"]}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": own["gold"]},
        "extra_info": {"index": index, "id": own["id"], "split": "train"},
        **own,
    }


def _write(out: Path, rows: list[Row], manifest: dict[str, Any]) -> None:
    """Write the rows and the manifest, all or none, to which the files' rows and content hashes are added."""
    train = [_train_row(row, index) for index, row in enumerate(row for row in rows if not row.filter)]
    dropped = [{**_own_columns(row), "filter": row.filter} for row in rows if row.filter]
    if not train:
        raise UserError("data.mix: no row is left after the filters; widen the mix")
    files = {
        "train.parquet": {"rows": len(train), "content_sha256": content_sha256(train)},
        "dropped.parquet": {"rows": len(dropped), "content_sha256": content_sha256(dropped)},
    }
    with replacing_all(out) as temporary:
        write_parquet(temporary / "train.parquet", train, TRAIN)
        write_parquet(temporary / "dropped.parquet", dropped, DROPPED)
        write_json(temporary / "manifest.json", {**manifest, "files": files})
    log.info("%d rows read, %d kept, %d dropped (%s)", len(rows), len(train), len(dropped), out / "manifest.json")
