"""How the trainer writes a checkpoint, with verl's own part replaced."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("verl")

from verl.trainer.ppo.v1 import PPOTrainerSync

from fr3e.config import load_scenario, resolve_run
from fr3e.engine.verl import state, stopping, trainer
from fr3e.errors import UserError
from fr3e.files import read_json

pytestmark = pytest.mark.verl
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def made(tmp_path: Path) -> trainer.FR3ETrainer:
    """A trainer of 8 ranks after update 3, made without verl's workers."""
    found = trainer.FR3ETrainer.__new__(trainer.FR3ETrainer)
    arms = ROOT / "config" / "arms"
    found.run = resolve_run(load_scenario(ROOT / "config" / "paper.yaml"), "qwen2.5-7b", "fr3e", 0, arms=arms)
    found.config = SimpleNamespace(fr3e=SimpleNamespace(identity="this run"))
    found.checkpoints, found.global_steps = tmp_path / "checkpoint", 3
    found.progress, found._heartbeat = state.RunState(update=3), tmp_path / "beat"
    return found


def saves(monkeypatch: pytest.MonkeyPatch, ranks: int) -> None:
    """Verl's part: shards of `ranks` ranks, in 0.3 s of silence."""

    def save(self: trainer.FR3ETrainer) -> None:
        time.sleep(0.3)
        for name in state.shards(ranks):
            path = state.folder_of(self.checkpoints, self.global_steps) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"weights")
        assert self._heartbeat.exists(), "a save is no silence"

    monkeypatch.setattr(PPOTrainerSync, "_save_checkpoint", save)
    monkeypatch.setattr(trainer, "beating", lambda beat: stopping.beating(beat, every=0.01))


def test_a_checkpoint_is_sealed_with_its_time_and_its_run(
    made: trainer.FR3ETrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    saves(monkeypatch, 8)
    made._write_checkpoint()
    sealed = read_json(state.folder_of(made.checkpoints, 3) / state.COMPLETE)
    assert sealed["identity"] == "this run" and 0.3 <= sealed["seconds"] <= made._save_seconds
    assert state.updates_saved(made.checkpoints) == [3] and made._save_due is False


def test_a_checkpoint_that_lacks_a_rank_is_no_checkpoint(
    made: trainer.FR3ETrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    saves(monkeypatch, 7)
    monkeypatch.setattr(state.seal, "__defaults__", (0.0,))
    with pytest.raises(UserError, match=r"update 3: its checkpoint could not be written .* is not there"):
        made._write_checkpoint()
    assert state.updates_saved(made.checkpoints) == []
