"""The report's opening page: what ran, Table 1, claims and their status, cost, deviations, data, environment."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fr3e.config.plans import ReportPlan, load_report_plan
from fr3e.files import read_json, read_parquet, write_text
from fr3e.report import pages
from fr3e.report.claims import STATUSES, Judged, judge
from fr3e.report.cost import number
from fr3e.report.runs import ROOT, Run, hardware_words, load_runs, method_title

PAPER = "https://arxiv.org/abs/2507.07017"


def write_overview(plan: Path, out: Path) -> None:
    """Write the page from the plan's runs, evaluations, table1.html and cost.html, and docs/{claims,deviations}.md.

    What is absent says so. Raises `UserError` for a broken plan, metrics or verdicts file.
    """
    from jinja2 import Environment
    from markupsafe import Markup

    resolved = load_report_plan(plan)
    runs = load_runs(resolved)
    judged = judge(resolved, runs)
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
        pages.text_of("overview.html.jinja")
    )
    results = Path(resolved.results)
    body = template.render(
        scenario=resolved.scenario,
        paper=PAPER,
        lead=lead(resolved, judged),
        facts=facts(resolved, runs),
        run_rows=run_rows(resolved, runs),
        table1=Markup(embedded(results / "table1.html").partition("</h3>")[2]),
        cost=Markup(embedded(results / "cost.html")),
        claims=claim_rows(judged, list(resolved.models.values())),
        counts=[(word, n) for word in STATUSES if (n := sum(item.status == word for item in judged))],
        css_class=css_class,
        rules=Markup(document("claims.md")),
        deviations=Markup(document("deviations.md")),
        data=data_rows(resolved),
        environment=environments(resolved),
        files=files(results),
    )
    write_text(out, pages.page(f"FR3E: {resolved.scenario}", [body]))


def css_class(status: str) -> str:
    """Class of a status word."""
    return {"not reproduced": "not", "not attempted": "attempted"}.get(status, status)


def lead(plan: ReportPlan, judged: Sequence[Judged]) -> str:
    """The main result in one or two sentences, as it came out."""
    first, second = (method_title(method) for method in plan.report.comparison)
    accuracy = next(item for item in judged if item.id == "accuracy")
    if not accuracy.comparisons:
        return f"{first} and {second} have not both been trained and evaluated yet."
    parts = []
    for comparison in accuracy.comparisons:
        title = comparison.what.split(",", 1)[0]
        value, low, high = (100 * x for x in (comparison.value, comparison.low, comparison.high))
        word = "above" if value > 0 else "below"
        if math.isnan(low):
            interval, verdict = "no interval", "neither is shown to be better"
        else:
            interval = f"{plan.report.confidence:.0%} interval {low:+.1f} to {high:+.1f}".replace("-", "−")
            verdict = (
                "the interval excludes 0"
                if low > 0 or high < 0
                else "the interval contains 0, so neither is shown to be better"
            )
        parts.append(
            f"On {title}, {first} ends {abs(value):.1f} points {word} {second} on average ({interval}): {verdict}."
        )
    return " ".join(parts)


def facts(plan: ReportPlan, runs: Sequence[Run]) -> list[tuple[str, str]]:
    """What was run, in pairs."""
    wanted = [entry for entry in plan.evaluated if entry.run is not None]
    finished = [run for run in runs if run.trained]
    manifests = [found for run in runs if (found := provenance(run.folder / "trained.json"))]
    seconds = sum(float(run.trained["seconds"]) for run in finished if run.trained)
    tokens = sum(float(run.trained.get("tokens_total", 0)) for run in finished if run.trained)
    gpu_hours = sum(
        float(r.trained["seconds"]) * float(r.trained.get("gpus") or 0) / 3600 for r in finished if r.trained
    )
    hardware = sorted({hardware_words(run.trained.get("hardware")) for run in finished if run.trained} - {""})
    commits = Counter(commit_words(found) for found in manifests)
    seeds = sorted({entry.seed for entry in wanted if entry.seed is not None})
    pairs = [
        ("Models", ", ".join(plan.models.values())),
        ("Methods", ", ".join(method_title(method) for method in plan.methods)),
        ("Seeds", ", ".join(map(str, seeds)) + (" (one seed: no interval over seeds)" if len(seeds) == 1 else "")),
        (
            "Runs",
            f"{len(finished)} of {len(wanted)} finished"
            + (f", {len(runs) - len(finished)} under way" if len(runs) > len(finished) else ""),
        ),
        ("Reported model", "the one of the last update, fixed in advance"),
        (
            "Training time",
            f"{hours(seconds)} of wall time over all runs, {number(tokens)} generated tokens"
            if finished
            else "not run",
        ),
        ("GPU-hours", f"{gpu_hours:.1f}" if gpu_hours else "none, CPU only" if finished else "not run"),
        ("Hardware", "; ".join(hardware) or "not recorded"),
        ("Commit", "; ".join(commits) or "not recorded"),
        ("Trained", dates(manifests) or "not recorded"),
    ]
    return pairs


def hours(seconds: float) -> str:
    """A duration in the unit that suits it."""
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.1f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def provenance(result: Path) -> dict[str, Any] | None:
    """The manifest beside a result, or None."""
    from fr3e.provenance.manifest import path_of

    path = path_of(result)
    return read_json(path) if path.is_file() else None


def commit_words(manifest: dict[str, Any]) -> str:
    """A commit in short, and whether the tree differed from it."""
    commit = manifest.get("commit")
    if not commit:
        return "outside a checkout"
    return commit[:12] + (" with local changes" if manifest.get("dirty") else "")


def dates(manifests: Sequence[dict[str, Any]]) -> str:
    """First and last day of training."""
    days = sorted({str(found["started"])[:10] for found in manifests if found.get("started")})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else ""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One line of the table of runs."""

    tag: str
    model: str
    method: str
    seed: str
    updates: str
    tokens: str
    time: str
    state: str


def run_rows(plan: ReportPlan, runs: Sequence[Run]) -> list[RunRow]:
    """Every run the plan names, also those that have not run."""
    by_tag = {run.tag: run for run in runs}
    rows = []
    for entry in plan.evaluated:
        if entry.run is None:
            continue
        run = by_tag.get(entry.tag)
        updates = str(run.rows[-1]["update"]) if run else "—"
        trained = run.trained if run else None
        rows.append(
            RunRow(
                entry.tag,
                plan.models[entry.model],
                method_title(entry.method),
                str(entry.seed),
                updates,
                number(float(trained.get("tokens_total", 0))) if trained else "—",
                hours(float(trained["seconds"])) if trained else "—",
                "finished" if trained else "under way" if run else "not run",
            )
        )
    return rows


def embedded(source: Path) -> str:
    """The body of one of our own pages, its heading left to this page; a note where it is absent."""
    if not source.is_file():
        return '<h3></h3><p class="caption">not run</p>'
    return pages.body_of(source.read_text(encoding="utf-8")).replace("<h2>", "<h3>").replace("</h2>", "</h3>")


def claim_rows(judged: Sequence[Judged], titles: Sequence[str]) -> list[dict[str, Any]]:
    """Claims with the wording and source of docs/claims.md, and which models (`titles`) they leave out."""
    words, rows = claim_words(), []
    for item in judged:
        lines = [str(comparison) for comparison in item.comparisons] or [item.reason]
        missing = [title for title in titles if not any(c.what.startswith(f"{title},") for c in item.comparisons)]
        if item.comparisons and missing:
            lines.append(f"Not run: {', '.join(missing)}")
        claim, source = words.get(item.id, (item.id, ""))
        rows.append({"id": item.id, "claim": claim, "source": source, "status": item.status, "lines": lines})
    return rows


def claim_words() -> dict[str, tuple[str, str]]:
    """Claim id -> (wording, source) from the table in docs/claims.md; empty outside a checkout."""
    path = ROOT / "docs" / "claims.md"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0]: (row[1], row[2]) for row in cells[2:] if len(row) == 4}


def document(name: str) -> str:
    """A page of docs/ as HTML, raw HTML in it escaped, headings two levels down; a note where it is absent."""
    from markdown_it import MarkdownIt

    path = ROOT / "docs" / name
    if not path.is_file():
        return f"<p>docs/{name} is not there.</p>"
    text = path.read_text(encoding="utf-8")
    rendered = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    for level in (4, 3, 2, 1):
        rendered = rendered.replace(f"<h{level}>", f"<h{level + 2}>").replace(f"</h{level}>", f"</h{level + 2}>")
    return rendered.replace("<table>", '<div class="wide"><table class="text">').replace("</table>", "</table></div>")


def data_rows(plan: ReportPlan) -> list[tuple[str, str, str, str]]:
    """(file, what, rows, protocols) of the training set and the benchmarks, counted in the files themselves."""

    def rows(path: Path) -> str:
        return f"{read_parquet(path, []).num_rows:,}" if path.is_file() else "not there"

    train = Path(plan.data, "train.parquet")
    found = [(str(train), "Training problems", rows(train), "")]
    for name, benchmark in plan.benchmarks.items():
        path = Path(plan.data, "benchmarks", f"{name}.parquet")
        note = "in distribution" if benchmark.in_distribution else ""
        protocols = ", ".join(protocol_words(plan, protocol) for protocol in benchmark.protocols)
        found.append((str(path), benchmark.title + (f" ({note})" if note else ""), rows(path), protocols))
    return found


def protocol_words(plan: ReportPlan, name: str) -> str:
    """A sampling protocol in words."""
    protocol = plan.evaluation.protocols[name]
    if protocol.temperature == 0:
        return "greedy"
    return f"avg@{protocol.samples} (T = {protocol.temperature:g}, top-p = {protocol.top_p:g})"


def environments(plan: ReportPlan) -> list[dict[str, Any]]:
    """Distinct environments in which training and evaluation ran, from their manifests, and the stages of each."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in plan.evaluated:
        results = [Path(entry.run, "trained.json")] if entry.run else []
        results.append(Path(entry.folder, "scores.csv"))
        for result in results:
            manifest = provenance(result)
            if manifest is None:
                continue
            versions = dict(sorted(manifest.get("environment", {}).items()))
            hardware = hardware_words(manifest.get("hardware"))
            key = (*versions.items(), hardware)
            environment = found.setdefault(key, {"versions": versions, "hardware": hardware, "stages": set()})
            environment["stages"].add(manifest.get("stage", "?"))
    return [{**environment, "stages": ", ".join(sorted(environment["stages"]))} for environment in found.values()]


def files(results: Path) -> list[tuple[str, str]]:
    """(path relative to this page, what it is) of the results that exist."""
    wanted = [
        ("table1.csv", "Table 1 as data, each cell with the verdict files behind it"),
        ("figures/", "Figures as PDF, PNG and the plotted numbers as CSV"),
        ("cost.csv", "Cost as data"),
        ("explorer.html", "Explorer: move K over real trajectories"),
        ("arms.html", "Ablation arms"),
        ("evaluation/", "Generations and verdicts, every sample"),
        ("runs/", "Configuration, metrics, trajectories and models of every run"),
    ]
    return [(name, what) for name, what in wanted if (results / name).exists()]
