"""Reading and writing: files that are whole or refused in one line."""

import errno
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from fr3e.errors import UserError
from fr3e.files import read_json, read_parquet, read_yaml, replacing, replacing_all, write_text


def test_a_full_disk_is_named_with_the_target_and_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    target.write_text("before", encoding="utf-8")
    says = r"table\.csv: cannot be written \(No space left on device\); free space"
    with pytest.raises(UserError, match=says), replacing(target), open("/dev/full", "w", encoding="utf-8") as full:
        full.write("x")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert target.read_text(encoding="utf-8") == "before"


def test_a_full_disk_is_seen_behind_the_error_of_a_library_that_closes_badly(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"figure.pdf.*No space left"), replacing(tmp_path / "figure.pdf"):
        try:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            raise ValueError("inconsistent stream state")


def test_a_full_disk_is_seen_behind_torchs_own_words(tmp_path: Path) -> None:
    says = r"model\.pt: cannot be written \(No space left on device\)"
    with pytest.raises(UserError, match=says), replacing(tmp_path / "model.pt") as temporary:
        temporary.symlink_to("/dev/full")
        torch.save({"a": torch.zeros(100_000)}, temporary)


@pytest.mark.parametrize("words", ["I/O error: No space left on device (os error 28)", "Detail: x (errno 28) y"])
def test_a_full_disk_is_seen_in_the_words_of_libraries_without_an_error_number(tmp_path: Path, words: str) -> None:
    says = r"model\.safetensors: cannot be written \(No space left on device\); free space"
    with pytest.raises(UserError, match=says), replacing(tmp_path / "model.safetensors"):
        raise ValueError(words)


def test_a_fault_that_is_not_the_disks_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "a"):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_files_that_belong_together_appear_together(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "out"
    for text in ("one", "two"):
        with replacing_all(folder) as temporary:
            for name in ("a", "b"):
                (temporary / name).write_text(text, encoding="utf-8")
            assert not folder.exists() or (folder / "a").read_text(encoding="utf-8") == "one"
    (folder / "other").write_text("stays", encoding="utf-8")
    with pytest.raises(ZeroDivisionError), replacing_all(folder) as temporary:
        (temporary / "a").write_text("three", encoding="utf-8")
        raise ZeroDivisionError
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} == {
        "a": "two", "b": "two", "other": "stays",
    }  # fmt: skip
    assert [path.name for path in folder.parent.iterdir()] == ["out"]


def test_one_file_that_may_not_be_replaced_leaves_all_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out" / "b").mkdir(parents=True)
    (tmp_path / "out" / "a").write_text("before", encoding="utf-8")

    def write() -> None:
        with replacing_all(tmp_path / "out") as temporary:
            for name in ("a", "b"):
                (temporary / name).write_text("after", encoding="utf-8")

    with pytest.raises(UserError, match=r"out/b: cannot be written \(a folder has this name\)"):
        write()
    (tmp_path / "out" / "b").rmdir()
    (tmp_path / "out" / "b").write_text("before", encoding="utf-8")
    # The superuser may write everywhere, so the answer of the system is played.
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).name != "b")
    with pytest.raises(UserError, match=r"out/b: cannot be written \(it is write-protected\)"):
        write()
    assert {path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir()} == {"before"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    with pytest.raises(UserError, match=r"cannot be written"), replacing_all(tmp_path / "out" / "a" / "c"):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match=r"file/folder/a.txt: cannot be written"):
        write_text(tmp_path / "file" / "folder" / "a.txt", "x")


def test_a_key_that_stands_twice_is_refused_with_its_line(tmp_path: Path) -> None:
    source = tmp_path / "a.yaml"
    source.write_text("train:\n  lr: 1\n  steps: 2\n  lr: 3\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"the key 'lr' stands twice.*line 4"):
        read_yaml(source)


def test_equal_keys_in_different_mappings_and_merged_keys_are_fine(tmp_path: Path) -> None:
    source = tmp_path / "a.yaml"
    source.write_text("a: &a {lr: 1, steps: 2}\nb: {<<: *a, lr: 3}\n", encoding="utf-8")
    assert read_yaml(source) == {"a": {"lr": 1, "steps": 2}, "b": {"lr": 3, "steps": 2}}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such file"),
        ("", "not JSON"),
        ('{"a": ', "not JSON"),
        ("[1]", "expected a JSON object, found list"),
        ("null", "expected a JSON object, found NoneType"),
        ('{"a": 1}', "no 'b'; found a"),
    ],
)
def test_json_that_is_absent_damaged_or_another_value_is_named(tmp_path: Path, content: str | None, says: str) -> None:
    source = tmp_path / "a.json"
    if content is not None:
        source.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=says) as error:
        read_json(source, "a", "b")
    assert "a.json" in str(error.value)


@pytest.mark.parametrize("fault", ["absent", "cut", "empty", "text", "folder"])
def test_a_parquet_file_that_is_absent_or_damaged_is_named(tmp_path: Path, fault: str) -> None:
    source = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": ["1", "2"]}), source)
    content = source.read_bytes()
    source.unlink()
    if fault == "folder":
        source.mkdir()
    elif fault != "absent":
        source.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "text": b"hello"}[fault])
    with pytest.raises(UserError, match=r"a.parquet: no(t| such)"):
        read_parquet(source)


def test_columns_are_read_or_missed_by_name(tmp_path: Path) -> None:
    source = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": ["1", "2"], "gold": ["3", "4"]}), source)
    assert read_parquet(source, ["gold"]).to_pydict() == {"gold": ["3", "4"]}
    assert read_parquet(source, []).num_rows == 2
    with pytest.raises(UserError, match=r"a.parquet: no column 'answer'; found id, gold"):
        read_parquet(source, ["id", "answer"])
