"""`fr3e report`: tables, figures and pages from results."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Tables, figures and pages from results.")

Report = Annotated[
    Path, typer.Option("--plan", help="Resolved report.yaml: runs, base models, benchmarks, statistics.")
]


def _reported(stage: str, plan: Path, outputs: list[Path]) -> AbstractContextManager[object]:
    """Record a page or table of the report with all that its plan lets it read."""
    from fr3e.config.plans import load_report_plan
    from fr3e.provenance.manifest import recorded

    resolved = load_report_plan(plan)
    names = ("scores.csv", "metrics.jsonl", "trained.json", "trajectories.jsonl")
    folders = [Path(folder) for entry in resolved.evaluated for folder in (entry.folder, entry.run) if folder]
    read = {folder / name for folder in folders for name in names}
    read |= {folder / name / "verdicts.parquet" for folder in folders for name in resolved.benchmarks}
    return recorded(stage, outputs, sorted(read), plan)


@app.command("table1")
def report_table1(
    plan: Report, out: Annotated[Path, typer.Option("--out", help="Folder for table1.{csv,md,tex,html}.")]
) -> None:
    """Write Table 1."""
    from fr3e.report.names import TABLE1
    from fr3e.report.table1 import write_table1

    with _reported("table1", plan, [out / f"table1.{ending}" for ending in TABLE1]):
        write_table1(plan, out)


@app.command("arms")
def report_arms(
    plan: Report, out: Annotated[Path, typer.Option("--out", help="Folder for arms.{csv,md,html} and the plot.")]
) -> None:
    """Write the ablation table and accuracy against generated tokens."""
    from fr3e.report.arms import write_arms

    names = ("arms.csv", "arms.md", "arms.html", "arms_tokens.png", "arms_tokens.pdf", "arms_tokens.csv")
    with _reported("arms", plan, [out / name for name in names]):
        write_arms(plan, out)


@app.command("figures")
def report_figures(plan: Report, out: Annotated[Path, typer.Option("--out", help="Folder for the figures.")]) -> None:
    """Draw the paper's figures from the runs' metrics: PDF, PNG and CSV."""
    from fr3e.report.figures import write_figures
    from fr3e.report.names import FIGURES

    with _reported("figures", plan, [out / f"{name}.{end}" for name in FIGURES for end in ("png", "pdf", "csv")]):
        write_figures(plan, out)


@app.command("cost")
def report_cost(
    plan: Report, out: Annotated[Path, typer.Option("--out", help="Folder for cost.{csv,md,html}.")]
) -> None:
    """Write the cost tables."""
    from fr3e.report.cost import write_cost
    from fr3e.report.names import COST

    with _reported("cost", plan, [out / f"cost.{ending}" for ending in COST]):
        write_cost(plan, out)


@app.command("grading")
def report_grading(
    plan: Report, out: Annotated[Path, typer.Option("--out", help="Folder for grading.{csv,html}.")]
) -> None:
    """Count verdicts by kind, and show where two graders disagree."""
    from fr3e.report.grading import write_grading

    with _reported("grading", plan, [out / "grading.csv", out / "grading.html"]):
        write_grading(plan, out)


@app.command("explorer")
def report_explorer(plan: Report, out: Annotated[Path, typer.Option("--out", help="explorer.html.")]) -> None:
    """Write the self-contained explorer page."""
    from fr3e.report.explorer import write_explorer

    with _reported("explorer", plan, [out]):
        write_explorer(plan, out)


@app.command("overview")
def report_overview(plan: Report, out: Annotated[Path, typer.Option("--out", help="overview.html.")]) -> None:
    """Write the report's opening page: what ran, claims and their status, deviations, environment, data counts."""
    from fr3e.report.overview import write_overview

    with _reported("overview", plan, [out]):
        write_overview(plan, out)
