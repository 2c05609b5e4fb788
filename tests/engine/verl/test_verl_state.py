"""Which checkpoint a distributed run goes on from."""

from pathlib import Path

import pytest

from fr3e.config import load_scenario, resolve_run
from fr3e.engine.verl import state
from fr3e.engine.verl.state import RunState
from fr3e.errors import UserError
from fr3e.files import write_json, write_text

ROOT = Path(__file__).resolve().parents[3]


def checkpoint(folder: Path, update: int, ranks: int = 2, sealed: bool = True) -> Path:
    """A folder as verl and we leave it; the shards hold bytes that no test reads as weights."""
    target = state.folder_of(folder, update)
    (target / "actor").mkdir(parents=True)
    for rank in range(ranks):
        (target / "actor" / f"model_world_size_{ranks}_rank_{rank}.pt").write_bytes(b"weights" * 100)
    write_json(target / "actor" / "fsdp_config.json", {"FSDP_version": 2, "world_size": ranks})
    state.save(folder, RunState(update=update, position=7 * update, tokens_total=1000 * update))
    if sealed:
        state.seal(folder, update, "this run")
        write_text(folder / state.TRACKER, str(update))
    return target


def test_the_newest_whole_checkpoint_is_taken_and_verl_is_told(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2)
    checkpoint(tmp_path, 4)
    checkpoint(tmp_path, 6, sealed=False)
    assert state.choose(tmp_path, 2, "this run") == 4
    assert (tmp_path / state.TRACKER).read_text() == "4"
    assert state.load(tmp_path, 4).position == 28


def test_a_shard_cut_short_makes_the_one_before_it_count(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2)
    shard = checkpoint(tmp_path, 4) / "actor" / "model_world_size_2_rank_1.pt"
    shard.write_bytes(shard.read_bytes()[:-1])
    assert state.choose(tmp_path, 2, "this run") == 2
    assert (tmp_path / state.TRACKER).read_text() == "2"


def test_only_broken_checkpoints_are_an_error_not_a_silent_new_start(tmp_path: Path) -> None:
    (checkpoint(tmp_path, 2) / "actor" / "model_world_size_2_rank_0.pt").unlink()
    with pytest.raises(UserError, match="no checkpoint is whole"):
        state.choose(tmp_path, 2, "this run")


def test_a_first_checkpoint_that_was_never_finished_means_a_new_start(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2, sealed=False)
    assert state.choose(tmp_path, 2, "this run") == 0
    assert not list(tmp_path.glob("global_step_*"))


def test_another_number_of_ranks_is_refused(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2, ranks=2)
    with pytest.raises(UserError, match="written by 2 ranks, this run has 4"):
        state.choose(tmp_path, 4, "this run")


def test_a_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2)
    with pytest.raises(UserError, match="made with other settings"):
        state.choose(tmp_path, 2, "another run")


def test_remains_of_a_checkpoint_that_was_cut_off_are_cleared_away(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2)
    checkpoint(tmp_path, 4, sealed=False)
    assert state.choose(tmp_path, 2, "this run") == 2
    assert [path.name for path in tmp_path.glob("global_step_*")] == ["global_step_2"]


def test_identity_changes_with_what_is_learned_and_not_with_how_it_is_run() -> None:
    scenario = load_scenario(ROOT / "config" / "paper.yaml")
    run = resolve_run(scenario, "qwen2.5-7b", "fr3e", 0, arms=ROOT / "config" / "arms")

    def changed(section: str, **values: object) -> str:
        part = getattr(run.training, section).model_copy(update=values)
        return state.identity(run.model_copy(update={"training": run.training.model_copy(update={section: part})}))

    same = state.identity(run)
    assert changed("optim", updates=400) == changed("checkpoint", every=5) == changed("verl", entropy="topk") == same
    assert changed("optim", lr=2e-6) != same != changed("fr3e", num_anchors=8)


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
