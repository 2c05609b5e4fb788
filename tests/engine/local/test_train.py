"""Whole runs at the smallest size: columns, repeatability, resuming, preemption, export."""

import json
import os
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from fr3e.config.scenario import RunConfig
from fr3e.config.training import CheckpointConfig
from fr3e.engine.local import checkpoint
from fr3e.engine.local.export import export
from fr3e.engine.local.train import PREEMPTED, Trainer, train
from fr3e.errors import UserError
from fr3e.files import read_json, sha256
from tests.engine.local import tiny_run as tiny_run_module
from tests.engine.local.tiny_run import tiny_run


def rows(out: Path, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
    """Rows without wall time, which alone may differ between two runs of the same configuration."""
    found = [json.loads(line) for line in (out / name).read_text().splitlines()]
    return [{k: v for k, v in row.items() if not k.startswith("seconds")} for row in found]


def state(out: Path) -> dict[str, Any]:
    """Content of the last checkpoint."""
    return checkpoint.load(out / read_json(out / "trained.json")["checkpoint"])


def same_run(one: Path, other: Path) -> None:
    """Weights, optimiser, counters, metrics and trajectories are equal to the bit."""
    assert rows(one) == rows(other)
    assert (one / "trajectories.jsonl").read_text() == (other / "trajectories.jsonl").read_text()
    ours, theirs = state(one), state(other)
    for name, value in ours["module"].items():
        assert torch.equal(value, theirs["module"][name]), name
    for index, slots in ours["optimiser"]["state"].items():
        for name, value in slots.items():
            assert torch.equal(value, theirs["optimiser"]["state"][index][name])
    for name in ("update", "position", "tokens", "rollouts"):
        assert ours["progress"][name] == theirs["progress"][name]
    assert [g.uid for g in ours["progress"]["carried"]] == [g.uid for g in theirs["progress"]["carried"]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunConfig, Path]:
    """An uninterrupted run."""
    folder = tmp_path_factory.mktemp("run")
    run = tiny_run(folder)
    train(run, folder / "out")
    return run, folder / "out"


def test_rows(finished: tuple[RunConfig, Path]) -> None:
    run, out = finished
    found = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in found] == list(range(7))
    assert set(found[0]) == {"update", "seconds"} | {
        f"probe/{b}/{c}" for b in ("train", "held") for c in ("accuracy", "advantage", "entropy", "length", "truncated")
    }
    assert "mismatch/max" in found[1]
    for row in found[1:]:
        assert row["groups/trained"] == 4
        assert row["groups/mixed"] >= (row["rounds"] > 0)
        # Without a fresh group in the first mini-batch there is nothing to compare.
        assert row.get("mismatch/max", 0.0) < 1e-4
        assert row["grad_norm"] > 0 and row["lr"] == 0.001
        assert ("probe/held/accuracy" in row) == (row["update"] in (3, 6))
        # An update that carried groups fill has no round and generates nothing.
        assert (row["seconds/generate"] > 0) == (row["rounds"] > 0)
        assert row["seconds/update"] > 0
    assert [("seconds/checkpoint" in row) for row in found] == [False, False, False, True, False, True, False]
    assert all(a["seconds"] <= b["seconds"] for a, b in pairwise(found))
    generated = [row["tokens/generated_first"] + row["tokens/generated_explore"] for row in found[1:]]
    assert found[-1]["tokens_total"] == sum(generated)
    # What was generated was trained on, thrown away, or waits.
    waiting = sum(r.continuation_len for g in state(out)["progress"]["carried"] for r in g.rollouts)
    trained = sum(row["tokens/trained"] + row["tokens/discarded"] for row in found[1:])
    assert sum(generated) == trained + waiting
    for row in found[1:]:
        for what in ("discarded", "prefill"):
            assert row[f"tokens/{what}"] == row[f"tokens/{what}_first"] + row[f"tokens/{what}_explore"]
    ended = read_json(out / "trained.json")
    assert (ended["run"], ended["updates"], ended["attempts"], ended["gpus"]) == (run.run, 6, 1, 0)
    assert ended["checkpoint_sha256"] == sha256(out / ended["checkpoint"])
    assert ended["tokens_total"] == found[-1]["tokens_total"]
    assert sorted(p.name for p in (out / "checkpoints").glob("*.pt")) == ["update-000004.pt", "update-000006.pt"]


def test_trajectories(finished: tuple[RunConfig, Path]) -> None:
    found = rows(finished[1], "trajectories.jsonl")
    assert {row["update"] for row in found} == {3, 6}
    for row in found:
        assert row["question"] in row["prompt"] and len(row["tokens"]) == len(row["entropies"]) == len(row["token_ids"])
        assert all(0 <= k < len(row["tokens"]) for k in row["anchors"])
        assert [s["k"] for s in row["states"]] == sorted({0, *row["anchors"]})


def test_the_same_again(finished: tuple[RunConfig, Path], tmp_path: Path) -> None:
    run, out = finished
    train(run, tmp_path)
    same_run(out, tmp_path)


def test_resuming_after_a_stop(finished: tuple[RunConfig, Path], tmp_path: Path, monkeypatch: Any) -> None:
    """SIGTERM during the third update: exit code 75, a checkpoint, and the same end."""
    run, out = finished
    original = Trainer.step

    def step(self: Any, progress: Any, number: int, stopping: Any) -> Any:
        if number == 3 and not (tmp_path / "stopped").exists():
            (tmp_path / "stopped").touch()
            os.kill(os.getpid(), signal.SIGTERM)
        return original(self, progress, number, stopping)

    monkeypatch.setattr(Trainer, "step", step)
    with pytest.raises(SystemExit) as stopped:
        train(run, tmp_path)
    assert stopped.value.code == PREEMPTED
    assert not (tmp_path / "trained.json").exists()
    # A workflow may delete a rule's outputs before it runs it again.
    (tmp_path / "metrics.jsonl").unlink()
    train(run, tmp_path)
    same_run(out, tmp_path)
    assert read_json(tmp_path / "trained.json")["attempts"] == 2


def test_a_finished_run_stays(finished: tuple[RunConfig, Path], tmp_path: Path) -> None:
    run, out = finished
    train(run, tmp_path)
    train(run, tmp_path)
    same_run(out, tmp_path)


def test_another_configuration_starts_afresh(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    train(tiny_run(tmp_path, optim={"updates": 2}), tmp_path / "out")
    with caplog.at_level("WARNING", logger="fr3e"):
        train(tiny_run(tmp_path, optim={"updates": 1, "lr": 0.002}), tmp_path / "out")
    assert "made by another configuration or other code; the run starts afresh" in caplog.text
    assert [row["update"] for row in rows(tmp_path / "out")] == [0, 1]
    assert read_json(tmp_path / "out" / "trained.json")["attempts"] == 1


def test_a_damaged_checkpoint_falls_back(
    finished: tuple[RunConfig, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run, out = finished
    train(run, tmp_path)
    newest = tmp_path / "checkpoints" / "update-000006.pt"
    newest.write_bytes(newest.read_bytes()[:-1000] + b"x" * 1000)
    with caplog.at_level("INFO", logger="fr3e"):
        train(run, tmp_path)
    assert "update-000006.pt: damaged" in caplog.text and "resuming after update 4" in caplog.text
    same_run(out, tmp_path)


def stop_after(monkeypatch: pytest.MonkeyPatch, run: RunConfig, out: Path, update: int) -> None:
    """Train until SIGTERM comes at the end of `update`."""
    original = Trainer.step

    def step(self: Any, progress: Any, number: int, stopping: Any) -> Any:
        done = original(self, progress, number, stopping)
        if number == update:
            os.kill(os.getpid(), signal.SIGTERM)
        return done

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(Trainer, "step", step)
        train(run, out)


def test_keep_one_keeps_a_sound_one(
    finished: tuple[RunConfig, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between update 4's checkpoint and its checksum, resumed from 2, stopped after 3: 3 must be there."""
    run, out = finished
    keep_one = run.training.model_copy(update={"checkpoint": CheckpointConfig(every=2, keep=1)})
    run = run.model_copy(update={"training": keep_one})
    folder = tmp_path / "checkpoints"
    stop_after(monkeypatch, run, tmp_path, 2)
    (folder / "update-000004.pt").write_bytes((out / "checkpoints" / "update-000004.pt").read_bytes())
    stop_after(monkeypatch, run, tmp_path, 3)
    assert sorted(path.name for path in folder.glob("update-*")) == ["update-000003.json", "update-000003.pt"]
    train(run, tmp_path)
    same_run(out, tmp_path)


def test_grpo_and_overflow(tmp_path: Path) -> None:
    """Plain GRPO keeps degenerate groups; `drop` carries nothing; no first returns without FR3E."""
    run = tiny_run(tmp_path, "grpo_pp", optim={"updates": 2}, accum={"reject_degenerate": False, "overflow": "drop"})
    train(run, tmp_path / "out")
    for row in rows(tmp_path / "out")[1:]:
        assert row["rounds"] == 1 and row["groups/carried_out"] == 0 and row["rollouts/first"] == 0
        assert row["groups/dropped"] == 0
        assert "anchor/position" not in row
    drop = tiny_run(tmp_path, optim={"updates": 2}, accum={"overflow": "drop"})
    train(drop, tmp_path / "drop")
    assert any(row["groups/dropped"] for row in rows(tmp_path / "drop")[1:])


def test_prompt_and_response_may_fill_the_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """10 + 54 = the model's 64. Continuations of a late anchor end first; nearly all others go on to the last position."""
    monkeypatch.setitem(tiny_run_module.TABLE, "}", {"a": 3.0, "<|im_end|>": 0.0})
    run = tiny_run(
        tmp_path,
        rollout={"max_prompt_tokens": 10, "max_total_tokens": 54, "batch_rows": 512, "prompts_per_round": 16},
        optim={"updates": 1},
    )
    train(run, tmp_path / "out")
    assert [row["update"] for row in rows(tmp_path / "out")] == [0, 1]


def test_export(finished: tuple[RunConfig, Path], tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    run, out = finished
    export(run, out / "trained.json", tmp_path / "model")
    manifest = read_json(tmp_path / "model" / "manifest.json")
    files = {p.name: sha256(p) for p in (tmp_path / "model").iterdir() if p.name != "manifest.json"}
    assert manifest["files"] == files and {"model.safetensors", "tokenizer.json", "generation_config.json"} <= set(
        files
    )
    weights = state(out)["module"]
    for name, value in AutoModelForCausalLM.from_pretrained(tmp_path / "model").state_dict().items():
        assert torch.equal(value, weights[name])
    assert len(AutoTokenizer.from_pretrained(tmp_path / "model")) == len(AutoTokenizer.from_pretrained(run.base))
    assert (tmp_path / "model" / "tokenizer.json").read_bytes() == (Path(run.base) / "tokenizer.json").read_bytes()


def test_export_refuses_an_altered_checkpoint(finished: tuple[RunConfig, Path], tmp_path: Path) -> None:
    import shutil

    run, out = finished
    shutil.copytree(out, tmp_path / "copy")
    path = tmp_path / "copy" / read_json(out / "trained.json")["checkpoint"]
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(UserError, match=r"update-000006\.pt: its SHA-256 is not the one in .*trained\.json"):
        export(run, tmp_path / "copy" / "trained.json", tmp_path / "model")
    path.unlink()
    with pytest.raises(UserError, match=r"update-000006\.pt: no such file"):
        export(run, tmp_path / "copy" / "trained.json", tmp_path / "model")
    assert not (tmp_path / "model").exists()
