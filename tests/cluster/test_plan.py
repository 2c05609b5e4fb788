"""The estimate against arithmetic done by hand."""

from pathlib import Path

import pytest

from fr3e.cluster.plan import expected_update, seconds_per_update, table
from fr3e.config import load_scenario, resolve_run
from fr3e.config.scenario import PlanningConfig, Speed
from fr3e.config.training import TrainingConfig
from fr3e.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
PLANNING = PlanningConfig(
    source="by hand",
    response_tokens=100,
    mixed_share=0.5,
    anchor_position=0.4,
    overhead_seconds=2,
    speed={"toy": Speed(generate=1000, train=500)},
)


def settings(**sections: dict[str, object]) -> TrainingConfig:
    return TrainingConfig.model_validate({"accum": {"groups_per_update": 10}, "optim": {"minibatches": 1}} | sections)


def test_fr3e() -> None:
    # K = 4, M = 16, root: one continuation of each state has 100 + 4 * 60 = 340 tokens; 5 states, half of them mixed:
    # 10 groups need 4 prompts; a prompt generates 4 * 100 + 16 * 340 = 5840; trained are 10 groups * 16 * 340 / 5.
    update = expected_update(settings(), PLANNING)
    assert update.prompts == pytest.approx(4)
    assert update.generated == pytest.approx(4 * 5840)
    assert update.trained == pytest.approx(10880)


def test_grpo_pp() -> None:
    # One state, no first return: 10 groups need 20 prompts of 16 * 100 tokens; trained are 10 * 16 * 100.
    update = expected_update(settings(fr3e={"first_n": 0, "num_anchors": 0}), PLANNING)
    assert (update.prompts, update.generated, update.trained) == pytest.approx((20, 32000, 16000))


def test_budgets() -> None:
    # per_prompt: 16 continuations over 5 states, 3.2 each. token_matched: 1600 tokens over 340 per round.
    per_prompt = expected_update(settings(fr3e={"budget": "per_prompt"}), PLANNING)
    assert per_prompt.generated == pytest.approx(4 * (400 + 3.2 * 340))
    matched = expected_update(settings(fr3e={"budget": "token_matched"}), PLANNING)
    assert matched.generated == pytest.approx(4 * (400 + 1600))


def test_seconds_share_the_probe() -> None:
    scenario = load_scenario(ROOT / "config/demo.yaml")
    run = resolve_run(scenario, next(iter(scenario.models)), "grpo_pp", 0, ROOT / "config/arms")
    update, probe = expected_update(run.training, PLANNING), run.training.probe
    probed = (len(probe.benchmarks) + 1) * probe.problems * probe.samples * 100 / probe.every
    expected = (update.generated + probed) / 1000 + update.trained / 500 + 2
    assert seconds_per_update(run, PLANNING, PLANNING.speed["toy"]) == pytest.approx(expected)


def test_a_scenario_without_planning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    scenario = load_scenario("config/demo.yaml").model_copy(update={"planning": None})
    with pytest.raises(UserError, match="no `planning` section"):
        table(scenario)


def test_paper_scenario_is_estimated_for_all_six_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    frame = table(load_scenario("config/paper.yaml"))
    assert len(frame) == 6
    assert set(frame["GPUs"]) == {8, 32}
    for column in ("GiB train", "GiB generate"):
        assert (frame[column].astype(float) < 80).all(), "fits the 80 GB cards the defaults are for"
