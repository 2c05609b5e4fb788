"""`fr3e evaluate`: any model, one call, a table; and the chain sample, grade, score on real files."""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from fr3e.cli import app
from fr3e.errors import UserError
from fr3e.evaluation import evaluate
from fr3e.evaluation.evaluate import evaluate_model, locate, make_plan
from fr3e.files import read_json, write_json
from fr3e.provenance import fingerprint
from fr3e.provenance.manifest import path_of
from tests.evaluation import toy

COMMIT = "0" * 40


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A toy model, two benchmarks, and the demo scenario with short protocols."""
    root = tmp_path_factory.mktemp("evaluate")
    toy.write_model(root / "model")
    for name in ("chain", "gsm8k_50"):
        toy.write_benchmark(root / "data" / "benchmarks" / f"{name}.parquet", ["1+1?", "3*3?", "0-4?"])
    scenario = yaml.safe_load(toy.DEMO.read_text())
    scenario["evaluation"] |= {"max_tokens": 8}
    (root / "scenario.yaml").write_text(yaml.safe_dump(scenario))
    return root


def test_a_folder_is_sampled_graded_scored_and_printed(place, capsys):
    out = place / "out"
    evaluate_model(str(place / "model"), out, ["chain", " gsm8k_50"], place / "scenario.yaml", place / "data")
    printed = capsys.readouterr().out
    scores = pd.read_csv(out / "scores.csv")
    assert scores["benchmark"].drop_duplicates().tolist() == ["chain", "gsm8k_50"]
    assert {"accuracy", "avg@8", "pass@8"} <= set(scores["metric"])
    assert len(printed.splitlines()) == 1 + len(scores) and "truncated" in printed.splitlines()[0]
    for name in ("chain", "gsm8k_50"):
        assert (out / name / "generations.parquet").is_file() and (out / name / "verdicts.parquet").is_file()
    before = (out / "chain" / "verdicts.parquet").stat().st_mtime_ns
    evaluate_model(str(place / "model"), out, ["chain"], place / "scenario.yaml", place / "data")
    assert (out / "chain" / "verdicts.parquet").stat().st_mtime_ns == before
    assert set(pd.read_csv(out / "scores.csv")["benchmark"]) == {"chain"}


def test_verdicts_that_were_cut_short_or_made_by_another_grader_are_made_again(place):
    out = place / "again"
    arguments = (str(place / "model"), out, ["chain"], place / "scenario.yaml", place / "data")
    evaluate_model(*arguments)
    verdicts = out / "chain" / "verdicts.parquet"
    whole = verdicts.read_bytes()
    verdicts.write_bytes(whole[: len(whole) // 2])
    evaluate_model(*arguments)
    assert verdicts.read_bytes() == whole
    manifest = path_of(verdicts)
    write_json(manifest, read_json(manifest) | {"code": "another"})
    before = verdicts.stat().st_mtime_ns
    evaluate_model(*arguments)
    assert verdicts.stat().st_mtime_ns > before and read_json(manifest)["code"] == fingerprint.code("grade")


def test_the_plan_takes_positions_from_the_model_and_protocols_from_the_scenario(place):
    plan = make_plan(
        str(place / "model"), ["chain"], place / "scenario.yaml", place / "data", template="simple", engine="vllm"
    )
    assert plan.template == "simple" and plan.evaluation.engine == "vllm" and plan.evaluation.max_tokens == 8
    assert plan.tag == place.name and plan.seed is None and plan.benchmarks["chain"].protocols == ["avg8", "greedy"]


def test_without_options_results_have_a_place_and_the_engine_is_one_that_is_installed(
    place, tmp_path, monkeypatch, caplog
):
    """`fr3e evaluate MODEL --benchmarks NAMES` with a scenario that says vllm, as config/paper.yaml does."""
    scenario = yaml.safe_load((place / "scenario.yaml").read_text())
    scenario["evaluation"]["engine"] = "vllm"
    (tmp_path / "vllm.yaml").write_text(yaml.safe_dump(scenario))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(evaluate.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "mine").symlink_to(place / "model")
    caplog.set_level("INFO", "fr3e")
    arguments = ["evaluate", "mine", "--benchmarks", "chain", "--config", "vllm.yaml", "--data", str(place / "data")]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0 and "chain" in done.stdout
    assert "vllm.yaml says engine vllm, which is not installed here: transformers samples" in caplog.text
    assert (tmp_path / "results/evaluate/mine/scores.csv").is_file() and "go to results/evaluate/mine" in caplog.text


def test_an_engine_that_is_asked_for_or_installed_is_kept(place, tmp_path, monkeypatch):
    scenario = yaml.safe_load((place / "scenario.yaml").read_text())
    scenario["evaluation"]["engine"] = "vllm"
    (tmp_path / "vllm.yaml").write_text(yaml.safe_dump(scenario))
    given = (str(place / "model"), ["chain"], tmp_path / "vllm.yaml", place / "data")
    monkeypatch.setattr(evaluate.importlib.util, "find_spec", lambda name: object())
    assert make_plan(*given).evaluation.engine == "vllm"
    monkeypatch.setattr(evaluate.importlib.util, "find_spec", lambda name: None)
    assert make_plan(*given, engine="vllm").evaluation.engine == "vllm"


def test_a_runs_model_folder_is_named_after_its_run(place):
    plan = make_plan(str(place / "model"), ["chain"], place / "scenario.yaml", place / "data", revision=COMMIT)
    assert plan.tag == f"{place.name}-00000000"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"benchmarks": ["chian"]}, "no benchmark 'chian'"),
        ({"benchmarks": [""]}, "no name given"),
        ({"benchmarks": ["chain_hard"]}, "chain_hard.parquet: no such file"),
        ({"engine": "sglang"}, "allowed are transformers, vllm"),
        ({"template": "absent"}, "prompt template 'absent'"),
        ({"model": "/absent"}, "neither a model folder"),
        ({"model": "Qwen/Qwen2.5-7B"}, "needs --revision"),
        ({"model": "Qwen/Qwen2.5-7B", "revision": "main"}, "40-hex"),
    ],
)
def test_bad_input_is_one_line(place, change, says):
    given = {"model": str(place / "model"), "benchmarks": ["chain"], "revision": None} | change
    with pytest.raises(UserError, match=says):
        make_plan(given.pop("model"), given.pop("benchmarks"), place / "scenario.yaml", place / "data", **given)


def test_a_hub_model_is_fetched_at_its_revision(place, monkeypatch):
    asked = {}

    def download(model, revision, allow_patterns):
        asked.update(model=model, revision=revision)
        return str(place / "model")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert locate("Qwen/Qwen2.5-7B", COMMIT) == place / "model"
    assert asked == {"model": "Qwen/Qwen2.5-7B", "revision": COMMIT}


def test_a_hub_that_cannot_be_reached_is_told(monkeypatch):
    def refused(*_, **__):
        raise OSError("no route to host")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refused)
    with pytest.raises(UserError, match="cannot be downloaded"):
        locate("Qwen/Qwen2.5-7B", COMMIT)


def test_summary_is_in_per_cent():
    row = {
        "benchmark": "a",
        "protocol": "greedy",
        "metric": "accuracy",
        "value": 0.5,
        "low": 0.25,
        "high": 0.75,
        "n": 4,
        "k": 1,
    }
    row |= dict.fromkeys(("no_answer", "unparseable", "timeout", "truncated", "too_long"), 0) | {
        "mean_tokens": 7.6,
        "qwen_compatible": 0.5,
    }
    head, line = evaluate.summary(pd.DataFrame([row])).splitlines()
    assert (
        line.split()[:4] == ["a", "greedy", "accuracy", "50.0"] and "[25.0, 75.0]" in line and "harness rules" in head
    )
