"""Planning inputs out of a run's first updates, against arithmetic done by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from fr3e.cluster.plan import plan, seconds_per_update
from fr3e.cluster.probe import measured, probed
from fr3e.config import load_scenario, resolve_run
from fr3e.config.scenario import RunConfig
from fr3e.errors import UserError

ROOT = Path(__file__).resolve().parents[2]


def row(update: int, **values: float) -> dict[str, Any]:
    return {"update": update} | {name.replace("__", "/"): value for name, value in values.items()}


ROWS = [
    row(0, seconds=10.0),
    # 20 prompts of 4 first rollouts, 40 tokens each; 300 continuations of 25 tokens; 30 groups trained, 6 kept for later.
    row(
        1,
        prompts__sampled=20, rollouts__first=80, rollouts__explore=300, groups__trained=30, groups__carried_in=0,
        groups__carried_out=6, groups__dropped=0, tokens__generated_first=3200, tokens__generated_explore=7500,
        tokens__trained=6000, seconds__generate=2.0, seconds__update=1.5, seconds=14.0, anchor__position=0.5,
    ),
    # A round of 4 prompts adds to the 6 kept; 10 are trained, none is left. The probe takes 3 s of it.
    row(
        2,
        prompts__sampled=4, rollouts__first=16, rollouts__explore=60, groups__trained=10, groups__carried_in=6,
        groups__carried_out=0, groups__dropped=2, tokens__generated_first=640, tokens__generated_explore=1660,
        tokens__trained=2000, seconds__generate=0.5, seconds__update=0.5, seconds__probe=3.0, seconds=19.0,
        anchor__position=0.3,
    ),
]  # fmt: skip


@pytest.fixture(autouse=True)
def in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def the_run(arm: str) -> RunConfig:
    return resolve_run(load_scenario("config/demo.yaml"), "toy", arm, 0)


def test_inputs_of_fr3e() -> None:
    planning = measured(ROWS, the_run("fr3e"))
    assert planning.response_tokens == pytest.approx(3840 / 96)
    assert planning.anchor_position == pytest.approx(0.4)
    # Passed: trained 30 + 10, dropped 2, kept at the end 0 less at the start 0, of 24 prompts with 4 states.
    assert planning.mixed_share == planning.mixed_share_of["fr3e"] == pytest.approx(42 / 96)
    assert planning.speed["toy"].generate == pytest.approx(13000 / 2.5)
    assert planning.speed["toy"].train == pytest.approx(8000 / 2)
    # 9 s after row 0: generation 2.5, updates 2, probe 3; 1.5 s remain for 2 updates.
    assert planning.overhead_seconds == pytest.approx(0.75)


def test_a_probe_on_eight_gpus_is_estimated_at_what_it_took() -> None:
    """Updates of 1000 s: 700 s generate, 250 s train, 50 s of everything else; the estimate is made of the same parts."""
    run = resolve_run(load_scenario("config/paper.yaml"), "qwen2.5-7b", "fr3e", 0)
    assert run.training.verl.nodes * run.training.verl.gpus_per_node == 8
    fr3e, groups = run.training.fr3e, run.training.accum.groups_per_update
    states = int(fr3e.include_root) + fr3e.num_anchors
    length, position, share = 1000, 0.4, 0.5
    prompts = groups / (states * share)
    per_round = length * (int(fr3e.include_root) + fr3e.num_anchors * (1 - position))
    rows = [
        row(
            update,
            prompts__sampled=prompts, rollouts__first=prompts * fr3e.first_n,
            rollouts__explore=prompts * states * fr3e.rollouts_per_state, groups__trained=groups, groups__carried_in=0,
            groups__carried_out=0, groups__dropped=0, tokens__generated_first=prompts * fr3e.first_n * length,
            tokens__generated_explore=prompts * fr3e.rollouts_per_state * per_round,
            tokens__trained=groups * fr3e.rollouts_per_state * per_round / states,
            seconds__generate=700.0, seconds__update=250.0, seconds=1000.0 * update, anchor__position=position,
        )
        for update in (1, 2)
    ]  # fmt: skip
    planning = measured(rows, run)
    # The run's own probes come on top: their tokens at the speed that was measured.
    probe = run.training.probe
    probes = (len(probe.benchmarks) + 1) * probe.problems * probe.samples * length / probe.every
    of_probes = 700 * probes / (rows[0]["tokens/generated_first"] + rows[0]["tokens/generated_explore"])
    assert of_probes < 10
    assert seconds_per_update(run, planning, planning.speed["qwen2.5-7b"]) == pytest.approx(1000 + of_probes)


def test_without_first_return_lengths_come_from_the_rollouts() -> None:
    rows = [
        row(
            1,
            prompts__sampled=16, rollouts__first=0, rollouts__explore=256, groups__trained=12, groups__carried_in=0,
            groups__carried_out=0, groups__dropped=0, tokens__generated_first=0, tokens__generated_explore=8192,
            tokens__trained=6144, seconds__generate=1.0, seconds__update=1.0, seconds=2.5,
        )
    ]  # fmt: skip
    planning = measured(rows, the_run("grpo_pp"))
    assert (planning.response_tokens, planning.mixed_share) == pytest.approx((32.0, 12 / 16))
    assert planning.anchor_position == 0 and planning.overhead_seconds == pytest.approx(0.5)


@pytest.mark.parametrize("rows", [[], ROWS[:1]])
def test_rows_without_an_update_are_refused(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(UserError, match="toy-fr3e-s0: its first 0 updates"):
        measured(rows, the_run("fr3e"))


def test_probes_take_the_place_of_what_is_stated(tmp_path: Path) -> None:
    for name, speed in (("toy-fr3e-s0", 1.0), ("toy-grpo_pp-s1", 3.0)):
        (tmp_path / name).mkdir()
        slower = [ROWS[0], ROWS[1] | {"seconds/generate": 2.0 * speed, "seconds": 14 + 2 * (speed - 1)}, ROWS[2]]
        (tmp_path / name / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in slower))
    scenario = load_scenario("config/demo.yaml")
    planning = probed(scenario, [tmp_path / "toy-fr3e-s0", tmp_path / "toy-grpo_pp-s1"], updates=1)
    assert planning.speed["toy"].generate == pytest.approx((10700 / 2 + 10700 / 6) / 2)
    assert set(planning.mixed_share_of) == {"fr3e", "grpo_pp"}
    # GRPO++ has one state: 36 groups of 20 prompts would be more than all, which a share cannot be.
    assert planning.mixed_share_of == pytest.approx({"fr3e": 36 / 80, "grpo_pp": 1.0})
    text = plan(Path("config/demo.yaml"), probe=[tmp_path / "toy-fr3e-s0"], probe_updates=1)
    assert "inputs: measured over the first 1 updates of toy-fr3e-s0" in text


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    scenario = load_scenario("config/demo.yaml")
    with pytest.raises(UserError, match="is no run of this scenario; its runs: toy-grpo_pp-s0"):
        probed(scenario, [tmp_path], 5)
    with pytest.raises(UserError, match=r"no metrics\.jsonl"):
        probed(scenario, [Path("results/nowhere/toy-fr3e-s0")], 5)
