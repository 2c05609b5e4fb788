"""Prompts that are too long for a run are named before it trains, and they are those the stream passes over."""

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fr3e import engine
from fr3e.config.scenario import RunConfig
from fr3e.engine.local.loading import load_tokenizer
from fr3e.engine.local.problems import PromptStream, load_problems
from fr3e.engine.long_prompts import record_long_prompts
from fr3e.errors import UserError
from fr3e.files import read_json
from tests.engine.local.tiny_run import tiny_run


@pytest.fixture
def run(tmp_path: Path) -> RunConfig:
    made = tiny_run(tmp_path)  # at most 16 tokens
    questions = ["1+t?" * (i + 1) for i in range(6)]
    rows = {"id": [f"t-{i}" for i in range(6)], "question": questions, "gold": ["0"] * 6}
    pq.write_table(pa.table(rows), made.data)
    return made


def test_what_is_named_is_what_the_stream_passes_over(run, tmp_path, caplog):
    caplog.set_level(logging.INFO, "fr3e")
    dropped = record_long_prompts(run, tmp_path / "out")
    written = read_json(tmp_path / "out/dropped_prompts.json")
    assert (written["template"], written["max_prompt_tokens"], written["problems"]) == ("demo", 16, 6)
    tokenizer = load_tokenizer(run.base)
    stream = PromptStream(load_problems(run.data), "demo", tokenizer, "0", 16)
    taken, _ = stream.take(0, 6 - dropped)
    assert {problem.id for _, problem in taken} | set(written["dropped"]) == {f"t-{i}" for i in range(6)}
    assert 0 < dropped < 6 and all(tokens > 16 for tokens in written["dropped"].values())
    every = PromptStream(load_problems(run.data), "demo", tokenizer, "0", 1000).take(0, 6)[0]
    lengths = {problem.id: len(prompt.token_ids) for prompt, problem in every}
    assert written["dropped"] == {name: tokens for name, tokens in lengths.items() if tokens > 16}
    assert f"{dropped} of 6 training prompts have more than 16 tokens and are passed over" in caplog.text


@pytest.mark.parametrize(
    ("name", "place"), [("local", "fr3e.engine.local.train.train"), ("verl", "fr3e.engine.verl.launch.train")]
)
def test_both_engines_are_preceded_by_it(run, tmp_path, monkeypatch, name, place):
    seen = []
    monkeypatch.setattr(place, lambda run, out: seen.append((out / "dropped_prompts.json").is_file()))
    engine.train(
        run.model_copy(update={"training": run.training.model_copy(update={"engine": name})}), tmp_path / "out"
    )
    assert seen == [True]


def test_no_prompt_left_is_said_before_anything_starts(run, tmp_path):
    rollout = run.training.rollout.model_copy(update={"max_prompt_tokens": 3})
    short = run.model_copy(update={"training": run.training.model_copy(update={"rollout": rollout})})
    with pytest.raises(UserError, match="no prompt has at most 3 tokens"):
        record_long_prompts(short, tmp_path / "out")
