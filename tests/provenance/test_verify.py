"""`fr3e verify` beside broken manifests."""

from pathlib import Path

import pytest

from fr3e.files import write_text
from fr3e.provenance.manifest import path_of, recorded
from fr3e.provenance.verify import faults


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        with recorded("score", [Path("results", f"{name}.csv")]):
            write_text(Path("results", f"{name}.csv"), name)
    return Path("results")


def test_results_as_they_were_made_have_no_faults(results: Path) -> None:
    assert faults(results) == []


@pytest.mark.parametrize("content", ["", "null", "[1]", '{"stage": "score"}'])
def test_a_broken_manifest_is_a_fault_and_hides_no_other(results: Path, content: str) -> None:
    path_of(results / "a.csv").write_text(content, encoding="utf-8")
    (results / "b.csv").write_text("changed", encoding="utf-8")
    found = faults(results)
    assert ("altered", "results/b.csv") in found
    assert any(word == "altered" and "a.csv.provenance.json" in what for word, what in found)
    assert ("unknown", "results/a.csv has no manifest") in found


def test_the_faults_are_the_same_from_another_folder(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Manifests hold paths relative to the project; where the call is made from must not matter."""
    write_text("data/train.txt", "1")
    with recorded("score", [results / "deep/c.csv"], [Path("data/train.txt")]):
        write_text(results / "deep/c.csv", "c")
    assert faults(results) == faults(tmp_path / results) == []
    (results / "b.csv").write_text("changed", encoding="utf-8")
    (results / "a.csv").unlink()
    (results / "unknown.csv").write_text("", encoding="utf-8")
    write_text("data/train.txt", "2")
    here = faults(results)
    assert sorted(word for word, _ in here) == ["altered", "missing", "stale", "unknown"]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for there in (tmp_path / results, Path("../results"), Path("../elsewhere/../results/")):
        assert faults(there) == here
    assert faults(tmp_path / results / "deep") == [fault for fault in here if "deep" in fault[1]]
