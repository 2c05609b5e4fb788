"""The whole verl configuration, resolved over verl's own defaults, for every run of Table 1."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verl")

from omegaconf import OmegaConf, open_dict

from fr3e.config import load_scenario, resolve_run
from fr3e.config.scenario import RunConfig
from fr3e.engine.verl import config as rendering
from fr3e.engine.verl.config import render
from fr3e.errors import UserError

pytestmark = pytest.mark.verl
ROOT = Path(__file__).resolve().parents[3]
PAPER = load_scenario(ROOT / "config" / "paper.yaml")
RUNS = [(model, arm) for model in PAPER.models for arm in PAPER.methods]


@pytest.mark.parametrize(("model", "arm"), RUNS)
@pytest.mark.filterwarnings("ignore:Disabled critic")
def test_every_run_of_table_1_resolves_and_passes_verls_own_checks(model: str, arm: str, tmp_path: Path) -> None:
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config

    run = resolve_run(PAPER, model, arm, 0, arms=ROOT / "config" / "arms")
    config = render(run, tmp_path)
    assert not need_critic(config) and not need_reference_policy(config)
    validate_config(config=config, use_reference_policy=False, use_critic=False)
    target = tmp_path / "verl.yaml"
    target.write_text(OmegaConf.to_yaml(config, resolve=True))
    again = OmegaConf.load(target)
    assert "${" not in target.read_text(), "everything is resolved"
    assert RunConfig.model_validate(OmegaConf.to_container(again.fr3e.run)) == run
    gpus = again.trainer.nnodes * again.trainer.n_gpus_per_node
    assert gpus == (32 if "32b" in model else 8)
    assert gpus % again.actor_rollout_ref.rollout.tensor_model_parallel_size == 0


def test_a_kl_term_brings_a_reference_model() -> None:
    from verl.trainer.ppo.utils import need_reference_policy

    run = resolve_run(PAPER, "qwen2.5-7b", "fr3e", 0, arms=ROOT / "config" / "arms")
    loss = run.training.loss.model_copy(update={"kl": 0.01})
    changed = run.model_copy(update={"training": run.training.model_copy(update={"loss": loss})})
    assert need_reference_policy(render(changed, Path("out")))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_verls_own_model_settings_take_our_attention(dtype: str, tmp_path: Path) -> None:
    """As verl's workers read it: HFModelConfig hands attn_implementation on to transformers, flash-attn without one."""
    import json

    from transformers import PreTrainedConfig
    from verl.utils.config import omega_conf_to_dataclass

    shape = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 64, "num_hidden_layers": 1}
    (tmp_path / "config.json").write_text(json.dumps(shape))
    run = resolve_run(PAPER, "qwen2.5-7b", "fr3e", 0, arms=ROOT / "config" / "arms")
    verl = run.training.verl.model_copy(update={"dtype": dtype})
    run = run.model_copy(update={"base": str(tmp_path), "training": run.training.model_copy(update={"verl": verl})})
    model = render(run, tmp_path).actor_rollout_ref.model
    with open_dict(model):
        model.load_tokenizer = False
    found = omega_conf_to_dataclass(model)
    assert isinstance(found.hf_config, PreTrainedConfig)
    expected = {"bfloat16": "flash_attention_2", "float32": "sdpa"}[dtype]
    assert found.hf_config._attn_implementation == expected
    assert found.use_remove_padding is (dtype == "bfloat16")


def test_a_setting_that_verl_no_longer_has_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    run = resolve_run(PAPER, "qwen2.5-7b", "fr3e", 0, arms=ROOT / "config" / "arms")
    monkeypatch.setattr(rendering, "_reward", lambda training: {"number_of_workers": 1})
    with pytest.raises(UserError, match=r"verl has no setting reward\.number_of_workers"):
        render(run, Path("out"))


def test_verl_starts_ray_with_our_variables_over_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import ray
    from verl.trainer.main_ppo import run_ppo

    from fr3e.engine.verl.environment import ray_init

    class Started(Exception):
        pass

    def init(**arguments: Any) -> None:
        raise Started(arguments)

    monkeypatch.delenv("VLLM_LOGGING_LEVEL", raising=False)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    run = resolve_run(PAPER, "qwen2.5-32b", "fr3e", 0, arms=ROOT / "config" / "arms")
    for scratch in (None, tmp_path):
        target = tmp_path / "verl.yaml"
        target.write_text(OmegaConf.to_yaml(render(run, tmp_path, {}, ray_init(run, "mark", scratch)), resolve=True))
        with pytest.raises(Started) as caught:
            run_ppo(OmegaConf.load(target), task_runner_class=None)
        (arguments,) = caught.value.args
        variables = arguments["runtime_env"]["env_vars"]
        if scratch:
            assert arguments["_temp_dir"] == str(scratch) and arguments["num_cpus"] == 96
        else:
            assert variables["VLLM_USE_V2_MODEL_RUNNER"] == "0" and variables["FR3E_ATTEMPT"] == "mark"
            assert variables["VLLM_LOGGING_LEVEL"] == "WARNING", "verl's own default is WARN"
            assert "num_cpus" not in arguments
