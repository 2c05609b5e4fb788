"""Runs as they lie on disk."""

from pathlib import Path

import pytest

from fr3e.errors import UserError
from fr3e.files import read_jsonl
from fr3e.report.runs import hardware_words, load_runs, method_title
from tests.report.synthetic import scenario_plan, write_results


def test_hardware_in_words() -> None:
    assert hardware_words({"cores": 2, "processor": "AMD EPYC", "memory_gib": 7.6}) == "2 cores of AMD EPYC, 7.6 GiB"
    gpus = {"gpus": ["H100, 80 GB, 550"] * 8, "cores": 96}
    assert hardware_words(gpus) == "8 × H100, 80 GB, 550, 96 cores"
    assert hardware_words("a laptop") == "a laptop"
    assert hardware_words(None) == ""


def test_only_runs_with_metrics_count_as_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = scenario_plan()
    write_results(tmp_path, plan, skip=("toy-fr3e-s1",), updates=10)
    (tmp_path / "results/demo/runs/toy-fr3e-s2/metrics.jsonl").write_text("", encoding="utf-8")
    (tmp_path / "results/demo/runs/toy-fr3e-s0/trained.json").unlink()
    runs = load_runs(plan, ["fr3e"])
    assert [run.tag for run in runs] == ["toy-fr3e-s0"]
    assert runs[0].trained is None
    assert len(runs[0].updates) == 10
    assert len(runs[0].rows) == 11


def test_a_row_without_its_update_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = scenario_plan()
    write_results(tmp_path, plan, updates=10)
    with (tmp_path / "results/demo/runs/toy-fr3e-s0/metrics.jsonl").open("a", encoding="utf-8") as handle:
        handle.write('{"loss": 1}\n')
    with pytest.raises(UserError, match=r"toy-fr3e-s0/metrics\.jsonl:12: no whole number under 'update'"):
        load_runs(plan)


def test_a_line_that_is_no_object_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"a": 1}\n\n[1]\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"m\.jsonl:3: found list"):
        list(read_jsonl(path))


def test_titles() -> None:
    assert [method_title(m) for m in ("grpo_pp", "fr3e", "no_alpha")] == ["GRPO++", "FR3E", "no alpha"]
