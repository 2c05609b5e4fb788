"""Rendering our configuration for verl: pure, so it needs no verl. The whole of it is resolved in test_render_verl.py."""

from pathlib import Path
from typing import Any

import pytest

from fr3e.config import load_scenario, resolve_run
from fr3e.config.scenario import RunConfig
from fr3e.engine.verl.config import settings
from fr3e.engine.verl.memory import QWEN25, memory_per_gpu, parameters
from fr3e.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
PAPER = load_scenario(ROOT / "config" / "paper.yaml")
RUNS = [(model, arm) for model in PAPER.models for arm in PAPER.methods]


def paper_run(model: str, arm: str, **verl: Any) -> RunConfig:
    run = resolve_run(PAPER, model, arm, 0, arms=ROOT / "config" / "arms")
    training = run.training.model_copy(update={"verl": run.training.verl.model_copy(update=verl)})
    return run.model_copy(update={"training": training})


@pytest.mark.parametrize(("model", "arm"), RUNS)
def test_every_run_of_table_1_renders_with_its_own_numbers(model: str, arm: str) -> None:
    run = paper_run(model, arm)
    tree = settings(run, Path("out"))
    rollout, actor = tree["actor_rollout_ref"]["rollout"], tree["actor_rollout_ref"]["actor"]
    assert rollout["max_model_len"] == run.training.rollout.max_prompt_tokens + run.training.rollout.max_total_tokens
    assert rollout["max_model_len"] <= run.model.max_positions
    assert actor["ppo_max_token_len_per_gpu"] >= rollout["max_model_len"]
    assert rollout["log_prob_max_token_len_per_gpu"] == actor["ppo_max_token_len_per_gpu"]
    assert (actor["clip_ratio_low"], actor["clip_ratio_high"]) == (0.22, 0.28)
    assert actor["optim"]["lr"] == 1e-6 and actor["strategy"] == "fsdp2"
    assert tree["actor_rollout_ref"]["model"]["use_remove_padding"] is True
    assert (rollout["top_p"], rollout["top_k"], rollout["temperature"]) == (1.0, -1, 1.0)
    assert tree["trainer"]["nnodes"] == (4 if "32b" in model else 1) and tree["trainer"]["n_gpus_per_node"] == 8


def test_one_mathematics_model_fits_exactly_its_4096_positions() -> None:
    assert (
        settings(paper_run("qwen2.5-math-7b", "fr3e"), Path("o"))["actor_rollout_ref"]["rollout"]["max_model_len"]
        == 4096
    )


def test_base_models_are_pinned_to_a_commit() -> None:
    for model in PAPER.models.values():
        assert len(model.base.revision) == 40 and set(model.base.revision) <= set("0123456789abcdef")


def test_a_micro_batch_smaller_than_the_longest_row_is_refused() -> None:
    with pytest.raises(UserError, match=r"max_tokens_per_gpu is 16384.*17408"):
        settings(paper_run("qwen2.5-7b", "fr3e", max_tokens_per_gpu=16384), Path("out"))


def test_approximate_entropies_are_refused_away_from_temperature_1() -> None:
    run = paper_run("qwen2.5-7b", "fr3e", entropy="topk")
    warm = run.training.model_copy(update={"rollout": run.training.rollout.model_copy(update={"temperature": 0.8})})
    with pytest.raises(UserError, match=r"temperature is 0\.8"):
        settings(run.model_copy(update={"training": warm}), Path("out"))


def test_exact_entropies_load_the_probe_and_approximate_ones_do_not() -> None:
    def engine(entropy: str) -> dict[str, Any]:
        run = paper_run("qwen2.5-7b", "fr3e", entropy=entropy)
        return settings(run, Path("out"))["actor_rollout_ref"]["rollout"]["engine_kwargs"]["vllm"]

    assert engine("exact")["logits_processors"] == ["fr3e.engine.verl.entropy_probe:EntropyProbe"]
    assert "logits_processors" not in engine("topk") and engine("topk")["max_logprobs"] == 20


def test_bfloat16_on_a_cpu_is_refused() -> None:
    with pytest.raises(UserError, match=r"needs train\.verl\.dtype float32"):
        settings(paper_run("qwen2.5-7b", "fr3e", device="cpu"), Path("out"))


@pytest.mark.parametrize(
    ("device", "dtype", "packed", "attention"),
    [
        ("cuda", "bfloat16", True, {}),
        ("cuda", "float32", False, {"attn_implementation": "sdpa"}),
        ("cpu", "float32", False, {"attn_implementation": "sdpa"}),
    ],
)
def test_packing_and_flash_attention_are_for_16_bit_types(
    device: str, dtype: str, packed: bool, attention: dict[str, str]
) -> None:
    tree = settings(paper_run("qwen2.5-7b", "fr3e", device=device, dtype=dtype), Path("out"))
    model, rollout = tree["actor_rollout_ref"]["model"], tree["actor_rollout_ref"]["rollout"]
    assert model["use_remove_padding"] is packed and model["override_config"] == attention
    assert rollout["dtype"] == tree["actor_rollout_ref"]["actor"]["fsdp_config"]["dtype"] == dtype


@pytest.mark.parametrize(
    ("name", "count"),
    # Published: 7.61 and 32.5 billion (Qwen2.5 technical report, arXiv 2412.15115), here counted from config.json.
    [("Qwen/Qwen2.5-7B", 7_615_616_512), ("Qwen/Qwen2.5-Math-7B", 7_615_616_512), ("Qwen/Qwen2.5-32B", 32_763_876_352)],
)
def test_parameters_from_the_numbers_of_config_json(name: str, count: int) -> None:
    assert parameters(QWEN25[name]) == count


def test_memory_of_a_7b_run_by_hand() -> None:
    # 7,615,616,512 parameters over 8 GPUs in float32: 7615616512 * 4 / 8 / 2^30 = 3.55 GiB; optimiser twice that.
    # vLLM: 0.6 * 80 = 48 GiB, of which bfloat16 weights take 7615616512 * 2 / 2^30 = 14.19; 33.81 are left.
    # A token's keys and values: 2 * 28 layers * 4 heads * 128 * 2 bytes = 57,344 bytes.
    memory = memory_per_gpu(paper_run("qwen2.5-math-7b", "fr3e"), QWEN25["Qwen/Qwen2.5-Math-7B"])
    assert memory["weights"] == memory["gradients"] == 3.55 and memory["optimiser"] == 7.09
    assert memory["vllm_weights"] == 14.19 and memory["kv_cache"] == 33.81
    assert memory["kv_tokens"] == pytest.approx(33.8145 * 2**30 / 57_344, rel=1e-3)
    assert memory["peak_generation"] == pytest.approx(3.55 + 7.09 + 48.0, abs=0.02)


@pytest.mark.parametrize(("model", "arm"), RUNS)
def test_every_run_of_table_1_fits_80_gb(model: str, arm: str) -> None:
    base = PAPER.models[model].base
    assert memory_per_gpu(paper_run(model, arm), QWEN25[base.id])["fits"]


def test_32b_fits_one_node_of_141_gb_and_none_of_80_with_or_without_offload() -> None:
    # 32.76e9 * 16 bytes / 8 GPUs = 61 GiB of state before a single activation; offload frees them in generation only.
    shape = QWEN25["Qwen/Qwen2.5-32B"]
    for offload in (False, True):
        run = paper_run("qwen2.5-32b", "fr3e", nodes=1, offload=offload)
        memory = memory_per_gpu(run, shape)
        assert memory["peak_training"] == pytest.approx(112.26) and not memory["fits"]
        assert memory["peak_generation"] == pytest.approx(48.0 if offload else 93.77)
        assert memory_per_gpu(run, shape, gpu_gib=141.0)["fits"]
