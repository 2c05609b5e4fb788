"""Only what changed reruns: one real run of the whole DAG, then one edit after another and what Snakemake would do."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tests.workflow.checkout import TINY, Checkout

pytestmark = pytest.mark.workflow

RESCORED = {"table1_files": 1, "figure_files": 1, "overview_page": 1}
REPORT = RESCORED | {"grading_page": 1}
PAGES = REPORT | {"cost_files": 1, "explorer_page": 1}
SCORED = {"score": 3} | REPORT
# What follows a retrained run: its export, evaluation and everything in the report.
RETRAINED_ONE = {"train": 1, "export": 1, "sample": 1, "grade": 2, "score": 1} | PAGES
RETRAINED_ALL = {"train": 2, "export": 2, "sample": 2, "grade": 4, "score": 2} | PAGES
ALL_MODELS = {"base_model": 1, "train": 2, "export": 2, "sample": 3, "grade": 6, "score": 3} | PAGES


def touch_everything(project: Checkout) -> None:
    for path in [
        *(project.folder / "fr3e").rglob("*.py"),
        *(project.folder / "config").rglob("*.yaml"),
        *(project.folder / "results/tiny/data").rglob("*.parquet"),
    ]:
        os.utime(path)


def switch_branch_and_back(project: Checkout) -> None:
    project.git("checkout", "-qb", "other")
    project.edit("fr3e/algorithm/loss.py", "def policy_loss", "def unused() -> int:\n    return 1\n\n\ndef policy_loss")
    project.edit(TINY, "lr: 1.0e-4", "lr: 2.0e-4")
    project.git("commit", "-qam", "another")
    project.git("checkout", "-q", "main")


def change_a_row(project: Checkout) -> None:
    path = project.folder / "results/tiny/data/benchmarks/far.parquet"
    frame = pd.read_parquet(path)
    frame.loc[0, "gold"] = "11"
    frame.to_parquet(path)


def append(name: str, text: str) -> Callable[[Checkout], None]:
    def change(project: Checkout) -> None:
        path = project.folder / name
        path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")

    return change


def edit(name: str, old: str, new: str) -> Callable[[Checkout], None]:
    return lambda project: project.edit(name, old, new)


def delete(name: str) -> Callable[[Checkout], None]:
    return lambda project: (project.folder / name).unlink()


CODE = "\n\ndef unused() -> int:\n    return 1\n"
EDITS: dict[str, tuple[Callable[[Checkout], None], dict[str, int]]] = {
    "one method's learning rate": (
        edit(TINY, "  grpo_pp: {fr3e:", "  grpo_pp: {optim: {lr: 2.0e-4}, fr3e:"),
        {"plan": 1} | RETRAINED_ONE,
    ),
    "a plot function": (append("fr3e/report/figures_curves.py", CODE), {"figure_files": 1}),
    "a shared algorithm function": (append("fr3e/algorithm/loss.py", CODE), RETRAINED_ALL),
    "the grader": (append("fr3e/grading/compare.py", CODE), {"grade": 6} | SCORED),
    "the statistics": (append("fr3e/evaluation/statistics.py", CODE), {"score": 3} | RESCORED),
    "a prompt template": (append("fr3e/evaluation/templates/demo.txt", " "), ALL_MODELS | {"data_page": 1}),
    "a comment and a docstring": (edit("fr3e/algorithm/loss.py", '"""', '"""Also: '), {}),
    "a comment": (append("fr3e/engine/local/train.py", "\n# a remark\n"), {}),
    "a key that no stage reads": (edit(TINY, "source: made up", "source: made up anew"), {}),
    "the scenario's comments": (append(TINY, "# a remark\n"), {}),
    "a row of a benchmark": (change_a_row, {"sample": 3, "grade": 6, "data_page": 1} | SCORED),
    "touched files": (touch_everything, {}),
    "a branch switch and back": (switch_branch_and_back, {}),
    "a deleted table": (delete("results/tiny/table1.md"), {"table1_files": 1, "overview_page": 1}),
    "a deleted verdict file": (
        delete("results/tiny/evaluation/base-toy/far/verdicts.parquet"),
        {"grade": 1, "score": 1} | REPORT,
    ),
    "a changed pin": (append("constraints/default.txt", "another-package==1.0\n"), ALL_MODELS),
    "a remark in the pins": (append("constraints/default.txt", "# a remark\n"), {}),
    "another account": (edit("config/site.yaml", 'account: ""', "account: grant7"), {}),
    "another interpreter": (edit("workflow/rules/common.smk", 'FR3E = f"{sys', 'FR3E = f"env {sys'), {}),
    "one more seed": (
        edit(TINY, "seeds: [0]", "seeds: [0, 1]"),
        {"plan": 5, "train": 2, "export": 2, "sample": 2, "grade": 4, "score": 2} | PAGES,
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_reruns_exactly_what_it_changes(project: Checkout, name: str) -> None:
    change, expected = EDITS[name]
    change(project)
    assert project.due() == expected


def test_a_new_benchmark_samples_only_itself(project: Checkout) -> None:
    near = project.folder / "results/tiny/evaluation/toy-fr3e-s0/near/generations.parquet"
    manifest = near.with_name(near.name + ".provenance.json")
    before = near.read_bytes(), manifest.read_bytes()
    project.edit(
        TINY,
        "evaluation:\n",
        "  new: {title: New, protocols: [greedy], family: {min_ops: 2, max_ops: 2, problems: 5, seed: 13}}\nevaluation:\n",
    )
    due = project.due()
    assert {rule: due.get(rule, 0) for rule in ("synthetic_data", "train", "base_model", "export")} == dict.fromkeys(
        ("synthetic_data", "train", "base_model", "export"), 0
    )
    assert due["sample"] == 3
    project.snakemake("--", "results/tiny/evaluation/toy-fr3e-s0/new/verdicts.parquet")
    # Snakemake touches what an updating job leaves alone; the manifest, with its time of sampling, shows who wrote it.
    assert (near.read_bytes(), manifest.read_bytes()) == before, "the old benchmarks' generations are left alone"
    log = (project.folder / "results/tiny/logs/sample/toy-fr3e-s0.log").read_text(encoding="utf-8")
    assert "sampling new\n" in log
    assert len(pd.read_parquet(near.parent.parent / "new/verdicts.parquet")) == 5


def test_lost_records_of_snakemake_and_a_fresh_clone_with_pulled_results(
    finished: Checkout, project: Checkout, tmp_path: Path
) -> None:
    shutil.rmtree(project.folder / ".snakemake")
    assert project.due() == {}, "results are there and in order"
    clone = Checkout(tmp_path / "clone")
    project.git("clone", "-q", str(finished.folder), str(clone.folder))
    shutil.copytree(
        finished.folder / "results", clone.folder / "results", copy_function=shutil.copy, dirs_exist_ok=True
    )
    assert clone.run("fr3e", "verify", "results/tiny").returncode == 0
    clone.snakemake("--touch", "all")
    assert clone.due() == {}
    append("fr3e/grading/compare.py", CODE)(clone)
    assert clone.due() == {"grade": 6} | SCORED, "after --touch later edits are noticed"


def test_verify_says_what_is_altered_missing_and_stale(project: Checkout) -> None:
    assert "nothing stale" in project.run("fr3e", "verify", "results/tiny").stdout
    append("fr3e/report/table1.py", CODE)(project)
    (project.folder / "results/tiny/figures/fig5_advantage.csv").unlink()
    append("results/tiny/runs/toy-fr3e-s0/metrics.jsonl", "{}\n")(project)
    done = project.run("fr3e", "verify", "results/tiny", check=False)
    assert done.returncode == 1
    assert "missing: results/tiny/figures/fig5_advantage.csv" in done.stdout
    assert "altered: results/tiny/runs/toy-fr3e-s0/metrics.jsonl" in done.stdout
    assert "the code of stage table1 has changed since" in done.stdout


def test_trace_follows_a_cell_to_its_commit(finished: Checkout) -> None:
    chain = finished.run("fr3e", "trace", "table1", "--cell", "toy/fr3e/near", "--results", "results/tiny").stdout
    commit = finished.git("rev-parse", "HEAD").strip()[:12]
    for part in (
        "verdicts.parquet",
        "generations.parquet",
        "model/manifest.json",
        "trained.json",
        "plans/run/toy-fr3e-s0.yaml",
        "train.parquet",
        f"commit {commit}",
    ):
        assert part in chain
    refused = finished.run(
        "fr3e", "trace", "table1", "--cell", "toy/fr3e/nowhere", "--results", "results/tiny", check=False
    )
    assert refused.returncode == 2
    assert "toy/fr3e/near" in refused.stderr


def test_edits_while_a_job_waits_do_not_change_what_it_runs(project: Checkout) -> None:
    """A stage reads its resolved plan: the scenario is edited after the plan was frozen and before training starts."""
    project.edit(TINY, "  grpo_pp: {fr3e:", "  grpo_pp: {optim: {lr: 3.0e-4}, fr3e:")
    plan = "results/tiny/plans/run/toy-grpo_pp-s0.yaml"
    project.snakemake("--", plan)
    project.edit(TINY, "lr: 3.0e-4", "lr: 9.0e-4")
    assert "lr: 0.0003" in (project.folder / plan).read_text(encoding="utf-8")
    assert project.due()["train"] == 1


def test_code_edited_while_jobs_wait_is_refused_and_the_next_command_goes_on(project: Checkout) -> None:
    scores, grading = "results/tiny/evaluation/base-toy/scores.csv", "--workers {params.workers} 2> {log}"
    edited = f"{grading}; echo EDITED = 1 >> fr3e/evaluation/score.py"
    project.edit("workflow/rules/evaluate.smk", grading, edited)
    (project.folder / scores).with_name("far").joinpath("verdicts.parquet").unlink()
    assert project.snakemake("--", scores, check=False).returncode != 0
    log = (project.folder / "results/tiny/logs/score/base-toy.log").read_text(encoding="utf-8")
    assert "stage score: its code was changed since the command was given; give the command again" in log
    project.edit("workflow/rules/evaluate.smk", edited, grading)
    project.snakemake("--", scores)
    assert "EDITED" in (project.folder / "fr3e/evaluation/score.py").read_text(encoding="utf-8")
    assert project.due().get("score", 0) == 2, "the other two models' scores are of the old code, this one's is not"


def test_only_a_jobs_own_snakemake_inherits_a_snapshot(tmp_path: Path) -> None:
    """A command takes configuration and code as they are when it is given, whatever the shell it is given in was left with."""
    project = Checkout.make(tmp_path / "project")
    of_another = {"FR3E_CONFIG_SNAPSHOT": "/nowhere/config.json", "FR3E_CODE_SNAPSHOT": "/nowhere/code.json"}
    command = [sys.executable, "-m", "snakemake", "-n", "--quiet", "all", "--configfile", TINY, "--cores", "1"]
    done = subprocess.run(
        [*command, "--", "results/tiny/plans/report.yaml"],
        cwd=project.folder,
        env=project.environment | of_another,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    snapshots = sorted(path.name.split("-")[0] for path in (project.folder / ".snakemake/fr3e").iterdir())
    assert snapshots == ["code", "config"]
