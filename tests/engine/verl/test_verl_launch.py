"""What an attempt finds, starts from and leaves, with the process that trains replaced. Needs neither verl nor a GPU."""

import json
from pathlib import Path
from typing import Any

import pytest

from fr3e.config import load_scenario, resolve_run
from fr3e.config.scenario import RunConfig
from fr3e.engine.verl import launch, state
from fr3e.files import read_json, write_json

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def run(tmp_path: Path) -> RunConfig:
    found = resolve_run(
        load_scenario(ROOT / "config" / "paper.yaml"), "qwen2.5-7b", "fr3e", 0, arms=ROOT / "config/arms"
    )
    (tmp_path / "base").mkdir()
    (tmp_path / "train.parquet").write_bytes(b"rows")
    verl = found.training.verl.model_copy(update={"gpus_per_node": 1})
    optim = found.training.optim.model_copy(update={"updates": 2})
    training = found.training.model_copy(update={"verl": verl, "optim": optim})
    files = {"base": str(tmp_path / "base"), "data": str(tmp_path / "train.parquet"), "benchmarks": {}}
    return found.model_copy(update={"training": training, **files})


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Learning rates of the attempts that were started; each trains to the last update at once."""
    started: list[float] = []

    def configured(run: RunConfig, out: Path, base: Path, known: dict[str, Any], ray: dict[str, Any]) -> Path:
        (out / "identity").write_text(known["identity"])
        return base.with_suffix(".yaml")

    def watched(run: RunConfig, base: Path, *rest: Any) -> None:
        out = base.parent.parent
        started.append(run.training.optim.lr)
        base.with_suffix(".log").touch()
        rows = [json.dumps({"update": update, "lr": run.training.optim.lr}) + "\n" for update in range(3)]
        base.with_suffix(".metrics.jsonl").write_text("".join(rows))
        folder = state.folder_of(out / "checkpoint", 2)
        (folder / "actor").mkdir(parents=True)
        for name in state.shards(1):
            (folder / name).write_bytes(b"weights")
        write_json(folder / "actor" / "fsdp_config.json", {"world_size": 1})
        state.save(out / "checkpoint", state.RunState(update=2))
        state.seal(out / "checkpoint", 2, (out / "identity").read_text(), 1, 30.0)

    monkeypatch.setattr(launch, "_installed", lambda: None)
    monkeypatch.setattr(launch, "_configured", configured)
    monkeypatch.setattr(launch, "_watched", watched)
    return started


def rates(out: Path) -> list[float]:
    return [json.loads(line)["lr"] for line in (out / "metrics.jsonl").read_text().splitlines()]


def test_a_changed_setting_trains_again_and_no_row_of_the_old_run_is_left(
    run: RunConfig, attempts: list[float], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    launch.train(run, out)
    optim = run.training.optim.model_copy(update={"lr": 0.5})
    other = run.model_copy(update={"training": run.training.model_copy(update={"optim": optim})})
    with caplog.at_level("WARNING", logger="fr3e"):
        launch.train(other, out)
    assert "was made with other settings; it is moved to superseded, the run starts afresh" in caplog.text
    assert attempts == [run.training.optim.lr, 0.5] and rates(out) == [0.5, 0.5, 0.5]
    assert read_json(out / "trained.json")["attempts"] == 1


def test_changed_data_and_changed_code_train_again(
    run: RunConfig, attempts: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch.train(run, tmp_path / "out")
    Path(run.data).write_bytes(b"other rows")
    launch.train(run, tmp_path / "out")
    monkeypatch.setattr("fr3e.provenance.fingerprint.code", lambda stage: "another loss")
    launch.train(run, tmp_path / "out")
    assert len(attempts) == 3


def test_a_finished_run_is_not_trained_again_and_gets_its_rows_back(
    run: RunConfig, attempts: list[float], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    launch.train(run, out)
    (out / "metrics.jsonl").unlink()  # as a workflow does with the outputs of a rule that it runs again
    (out / "trained.json").unlink()
    launch.train(run, out)
    assert len(attempts) == 1 and len(rates(out)) == 3 and (out / "trained.json").is_file()
