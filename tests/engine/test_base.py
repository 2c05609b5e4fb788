"""Base models: the demo's own (made here, tiny), and folders of hub models with everything that can be wrong with them."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from fr3e.config import load_scenario
from fr3e.config.scenario import RunModel, SyntheticModel
from fr3e.data.synthetic import BenchmarkSource, benchmark_rows
from fr3e.engine.base import make_base
from fr3e.engine.local import toy, warm_start
from fr3e.errors import UserError
from fr3e.evaluation.prompts import render, render_text, stop_ids
from fr3e.files import read_json, sha256

ROOT = Path(__file__).resolve().parents[2]
TINY = {
    "kind": "synthetic",
    "hidden": 64,
    "layers": 2,
    "intermediate": 64,
    "steps": 12,
    "batch": 8,
    "threads": 1,
}
TOKENIZER = toy.build_tokenizer(1024)


def plan(tmp_path: Path, base: dict[str, Any], **more: Any) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump({"base": base, "max_positions": 1024, "template": "demo"} | more))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny base model."""
    folder = tmp_path_factory.mktemp("made")
    make_base(plan(folder, TINY), folder / "toy")
    return folder / "toy"


# The tokenizer


def test_digits_operators_and_the_box_are_one_token_each():
    ids = TOKENIZER("4-4*3=2\n\\boxed{2}" + toy.END, add_special_tokens=False).input_ids
    pieces = [TOKENIZER.decode([index]) for index in ids]
    assert pieces == ["4", "-", "4", "*", "3", "=", "2", "\n", "\\boxed", "{", "2", "}", "<|im_end|>"]


@given(st.text(max_size=60))
def test_any_text_survives(text):
    ids = TOKENIZER(text, add_special_tokens=False).input_ids
    assert TOKENIZER.decode(ids) == TOKENIZER.backend_tokenizer.normalizer.normalize_str(text)


def test_saved_tokenizer_encodes_alike(made):
    loaded = AutoTokenizer.from_pretrained(made)
    assert type(loaded).__name__ == "Qwen2Tokenizer" and len(loaded) == len(TOKENIZER)
    for row in benchmark_rows("gsm8k_50", BenchmarkSource(sample_of="gsm8k_50")):
        text = render_text("demo", row["question"]) + row["gold_source"] + toy.END
        assert loaded(text).input_ids == TOKENIZER(text).input_ids
    assert (loaded.eos_token, loaded.pad_token, loaded.bos_token) == ("<|im_end|>", "<|endoftext|>", None)


def test_chat_template_is_the_demo_prompt(made):
    loaded = AutoTokenizer.from_pretrained(made)
    rendered = loaded.apply_chat_template(
        [{"role": "user", "content": "4-4*3?"}], add_generation_prompt=True, tokenize=False
    )
    assert rendered == render_text("demo", "4-4*3?") == "<|im_start|>4-4*3?<|im_end|><|im_start|>"


def test_real_text_fits_the_positions():
    scenario = load_scenario(ROOT / "config" / "demo.yaml")
    for row in benchmark_rows("gsm8k_50", BenchmarkSource(sample_of="gsm8k_50")):
        length = len(render("demo", row["question"], TOKENIZER)[1])
        assert length + scenario.evaluation.max_tokens <= scenario.models["toy"].max_positions


# The model


def test_folder_is_a_whole_model(made):
    model, config = AutoModelForCausalLM.from_pretrained(made), read_json(made / "config.json")
    assert config["model_type"] == "qwen2" and config["max_position_embeddings"] == 1024
    assert model.dtype == torch.float32
    assert model.config.vocab_size == len(AutoTokenizer.from_pretrained(made)) == 264
    assert stop_ids(AutoTokenizer.from_pretrained(made), GenerationConfig.from_pretrained(made)) == sorted(
        TOKENIZER.convert_tokens_to_ids([toy.END, toy.END_OF_TEXT])
    )
    assert (made / "model.safetensors").stat().st_mode & 0o044 == 0o044  # readable by others of the group
    manifest = read_json(made / "manifest.json")
    assert set(manifest["files"]) == {path.name for path in made.iterdir()} - {"manifest.json"}
    assert all(sha256(made / name) == digest for name, digest in manifest["files"].items())
    assert manifest["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert manifest["source"]["steps"] == TINY["steps"]


def test_same_plan_same_weights_and_nothing_global_changes(made, tmp_path):
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    make_base(plan(tmp_path, TINY), tmp_path / "again")
    assert torch.get_num_threads() == threads and torch.equal(torch.get_rng_state(), state)
    first, second = read_json(made / "manifest.json"), read_json(tmp_path / "again" / "manifest.json")
    assert first == second
    make_base(plan(tmp_path, TINY | {"seed": 1}), tmp_path / "again")
    assert (
        read_json(tmp_path / "again" / "manifest.json")["files"]["model.safetensors"]
        != first["files"]["model.safetensors"]
    )


def test_demo_model_is_small_and_loadable_elsewhere():
    model = load_scenario(ROOT / "config" / "demo.yaml").models["toy"]
    assert isinstance(model.base, SyntheticModel)
    config = toy.build_config(model, model.base, TOKENIZER)
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(config)
    assert sum(parameter.numel() for parameter in network.parameters()) <= toy.MAX_PARAMETERS
    assert config.hidden_size // config.num_attention_heads in (32, 64)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 4}, "base.hidden 64 / base.heads 4: the head size must be 32 or 64"),
        ({"hidden": 96, "heads": 3, "kv_heads": 2}, "base.kv_heads 2: must divide base.heads 3"),
        ({"hidden": 512, "heads": 8, "layers": 9}, "at most 2000000"),
        ({"stepz": 3}, "did you mean 'steps'|base.synthetic.stepz"),
    ],
)
def test_sizes_that_cannot_run_are_refused(tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        make_base(plan(tmp_path, TINY | change), tmp_path / "toy")
    assert [path.name for path in tmp_path.iterdir() if path.name != "plan.yaml"] == []


# The warm start


def test_labels_cover_the_response_and_its_end():
    batch = warm_start.encode([("1+2?", "1+2=3\n\\boxed{3}"), ("1?", "\\boxed{1}")], "demo", TOKENIZER)
    # <start> 1 + 2 ? <end> <start> | 1 + 2 = 3 \n \boxed { 3 } <end>: 7 + 11 tokens; the second row 5 + 5, padded.
    assert batch.ids.shape == (2, 18)
    labelled = batch.labels != warm_start.IGNORED
    assert labelled.sum(1).tolist() == [11, 5]
    assert TOKENIZER.decode(batch.labels[0][labelled[0]]) == "1+2=3\n\\boxed{3}<|im_end|>"
    assert TOKENIZER.decode(batch.labels[1][labelled[1]]) == "\\boxed{1}<|im_end|>"
    assert torch.equal(batch.labels[labelled], batch.ids[labelled])
    assert (batch.ids[1, 10:] == TOKENIZER.pad_token_id).all()


def test_muon_direction_has_singular_values_near_one_and_the_same_vectors():
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randn(3, 24, 64, generator=generator)
    result = warm_start.orthogonalise(matrices)
    for matrix, direction in zip(matrices, result, strict=True):
        u, _, v = torch.linalg.svd(matrix, full_matrices=False)
        inside = u.mT @ direction @ v.mT  # diagonal: the same singular vectors
        assert torch.allclose(inside, torch.diag(inside.diag()), atol=1e-4)
        assert inside.diag().min() > 0.6 and inside.diag().max() < 1.25
    assert torch.allclose(warm_start.orthogonalise(matrices.mT), result.mT, atol=1e-5)
    assert torch.allclose(warm_start.orthogonalise(matrices[1:2])[0], result[1], atol=1e-5)


def test_schedule_rises_stays_and_falls():
    factors = [warm_start.schedule(step, 100) for step in range(100)]
    # Up over 3 steps: (step + 1) / 4; down over the last 40: (100 - step) / 40.
    assert factors[0] == 0.25 and factors[3] == factors[60] == 1.0
    assert factors[80] == 0.5 and factors[99] == 1 / 40


def test_curriculum_ends_with_the_demos_lengths():
    assert warm_start.lengths(0.0) == (1, 2)
    grown = [warm_start.lengths(step / 1000) for step in range(1000)]
    assert all(later[1] >= earlier[1] for earlier, later in itertools.pairwise(grown))
    train = load_scenario(ROOT / "config" / "demo.yaml").data.train
    assert grown[-1] == (train.min_ops, train.max_ops)


def test_batches_of_a_step_are_alike_in_length_and_complete():
    steps = list(warm_start.corpus(3, 20, 8))
    assert len(steps) == 20 and all(len(pairs) == 8 for pairs in steps)
    spread = [max(map(len, solutions)) - min(map(len, solutions)) for solutions in ([s for _, s in p] for p in steps)]
    everything = [len(solution) for pairs in steps for _, solution in pairs]
    assert sum(spread) / len(spread) < (max(everything) - min(everything)) / 3


def test_shares_of_a_batch_add_up_to_the_batch():
    base = SyntheticModel(hidden=64, layers=2, intermediate=64)
    torch.manual_seed(0)
    model = RunModel(base=base, max_positions=1024, template="demo")
    network = AutoModelForCausalLM.from_config(toy.build_config(model, base, TOKENIZER))
    parameters = list(network.parameters())
    pairs = next(warm_start.corpus(0, 100, 9))
    whole, *shares = (
        warm_start.gradients(network, warm_start.encode(share, "demo", TOKENIZER), parameters)
        for share in (pairs, pairs[::2], pairs[1::2])
    )
    assert whole[0] == pytest.approx(sum(loss for loss, _, _ in shares), rel=1e-5)
    assert whole[1] == sum(count for _, count, _ in shares)
    for expected, first, second in zip(whole[2], *(grads for _, _, grads in shares), strict=True):
        assert torch.allclose(expected, first + second, atol=1e-4 * expected.abs().max().item() + 1e-6)


def test_warm_start_learns():
    base = SyntheticModel(hidden=64, layers=2, intermediate=64, steps=60, batch=16, threads=1)
    model = RunModel(base=base, max_positions=1024, template="demo")
    torch.manual_seed(0)
    network = AutoModelForCausalLM.from_config(toy.build_config(model, base, TOKENIZER))
    losses = warm_start.train(network, TOKENIZER, base, "demo")
    assert losses[0] == pytest.approx(torch.log(torch.tensor(264.0)).item(), rel=0.05)  # uniform over the vocabulary
    assert sum(losses[-5:]) / 5 < 1.8


# Models of the hub


def hub(path: Path, **more: Any) -> dict[str, Any]:
    return {"kind": "hub", "id": "someone/model", "revision": "0" * 40, "path": str(path)} | more


def test_local_folder_is_linked_and_its_rope_overridden(made, tmp_path):
    before = (made / "config.json").read_bytes()
    override = {"max_position_embeddings": 4096, "rope_parameters": {"rope_type": "default", "rope_theta": 50000.0}}
    make_base(plan(tmp_path, hub(made), rope_override=override, max_positions=4096), tmp_path / "base")
    assert (made / "config.json").read_bytes() == before
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    assert model.config.max_position_embeddings == 4096
    assert model.config.rope_parameters["rope_theta"] == 50000.0
    manifest = read_json(tmp_path / "base" / "manifest.json")
    assert manifest["rope_override"]["before"]["max_position_embeddings"] == 1024
    assert manifest["rope_override"]["after"] == override
    assert manifest["files"]["model.safetensors"] == sha256(made / "model.safetensors")
    assert manifest["files"]["config.json"] == sha256(tmp_path / "base" / "config.json")


def damaged(made: Path, tmp_path: Path, fault: str) -> Path:
    folder = tmp_path / "source"
    shutil.copytree(made, folder)
    weights = folder / "model.safetensors"
    if fault == "cut":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif fault == "shard":
        names = {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    elif fault == "tokenizer":
        (folder / "tokenizer.json").unlink()
    elif fault == "config":
        (folder / "config.json").write_text('{"model_type": ')
    return folder


@pytest.mark.parametrize(
    ("fault", "more", "message"),
    [
        ("cut", {}, "model.safetensors is damaged or cut short"),
        ("shard", {}, "model-00002-of-00002.safetensors is missing"),
        ("tokenizer", {}, "tokenizer.json is missing"),
        ("config", {}, "config.json: not JSON"),
        ("", {"max_positions": 2048}, "max_positions 2048: someone/model was made for 1024"),
        (
            "",
            {"rope_override": {"rope_tetha": 1.0}},
            "rope_override.rope_tetha: not a rope setting; allowed: rope_theta",
        ),
    ],
)
def test_unfit_folders_are_refused(made, tmp_path, fault, more, message):
    path = plan(tmp_path, hub(damaged(made, tmp_path, fault)), **more)
    with pytest.raises(UserError, match=message):
        make_base(path, tmp_path / "base")
    assert not (tmp_path / "base").exists()


def run(path: Path, out: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fr3e", "base", "--plan", str(path), "--out", str(out)]
    return subprocess.run(
        command, capture_output=True, text=True, env=os.environ | environment, check=False, timeout=120
    )


def test_no_network_is_one_line_and_code_2(tmp_path):
    path = plan(tmp_path, {"kind": "hub", "id": "someone/model", "revision": "0" * 40})
    done = run(path, tmp_path / "base", HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path / "cache"))
    assert done.returncode == 2
    faults = [line for line in done.stderr.splitlines() if line.startswith("fr3e: ")]
    assert len(faults) == 1 and "Traceback" not in done.stderr
    assert faults[0].startswith(
        "fr3e: someone/model at 0000000000000000000000000000000000000000: the hub cannot be reached"
    )
    assert "base.path" in faults[0]
    assert not (tmp_path / "base").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_folder(made, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(UserError, match="cannot be written"):
        make_base(plan(tmp_path, hub(made)), closed / "base")


def test_a_file_in_the_way_of_the_folder(made, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="base: cannot be written"):
        make_base(plan(tmp_path, hub(made)), tmp_path / "file" / "base")
