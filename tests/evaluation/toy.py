"""A toy model, benchmark files and plans for tests of sampling and scoring."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
import yaml
from transformers import Qwen2ForCausalLM

from fr3e.config import load_scenario
from fr3e.config.scenario import SyntheticModel
from fr3e.engine.local.toy import build_config, build_generation_config, build_tokenizer

DEMO = Path(__file__).resolve().parents[2] / "config" / "demo.yaml"


def write_model(folder: Path, seed: int = 0) -> Path:
    """An untrained model of the demo's architecture with its tokenizer; larger weights make its distribution uneven."""
    model = load_scenario(DEMO).models["toy"]
    assert isinstance(model.base, SyntheticModel)
    tokenizer = build_tokenizer(model.max_positions)
    torch.manual_seed(seed)
    network = Qwen2ForCausalLM(build_config(model, model.base, tokenizer))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3.0)
    network.generation_config = build_generation_config(tokenizer)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_benchmark(path: Path, questions: list[str]) -> Path:
    """A benchmark file with ids q0, q1, .. and gold 0."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": f"q{i}", "question": question, "gold": "0", "gold_source": "0", "status": "ok", "reason": ""}
        for i, question in enumerate(questions)
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def eval_plan(root: Path, files: dict[str, Path], **evaluation: Any) -> Path:
    """eval.yaml over `files`, written to `root`; `evaluation` changes the evaluation section."""
    values = {
        "tag": "toy-fr3e-s0",
        "scenario": "demo",
        "model_name": "toy",
        "method": "fr3e",
        "seed": 0,
        "model": str(root / "model"),
        "template": "demo",
        "max_positions": 64,
        "files": {name: str(path) for name, path in files.items()},
        "benchmarks": {name: {"title": name, "protocols": ["avg4", "greedy"]} for name in files},
        "evaluation": {
            "engine": "transformers",
            "protocols": {"greedy": {"temperature": 0}, "avg4": {"temperature": 1.0, "top_p": 0.9, "samples": 4}},
            "max_tokens": 12,
            "shard_rows": 20,
            "batch_rows": 32,
        }
        | evaluation,
    }
    plan = root / "eval.yaml"
    plan.write_text(yaml.safe_dump(values), encoding="utf-8")
    return plan
