"""Sampling with the real engine on a toy model: columns, keys, resuming, and what is refused."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from fr3e.errors import UserError
from fr3e.evaluation import engines, sample
from fr3e.evaluation.sample import sample_plan
from fr3e.files import read_json, write_json
from tests.evaluation import toy

QUESTIONS = [f"{i}+{i % 7}?" for i in range(11)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return toy.write_model(tmp_path_factory.mktemp("toy") / "model")


@pytest.fixture
def root(tmp_path, model):
    (tmp_path / "model").symlink_to(model)
    return tmp_path


def benchmark(root: Path, name: str = "a", questions: list[str] = QUESTIONS) -> Path:
    return toy.write_benchmark(root / "data" / f"{name}.parquet", questions)


def generations(root: Path, name: str = "a") -> pd.DataFrame:
    return pq.read_table(root / "out" / name / "generations.parquet").to_pandas()


def stamp(root: Path, name: str = "a") -> int:
    return (root / "out" / name / "generations.parquet").stat().st_mtime_ns


@pytest.fixture
def starts(monkeypatch):
    """Counts how often an engine is really started."""
    counted = []
    start = engines.start
    monkeypatch.setattr(engines, "start", lambda *a, **k: counted.append(1) or start(*a, **k))
    return counted


def test_every_row_is_there_and_traceable(root):
    plan = toy.eval_plan(root, {"a": benchmark(root)})
    sample_plan(plan, root / "out")
    rows = generations(root)
    assert list(rows.columns) == sample.SCHEMA.names
    assert len(rows) == 11 * (4 + 1) and not rows.duplicated(["id", "protocol", "sample"]).any()
    assert rows["seed"].is_unique and rows["seed"][0] == "0/a/q0/avg4/0"
    first = rows.iloc[0]
    assert first["prompt"] == "<|im_start|>0+0?<|im_end|><|im_start|>" and first["prompt_tokens"] == 7
    assert set(rows.loc[rows["protocol"] == "greedy", "temperature"]) == {0.0}
    assert set(rows.loc[rows["protocol"] == "avg4", "top_p"]) == {0.9}
    assert (rows["response_ids"].map(len) == rows["response_tokens"]).all()
    assert rows["response_tokens"].max() <= 12
    assert not (root / "out" / ".shards").exists()


def test_finish_says_what_ended_a_response(root):
    # 64 positions: "9+..": a prompt of 63 tokens leaves room for 1, one of 64 for none.
    overhead = 4  # three marks and the question mark
    questions = ["1+1?", "1" * (63 - overhead) + "?", "1" * (64 - overhead) + "?"]
    plan = toy.eval_plan(root, {"a": benchmark(root, questions=questions)})
    sample_plan(plan, root / "out")
    rows = generations(root).set_index(["id", "protocol", "sample"])
    assert rows.loc[("q1", "greedy", 0), "prompt_tokens"] == 63
    assert (rows.loc["q1"]["response_tokens"] == 1).all()
    long = rows.loc["q2"]
    assert (
        (long["finish"] == "too_long").all() and (long["response"] == "").all() and (long["response_tokens"] == 0).all()
    )
    stops = engines.model_stops(root / "model", toy.build_tokenizer(64))
    ended = rows["response_ids"].map(lambda ids: len(ids) > 0 and ids[-1] in stops)
    assert (ended == (rows["finish"] == "stop")).all()
    assert set(rows["finish"]) <= {"stop", "length", "too_long"}


def test_responses_may_fill_the_positions_of_the_model(tmp_path, model):
    """The longest prompt's rows end first and stay in the batch while all others go on to the last position."""
    shutil.copytree(model, tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    write_json(config, read_json(config) | {"max_position_embeddings": 64})
    files = {"a": benchmark(tmp_path, questions=["1" * 55 + "?", *QUESTIONS])}
    sample_plan(toy.eval_plan(tmp_path, files, max_tokens=1000, batch_rows=512, shard_rows=1000), tmp_path / "out")
    together = generations(tmp_path)
    full = together["prompt_tokens"] + together["response_tokens"] == 64
    assert (full | (together["finish"] == "stop")).all() and full.any()
    sample_plan(toy.eval_plan(tmp_path, files, max_tokens=1000, batch_rows=1, shard_rows=1), tmp_path / "out")
    assert together["response_ids"].map(list).tolist() == generations(tmp_path)["response_ids"].map(list).tolist()


def test_what_is_there_is_left_alone_and_a_new_benchmark_samples_only_itself(root, starts):
    files = {"a": benchmark(root)}
    sample_plan(toy.eval_plan(root, files), root / "out")
    before = stamp(root)
    sample_plan(toy.eval_plan(root, files), root / "out")
    assert len(starts) == 1 and stamp(root) == before
    files["b"] = benchmark(root, "b", ["2*3?", "4-1?"])
    sample_plan(toy.eval_plan(root, files), root / "out")
    assert len(starts) == 2 and stamp(root) == before
    assert len(generations(root, "b")) == 10


def test_one_engine_serves_all_benchmarks_that_are_due(root, starts):
    files = {name: benchmark(root, name) for name in ("a", "b", "c")}
    sample_plan(toy.eval_plan(root, files), root / "out")
    assert len(starts) == 1 and all(len(generations(root, name)) == 55 for name in files)


@pytest.mark.parametrize("change", ["temperature", "template", "data", "model", "parquet", "seed"])
def test_a_change_of_anything_that_decides_resamples(root, model, change, starts):
    files = {"a": benchmark(root)}
    plan = toy.eval_plan(root, files)
    sample_plan(plan, root / "out")
    old = read_json(root / "out" / "a" / "generations.key.json")
    values = yaml.safe_load(plan.read_text())
    if change == "temperature":
        values["evaluation"]["protocols"]["avg4"]["temperature"] = 0.5
    elif change == "template":
        values["template"] = "simple"
    elif change == "seed":
        values["evaluation"]["seed"] = 1
    elif change == "data":
        benchmark(root, questions=[*QUESTIONS, "7-7?"])
    elif change == "model":
        (root / "model").unlink()
        toy.write_model(root / "model", seed=1)
    else:
        with open(root / "out" / "a" / "generations.parquet", "r+b") as handle:
            handle.truncate(100)
    plan.write_text(yaml.safe_dump(values))
    sample_plan(plan, root / "out")
    assert len(starts) == 2
    new = read_json(root / "out" / "a" / "generations.key.json")
    assert (new["digest"] == old["digest"]) == (change == "parquet")
    assert len(generations(root)) == (60 if change == "data" else 55)


def test_a_sample_does_not_depend_on_what_else_is_sampled(root):
    sample_plan(toy.eval_plan(root, {"a": benchmark(root)}), root / "out")
    together = generations(root)
    benchmark(root, questions=QUESTIONS[:3])
    sample_plan(toy.eval_plan(root, {"a": root / "data" / "a.parquet"}, shard_rows=1, batch_rows=2), root / "out")
    alone = generations(root)
    merged = alone.merge(together, on="seed", suffixes=("", "_together"))
    assert len(merged) == 15
    assert all(list(x) == list(y) for x, y in zip(merged["response_ids"], merged["response_ids_together"], strict=True))
    sampled = together[(together["protocol"] == "avg4") & (together["id"] == "q0")]
    assert sampled["response"].nunique() > 1


KILLED = """
import os, signal, sys
from pathlib import Path
from fr3e.evaluation import sample
write, left = sample._write_parquet, [2]
def killed(target, table):
    write(target, table)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
sample._write_parquet = killed
sample.sample_plan(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_killed_job_goes_on_where_it_was(root, starts):
    plan = toy.eval_plan(root, {"a": benchmark(root)})  # 55 rows in shards of 20: 20 + 20 + 15
    died = subprocess.run(
        [sys.executable, "-c", KILLED, str(plan), str(root / "out")],
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert died.returncode == -signal.SIGKILL
    shards = sorted((root / "out" / ".shards").rglob("*.parquet"))
    assert [path.name for path in shards] == ["00000.parquet", "00001.parquet"]
    assert not (root / "out" / "a" / "generations.parquet").exists()
    os.truncate(shards[0], 50)  # a shard that a full disk cut off counts as missing
    kept = shards[1].stat().st_mtime_ns
    written = []
    write = sample._write_parquet
    sample._write_parquet = lambda target, table: written.append(target.name) or write(target, table)
    try:
        sample_plan(plan, root / "out")
    finally:
        sample._write_parquet = write
    assert written == ["00000.parquet", "00002.parquet", "generations.parquet"] and kept
    resumed = generations(root)
    sample_plan(plan, root / "fresh")
    fresh = pq.read_table(root / "fresh" / "a" / "generations.parquet").to_pandas()
    pd.testing.assert_frame_equal(resumed, fresh)


def test_bad_input_is_one_line(root):
    files = {"a": benchmark(root)}
    plan = toy.eval_plan(root, files)
    values = yaml.safe_load(plan.read_text())

    def refused(**changes):
        plan.write_text(yaml.safe_dump(values | changes))
        with pytest.raises(UserError) as error:
            sample_plan(plan, root / "out")
        assert "\n" not in str(error.value) and not (root / "out").exists()
        return str(error.value)

    assert "no config.json" in refused(model=str(root / "absent"))
    assert "no such file" in refused(files={"a": str(root / "absent.parquet")})
    (root / "text.parquet").write_text("no parquet")
    assert "not a benchmark file" in refused(files={"a": str(root / "text.parquet")})
    assert "allowed: demo" in refused(template="absent")
    assert "files has no file for benchmark 'a', only for b" in refused(files={"b": values["files"]["a"]})
    unknown = {"a": {"title": "a", "protocols": ["avg9"]}}
    assert "benchmarks.a.protocols names 'avg9'; evaluation.protocols has avg4, greedy" in refused(benchmarks=unknown)
    assert "max_positions 100000" in refused(max_positions=100_000)
    benchmark(root, questions=["<|im_start|>user hello"])
    assert "problem 'q0'" in refused() and "already holds a template's" in refused()
