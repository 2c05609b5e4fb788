"""Which checkpoint a distributed run goes on from."""

import os
import threading
from pathlib import Path

import pytest

from fr3e.config import load_scenario, resolve_run
from fr3e.config.scenario import RunConfig
from fr3e.engine.verl import state
from fr3e.engine.verl.state import RunState
from fr3e.errors import UserError
from fr3e.files import write_json, write_text

ROOT = Path(__file__).resolve().parents[3]


def checkpoint(folder: Path, update: int, ranks: int = 2, sealed: bool = True, made_by: str = "this run") -> Path:
    """A folder as verl and we leave it; the shards hold bytes that no test reads as weights."""
    target = state.folder_of(folder, update)
    (target / "actor").mkdir(parents=True)
    for name in state.shards(ranks):
        (target / name).write_bytes(b"weights" * 100)
    write_json(target / "actor" / "fsdp_config.json", {"FSDP_version": 2, "world_size": ranks})
    state.save(folder, RunState(update=update, position=7 * update, tokens_total=1000 * update))
    if sealed:
        state.seal(folder, update, made_by, ranks, 40.0 + update)
        write_text(folder / state.TRACKER, str(update))
    return target


def test_the_newest_whole_checkpoint_is_taken_and_verl_is_told(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2)
    checkpoint(tmp_path, 4)
    checkpoint(tmp_path, 6, sealed=False)
    assert state.choose(tmp_path, 2) == 4
    assert (tmp_path / state.TRACKER).read_text() == "4"
    assert state.load(tmp_path, 4).position == 28


def test_a_shard_cut_short_makes_the_one_before_it_count(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2)
    shard = checkpoint(tmp_path, 4) / "actor" / "model_world_size_2_rank_1.pt"
    shard.write_bytes(shard.read_bytes()[:-1])
    assert state.choose(tmp_path, 2) == 2
    assert (tmp_path / state.TRACKER).read_text() == "2"


def test_only_broken_checkpoints_are_an_error_not_a_silent_new_start(tmp_path: Path) -> None:
    (checkpoint(tmp_path, 2) / "actor" / "model_world_size_2_rank_0.pt").unlink()
    with pytest.raises(UserError, match="no checkpoint is whole"):
        state.choose(tmp_path, 2)


def test_a_first_checkpoint_that_was_never_finished_means_a_new_start(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2, sealed=False)
    assert state.choose(tmp_path, 2) == 0
    assert not list(tmp_path.glob("global_step_*"))


@pytest.mark.parametrize("kind", ["model", "optim", "extra_state"])
def test_a_checkpoint_is_not_sealed_before_every_ranks_shards_are_seen(tmp_path: Path, kind: str) -> None:
    name = f"actor/{kind}_world_size_2_rank_1.pt"
    late = checkpoint(tmp_path, 2, sealed=False) / name
    late.write_bytes(b"")  # its name has arrived, its content has not
    with pytest.raises(UserError, match=rf"{name} is not there \(1 of 7 files .* all nodes see"):
        state.seal(tmp_path, 2, "this run", 2, 1.0, wait=0.0)
    late.unlink()
    with pytest.raises(UserError, match=rf"{name} is not there"):
        state.seal(tmp_path, 2, "this run", 2, 1.0, wait=0.0)
    assert state.updates_saved(tmp_path) == []
    threading.Timer(0.3, late.write_bytes, [b"weights"]).start()
    state.seal(tmp_path, 2, "this run", 2, 1.0, wait=60.0)
    assert state.updates_saved(tmp_path) == [2]


def test_the_longest_save_is_carried_over_attempts(tmp_path: Path) -> None:
    assert state.longest_save(tmp_path) == 0.0
    checkpoint(tmp_path, 4)
    checkpoint(tmp_path, 2)
    checkpoint(tmp_path, 6, sealed=False)
    assert state.longest_save(tmp_path) == 44.0


def test_another_number_of_ranks_is_refused(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2, ranks=2)
    with pytest.raises(UserError, match="written by 2 ranks, this run has 4"):
        state.choose(tmp_path, 4)


def test_remains_of_a_checkpoint_that_was_cut_off_are_cleared_away(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2)
    checkpoint(tmp_path, 4, sealed=False)
    assert state.choose(tmp_path, 2) == 2
    assert [path.name for path in tmp_path.glob("global_step_*")] == ["global_step_2"]


# ------------------------------------------------------------------------------------------- whose beginning it is


@pytest.fixture
def run(tmp_path: Path) -> RunConfig:
    """A run of the paper's scenario over small files."""
    found = resolve_run(
        load_scenario(ROOT / "config" / "paper.yaml"), "qwen2.5-7b", "fr3e", 0, arms=ROOT / "config/arms"
    )
    base, data = tmp_path / "base", tmp_path / "train.parquet"
    base.mkdir()
    (base / "model.safetensors").write_bytes(b"weights")
    (base / "config.json").write_text("{}")
    write_json(base / "manifest.json", {"files": {"model.safetensors": "sum of the manifest"}})
    data.write_bytes(b"rows")
    probed = tmp_path / "probed.parquet"
    probed.write_bytes(b"problems")
    return found.model_copy(update={"base": str(base), "data": str(data), "benchmarks": {"probed": str(probed)}})


def changed(run: RunConfig, section: str, **values: object) -> RunConfig:
    part = getattr(run.training, section).model_copy(update=values)
    return run.model_copy(update={"training": run.training.model_copy(update={section: part})})


def begun(out: Path, run: RunConfig) -> dict[str, str]:
    """A first attempt with a checkpoint of update 2; what it was made from."""
    made = state.parts(run)
    write_json(out / "attempts" / "1.json", {"attempt": 1, "resumed_from": 0, "made_from": made})
    (out / "attempts" / "1.metrics.jsonl").write_text('{"update": 0}\n')
    checkpoint(out / "checkpoint", 2, made_by=state.identity(made))
    return made


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("optim", {"updates": 400}),
        ("checkpoint", {"every": 5, "keep": 1}),
        ("probe", {"every": 3}),
        ("verl", {"nodes": 2, "gpus_per_node": 4, "offload": True, "tensor_parallel": 2, "max_tokens_per_gpu": 20000}),
        ("verl", {"gpu_memory_utilization": 0.5, "logprob_alarm": 1.0}),
    ],
)
def test_how_a_run_is_spread_and_how_long_it_is_leaves_it_the_same(
    run: RunConfig, tmp_path: Path, section: str, values: dict[str, object]
) -> None:
    begun(tmp_path, run)
    other = changed(run, section, **values)
    assert state.difference(tmp_path, state.parts(other), other.training.optim.updates) is None


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("optim", {"lr": 2e-6}),
        ("fr3e", {"num_anchors": 8}),
        ("probe", {"samples": 8}),
        ("verl", {"entropy": "topk"}),
        ("verl", {"dtype": "float32"}),
    ],
)
def test_other_settings_are_another_run(
    run: RunConfig, tmp_path: Path, section: str, values: dict[str, object]
) -> None:
    begun(tmp_path, run)
    other = changed(run, section, **values)
    assert state.difference(tmp_path, state.parts(other), 200) == "was made with other settings"


@pytest.mark.parametrize(("name", "part"), [("train", "data"), ("probed", "benchmarks"), ("base/config", "base")])
def test_other_content_under_the_same_path_is_another_run(run: RunConfig, tmp_path: Path, name: str, part: str) -> None:
    begun(tmp_path, run)
    path = tmp_path / (f"{name}.json" if "/" in name else f"{name}.parquet")
    path.write_bytes(b"{ }")
    assert state.difference(tmp_path, state.parts(run), 200) == f"was made with other {part}"


def test_a_base_models_weights_count_by_its_manifest_unless_they_are_younger(run: RunConfig, tmp_path: Path) -> None:
    weights, manifest = tmp_path / "base" / "model.safetensors", tmp_path / "base" / "manifest.json"
    before = state.parts(run)
    write_json(manifest, {"files": {"model.safetensors": "another sum"}, "made": "later"})
    by_manifest = state.parts(run)
    assert by_manifest["base"] != before["base"]
    os.utime(weights, (manifest.stat().st_mtime + 10,) * 2)
    by_content = state.parts(run)
    weights.write_bytes(b"others!")
    os.utime(weights, (manifest.stat().st_mtime + 10,) * 2)
    assert len({by_manifest["base"], by_content["base"], state.parts(run)["base"]}) == 3


def test_other_code_is_another_run(run: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(tmp_path, run)
    monkeypatch.setattr("fr3e.provenance.fingerprint.code", lambda stage: f"{stage} with another loss")
    assert state.difference(tmp_path, state.parts(run), 200) == "was made with other code"


def test_a_missing_base_model_is_one_line(run: RunConfig, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere: cannot be read .* make the base model first"):
        state.parts(run.model_copy(update={"base": str(tmp_path / "nowhere")}))


def test_a_checkpoint_without_its_attempt_is_told_by_its_own_seal(run: RunConfig, tmp_path: Path) -> None:
    made = begun(tmp_path, run)
    (tmp_path / "attempts" / "1.json").unlink()
    assert state.difference(tmp_path, made, 200) is None
    other = state.difference(tmp_path, state.parts(changed(run, "optim", lr=2e-6)), 200)
    assert other == "was made with other settings, model, data or code"


def test_a_run_made_shorter_than_it_has_come_starts_afresh(run: RunConfig, tmp_path: Path) -> None:
    made = begun(tmp_path, run)
    assert state.difference(tmp_path, made, 2) is None
    assert state.difference(tmp_path, made, 1) == "has gone on to update 2, this run ends with 1"


def test_no_row_and_no_checkpoint_of_the_old_run_is_left_in_the_new_ones_way(run: RunConfig, tmp_path: Path) -> None:
    begun(tmp_path, run)
    (tmp_path / "checkpoint" / "lock").touch()
    (tmp_path / "metrics.jsonl").write_text("rows")
    write_json(tmp_path / state.SUPERSEDED / "attempts" / "9.json", {})
    state.set_aside(tmp_path)
    assert sorted(path.name for path in (tmp_path / "checkpoint").iterdir()) == ["lock"]
    assert not (tmp_path / "attempts").exists() and not (tmp_path / "metrics.jsonl").exists()
    kept = tmp_path / state.SUPERSEDED
    assert state.updates_saved(kept / "checkpoint") == [2] and (kept / "metrics.jsonl").read_text() == "rows"
    assert [path.name for path in (kept / "attempts").glob("*.json")] == ["1.json"], "one generation is kept"
    assert state.choose(tmp_path / "checkpoint", 2) == 0


def test_pruning_keeps_the_newest_and_a_newer_one_under_way(tmp_path: Path) -> None:
    for update in (2, 4, 6):
        checkpoint(tmp_path, update)
    checkpoint(tmp_path, 8, sealed=False)
    state.prune(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.glob("global_step_*")) == [
        "global_step_4",
        "global_step_6",
        "global_step_8",
    ]
