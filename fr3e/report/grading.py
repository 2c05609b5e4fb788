"""Verdicts counted apart, and where the two graders disagree: a fault of the grader never looks like a wrong answer."""

import html
from pathlib import Path

import pandas as pd

from fr3e.config.plans import Evaluated, ReportPlan, load_report_plan
from fr3e.evaluation.verdicts import COLUMNS
from fr3e.files import read_parquet, write_text
from fr3e.grading import KINDS
from fr3e.report import pages
from fr3e.report.runs import method_title

EXAMPLES = 4
"""Disagreements shown per model and benchmark."""
LONGEST = 160
VERDICTS = [*COLUMNS, "answer", "rule"]


def write_grading(plan: Path, out: Path) -> None:
    """Write `out`/grading.csv and grading.html from the verdict files of a resolved report.yaml.

    Columns: model, method, seed, benchmark, protocol, answers, one count per verdict kind, truncated, too_long,
    correct_share, harness_share, only_ours and only_harness (answers that one grader alone takes).
    """
    resolved = load_report_plan(plan)
    counted = pd.DataFrame([row for entry in resolved.evaluated for row in counts(entry, resolved)])
    write_text(out / "grading.csv", counted.to_csv(index=False))
    sections = [
        "<h1>Grading</h1><p>Every answer has one verdict; what the grader could not decide is counted apart and is never a "
        "wrong answer. <b>Only ours</b> and <b>only harness</b> count answers that one of two graders alone takes: ours, and "
        "one written from the rules of the published evaluation harness (relative tolerance 1e-4, x/100 and 100x accepted, "
        "tuples in order).</p>",
        _table(counted, resolved),
        _examples(resolved),
    ]
    write_text(out / "grading.html", pages.page(f"Grading: {resolved.scenario}", sections))


def counts(entry: Evaluated, plan: ReportPlan) -> list[dict[str, object]]:
    """One row per benchmark and protocol that was graded."""
    rows: list[dict[str, object]] = []
    for benchmark in plan.benchmarks:
        path = Path(entry.folder) / benchmark / "verdicts.parquet"
        if not path.is_file():
            continue
        for protocol, frame in read_parquet(path, VERDICTS).to_pandas().groupby("protocol", sort=False):
            kinds = frame["verdict"].value_counts()
            ours, harness = frame["correct"].astype(bool), frame["qwen_compatible"].fillna(False).astype(bool)
            rows.append(
                {
                    "model": entry.model,
                    "method": entry.method,
                    "seed": entry.seed,
                    "benchmark": benchmark,
                    "protocol": protocol,
                }
                | {"answers": len(frame)}
                | {kind: int(kinds.get(kind, 0)) for kind in KINDS}
                | {
                    name: int((frame["finish"] == mark).sum())
                    for name, mark in (("truncated", "length"), ("too_long", "too_long"))
                }
                | {"correct_share": ours.mean(), "harness_share": harness.mean()}
                | {"only_ours": int((ours & ~harness).sum()), "only_harness": int((harness & ~ours).sum())}
            )
    return rows


def _table(counted: pd.DataFrame, plan: ReportPlan) -> str:
    """Sums over seeds as an HTML table."""
    if counted.empty:
        return "<p>not run</p>"
    summed = [*KINDS, "answers", "truncated", "too_long", "only_ours", "only_harness"]
    grouped = counted.groupby(["model", "method", "benchmark", "protocol"], sort=False)[summed].sum().reset_index()
    head = [
        "Model",
        "Method",
        "Benchmark",
        "Protocol",
        "Answers",
        *(kind.replace("_", " ") for kind in KINDS),
        "truncated",
        "too long",
        "only ours",
        "only harness",
    ]
    lines = []
    for row in grouped.to_dict("records"):
        words = [
            plan.models[row["model"]],
            method_title(row["method"]),
            plan.benchmarks[row["benchmark"]].title,
            row["protocol"],
        ]
        numbers = [row[name] for name in ("answers", *KINDS, "truncated", "too_long", "only_ours", "only_harness")]
        cells = [html.escape(str(word)) for word in words] + [f"{number:,}" if number else "·" for number in numbers]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    header = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    return f'<div class="wide"><table><thead><tr>{header}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _examples(plan: ReportPlan) -> str:
    """Some answers on which the graders disagree, with question, gold and both verdicts; text is escaped."""
    shown = []
    for entry in plan.evaluated:
        for benchmark in plan.benchmarks:
            path = Path(entry.folder) / benchmark / "verdicts.parquet"
            if not path.is_file():
                continue
            frame = read_parquet(path, VERDICTS).to_pandas()
            apart = frame[frame["correct"].astype(bool) != frame["qwen_compatible"].fillna(False).astype(bool)].head(
                EXAMPLES
            )
            if apart.empty:
                continue
            golds = (
                read_parquet(Path(plan.data) / "benchmarks" / f"{benchmark}.parquet", ["id", "gold"])
                .to_pandas()
                .set_index("id")["gold"]
            )
            for row in apart.to_dict("records"):
                cells = [
                    entry.tag,
                    row["id"],
                    golds.get(row["id"], ""),
                    row["answer"],
                    row["verdict"],
                    row["rule"],
                    "taken" if row["qwen_compatible"] else "not taken",
                ]
                shown.append(
                    "<tr>" + "".join(f"<td>{html.escape(str(cell)[:LONGEST])}</td>" for cell in cells) + "</tr>"
                )
    if not shown:
        return "<h2>Disagreements</h2><p>The two graders agree on every answer.</p>"
    header = "".join(f"<th>{name}</th>" for name in ("Model", "Problem", "Gold", "Answer", "Ours", "Rule", "Harness"))
    return f'<h2>Disagreements, the first {EXAMPLES} of each</h2><div class="wide"><table><thead><tr>{header}</tr></thead><tbody>{"".join(shown)}</tbody></table></div>'
