"""`fr3e trace` from cells to files, from wherever it is called, and on tables that are not what it reads."""

from pathlib import Path

import pytest

from fr3e.errors import UserError
from fr3e.files import write_text
from fr3e.provenance.manifest import recorded
from fr3e.provenance.trace import trace

HEADER = "model,method,benchmark,quantity,value,low,high,verdicts\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such table; tables there: none"),
        (b"", "not a CSV table"),
        (b"hello world", "no column 'model'"),
        (b"\xff\xfe\x00", "not a CSV table"),
        (HEADER.encode(), "no such cell"),
    ],
)
def test_a_table_that_is_absent_or_damaged_is_named(tmp_path: Path, content: bytes | None, says: str) -> None:
    if content is not None:
        (tmp_path / "table1.csv").write_bytes(content)
    with pytest.raises(UserError, match=says) as error:
        trace("table1", "toy/fr3e/chain", tmp_path)
    assert "table1.csv" in str(error.value)


def made(monkeypatch: pytest.MonkeyPatch, project: Path) -> Path:
    """results/tiny of a project: a table with two scores and their difference, and the verdicts behind them."""
    monkeypatch.chdir(project)
    results = Path("results/tiny")
    files = {arm: results / f"{arm}.parquet" for arm in ("fr3e", "grpo_pp")}
    for arm, path in files.items():
        write_text("data/chain.txt", "gold")
        with recorded("grade", [path], [Path("data/chain.txt")]):
            write_text(path, arm)
    rows = [f"toy,{arm},chain,score,5,4,6,{path}\n" for arm, path in files.items()]
    rows += [f"toy,fr3e-grpo_pp,chain,difference,1,-1,2,{files['fr3e']};{files['grpo_pp']}\n"]
    rows += [
        "toy,fr3e-grpo_pp,chain,published_difference,3,,,\n",
        f"toy,fr3e,chain,ours_minus_published,2,1,3,{files['fr3e']}\n",
    ]
    write_text(results / "table1.csv", HEADER + "".join(rows))
    return results


def test_a_difference_is_traced_to_the_files_of_both_methods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = trace("table1", "toy/fr3e-grpo_pp/chain", made(monkeypatch, tmp_path))
    assert chain.splitlines()[0].endswith("toy/fr3e-grpo_pp/chain = 1 [-1, 2]")
    for arm in ("fr3e", "grpo_pp"):
        assert f"  results/tiny/{arm}.parquet sha256" in chain
    assert chain.count("by grade (code ") == 2
    with pytest.raises(UserError, match="nearest cells: toy/fr3e/chain, toy/fr3e-grpo_pp/chain, toy/grpo_pp/chain"):
        trace("table1", "toy/fr3e", Path("results/tiny"))


def test_the_chain_is_the_same_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = made(monkeypatch, tmp_path)
    here = trace("table1", "toy/fr3e/chain", results)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for there in (tmp_path / results, Path("../results/tiny")):
        assert trace("table1", "toy/fr3e/chain", there).splitlines()[1:] == here.splitlines()[1:]
    assert "(missing)" not in here
