"""Broken and hostile files: refused by file and row, nothing half-written."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from fr3e.config.scenario import RealData
from fr3e.data import read
from fr3e.data.assemble import assemble
from fr3e.data.benchmarks import write_benchmarks
from fr3e.data.sources import load_sources
from fr3e.errors import UserError
from tests.data.small import AIME, make_mirror, write_lines

FILE = "benchmarks/aime24/test.jsonl"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    make_mirror(tmp_path / "mirror")
    return tmp_path / "mirror"


def refused(small: Path, message: str) -> None:
    """`fr3e data benchmarks` must refuse with `message`, on one line, and write nothing."""
    out = small.parent / "out"
    with pytest.raises(UserError, match=message) as caught:
        write_benchmarks(small, out, None, small / "sources.yaml")
    assert "\n" not in str(caught.value)
    assert not out.exists() or not list(out.rglob("*"))


def test_the_small_mirror_itself_is_fine(small):
    write_benchmarks(small, small.parent / "out", None, small / "sources.yaml")
    assert pq.read_table(small.parent / "out" / "aime24.parquet")["gold"].to_pylist() == ["25", "7"]


def test_bad_json_line(small):
    lines = (small / FILE).read_text().splitlines()
    (small / FILE).write_text(lines[0] + "\n" + lines[1][:30] + "\n")
    refused(small, r"test\.jsonl row 1: not JSON")


def test_blank_line_between_rows_is_not_dropped_silently(small):
    (small / FILE).write_text((small / FILE).read_text().replace("\n", "\n\n", 1))
    refused(small, r"test\.jsonl row 1: not JSON")


def test_missing_column(small):
    write_lines(small / FILE, [AIME[0], {"id": 2, "question": "?", "answer": "1"}])
    refused(small, r"test\.jsonl row 1: no column 'problem'; the row has answer, id, question")


def test_invalid_utf8(small):
    content = (small / FILE).read_bytes()
    (small / FILE).write_bytes(content.replace(b"Compute", b"Comp\xff\xfete"))
    refused(small, r"test\.jsonl row 1: not UTF-8")


def test_half_a_surrogate_pair(small):
    (small / FILE).write_text((small / FILE).read_text().replace("Compute", "\\ud800"))
    refused(small, r"test\.jsonl row 1, column problem: not UTF-8")


@pytest.mark.parametrize("content", ["", " \n\n"])
def test_empty_file(small, content):
    (small / FILE).write_text(content)
    refused(small, r"test\.jsonl: the file is empty")


@pytest.mark.parametrize("gold", [["1", "2"], {"a": 1}, True])
def test_gold_of_the_wrong_type(small, gold):
    write_lines(small / FILE, [AIME[0], {**AIME[1], "answer": gold}])
    refused(small, r"test\.jsonl row 1: gold is a \w+; text or a number is allowed")


def test_question_of_the_wrong_type(small):
    write_lines(small / FILE, [{**AIME[0], "problem": 7}, AIME[1]])
    refused(small, r"test\.jsonl row 0: question is a int; text is allowed")


def test_duplicate_id(small):
    write_lines(small / FILE, [AIME[0], {**AIME[1], "id": 1}])
    refused(small, r"test\.jsonl row 1: id '1' stands in row 0 too")


def test_a_question_of_five_megabytes(small):
    write_lines(small / FILE, [AIME[0], {**AIME[1], "problem": "x" * 5_000_000}])
    refused(small, r"test\.jsonl row 1, column problem: a text of 5000000 characters; at most 100000 are allowed")


def test_wrong_number_of_rows(small):
    write_lines(small / FILE, [*AIME, {**AIME[1], "id": 3}])
    refused(small, r"test\.jsonl: 3 rows, aime24 has 2")


def test_rows_that_are_no_objects_and_constants_that_are_no_json(small):
    (small / FILE).write_text('[1]\n{"a": 1}\n')
    refused(small, r"test\.jsonl row 0: is a list")
    (small / FILE).write_text((small / FILE).read_text().replace("[1]", '{"id": NaN}'))
    refused(small, r"test\.jsonl row 0: not JSON \(NaN")


def test_gzip_bomb(small, monkeypatch):
    monkeypatch.setattr(read, "MAX_FILE_BYTES", 2**20)
    (small / FILE).unlink()
    with gzip.open(small / f"{FILE}.gz", "wb") as handle:
        handle.write(b" " * 2**22)
    assert (small / f"{FILE}.gz").stat().st_size < 10_000
    refused(small, r"test\.jsonl\.gz: over 1 MiB uncompressed")


def test_truncated_gzip(small):
    whole = gzip.compress((small / FILE).read_bytes())
    (small / FILE).unlink()
    (small / f"{FILE}.gz").write_bytes(whole[:-20])
    refused(small, r"test\.jsonl\.gz: cannot be read .* truncated or damaged")


def test_a_gzipped_file_reads_as_the_plain_one(small):
    write_benchmarks(small, small.parent / "plain", ["aime24"], small / "sources.yaml")
    (small / f"{FILE}.gz").write_bytes(gzip.compress((small / FILE).read_bytes()))
    (small / FILE).unlink()
    write_benchmarks(small, small.parent / "packed", ["aime24"], small / "sources.yaml")
    names = ("plain/aime24.parquet", "packed/aime24.parquet")
    first, second = ((small.parent / name).read_bytes() for name in names)
    assert first == second


def test_other_bytes_than_the_pinned_ones(small):
    table = yaml.safe_load((small / "sources.yaml").read_text())
    table["sources"]["aime24"]["places"][0]["files"][0]["sha256"] = "0" * 64
    (small / "sources.yaml").write_text(yaml.safe_dump(table))
    refused(small, r"test\.jsonl: SHA-256 [0-9a-f]{16}\.\.\. is not the pinned 0{16}")


def test_a_missing_file_says_both_ways(small):
    (small / FILE).unlink()
    refused(small, r"aime24/test\.jsonl: aime24 is missing .*https://raw.*--mirror DIR.*fr3e data fetch")


# Parquet: the same faults inside a training file.


def parquet_source(small: Path, rows: list[dict]) -> Path:
    """Turn simplelr into a parquet source with these rows; returns the file."""
    file = small / "train/simple.parquet"
    pq.write_table(pa.Table.from_pylist(rows), file)
    table = yaml.safe_load((small / "sources.yaml").read_text())
    place = table["sources"]["simplelr"]["places"][0]
    place["rows"], place["files"] = (
        len(rows),
        [{"path": "simple.parquet", "local": "train/simple.parquet", "sha256": None}],
    )
    (small / "sources.yaml").write_text(yaml.safe_dump(table, sort_keys=False))
    return file


def train_refused(small: Path, message: str) -> None:
    out = small.parent / "out"
    with pytest.raises(UserError, match=message):
        assemble(small, out, RealData(sources=str(small / "sources.yaml")))
    assert not out.exists() or not list(out.rglob("*"))


ROW = {"extra_info": {"question": "One?", "level": 3}, "reward_model": {"ground_truth": "1"}}


def test_truncated_parquet(small):
    file = parquet_source(small, [ROW])
    file.write_bytes(file.read_bytes()[:-40])
    train_refused(small, r"simple\.parquet: not a readable parquet file")


def test_invalid_utf8_in_parquet_names_the_row(small):
    file = parquet_source(small, [ROW])
    words = pa.array([b"One?", b"T\xffwo?"], pa.binary()).view(pa.string())
    infos = pa.StructArray.from_arrays([words, pa.array([3, 4])], ["question", "level"])
    golds = pa.StructArray.from_arrays([pa.array(["1", "2"])], ["ground_truth"])
    pq.write_table(pa.table({"extra_info": infos, "reward_model": golds}), file)
    train_refused(small, r"simple\.parquet row 1: not UTF-8")


def test_a_parquet_that_unpacks_to_more_than_is_allowed(small, monkeypatch):
    monkeypatch.setattr(read, "MAX_FILE_BYTES", 2**16)
    long = {**ROW, "extra_info": {"question": "x" * 50_000, "level": 3}}
    file = parquet_source(small, [long] * 40)
    assert file.stat().st_size < 2**16
    train_refused(small, r"simple\.parquet: over .* MiB in memory")


def test_parquet_without_the_nested_column(small):
    parquet_source(small, [{"extra_info": {"level": 3}, "reward_model": {"ground_truth": "1"}}])
    train_refused(small, r"simple\.parquet row 0: no column 'extra_info\.question'")


def test_a_list_file_must_be_a_list(small):
    (small / "train/deep1.json").write_text(json.dumps({"rows": []}))
    train_refused(small, r"deep1\.json: is a JSON dict")


def test_json_that_nests_too_deep(small):
    (small / "train/deep1.json").write_text("[" * 200_000)
    train_refused(small, r"deep1\.json: not JSON")


# The table itself.


def test_an_output_that_cannot_be_written_leaves_the_others_as_they_were(small, tmp_path):
    out, table = tmp_path / "made", small / "sources.yaml"
    (out / "manifest.json").mkdir(parents=True)
    (out / "train.parquet").write_text("before")
    for write in (
        lambda: write_benchmarks(small, out, None, table),
        lambda: assemble(small, out, RealData(sources=str(table))),
    ):
        with pytest.raises(UserError, match=r"manifest\.json: cannot be written \(a folder has this name\)"):
            write()
        assert sorted(path.name for path in out.iterdir()) == ["manifest.json", "train.parquet"]
        assert (out / "train.parquet").read_text() == "before"
        assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"revision": "main"}, "revision"),
        ({"hub": "a/b"}, "names either hub or github"),
        ({"typo": 1}, "typo"),
        ({"rows": 0}, "rows"),
        ({"files": [{"path": "test*", "local": "hub/a/b/test", "sha256": None}]}, r"files\.0\.path: .*jsonl"),
        ({"files": [{"path": "test.jsonl", "local": "hub/a/b/test", "sha256": None}]}, r"files\.0\.local: .*jsonl"),
    ],
)
def test_a_wrong_table_is_refused(small, change, message):
    table = yaml.safe_load((small / "sources.yaml").read_text())
    table["sources"]["aime24"]["places"][0].update(change)
    (small / "sources.yaml").write_text(yaml.safe_dump(table))
    with pytest.raises(UserError, match=message):
        load_sources(small / "sources.yaml")


def test_the_shipped_table_is_sound():
    table = load_sources()
    assert {name for name, source in table.sources.items() if source.kind == "benchmark"} == {
        "aime24", "gsm8k", "math500", "minerva_math", "gaokao2023en", "olympiadbench", "college_math", "amc23",
    }  # fmt: skip
    for source in table.sources.values():
        assert all(file.sha256 for file in source.places[0].files)  # the first place is the one the lock knows
        assert source.hub_id and source.split
        assert {place.hub for place in source.places if place.hub} <= {source.hub_id}
        for file in (file for place in source.places for file in place.files):
            assert file.local.endswith((".jsonl", ".json", ".parquet")), "read_rows would refuse it"
            assert Path(file.local).suffix == Path(file.path).suffix
    with pytest.raises(UserError, match="amc: no such benchmark; allowed: aime24"):
        table.choose(["amc"], "benchmark")
