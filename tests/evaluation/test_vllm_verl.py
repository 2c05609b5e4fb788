"""vLLM on the CPU against the transformers engine, on the toy model: the same parquet, the same greedy ids."""

import os

import pyarrow.parquet as pq
import pytest

from fr3e.evaluation.sample import SCHEMA, sample_plan
from fr3e.files import read_json
from tests.evaluation import toy

pytestmark = pytest.mark.verl

# What vLLM needs on a small CPU machine; it reads them when it is imported.
CPU = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "OMP_NUM_THREADS": "1",
}


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """Rows of both engines by stream name, and the folder."""
    pytest.importorskip("vllm", reason="the verl environment is not installed (make test-verl)")
    os.environ.update(CPU)
    root = tmp_path_factory.mktemp("vllm")
    toy.write_model(root / "model")
    # 63 tokens of prompt leave one of 64 positions, 64 leave none; head and tail of the prompt take 4.
    questions = [f"{i}*{i % 5}-{i}?" for i in range(6)] + ["1" * 59 + "?", "1" * 60 + "?"]
    files = {"a": toy.write_benchmark(root / "a.parquet", questions)}
    rows = {}
    for engine in ("transformers", "vllm"):
        sample_plan(toy.eval_plan(root, files, engine=engine, max_tokens=24, shard_rows=1000), root / engine)
        rows[engine] = pq.read_table(root / engine / "a" / "generations.parquet")
    return root, rows


def test_both_write_the_same_columns_and_streams(sampled):
    _, rows = sampled
    one, two = rows["transformers"], rows["vllm"]
    assert one.schema.equals(two.schema) and one.schema.names == SCHEMA.names
    same = ["benchmark", "id", "protocol", "sample", "seed", "prompt", "prompt_tokens", "temperature", "top_p"]
    assert one.select(same).equals(two.select(same))


def test_greedy_ids_and_finish_are_equal(sampled):
    _, rows = sampled
    greedy = [
        [row for row in rows[engine].to_pylist() if row["protocol"] == "greedy"] for engine in ("transformers", "vllm")
    ]
    for one, two in zip(*greedy, strict=True):
        assert one["response_ids"] == two["response_ids"], one["id"]
        assert (one["finish"], one["response"]) == (two["finish"], two["response"])
    assert {row["finish"] for row in greedy[1]} >= {"length", "too_long"}


def test_samples_of_a_problem_differ_and_repeat(sampled):
    root, rows = sampled
    first = [row["response_ids"] for row in rows["vllm"].to_pylist() if row["protocol"] == "avg4" and row["id"] == "q0"]
    assert len({tuple(ids) for ids in first}) > 1
    keys = [read_json(root / engine / "a" / "generations.key.json") for engine in ("transformers", "vllm")]
    assert keys[0]["digest"] != keys[1]["digest"] and "vllm" in keys[1]["versions"]
