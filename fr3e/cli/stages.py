"""The verbs that make a model and measure it: base, train, export, sample, grade, score; evaluate does the last three."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fr3e.cli.options import ConfigFile
from fr3e.errors import UserError

if TYPE_CHECKING:
    from fr3e.config.scenario import EvaluationConfig

app = typer.Typer()


@app.command("base")
def base(
    plan: Annotated[Path, typer.Option(help="Resolved plan: what the model is and where it comes from.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the base model.")],
) -> None:
    """Make the demo's base model, or fetch a pinned one from the hub."""
    from fr3e.engine.base import make_base
    from fr3e.model_folder import listed_files
    from fr3e.provenance.manifest import recorded

    outputs = [out / "manifest.json"]
    with recorded("base", outputs, plan=plan):
        make_base(plan, out)
        outputs[:] = listed_files(out)


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
    from fr3e.provenance.manifest import gpu_time, recorded

    resolved = load_run(run)
    check_model_folder(Path(resolved.base))
    inputs = [Path(resolved.base) / "manifest.json", Path(resolved.data), *map(Path, resolved.benchmarks.values())]
    outputs = [out / name for name in ("trained.json", "metrics.jsonl", "trajectories.jsonl", "dropped_prompts.json")]
    if stamp is not None:
        known = read_json(stamp)
        for path in inputs[1:]:
            if known.get(str(path)) != sha256(path):
                raise UserError(f"{path}: altered since it was compared with data.dvc; run `fr3e data ensure` again")
    with recorded(f"train-{resolved.training.engine}", outputs, inputs, run) as facts:
        start(resolved, out)
        trained = read_json(out / "trained.json")
        dropped = read_json(out / "dropped_prompts.json", "dropped")["dropped"]
        facts |= (
            trained
            | {"seed": resolved.seed, "tokens": trained["tokens_total"], "dropped_prompts": len(dropped)}
            | gpu_time(trained["gpus"], trained["seconds"])
        )


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
    from fr3e.model_folder import listed_files
    from fr3e.provenance.manifest import recorded

    resolved = load_run(run)
    read_json(trained, "run", "updates", "checkpoint", "checkpoint_sha256")
    outputs = [out / "manifest.json"]
    with recorded(f"export-{resolved.training.engine}", outputs, [trained], run):
        start(resolved, trained, out)
        outputs[:] = listed_files(out)


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
    from fr3e.files import read_parquet
    from fr3e.model_folder import check_model_folder
    from fr3e.provenance.manifest import begun, digests, gpu_time, write

    resolved = load_eval_plan(plan)
    check_model_folder(Path(resolved.model))
    model = Path(resolved.model) / "manifest.json"
    beginning = begun("sample")
    inputs = {name: digests([model, Path(data)]) for name, data in resolved.files.items()}
    started = time.time()
    sample_plan(plan, out)
    seconds, gpus = time.time() - started, _sampling_gpus(resolved.evaluation)
    files = {name: out / name / "generations.parquet" for name in resolved.files}
    new = {name: path for name, path in files.items() if path.stat().st_mtime >= started}  # others keep their manifest
    tokens = {name: sum(read_parquet(path, ["response_tokens"])[0].to_pylist()) for name, path in new.items()}
    for name, count in tokens.items():
        share = count / max(1, sum(tokens.values()))  # one start of the engine served them all
        facts = {"seed": resolved.evaluation.seed, "tokens": count} | gpu_time(gpus, seconds * share)
        outputs = [files[name], files[name].with_name("generations.key.json")]
        write(beginning | {"inputs": inputs[name]}, outputs, facts)


def _sampling_gpus(settings: "EvaluationConfig") -> int:
    """GPUs that the engine has held; 0 on CPU alone."""
    import torch

    held = settings.tensor_parallel if settings.engine == "vllm" else 1
    return held if torch.cuda.is_available() else 0


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
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for generations, verdicts, scores; default: results/evaluate/<model name>."),
    ] = None,
    benchmarks: Annotated[str, typer.Option(help="Comma-separated names.")] = "aime24,math500",
    config: ConfigFile = Path("config/paper.yaml"),
    data: Annotated[Path, typer.Option(help="Folder that holds benchmarks/<name>.parquet.")] = Path("data"),
    revision: Annotated[str | None, typer.Option(help="40-hex revision of a hub model.")] = None,
    engine: Annotated[
        str | None, typer.Option(help="transformers or vllm; default: the scenario's, if it is installed.")
    ] = None,
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
