"""The training mix: made-up sources counted by hand, and the real ones against their known numbers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from fr3e.config.load import checked, load_scenario
from fr3e.config.scenario import RealData
from fr3e.data.assemble import assemble
from fr3e.data.lock import compare, make
from fr3e.data.records import load_records
from fr3e.data.sources import load_sources, locate
from fr3e.data.tokens import prompt_lengths
from fr3e.errors import UserError
from fr3e.evaluation.prompts import render, render_text
from tests.conftest import ROOT
from tests.data.small import make_mirror, write_list


@pytest.fixture
def small(tmp_path: Path) -> Path:
    make_mirror(tmp_path / "mirror")
    return tmp_path / "mirror"


def run(small: Path, mix: dict, tokenizer: str | None = None, limit: int = 1024, **more) -> tuple[list, list, dict]:
    out = small.parent / "out"
    values = {"sources": str(small / "sources.yaml"), "mix": mix, "max_prompt_tokens": limit, **more}
    assemble(small, out, checked(RealData, values, "data"), tokenizer)
    read = [pq.read_table(out / f"{name}.parquet").to_pylist() for name in ("train", "dropped")]
    return read[0], read[1], json.loads((out / "manifest.json").read_text())


def short(rows: list[dict]) -> list[str]:
    return [row["id"].rsplit(":", 1)[0] for row in rows]


def test_the_default_mix_on_nine_rows(small):
    train, dropped, manifest = run(small, {})
    # simplelr 0 and deep level1:0 are one question, golds 1 and 1.0 agree: the second is a copy.
    # simplelr 2 has no gold. "Area of a unit square" has golds 1 and 2: both rows go.
    # Half of one: \frac12 and 0.5 agree, so level2:0 is a copy of level1:1.
    assert short(train) == ["simplelr:0", "simplelr:1", "deepscaler:level1:1", "deepscaler:level2:2"]
    assert {(one, row["filter"]) for one, row in zip(short(dropped), dropped, strict=True)} == {
        ("simplelr:2", "gold"),
        ("simplelr:3", "conflict"),
        ("deepscaler:level2:1", "conflict"),
        ("deepscaler:level1:0", "duplicate"),
        ("deepscaler:level2:0", "duplicate"),
    }
    assert "in deepscaler:level2:1" in next(row["reason"] for row in dropped if row["id"].startswith("simplelr:3"))
    assert manifest["rows"] == {
        "read": {"deepscaler": 5, "simplelr": 4},
        "kept": {"deepscaler": 2, "simplelr": 2},
        "dropped": {"deepscaler": 3, "simplelr": 2},
    }
    assert manifest["filters"]["conflict"]["rows"] == {"deepscaler": 1, "simplelr": 1}
    assert manifest["levels"]["simplelr"]["5"] == {"read": 2, "kept": 0}
    assert manifest["shared_questions"] == {"deepscaler and simplelr": 2, "distinct in all": 6}
    assert [row["gold"] for row in train] == ["1", "7", r"\frac12", "7"]


def test_rows_are_in_verls_layout_and_carry_our_columns(small):
    train, dropped, _ = run(small, {})
    row = train[1]
    assert row["prompt"] == [{"role": "user", "content": row["question"]}]
    assert row["reward_model"] == {"style": "rule", "ground_truth": "7"}
    assert row["extra_info"] == {"index": 1, "id": row["id"], "split": "train"}
    assert (row["data_source"], row["ability"], row["source"], row["source_row"]) == (
        "simplelr",
        "math",
        "simplelr",
        "1",
    )
    assert (row["level"], row["licence"], row["status"], row["reason"]) == (4, "made up", "ok", "")
    assert all(row["status"] == "dropped" and row["reason"] for row in dropped)


def test_every_row_is_kept_or_dropped_once_whatever_the_mix(small):
    for mix in (
        {},
        {"copies": "all"},
        {"conflicts": "keep"},
        {"parts": {"deepscaler": {"levels": [1]}}},
        {"overlap": "ngram"},
    ):
        train, dropped, manifest = run(small, mix)
        read = sum(manifest["rows"]["read"].values())
        assert len({row["id"] for row in train + dropped}) == len(train) + len(dropped) == read


def test_copies_conflicts_levels_and_precedence_follow_the_mix(small):
    train, _, _ = run(small, {"copies": "all", "conflicts": "keep"})
    assert len(train) == 8
    train, dropped, _ = run(small, {"parts": {"deepscaler": {"levels": [1]}, "simplelr": {}}})
    assert short(train)[:2] == ["deepscaler:level1:0", "deepscaler:level1:1"]
    assert [row["filter"] for row in dropped].count("level") == 3
    # The level-2 row with the other gold was not taken, so nothing contradicts simplelr 3 any more.
    assert "simplelr:3" in short(train)
    assert next(row["filter"] for row in dropped if row["id"].startswith("simplelr:0")) == "duplicate"


def test_overlap_is_counted_always_and_removed_when_asked(small):
    train, _, manifest = run(small, {})
    assert manifest["overlap"]["counts"] == {"simplelr": {"aime24": {"exact": 0, "latex": 1, "ngram": 1}}}
    marked = next(row for row in train if row["overlap"])
    assert marked["id"].startswith("simplelr:1") and marked["overlap"].endswith("=latex+ngram")
    assert marked["overlap"].startswith("aime24:1:")
    asked = ({"overlap": "latex"}, {}), ({}, {"remove_overlap": True}), ({"overlap": "keep"}, {"remove_overlap": True})
    for mix, more in asked:
        train, dropped, _ = run(small, mix, **more)
        assert "simplelr:1" not in short(train)
        assert any(row["filter"] == "overlap" for row in dropped)
    train, _, _ = run(small, {"overlap": "exact"})
    assert "simplelr:1" in short(train)


@pytest.fixture
def tokenizer_folder(tmp_path: Path) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE({c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|endoftext|>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    return tmp_path / "tokenizer"


def test_long_prompts_are_dropped_by_tokens(small, tokenizer_folder):
    # One token per byte. The template `simple` has 46 bytes beside the question:
    # "Question:\n" 10, "\nAnswer:\n" 9, "Let's think step by step.\n" 26 -> 45 and the question.
    train, dropped, manifest = run(small, {"template": "simple"}, str(tokenizer_folder), 72)
    assert {row["question"]: row["prompt_tokens"] for row in train} == {
        "Solve $x+1=2$ for $x$.": 22 + 45,
        "What is half of one?": 20 + 45,
        "What is \\$3 plus \\$4?": 21 + 45,
    }
    long = [row for row in dropped if row["filter"] == "length"]
    assert short(long) == ["simplelr:1"] and long[0]["prompt_tokens"] > 72
    assert "at most 72 are allowed" in long[0]["reason"]
    assert manifest["length_filter"]["applied"]


def test_without_a_tokenizer_the_manifest_says_so(small):
    train, _, manifest = run(small, {}, None, 25)
    assert {row["prompt_tokens"] for row in train} == {None}
    assert not manifest["length_filter"]["applied"] and "no tokenizer" in manifest["length_filter"]["why_not"]
    assert manifest["length_filter"]["questions_longer_in_bytes"] == 1  # only "Let $x+y=3$..." has more than 25 bytes


def test_lengths_are_those_of_the_rendered_prompt(tokenizer_folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    questions = ["short", "two\nlines é", "with <|endoftext|> in it"]
    assert prompt_lengths(questions, "qwen_boxed", tokenizer) == [
        len(render("qwen_boxed", question, tokenizer)[1]) for question in questions
    ]


def test_a_question_in_a_chat_template_never_trains(small):
    for question in ("<|im_start|>user\nOne?<|im_end|>", render_text("simple", "One?")):
        rows = [{"prompt": question, "answer": "1"}, {"prompt": "Two?", "answer": "2"}]
        write_list(small / "train/deep1.json", rows)
        _, dropped, _ = run(small, {})
        assert [row["filter"] for row in dropped if row["source_row"] == "level1:0"] == ["markup"]


def test_bytes_do_not_depend_on_file_order_or_hash_seed(small):
    def files(seed: str, folder: str) -> list[bytes]:
        out = small.parent / folder
        script = (
            "import sys; from pathlib import Path; from fr3e.data.assemble import assemble; "
            "from fr3e.config.scenario import RealData; "
            "assemble(Path(sys.argv[1]), Path(sys.argv[2]), RealData(sources=sys.argv[1] + '/sources.yaml'))"
        )
        command = [sys.executable, "-c", script, str(small), str(out)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        return [(out / name).read_bytes() for name in ("train.parquet", "dropped.parquet", "manifest.json")]

    first = files("1", "one")
    table = yaml.safe_load((small / "sources.yaml").read_text())
    table["sources"]["deepscaler"]["places"][0]["files"].reverse()
    table["sources"] = dict(reversed(table["sources"].items()))
    (small / "sources.yaml").write_text(yaml.safe_dump(table, sort_keys=False))
    second = files("2", "two")
    assert first[:2] == second[:2]
    sources = [json.loads(manifest).pop("sources") for manifest in (first[2], second[2])]
    assert sources[0]["simplelr"] == sources[1]["simplelr"]


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        ({"partz": {}}, "data: mix.partz: .*allowed: parts, copies"),
        ({"parts": {}}, "data: mix.parts"),
        ({"copies": "some"}, "data: mix.copies: .*'first' or 'all'"),
        ({"parts": {"simplelr": {"level": [3]}}}, "data: mix.parts.simplelr.level"),
        ({"template": "qwen"}, "data: mix.template: no prompt template 'qwen'"),
    ],
)
def test_a_wrong_mix_is_refused(mix, message):
    with pytest.raises(UserError, match=message):
        checked(RealData, {"mix": mix}, "data")


def test_a_mix_that_leaves_nothing_or_asks_for_levels_that_are_not_there(small):
    with pytest.raises(UserError, match="no row is left"):
        run(small, {"parts": {"simplelr": {"levels": [9]}}})
    with pytest.raises(UserError, match="math: no such train; allowed: simplelr, deepscaler"):
        run(small, {"parts": {"math": {}}})
    table = yaml.safe_load((small / "sources.yaml").read_text())
    for file in table["sources"]["deepscaler"]["places"][0]["files"]:
        del file["level"]
    (small / "sources.yaml").write_text(yaml.safe_dump(table, sort_keys=False))
    with pytest.raises(UserError, match=r"parts\.deepscaler\.levels: .* has no level"):
        run(small, {"parts": {"deepscaler": {"levels": [1]}}})


# The real sources.


@pytest.mark.slow
def test_real_training_golds_row_by_row(mirror):
    sources = load_sources().choose(None, "train")
    for name, rows, unusable in (
        ("simplelr", 8523, ["5054", "5158"]),
        ("deepscaler", 40308, ["level5-train:2668", "level5-train:3416"]),
    ):
        records = load_records(locate(mirror, name, sources[name]))
        assert len(records) == len({record.id for record in records}) == rows
        assert [record.source_row for record in records if record.gold is None] == unusable
        for record in records:
            assert record.gold is None or (record.gold == record.gold.strip() and "$" not in record.gold)
            assert not any(ord(c) < 32 and c not in "\n\t" for c in record.question)


@pytest.mark.slow
def test_the_real_data_are_those_of_the_committed_lock(mirror, tmp_path):
    """data.dvc at the root is current: sources, code and lock belong together."""
    data = tmp_path / "data"
    make(data, mirror, load_scenario(ROOT / "config/paper.yaml").data)
    assert compare(data, ROOT / "data.dvc") == []
    manifest = json.loads((data / "manifest.json").read_text())
    assert manifest["rows"]["read"] == {"deepscaler": 40308, "simplelr": 8523}
    kept, dropped = (sum(manifest["rows"][name].values()) for name in ("kept", "dropped"))
    assert kept + dropped == 48831 and pq.read_metadata(data / "train.parquet").num_rows == kept
    assert manifest["shared_questions"]["deepscaler and simplelr"] >= 5480
    # Lower bounds from earlier counts of the same files.
    counts = manifest["overlap"]["counts"]
    assert counts["deepscaler"]["math500"]["latex"] >= 10 and counts["deepscaler"]["math500"]["exact"] == 1
    assert counts["deepscaler"]["olympiadbench"]["latex"] >= 4
    assert counts["deepscaler"]["gaokao2023en"]["latex"] >= 4
    assert counts["simplelr"]["olympiadbench"]["latex"] >= 6
    assert counts["simplelr"]["math500"]["latex"] == 0
