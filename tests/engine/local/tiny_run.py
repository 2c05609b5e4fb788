"""A run small enough to train in a second: a Qwen2 whose weights are set by hand to write a few letters and a boxed digit."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from fr3e.config.load import merge
from fr3e.config.scenario import RunConfig
from fr3e.engine.local.toy import build_generation_config, build_tokenizer

POSITIONS = 64
NEVER = -10.0
# Logits of the token that follows each token: letters for a while, then the box with 0, 1 or 2, then the end.
LETTERS = {"a": 0.5, "b": 1.0, "\\n": 0.0, "\\boxed": 1.0}
TABLE = {
    "<|im_start|>": {"a": 1.5, "b": 1.0, "\\boxed": 0.5},
    "a": LETTERS,
    "b": LETTERS | {"a": 1.2},
    "\\n": LETTERS,
    "\\boxed": {"{": 8.0},
    "{": {"0": 1.5, "1": 1.0, "2": 0.5},
    **{digit: {"}": 8.0} for digit in "012"},
    "}": {"<|im_end|>": 8.0},
}


def make_base(folder: Path, seed: int = 0) -> None:
    """The hand-made model with its tokenizer. Attention and MLP add a little noise, so that every weight has a gradient."""
    tokenizer = build_tokenizer(POSITIONS)
    torch.manual_seed(seed)
    start, end, text = (tokenizer.convert_tokens_to_ids(t) for t in ("<|im_start|>", "<|im_end|>", "<|endoftext|>"))
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=False,
        initializer_range=0.05,
        eos_token_id=end,
        pad_token_id=text,
        bos_token_id=None,
        dtype="float32",
    )
    model = Qwen2ForCausalLM(config)
    ids = {t: tokenizer.encode("\n" if t == "\\n" else t, add_special_tokens=False)[0] for t in TABLE}
    assert ids["<|im_start|>"] == start
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(0.1)
        model.lm_head.weight.mul_(0.1)
        for axis, (token, following) in enumerate(TABLE.items()):
            model.model.embed_tokens.weight[ids[token], axis] = 1.0
            logits = torch.full((len(tokenizer),), NEVER)
            for name, logit in following.items():
                logits[ids.get(name, end)] = logit
            model.lm_head.weight[:, axis] = logits / 32**0.5  # RMSNorm scales a one-hot vector to sqrt(hidden)
    model.generation_config = build_generation_config(tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_problems(path: Path, prefix: str, count: int, golds: str = "0012") -> None:
    """`count` problems whose answers go through `golds`."""
    rows = [
        {"id": f"{prefix}-{i:03d}", "question": f"{i}+{prefix}?", "gold": golds[i % len(golds)]} for i in range(count)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def tiny_run(folder: Path, arm: str = "fr3e", **training: Any) -> RunConfig:
    """A run with base model and data in `folder`; `training` changes settings, section by section."""
    base, data = folder / "base", folder / "data"
    if not base.exists():
        make_base(base)
        write_problems(data / "train.parquet", "t", 30)
        write_problems(data / "benchmarks" / "held.parquet", "h", 6)
    fr3e: dict[str, Any] = {"first_n": 2, "num_anchors": 2, "rollouts_per_state": 4}
    if arm == "grpo_pp":
        fr3e = {"first_n": 0, "num_anchors": 0, "rollouts_per_state": 5}
    settings = {
        "rollout": {"max_prompt_tokens": 16, "max_total_tokens": 24, "prompts_per_round": 4, "batch_rows": 32},
        "fr3e": fr3e,
        "accum": {"groups_per_update": 4},
        "optim": {"lr": 0.001, "weight_decay": 0.01, "minibatches": 2, "updates": 6, "micro_batch_tokens": 120},
        "probe": {"every": 3, "problems": 4, "samples": 2, "benchmarks": ["held"]},
        "checkpoint": {"every": 2, "keep": 2},
    }
    return RunConfig.model_validate(
        {
            "run": f"toy-{arm}-s0",
            "scenario": "test",
            "arm": arm,
            "model_name": "toy",
            "model": {"base": {"kind": "synthetic"}, "max_positions": POSITIONS, "template": "demo"},
            "seed": 0,
            "training": merge(settings, training),
            "base": str(base),
            "data": str(data / "train.parquet"),
            "benchmarks": {"held": str(data / "benchmarks" / "held.parquet")},
        }
    )
