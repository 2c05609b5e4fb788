"""The `fr3e` command: one verb per stage. Each verb takes files and gives files; none knows of Snakemake."""

import logging
import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

# Idle OpenMP threads that spin slow small matrices down a hundredfold (docs/demo.md); this must precede torch.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import typer

from fr3e.errors import UserError

app = typer.Typer(no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, help=__doc__)
config_app = typer.Typer(no_args_is_help=True, help="Check, resolve and describe configurations.")
data_app = typer.Typer(no_args_is_help=True, help="Fetch, assemble, check and describe data.")
report_app = typer.Typer(no_args_is_help=True, help="Tables, figures and pages from results.")
app.add_typer(config_app, name="config")
app.add_typer(data_app, name="data")
app.add_typer(report_app, name="report")

ConfigFile = Annotated[Path, typer.Option("--config", help="Scenario file, for example config/demo.yaml.")]
Out = Annotated[Path, typer.Option("--out", help="What is written, by atomic rename.")]
Mirror = Annotated[
    Path | None, typer.Option("--mirror", help="Folder with the sources' files, used instead of the hub.")
]


@config_app.command("check")
def config_check(config: ConfigFile) -> None:
    """Check a scenario and every run it implies."""
    from fr3e.config import load_scenario, resolve_run, run_ids

    scenario = load_scenario(config)
    runs = run_ids(scenario, scenario.methods + scenario.arms)
    for model, arm, seed in runs.values():
        resolve_run(scenario, model, arm, seed)
    print(f"{config}: fine, {len(runs)} runs, {len(scenario.benchmarks)} benchmarks")


@config_app.command("write")
def config_write(
    values: Annotated[str, typer.Option("--json", help="The resolved section as JSON.")], out: Out
) -> None:
    """Write a resolved configuration as YAML."""
    import json

    import yaml

    from fr3e.files import write_text

    try:
        section = json.loads(values)
    except ValueError as error:
        raise UserError(f"--json: not JSON ({error})") from error
    write_text(out, yaml.safe_dump(section, sort_keys=False, allow_unicode=True, width=120))


@config_app.command("schema")
def config_schema(out: Out = Path("config/schema.json")) -> None:
    """Write the JSON schema of a scenario file."""
    from fr3e.config import schema
    from fr3e.files import write_json

    write_json(out, schema())


@data_app.command("synthetic")
def data_synthetic(
    plan: Annotated[Path, typer.Option(help="Resolved plan: the training problems, or one benchmark.")], out: Out
) -> None:
    """Write the demo's training problems or one of its benchmarks."""
    from fr3e.data.synthetic import write_problems
    from fr3e.provenance.manifest import recorded

    with recorded("data", [out], plan=plan):
        write_problems(plan, out)


@data_app.command("fetch")
def data_fetch(
    out: Out,
    sources: Annotated[Path, typer.Option(help="Table of sources.")] = Path("config/sources.yaml"),
    mirror: Mirror = None,
    name: Annotated[list[str] | None, typer.Option(help="Only these sources.")] = None,
) -> None:
    """Fetch the sources' files from the hub, or from a mirror; what is there and right is kept."""
    from fr3e.data.fetch import fetch

    fetch(sources, out, mirror, name)


@data_app.command("benchmarks")
def data_benchmarks(
    mirror: Annotated[Path, typer.Option("--mirror", help="Folder with the sources' files.")],
    out: Out,
    name: Annotated[list[str] | None, typer.Option(help="Only these benchmarks.")] = None,
) -> None:
    """Write one parquet per benchmark, golds ready for grading."""
    from fr3e.data.benchmarks import write_benchmarks

    write_benchmarks(mirror, out, name)


@data_app.command("assemble")
def data_assemble(
    mirror: Annotated[Path, typer.Option("--mirror", help="Folder with the sources' files.")],
    out: Out,
    config: Annotated[Path, typer.Option("--config", help="Scenario whose data.mix is used.")] = Path(
        "config/paper.yaml"
    ),
    tokenizer: Annotated[
        str | None, typer.Option(help="Folder or hub id of the tokenizer that counts prompt tokens.")
    ] = None,
) -> None:
    """Assemble the training mix: train.parquet, dropped.parquet, manifest.json."""
    from fr3e.config import load_scenario
    from fr3e.data.assemble import assemble

    data = load_scenario(config).data
    if data.kind != "real":
        raise UserError(f"{config}: data.kind is {data.kind!r}; `fr3e data assemble` needs 'real'")
    table, overlap = Path(data.sources), data.remove_overlap
    assemble(mirror, out, data.mix, tokenizer, data.max_prompt_tokens, table=table, remove_overlap=overlap)


@data_app.command("ensure")
def data_ensure(
    data: Annotated[Path, typer.Option(help="Data folder.")] = Path("data"),
    lock: Annotated[Path, typer.Option(help="Its content lock.")] = Path("data.dvc"),
    mirror: Mirror = None,
    accept_difference: Annotated[bool, typer.Option(help="Go on although the data differ from the lock.")] = False,
    stamp: Annotated[Path | None, typer.Option(help="Written when the data are there: each file's SHA-256.")] = None,
    config: Annotated[Path | None, typer.Option("--config", help="Resolved plan whose data.mix is used.")] = None,
) -> None:
    """Use, pull or assemble data/, then compare it with its lock."""
    from fr3e.data.lock import ensure
    from fr3e.files import read_yaml, sha256, write_json

    plan = read_yaml(config) if config else {"data": {"mix": {}}}
    try:
        mix = plan["data"]["mix"]
    except (KeyError, TypeError) as error:
        raise UserError(f"{config}: data.mix is missing; give a resolved plan of real data") from error
    ensure(data, lock, mirror, accept_difference, mix=mix or None)
    if stamp is not None:
        write_json(stamp, {str(path): sha256(path) for path in sorted(data.rglob("*")) if path.is_file()})


@data_app.command("status")
def data_status() -> None:
    """What DVC tracks here: present files against their locks, and what is not there."""
    from fr3e.data.lock import status

    print(status(Path()))


@data_app.command("check")
def data_check(
    data: Annotated[Path, typer.Option()] = Path("data"), lock: Annotated[Path, typer.Option()] = Path("data.dvc")
) -> None:
    """Compare data/ with its content lock."""
    from fr3e.data.lock import check

    check(data, lock)


@data_app.command("version")
def data_version(
    folder: Annotated[Path, typer.Argument(help="Model folder, or another result, to put under DVC.")],
) -> None:
    """Put a result under DVC: one lock around every call, modification times kept."""
    from fr3e.data.lock import add

    add(folder)


@data_app.command("report")
def data_report(data: Annotated[Path, typer.Option(help="Data folder.")], out: Out) -> None:
    """Write data_report.html."""
    from fr3e.data.report import write_report
    from fr3e.provenance.manifest import recorded

    with recorded("data-report", [out], sorted(data.rglob("*.parquet"))):
        write_report(data, out)


@app.command("base")
def base(
    plan: Annotated[Path, typer.Option(help="Resolved plan: what the model is and where it comes from.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the base model.")],
) -> None:
    """Make the demo's base model, or fetch a pinned one from the hub."""
    from fr3e.engine.base import make_base
    from fr3e.provenance.manifest import recorded

    with recorded("base", [out / "manifest.json", out / "model.safetensors"], plan=plan):
        make_base(plan, out)


@app.command()
def train(
    run: Annotated[Path, typer.Option(help="Resolved run.yaml.")],
    out: Annotated[Path, typer.Option("--out", help="Run folder: metrics.jsonl, trained.json, checkpoints.")],
    stamp: Annotated[Path | None, typer.Option(help="Hashes of data/ when it was compared with its lock.")] = None,
) -> None:
    """Train one run; a killed run goes on from its newest sound checkpoint."""
    from fr3e.config import load_run
    from fr3e.engine import train as start
    from fr3e.files import read_json, sha256
    from fr3e.model_folder import check_model_folder
    from fr3e.provenance.manifest import recorded

    resolved = load_run(run)
    check_model_folder(Path(resolved.base))
    inputs = [Path(resolved.base) / "manifest.json", Path(resolved.data), *map(Path, resolved.benchmarks.values())]
    outputs = [out / name for name in ("trained.json", "metrics.jsonl", "trajectories.jsonl")]
    if stamp is not None:
        known = read_json(stamp)
        for path in inputs[1:]:
            if known.get(str(path)) != sha256(path):
                raise UserError(f"{path}: altered since it was compared with data.dvc; run `fr3e data ensure` again")
    with recorded(f"train-{resolved.training.engine}", outputs, inputs, run) as facts:
        start(resolved, out)
        facts |= read_json(out / "trained.json") | {"seed": resolved.seed}


@app.command()
def export(
    run: Annotated[Path, typer.Option(help="Resolved run.yaml.")],
    trained: Annotated[Path, typer.Option(help="The run's trained.json.")],
    out: Annotated[Path, typer.Option("--out", help="Model folder: safetensors, tokenizer, manifest.json.")],
) -> None:
    """Turn the last checkpoint into a model folder, load it, and compare its logits before calling it done."""
    from fr3e.config import load_run
    from fr3e.engine import export as start
    from fr3e.files import read_json
    from fr3e.provenance.manifest import recorded

    resolved = load_run(run)
    read_json(trained, "run", "updates", "checkpoint", "checkpoint_sha256")
    outputs = [out / "manifest.json", out / "model.safetensors"]
    with recorded(f"export-{resolved.training.engine}", outputs, [trained], run):
        start(resolved, trained, out)


@app.command()
def sample(
    plan: Annotated[Path, typer.Option(help="Resolved eval.yaml of one model.")],
    out: Annotated[
        Path, typer.Option("--out", help="Folder: <benchmark>/generations.parquet for every benchmark of the plan.")
    ],
) -> None:
    """Sample every benchmark of the plan that is not there yet; one start of the engine serves all."""
    import time

    from fr3e.config.plans import load_eval_plan
    from fr3e.evaluation.sample import sample_plan
    from fr3e.files import sha256
    from fr3e.model_folder import check_model_folder
    from fr3e.provenance.manifest import write

    started = time.time()
    resolved = load_eval_plan(plan)
    check_model_folder(Path(resolved.model))
    sample_plan(plan, out)
    for name, data in resolved.files.items():
        generations, key = out / name / "generations.parquet", out / name / "generations.key.json"
        if generations.stat().st_mtime >= started:  # those that were there and right keep their own manifest
            inputs = {
                str(path): sha256(path)
                for path in (Path(resolved.model) / "manifest.json", Path(data))
                if path.is_file()
            }
            write("sample", [generations, key], inputs, None, started, {"seed": resolved.evaluation.seed})


@app.command()
def grade(
    generations: Annotated[Path | None, typer.Option(help="generations.parquet.")] = None,
    benchmark: Annotated[Path | None, typer.Option(help="The benchmark's parquet, with golds.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="verdicts.parquet.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Grading processes.")] = 2,
    explain: Annotated[bool, typer.Option(help="Explain one answer: give --response and --gold.")] = False,
    response: Annotated[str | None, typer.Option(help="With --explain: the response, or @FILE.")] = None,
    gold: Annotated[str | None, typer.Option(help="With --explain: the gold.")] = None,
) -> None:
    """Grade generations, or explain one verdict."""
    if explain:
        from fr3e.grading import explain_text

        if response is None or gold is None:
            raise UserError("--explain needs --response and --gold")
        print(
            explain_text(Path(response[1:]).read_text(encoding="utf-8") if response.startswith("@") else response, gold)
        )
        return
    if generations is None or benchmark is None or out is None:
        raise UserError(
            "fr3e grade needs --generations, --benchmark and --out, or --explain with --response and --gold"
        )
    from fr3e.grading.files import grade_file
    from fr3e.provenance.manifest import recorded

    with recorded("grade", [out], [generations, benchmark]):
        grade_file(generations, benchmark, out, workers)


@app.command()
def score(
    verdicts: Annotated[list[Path], typer.Option(help="verdicts.parquet; give one option per file.")],
    plan: Annotated[Path, typer.Option(help="The model's eval.yaml.")],
    out: Annotated[Path, typer.Option("--out", help="scores.csv.")],
) -> None:
    """Score the verdicts of one model: accuracy, avg@k, pass@k with intervals, and counts of everything that went wrong."""
    from fr3e.evaluation.score import score_files
    from fr3e.provenance.manifest import recorded

    with recorded("score", [out], verdicts, plan):
        score_files(verdicts, plan, out)


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="Model folder, or hub id with --revision.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for generations, verdicts and scores.")],
    benchmarks: Annotated[str, typer.Option(help="Comma-separated names.")] = "aime24,math500",
    config: ConfigFile = Path("config/paper.yaml"),
    data: Annotated[Path, typer.Option(help="Folder that holds benchmarks/<name>.parquet.")] = Path("data"),
    revision: Annotated[str | None, typer.Option(help="40-hex revision of a hub model.")] = None,
    engine: Annotated[str | None, typer.Option(help="transformers or vllm; default: the scenario's.")] = None,
    template: Annotated[
        str | None, typer.Option(help="Prompt template; default: that of the scenario's first model.")
    ] = None,
) -> None:
    """Score any model: sample, grade, score, and print the table."""
    from fr3e.evaluation.evaluate import evaluate_model

    evaluate_model(model, out, benchmarks.split(","), config, data, revision, engine, template)


@app.command()
def crosscheck(
    evaluation: Annotated[Path, typer.Option(help="Folder with <benchmark>/generations.parquet.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for lm-eval's task and samples, and the agreement.")],
) -> None:
    """Export generations so that lm-eval scores the same text, and compare."""
    from fr3e.evaluation.crosscheck import crosscheck as start

    start(evaluation, out)


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


@report_app.command("table1")
def report_table1(
    plan: Report, out: Annotated[Path, typer.Option("--out", help="Folder for table1.{csv,md,tex,html}.")]
) -> None:
    """Write Table 1."""
    from fr3e.report.names import TABLE1
    from fr3e.report.table1 import write_table1

    with _reported("table1", plan, [out / f"table1.{ending}" for ending in TABLE1]):
        write_table1(plan, out)


@report_app.command("arms")
def report_arms(
    plan: Report, out: Annotated[Path, typer.Option("--out", help="Folder for arms.{csv,md,html} and the plot.")]
) -> None:
    """Write the ablation table and accuracy against generated tokens."""
    from fr3e.report.arms import write_arms

    names = ("arms.csv", "arms.md", "arms.html", "arms_tokens.png", "arms_tokens.pdf", "arms_tokens.csv")
    with _reported("arms", plan, [out / name for name in names]):
        write_arms(plan, out)


@report_app.command("figures")
def report_figures(plan: Report, out: Annotated[Path, typer.Option("--out", help="Folder for the figures.")]) -> None:
    """Draw the paper's figures from the runs' metrics: PDF, PNG and CSV."""
    from fr3e.report.figures import write_figures
    from fr3e.report.names import FIGURES

    with _reported("figures", plan, [out / f"{name}.{end}" for name in FIGURES for end in ("png", "pdf", "csv")]):
        write_figures(plan, out)


@report_app.command("cost")
def report_cost(
    plan: Report, out: Annotated[Path, typer.Option("--out", help="Folder for cost.{csv,md,html}.")]
) -> None:
    """Write the cost tables."""
    from fr3e.report.cost import write_cost
    from fr3e.report.names import COST

    with _reported("cost", plan, [out / f"cost.{ending}" for ending in COST]):
        write_cost(plan, out)


@report_app.command("grading")
def report_grading(
    plan: Report, out: Annotated[Path, typer.Option("--out", help="Folder for grading.{csv,html}.")]
) -> None:
    """Count verdicts by kind, and show where two graders disagree."""
    from fr3e.report.grading import write_grading

    with _reported("grading", plan, [out / "grading.csv", out / "grading.html"]):
        write_grading(plan, out)


@report_app.command("explorer")
def report_explorer(plan: Report, out: Annotated[Path, typer.Option("--out", help="explorer.html.")]) -> None:
    """Write the self-contained explorer page."""
    from fr3e.report.explorer import write_explorer

    with _reported("explorer", plan, [out]):
        write_explorer(plan, out)


@report_app.command("overview")
def report_overview(plan: Report, out: Annotated[Path, typer.Option("--out", help="overview.html.")]) -> None:
    """Write the report's opening page: what ran, claims and their status, deviations, environment, data counts."""
    from fr3e.report.overview import write_overview

    with _reported("overview", plan, [out]):
        write_overview(plan, out)


@app.command()
def verify(results: Annotated[Path, typer.Argument(help="A results folder.")]) -> None:
    """Check a results folder against its manifests; says what is stale, altered or missing."""
    from fr3e.provenance.verify import verify as start

    raise typer.Exit(start(results))


@app.command()
def trace(
    table: Annotated[str, typer.Argument(help="table1.")],
    cell: Annotated[str, typer.Option(help="<model>/<method>/<benchmark>.")],
    results: Annotated[Path, typer.Option(help="The scenario's results folder.")] = Path("results/demo"),
) -> None:
    """Print the chain from a table cell to files, run, configuration and commit."""
    from fr3e.provenance.trace import trace as start

    print(start(table, cell, results))


@app.command()
def plan(
    config: ConfigFile,
    tokens_per_second: Annotated[
        float | None, typer.Option(help="Generated tokens per second and GPU; default: a stated model.")
    ] = None,
) -> None:
    """Estimate runs, memory per GPU, tokens, GPU-hours and wall time before launch."""
    from fr3e.cluster.plan import plan as start

    if tokens_per_second is not None and not 0 < tokens_per_second < float("inf"):
        raise UserError(f"--tokens-per-second: expected a number above 0, found {tokens_per_second}")
    print(start(config, tokens_per_second))


@app.command()
def doctor(config: ConfigFile = Path("config/demo.yaml")) -> None:
    """Check Slurm, GPUs, file systems, disk, environments, data, models and ports; each fault comes with its remedy."""
    from fr3e.cluster.doctor import doctor as start

    raise typer.Exit(start(config))


def main() -> None:
    """Entry point: user errors are one line and exit code 2."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    for noisy in ("httpx", "transformers", "matplotlib", "fontTools"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        app()
    except UserError as error:
        print(f"fr3e: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        if error.filename is None and error.strerror is None:
            raise
        print("fr3e: " + (f"{error.filename}: " if error.filename else "") + f"{error.strerror}", file=sys.stderr)
        sys.exit(2)
