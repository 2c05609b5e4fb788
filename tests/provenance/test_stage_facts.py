"""What the manifests of stages hold: every file of a model, however many it has, tokens and GPU-hours."""

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from transformers import Qwen2ForCausalLM

from fr3e.cli import stages
from fr3e.files import write_json
from fr3e.provenance.manifest import load
from fr3e.provenance.verify import faults
from tests.engine.local.tiny_run import POSITIONS, make_base, tiny_run
from tests.evaluation import toy

TRAINED = {"run": "r", "updates": 6, "checkpoint": "c", "checkpoint_sha256": "0", "tokens_total": 70, "gpus": 8}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def base_in_shards() -> Path:
    """results/t/base/m: `fr3e base` from a folder whose weights are several files."""
    source, plan = Path("source"), Path("plan.yaml")
    make_base(source)
    network = Qwen2ForCausalLM.from_pretrained(source)
    (source / "model.safetensors").unlink()
    network.save_pretrained(source, max_shard_size="20KB")
    base = {"kind": "hub", "id": "a/b", "revision": "0" * 40, "path": "source"}
    plan.write_text(yaml.safe_dump({"base": base, "max_positions": POSITIONS, "template": "demo"}), encoding="utf-8")
    out = Path("results/t/base/m")
    stages.base(plan=plan, out=out)
    return out


def test_every_file_of_a_sharded_model_is_recorded(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, run = base_in_shards(), Path("results/t/runs/r")
    shards = sorted(base.glob("model-*.safetensors"))
    assert len(shards) > 1 and not (base / "model.safetensors").exists()
    write_json(run / "trained.json", TRAINED)
    settings = tiny_run(project)
    Path("run.yaml").write_text(yaml.safe_dump(settings.model_dump(mode="json")), encoding="utf-8")

    def as_the_base(_run: Any, _trained: Path, out: Path) -> None:
        out.mkdir()
        for path in base.iterdir():
            if not path.name.endswith(".provenance.json"):
                (out / path.name).write_bytes(path.read_bytes())

    monkeypatch.setattr("fr3e.engine.export", as_the_base)
    stages.export(run=Path("run.yaml"), trained=run / "trained.json", out=run / "model")
    for folder in (base, run / "model"):
        files = {str(path) for path in folder.iterdir() if not path.name.endswith(".provenance.json")}
        assert set(load(folder / "manifest.json")["outputs"]) == files
    assert faults(Path("results/t")) == []
    (run / "model" / shards[1].name).write_bytes(b"cut")
    assert faults(Path("results/t")) == [("altered", str(run / "model" / shards[1].name))]


def test_training_records_tokens_and_gpu_hours(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tiny_run(project)
    Path("run.yaml").write_text(yaml.safe_dump(run.model_dump(mode="json")), encoding="utf-8")

    def trained(_: object, out: Path) -> None:
        write_json(out / "trained.json", TRAINED | {"seconds": 1800.0})
        write_json(out / "dropped_prompts.json", {"dropped": [{"id": "t-1", "tokens": 99}]})

    monkeypatch.setattr("fr3e.engine.train", trained)
    stages.train(run=Path("run.yaml"), out=Path("results/r"))
    facts = load(Path("results/r/trained.json"))["facts"]
    assert (facts["tokens"], facts["gpus"], facts["gpu_hours"], facts["seed"]) == (70, 8, 4.0, 0)
    assert facts["dropped_prompts"] == 1


def test_sampling_records_tokens_and_its_share_of_gpu_hours(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy.write_model(project / "model")
    data = {name: toy.write_benchmark(project / f"{name}.parquet", ["1+1"]) for name in ("a", "b", "old")}
    plan = toy.eval_plan(project, data, engine="vllm", tensor_parallel=2)

    def sampled(out: Path, **lengths: list[int]) -> None:
        for name, counts in lengths.items():
            (out / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(
                pa.table({"response_tokens": pa.array(counts, pa.int32())}), out / name / "generations.parquet"
            )
            write_json(out / name / "generations.key.json", {})

    def sample_plan(_: Path, out: Path) -> None:
        time.sleep(0.5)
        sampled(out, a=[10, 20], b=[90])

    sampled(Path("out"), old=[5])
    time.sleep(0.05)
    monkeypatch.setattr("fr3e.evaluation.sample.sample_plan", sample_plan)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    stages.sample(plan=plan, out=Path("out"))
    a, b = (load(Path("out", name, "generations.parquet"))["facts"] for name in ("a", "b"))
    assert (a["tokens"], b["tokens"], a["gpus"], b["gpus"]) == (30, 90, 2, 2)
    assert b["gpu_hours"] == pytest.approx(3 * a["gpu_hours"], rel=0.05)
    assert 2 * 0.5 / 3600 <= a["gpu_hours"] + b["gpu_hours"] <= 2 * 60 / 3600
    assert not Path("out/old/generations.parquet.provenance.json").exists(), "it was there and keeps what it has"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    stages.sample(plan=plan, out=Path("out"))
    assert load(Path("out/a/generations.parquet"))["facts"]["gpu_hours"] == 0
