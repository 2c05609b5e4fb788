"""Score any model in one call: sample, grade, score, print."""

import importlib.util
import re
from pathlib import Path

import pandas as pd

from fr3e.config import dump, load_scenario
from fr3e.config.plans import EvalPlan
from fr3e.errors import UserError
from fr3e.evaluation.prompts import template_text
from fr3e.evaluation.sample import sample_plan
from fr3e.evaluation.score import score_files
from fr3e.files import read_json, sha256
from fr3e.model_folder import check_model_folder
from fr3e.progress import log
from fr3e.provenance import fingerprint
from fr3e.provenance.manifest import path_of, recorded

COMMIT = re.compile(r"[0-9a-f]{40}")
SHOWN_FAILURES = ("no_answer", "unparseable", "timeout", "truncated", "too_long")


def evaluate_model(
    model: str,
    out: Path | None,
    benchmarks: list[str],
    config: Path,
    data: Path,
    revision: str | None = None,
    engine: str | None = None,
    template: str | None = None,
) -> None:
    """Evaluate a local model folder or a hub model at a pinned revision, and print the table of scores.

    Protocols, token limit and engine are those of the scenario at `config` (`engine` and `template` override it; where
    it says vllm and there is none, transformers samples); questions are `data`/benchmarks/<name>.parquet. Under `out`
    (results/evaluate/<model name> when None) appear eval.yaml, <benchmark>/generations.parquet and verdicts.parquet, and
    scores.csv; what is there for the same settings is not sampled again, and graded again only if the grader has changed.
    Raises `UserError` for an unknown benchmark or template, absent files, or a hub model without a 40-hex revision.
    """
    plan = make_plan(model, benchmarks, config, data, revision=revision, engine=engine, template=template)
    if out is None:
        out = Path("results/evaluate") / plan.tag
        log.info("generations, verdicts and scores go to %s", out)
    source = out / "eval.yaml"
    dump(plan, source)
    sample_plan(source, out)
    verdicts = [_graded(plan, name, out / name) for name in plan.benchmarks]
    with recorded("score", [out / "scores.csv"], verdicts, source):
        score_files(verdicts, source, out / "scores.csv")
    print(summary(pd.read_csv(out / "scores.csv")))


def _graded(plan: EvalPlan, name: str, folder: Path) -> Path:
    """verdicts.parquet of one benchmark: the one that is there if it is whole, of these files and of this grader."""
    from fr3e.grading.files import grade_file

    inputs = [folder / "generations.parquet", Path(plan.files[name])]
    target = folder / "verdicts.parquet"
    made = read_json(path_of(target)) if path_of(target).is_file() and target.is_file() else {}
    same = made.get("outputs") == {str(target): sha256(target)} if made else False
    same = same and made.get("inputs") == {str(path): sha256(path) for path in inputs}
    if not same or made.get("code") != fingerprint.code("grade"):
        with recorded("grade", [target], inputs):
            grade_file(*inputs, target, plan.evaluation.grade_workers)
    return target


def make_plan(
    model: str,
    benchmarks: list[str],
    config: Path,
    data: Path,
    *,
    revision: str | None = None,
    engine: str | None = None,
    template: str | None = None,
) -> EvalPlan:
    """The plan that evaluates `model`; see `evaluate_model`."""
    scenario = load_scenario(config)
    chosen = [name.strip() for name in benchmarks if name.strip()]
    if not chosen:
        raise UserError(f"--benchmarks: no name given; {config} has {', '.join(scenario.benchmarks)}")
    for name in chosen:
        if name not in scenario.benchmarks:
            raise UserError(f"--benchmarks: no benchmark {name!r}; {config} has {', '.join(scenario.benchmarks)}")
    files = {name: data / "benchmarks" / f"{name}.parquet" for name in chosen}
    for path in files.values():
        if not path.is_file():
            raise UserError(
                f"{path}: no such file; `fr3e data ensure` or `fr3e data benchmarks --mirror DIR --out {data}/benchmarks` "
                "writes those of the paper, --data names another folder"
            )
    if engine not in (None, "transformers", "vllm"):
        raise UserError(f"--engine {engine!r}: allowed are transformers, vllm")
    template = template or next(iter(scenario.models.values())).template
    template_text(template)  # an unknown name fails here, before anything is downloaded
    folder = locate(model, revision)
    check_model_folder(folder)
    positions = read_json(folder / "config.json").get("max_position_embeddings")
    if not isinstance(positions, int):
        raise UserError(f"{folder}/config.json: no max_position_embeddings; the number of positions has to be known")
    if engine is None and scenario.evaluation.engine == "vllm" and importlib.util.find_spec("vllm") is None:
        engine = "transformers"
        log.warning("%s says engine vllm, which is not installed here: transformers samples (--engine chooses)", config)
    evaluation = scenario.evaluation.model_copy(update={} if engine is None else {"engine": engine})
    return EvalPlan(
        tag=_tag(model, revision),
        scenario=scenario.scenario,
        model_name=model,
        method="as given",
        seed=None,
        model=str(folder),
        template=template,
        max_positions=positions,
        files={name: str(path) for name, path in files.items()},
        benchmarks={name: scenario.benchmarks[name] for name in chosen},
        evaluation=evaluation,
    )


def locate(model: str, revision: str | None) -> Path:
    """The folder of a local model, or of a hub model downloaded at `revision`."""
    if (Path(model) / "config.json").is_file():
        return Path(model)
    if Path(model).exists() or model.startswith((".", "/")) or model.count("/") != 1:
        raise UserError(f"{model}: neither a model folder (no config.json) nor a hub id like Qwen/Qwen2.5-7B")
    if revision is None or not COMMIT.fullmatch(revision):
        raise UserError(f"{model}: a hub model needs --revision with a 40-hex commit, found {revision!r}")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, revision=revision, allow_patterns=["*.json", "*.safetensors", "*.txt"]))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise UserError(
            f"{model} at {revision}: cannot be downloaded ({type(error).__name__}); give a folder with its files"
        ) from error


def _tag(model: str, revision: str | None) -> str:
    """The model's name for folders and tables: its folder's, the run's where the folder is a run's `model`."""
    folder = Path(model).absolute()  # "." has a name then, and a link keeps its own
    name = folder.parent.name if folder.name == "model" else folder.name
    return name + (f"-{revision[:8]}" if revision else "")


def summary(scores: pd.DataFrame) -> str:
    """The printed table: one line per benchmark, protocol and metric, per cent with the 95 % interval."""
    lines = []
    for row in scores.to_dict("records"):
        interval = "" if pd.isna(row["low"]) else f"[{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
        lines.append(
            {
                "benchmark": row["benchmark"],
                "protocol": row["protocol"],
                "metric": row["metric"],
                "per cent": f"{100 * row['value']:.1f}",
                "95 %": interval,
                "harness rules": f"{100 * row['qwen_compatible']:.1f}",
                "n": row["n"],
                "k": row["k"],
                **{name.replace("_", " "): row[name] for name in SHOWN_FAILURES},
                "tokens": f"{row['mean_tokens']:.0f}",
            }
        )
    return pd.DataFrame(lines).to_string(index=False)
