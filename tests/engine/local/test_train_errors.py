"""What stops a run: one line for people that names update, prompt, key or file."""

from pathlib import Path
from typing import Any

import pytest

from fr3e.engine.local import checkpoint
from fr3e.engine.local.train import train
from fr3e.engine.local.update import Updater
from fr3e.errors import UserError
from tests.engine.local import tiny_run as tiny_run_module
from tests.engine.local.test_train import rows
from tests.engine.local.tiny_run import tiny_run, write_problems


@pytest.mark.parametrize(("broken_after", "named"), [(2, "update 3"), (3, "update 3"), (4, "update 5")])
def test_logits_that_are_not_numbers_name_update_and_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken_after: int, named: str
) -> None:
    """Found when the next update samples or, after update 3, by its probe."""
    original = Updater.update

    def update(self: Updater, groups: Any, modulated: Any, number: int) -> dict[str, float]:
        columns = original(self, groups, modulated, number)
        if number == broken_after:
            self.policy.module.model.norm.weight.data.fill_(float("nan"))
        return columns

    monkeypatch.setattr(Updater, "update", update)
    with pytest.raises(
        UserError, match=rf"^{named}, prompt \S+: the model's logits are not numbers at response token 0"
    ):
        train(tiny_run(tmp_path, accum={"overflow": "drop"}), tmp_path / "out")


def test_a_probed_benchmark_of_which_no_prompt_fits(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, rollout={"max_prompt_tokens": 2})
    with pytest.raises(
        UserError, match=r"^rollout.max_prompt_tokens: no prompt of .* 'train' has at most 2 tokens, its "
    ):
        train(run, tmp_path / "out")
    write_problems(tmp_path / "data" / "benchmarks" / "held.parquet", "h" * 40, 6)
    # <|im_start|> 0 + 40 times h ? <|im_end|> <|im_start|> = 46 tokens
    with pytest.raises(UserError, match=r"'held' has at most 16 tokens, its shortest has 46; raise it"):
        train(tiny_run(tmp_path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_errors_for_people(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    with pytest.raises(UserError, match="not a model folder"):
        train(run.model_copy(update={"base": str(tmp_path / "absent")}), tmp_path / "out")
    with pytest.raises(UserError, match=r"none\.parquet: no such file"):
        train(run.model_copy(update={"data": str(tmp_path / "none.parquet")}), tmp_path / "out")
    longer = run.model_copy(
        update={
            "training": tiny_run(
                tmp_path, rollout={"max_prompt_tokens": 32, "max_total_tokens": 32}
            ).training.model_copy(update={"rollout": run.training.rollout.model_copy(update={"max_total_tokens": 60})})
        }
    )
    with pytest.raises(
        UserError, match=r"max_prompt_tokens \+ rollout.max_total_tokens = 76, the model has 64 positions"
    ):
        train(longer, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    hopeless = tiny_run(tmp_path, accum={"groups_per_update": 400, "max_rounds": 2})
    with pytest.raises(
        UserError, match=r"update 1: after 2 rounds of 4 prompts only .* of 400 groups have mixed rewards"
    ):
        train(hopeless, tmp_path / "out")
    with checkpoint.locked(tmp_path / "out" / "checkpoints"), pytest.raises(UserError, match="another process trains"):
        train(run, tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        train(run, tmp_path / "file" / "out")


@pytest.mark.parametrize("arm", ["fr3e", "grpo_pp"])
@pytest.mark.parametrize("right", [True, False])
def test_problems_that_teach_nothing_end_after_the_rounds_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arm: str, right: bool
) -> None:
    """Every prompt is solved always or never, round after round: one line that counts them, and no update."""
    monkeypatch.setitem(tiny_run_module.TABLE, "<|im_start|>", {"\\boxed": 12.0})
    monkeypatch.setitem(tiny_run_module.TABLE, "{", {"0": 12.0})
    run = tiny_run(tmp_path, arm, accum={"max_rounds": 25})
    write_problems(tmp_path / "data" / "train.parquet", "t", 30, golds="0" if right else "1")
    share = r"\d+ all right, 0 all wrong" if right else r"0 all right, \d+ all wrong"
    with pytest.raises(UserError, match=rf"^update 1: after 25 rounds of 4 prompts only 0 of 4 groups .* \({share}"):
        train(run, tmp_path / "out")
    assert [row["update"] for row in rows(tmp_path / "out")] == [0]
