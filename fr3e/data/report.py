"""data_report.html: what the data are, in numbers a person can check, on one page without network or script.

It reads whatever a data folder holds: train.parquet and benchmarks/*.parquet alone (the demo), or with the manifests and
dropped.parquet of an assembly.
"""

import html
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from fr3e.data.benchmarks import gold_type
from fr3e.data.overlap import METHODS
from fr3e.errors import UserError
from fr3e.evaluation.prompts import render_text
from fr3e.files import read_json, write_text
from fr3e.report.pages import page

BINS = (0, 50, 100, 150, 200, 300, 400, 600, 800, 1200, 2400, 10**9)
EXAMPLES = 5
DEMO_SOURCE = "chains"


def write_report(data: Path, out: Path, templates: Sequence[str] = ()) -> None:
    """Write the page about the data folder `data` to `out`; a `UserError` says which file is missing or broken.

    `templates` are those of the models that train on the data; without them it is that in which tokens were counted, or
    the demo's.
    """
    train = _columns(data / "train.parquet", ("id", "source", "question", "gold", "level", "prompt_tokens"))
    files = sorted((data / "benchmarks").glob("*.parquet"))
    names = ("id", "question", "gold", "status", "reason")
    benchmarks = {path.stem: _columns(path, names) for path in files}
    manifest = read_json(data / "manifest.json") if (data / "manifest.json").exists() else {}
    checked = data / "benchmarks" / "manifest.json"
    known = read_json(checked)["benchmarks"] if checked.exists() else {}
    demo = bool(train) and train[0]["source"] == DEMO_SOURCE
    templates = templates or ["demo" if demo else manifest.get("mix", {}).get("template", "qwen_boxed")]
    sizes = {name: [len(render_text(name, row["question"]).encode()) for row in train] for name in templates}
    sections = [_head(data, train, benchmarks)]
    if manifest:
        sections += [_filters(manifest, sizes), _origins(manifest)]
    if (data / "dropped.parquet").exists():
        sections.append(_dropped(_columns(data / "dropped.parquet", ("id", "filter", "reason"))))
    sections += [_levels(manifest, train), _lengths(train, benchmarks, sizes)]
    if manifest:
        sections.append(_overlap(manifest["overlap"]))
    sections += [_golds(train, benchmarks), _benchmarks(benchmarks, known), _licences(manifest, known)]
    sections.append(_prompts(benchmarks, templates))
    write_text(out, page("Data", sections))


def _columns(path: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    """The named columns as rows; a column the file lacks is None."""
    if not path.exists():
        raise UserError(f"{path}: no such file; make the data first (`fr3e data ensure`, or the demo)")
    try:
        there = set(pq.read_schema(path).names)
        rows = pq.read_table(path, columns=[name for name in names if name in there]).to_pylist()
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a readable parquet file ({error})") from error
    return [{name: row.get(name) for name in names} for row in rows]


def table(head: Sequence[str], rows: Iterable[Sequence[object]], text: bool = False) -> str:
    """An HTML table, everything escaped; `text` sets it left-aligned with wrapping cells."""
    heads = "".join(f"<th>{html.escape(str(cell))}</th>" for cell in head)
    body = "".join(
        f"<tr><th>{html.escape(str(row[0]))}</th>"
        + "".join(f"<td>{html.escape(str(c))}</td>" for c in row[1:])
        + "</tr>"
        for row in rows
    )
    style = ' class="text"' if text else ""
    return f'<div class="scroll"><table{style}><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def bars(counts: dict[str, int], label: str) -> str:
    """A bar chart as inline SVG with its numbers written out, for screen and print."""
    top = max([1, *counts.values()])
    rows = []
    for index, (name, count) in enumerate(counts.items()):
        y, width = 22 * index, 420 * count / top
        rows.append(
            f'<text x="118" y="{y + 14}" text-anchor="end">{html.escape(name)}</text>'
            f'<rect x="126" y="{y + 3}" width="{width:.1f}" height="14" fill="#00559b"/>'
            f'<text x="{132 + width:.1f}" y="{y + 14}">{count}</text>'
        )
    height = 22 * len(counts)
    return (
        f'<svg role="img" aria-label="{html.escape(label)}" viewBox="0 0 620 {height}" width="620" height="{height}" '
        f'style="max-width:100%;height:auto" font-size="12" fill="currentColor">{"".join(rows)}</svg>'
    )


def _head(data: Path, train: list[dict[str, Any]], benchmarks: dict[str, list[dict[str, Any]]]) -> str:
    questions = sum(map(len, benchmarks.values()))
    return (
        f"<h1>Data</h1><p class=lead>{len(train)} training problems and {questions} questions in "
        f"{len(benchmarks)} benchmarks, from <code>{html.escape(str(data))}</code>.</p>"
    )


def _filters(manifest: dict[str, Any], sizes: dict[str, list[int]]) -> str:
    sources = list(manifest["rows"]["read"])
    rows: list[list[object]] = [["read", *(manifest["rows"]["read"][s] for s in sources), ""]]
    for name in manifest["filter_order"]:
        entry = manifest["filters"][name]
        rows.append([f"− {name}", *(entry["rows"].get(s, 0) for s in sources), entry["what"]])
    rows.append(["kept", *(manifest["rows"]["kept"].get(s, 0) for s in sources), ""])
    length = manifest["length_filter"]
    limit = length["max_prompt_tokens"]
    longer = ", ".join(f"{sum(size > limit for size in own)} in {name}" for name, own in sizes.items())
    # Byte-level tokenizers never give more tokens than bytes.
    said = (
        f"Prompts over {limit} tokens were dropped."
        if length["applied"]
        else f"The length filter was not applied: {length['why_not']} and names them in dropped_prompts.json. Kept "
        f"problems whose whole prompt has more than {limit} bytes: {longer}; no other can have more than {limit} tokens."
    )
    shared = "; ".join(f"{html.escape(pair)}: {count}" for pair, count in manifest["shared_questions"].items())
    return (
        "<h2>From the sources to the mix</h2><p>Each filter sees what the ones above it left. Every dropped row stands "
        f"in dropped.parquet with its reason. {html.escape(said)}</p>"
        + table(["rows", *sources, "why"], rows, text=True)
        + f"<p class=caption>Questions in two sources: {shared}.</p>"
    )


def _origins(manifest: dict[str, Any]) -> str:
    rows = [
        [name, f"{entry['repository']} ({entry['on']})", entry["revision"], len(entry["files"]), entry["licence"]]
        for name, entry in manifest["sources"].items()
    ]
    return "<h2>Origins</h2>" + table(["source", "repository", "revision", "files", "licence"], rows, text=True)


def _dropped(rows: list[dict[str, Any]]) -> str:
    parts = []
    for name in dict.fromkeys(row["filter"] for row in rows):
        own = [row for row in rows if row["filter"] == name]
        listed = table(["row", "reason"], [[row["id"], row["reason"][:200]] for row in own[:EXAMPLES]], text=True)
        parts.append(
            f"<details><summary>{html.escape(name)}: {len(own)} rows, the first {EXAMPLES}</summary>{listed}</details>"
        )
    return "<h2>Dropped rows</h2>" + "".join(parts or ["<p>None.</p>"])


def _levels(manifest: dict[str, Any], train: list[dict[str, Any]]) -> str:
    counts: Counter[str] = Counter()
    for row in train:
        counts[f"{row['source']} {'' if row['level'] is None else row['level']}".strip()] += 1
    said = "SimpleRL's levels are MATH's; DeepScaleR's are the fifths of a difficulty order, 1 the easiest. "
    return f"<h2>Levels</h2><p>{said if manifest else ''}Training problems by source and level.</p>" + bars(
        dict(sorted(counts.items())), "training problems by level"
    )


def _histogram(values: Iterable[int]) -> dict[str, int]:
    counts = [0] * (len(BINS) - 1)
    for value in values:
        counts[next(i for i in range(len(counts)) if value < BINS[i + 1])] += 1
    names = [f"{low} to {high - 1}" for low, high in itertools.pairwise(BINS[:-1])] + [f"{BINS[-2]} or more"]
    return dict(zip(names, counts, strict=True))


def _lengths(
    train: list[dict[str, Any]], benchmarks: dict[str, list[dict[str, Any]]], sizes: dict[str, list[int]]
) -> str:
    counted = [row["prompt_tokens"] for row in train if row["prompt_tokens"] is not None]
    charts = {"tokens": counted} if counted else {f"bytes, template {name}": own for name, own in sizes.items()}
    rows = []
    for name, own in benchmarks.items():
        lengths = sorted(len(row["question"]) for row in own)
        rows.append([name, len(own), lengths[len(lengths) // 2], lengths[-1]])
    return (
        "<h2>Lengths</h2><p>Training problems by length of the whole prompt, template included; a byte-level "
        "tokenizer gives at most as many tokens as bytes.</p>"
        + "".join(
            f"<h3>In {html.escape(unit)}</h3>{bars(_histogram(values), f'training prompts by length in {unit}')}"
            for unit, values in charts.items()
        )
        + "<p>Benchmark questions, without template, in characters.</p>"
        + table(["benchmark", "questions", "median", "longest"], rows)
    )


def _overlap(overlap: dict[str, Any]) -> str:
    rows = [
        [f"{source} / {benchmark}", *(counts[method] for method in METHODS)]
        for source, found in overlap["counts"].items()
        for benchmark, counts in found.items()
    ]
    against = [pair for pair in overlap["pairs"] if "latex" in pair["methods"] and not pair["golds_agree"]]
    listed = table(
        ["training row", "benchmark row", "gold", "benchmark's gold"],
        [[pair["row"], pair["benchmark"], pair["gold"], pair["benchmark_gold"]] for pair in against],
        text=True,
    )
    return (
        "<h2>Overlap with the benchmarks</h2><p>Benchmark questions found in each source before any filter: with the same "
        "text; with the same text in one spelling of LaTeX, operators kept; with at least 60 % of their 8-grams in one "
        "training question, which also finds look-alikes made from one template. Pairs that are not listed have none.</p>"
        + table(["source / benchmark", "exact", "LaTeX", "8-grams"], rows)
        + (f"<p>Same question, golds that do not agree as text or number:</p>{listed}" if against else "")
    )


def _golds(train: list[dict[str, Any]], benchmarks: dict[str, list[dict[str, Any]]]) -> str:
    columns = {"training": Counter(gold_type(row["gold"]) for row in train)}
    for name, rows in benchmarks.items():
        columns[name] = Counter(gold_type(row["gold"]) for row in rows if row["gold"])
    kinds = sorted(set().union(*columns.values()), key=lambda kind: (-columns["training"][kind], kind))
    rows = [[kind, *(counts[kind] or "" for counts in columns.values())] for kind in kinds]
    return "<h2>Golds by type</h2>" + table(["type", *columns], rows)


def _benchmarks(benchmarks: dict[str, list[dict[str, Any]]], known: dict[str, Any]) -> str:
    counts, listed = [], []
    for name, rows in benchmarks.items():
        unusable = sum(row["status"] != "ok" for row in rows)
        remarks = [row for row in rows if row["reason"]]
        counts.append([name, len(rows), len(rows) - unusable, unusable, len(remarks)])
        if remarks:
            own = table(["row", "status", "remark"], [[r["id"], r["status"], r["reason"]] for r in remarks], text=True)
            listed.append(f"<details><summary>{html.escape(name)}: {len(remarks)} remarks</summary>{own}</details>")
        for note in known.get(name, {}).get("notes", []):
            if note["dispute"]:
                continue  # it stands among the row's remarks
            where = f" ({note['url']})" if note["url"] else ""
            listed.append(f"<p class=caption>{html.escape(name + ': ' + note['what'] + where)}</p>")
    return (
        "<h2>Benchmarks</h2><p>An unusable question has no gold that an answer could match. A remark does not change the "
        "gold: the published one stays for the headline score.</p>"
        + table(["benchmark", "questions", "usable", "unusable", "with a remark"], counts)
        + "".join(listed)
    )


def _licences(manifest: dict[str, Any], known: dict[str, Any]) -> str:
    rows = [["training", text, count] for text, count in manifest.get("licences", {}).items()]
    rows += [[name, text, count] for name, entry in known.items() for text, count in entry["licences"].items()]
    if not rows:
        return "<h2>Licences</h2><p>The problems were made by the project itself; GSM8K's are MIT (OpenAI, 2021).</p>"
    return "<h2>Licences</h2><p>As the sources state them.</p>" + table(["set", "licence", "rows"], rows, text=True)


def _prompts(benchmarks: dict[str, list[dict[str, Any]]], templates: Sequence[str]) -> str:
    shown = "".join(
        f"<h3>{html.escape(name)}, template <code>{html.escape(template)}</code></h3>"
        f"<pre><code>{html.escape(render_text(template, rows[0]['question']))}</code></pre>"
        for name, rows in benchmarks.items()
        for template in templates
        if rows
    )
    return f"<h2>First prompt of each benchmark</h2>{shown}"
