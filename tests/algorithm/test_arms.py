"""Every arm: loads in every scenario, asks a question, and changes what its name says and nothing else."""

from pathlib import Path

import pytest

from fr3e.config import load_scenario, resolve_run
from fr3e.config.load import training
from fr3e.files import read_yaml

ROOT = Path(__file__).resolve().parents[2]
ARMS = ROOT / "config" / "arms"
NAMES = sorted(path.stem for path in ARMS.glob("*.yaml"))
SCENARIOS = ["demo", "demo_scarce", "paper"]
REQUIRED = [
    "grpo",
    "grpo_pp",
    "grpo_pp_n4",
    "grpo_pp_token_matched",
    "fr3e",
    "fr3e_per_prompt_budget",
    "random_anchors",
    "uniform_anchors",
    "surprisal_anchors",
    "low_entropy_anchors",
    "percentile_anchors",
    "no_alpha",
    "shuffled_alpha",
    "amplify_only",
    "brake_only",
    "sharpened",
    "as_released",
    "vineppo",
    "entropy_tokens_80_20",
    "k1",
    "k2",
    "k4",
    "k8",
    "m4",
    "m8",
    "m16",
]


@pytest.fixture(scope="module", params=SCENARIOS)
def scenario(request):
    return load_scenario(ROOT / "config" / f"{request.param}.yaml")


def test_none_is_missing() -> None:
    assert set(REQUIRED) <= set(NAMES)


def test_every_arm_resolves_for_every_model(scenario) -> None:
    for arm in NAMES:
        for model in scenario.models:
            resolve_run(scenario, model, arm, 0, ARMS)


@pytest.mark.parametrize("arm", NAMES)
def test_every_arm_asks_one_question(arm: str) -> None:
    content = read_yaml(ARMS / f"{arm}.yaml")
    assert set(content) <= {"question", "subject", "extends", "train"}
    assert content["question"].endswith("?")
    assert "\n" not in content["question"]


# What an arm may differ in from the arm it extends, after all overrides of the scenario.
ONE_SWITCH = {
    "random_anchors": "fr3e.anchor_score",
    "uniform_anchors": "fr3e.anchor_score",
    "surprisal_anchors": "fr3e.anchor_score",
    "low_entropy_anchors": "fr3e.anchor_score",
    "percentile_anchors": "fr3e.anchor_score",
    "anchor_in_prefix": "fr3e.anchor_in_prefix",
    "no_alpha": "fr3e.alpha_mode",
    "shuffled_alpha": "fr3e.alpha_mode",
    "amplify_only": "fr3e.alpha_mode",
    "brake_only": "fr3e.alpha_mode",
    "sharpened": "fr3e.sharpen_power",
    "std_norm": "adv.std_norm",
    "entropy_tokens_80_20": "loss.entropy_token_fraction",
    "k1": "fr3e.num_anchors",
    "k2": "fr3e.num_anchors",
    "k8": "fr3e.num_anchors",
}


def flat(section: dict, at: str = "") -> dict:
    """Nested settings as {"fr3e.num_anchors": 4}."""
    result = {}
    for key, value in section.items():
        result |= flat(value, f"{at}{key}.") if isinstance(value, dict) else {at + key: value}
    return result


@pytest.mark.parametrize("arm", ONE_SWITCH)
def test_a_control_differs_in_its_switch_alone(scenario, arm: str) -> None:
    model = next(iter(scenario.models))
    base = read_yaml(ARMS / f"{arm}.yaml")["extends"]
    ours, other = (flat(training(scenario, name, model, ARMS).model_dump()) for name in (arm, base))
    assert {key for key in ours if ours[key] != other[key]} == {ONE_SWITCH[arm]}


def test_sizes_of_the_sweeps(scenario) -> None:
    model = next(iter(scenario.models))
    for arm in ("k1", "k2", "k4", "k8"):
        assert training(scenario, arm, model, ARMS).fr3e.num_anchors == int(arm[1:])
    for arm in ("m4", "m8", "m16"):
        assert training(scenario, arm, model, ARMS).fr3e.rollouts_per_state == int(arm[1:])


@pytest.mark.parametrize("sweep", ["k1", "k8", "m4", "m16"])
def test_arms_with_fr3es_prompts_differ_from_their_sweep_in_the_groups_alone(sweep: str) -> None:
    demo = load_scenario(ROOT / "config" / "demo.yaml")
    ours, other = (flat(training(demo, arm, "toy", ARMS).model_dump()) for arm in (f"{sweep}_same_prompts", sweep))
    assert {key for key in ours if ours[key] != other[key]} == {"accum.groups_per_update"}


def test_fr3e_and_the_baseline_train_on_equally_many_rows(scenario) -> None:
    rows = set()
    for arm in ("fr3e", "grpo_pp"):
        settings = training(scenario, arm, next(iter(scenario.models)), ARMS)
        rows.add(settings.accum.groups_per_update * settings.fr3e.rollouts_per_state)
    assert len(rows) == 1


def test_as_released_has_every_choice_of_the_released_code() -> None:
    settings = training(load_scenario(ROOT / "config" / "paper.yaml"), "as_released", "qwen2.5-math-7b", ARMS)
    fr3e, loss = settings.fr3e, settings.loss
    assert (fr3e.first_n, fr3e.first_filter, fr3e.base_select) == (4, "none", "correct_and_wrong")
    assert (fr3e.anchor_score, fr3e.num_anchors, fr3e.exclude_answer_span) == ("surprisal", 4, False)
    assert (fr3e.root_alpha, fr3e.prev_value, fr3e.sharpen_power) == ("one_minus_v", "surviving", 1.5)
    assert fr3e.released_row_permutation > 1
    assert (fr3e.rollouts_per_state, fr3e.budget, settings.reward.scope) == (16, "per_state", "continuation")
    assert (loss.clip_low, loss.clip_high, loss.dual_clip) == (0.2, 0.3, 3.0)
    assert (settings.optim.minibatches, settings.adv.std_norm) == (1, False)
