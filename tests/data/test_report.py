"""The data page: numbers as in the files, everything escaped, nothing loaded from elsewhere."""

import html
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fr3e.config.scenario import RealData
from fr3e.data.assemble import assemble
from fr3e.data.benchmarks import write_benchmarks
from fr3e.data.report import bars, table, write_report
from fr3e.errors import UserError
from fr3e.evaluation.prompts import render_text
from fr3e.files import write_json
from tests.data.small import DEEP, make_mirror, write_list


@pytest.fixture
def data(tmp_path: Path) -> Path:
    mirror = tmp_path / "mirror"
    sources = make_mirror(mirror)
    rows = [{"prompt": q, "answer": gold} for q, gold, level in DEEP if level == 1]
    rows[0] = {"prompt": "Is <script>alert(1)</script> & 1 < 2 an <b>inequality</b>?", "answer": "<i>"}
    write_list(mirror / "train/deep1.json", rows)
    write_benchmarks(mirror, tmp_path / "data/benchmarks", None, sources)
    assemble(mirror, tmp_path / "data", RealData(sources=str(sources)))
    return tmp_path / "data"


def test_a_page_of_an_assembly(data, tmp_path):
    write_report(data, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    train, dropped = (pq.read_table(data / f"{name}.parquet").to_pylist() for name in ("train", "dropped"))
    assert f"{len(train)} training problems and 4 questions in 2 benchmarks" in page
    for name in {row["filter"] for row in dropped}:
        count = sum(row["filter"] == name for row in dropped)
        assert f"{name}: {count} rows" in page
    assert "no tokenizer was given" in page
    assert "simplelr / aime24" in page
    for heading in ("From the sources", "Levels", "Lengths", "Overlap", "Golds by type", "Licences", "First prompt"):
        assert heading in page
    assert "Please reason step by step, and put your final answer within" in page  # the rendered prompt
    assert "&lt;|im_start|&gt;user\nAnn has 3 apples" in page


def test_the_models_templates_are_those_shown_and_measured(data, tmp_path):
    write_report(data, tmp_path / "page.html", ["simple", "qwen25_math_cot"])
    page = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    for template in ("simple", "qwen25_math_cot"):
        assert render_text(template, "Ann has 3 apples and buys 2. How many has she?") in page
        assert f"In bytes, template {template}" in page
    assert "qwen_boxed" not in page
    manifest = json.loads((data / "manifest.json").read_text())
    questions = pq.read_table(data / "train.parquet")["question"].to_pylist()
    # The template's text counts: 45 bytes of `simple` bring a question of fewer bytes than the limit over it.
    limit = max(len(question.encode()) for question in questions)
    manifest["length_filter"] |= {"max_prompt_tokens": limit, "questions_longer_in_bytes": 0}
    write_json(data / "manifest.json", manifest)
    write_report(data, tmp_path / "page.html", ["simple"])
    longer = sum(len(question.encode()) + 45 > limit for question in questions)
    assert longer and f"more than {limit} bytes: {longer} in simple" in (tmp_path / "page.html").read_text()


def test_nothing_is_loaded_and_nothing_is_run(data, tmp_path):
    write_report(data, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page and "<i>" not in page
    assert not re.search(r"""(?:src|href)\s*=\s*["']?http""", page)
    assert "@import" not in page and "url(" not in page


def test_a_page_of_data_without_manifests(tmp_path):
    folder = tmp_path / "data"
    (folder / "benchmarks").mkdir(parents=True)
    rows = [{"id": f"train-{i}", "question": f"{i}+1?", "gold": str(i + 1), "source": "chains"} for i in range(3)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")
    own = [{"id": "chain-0", "question": "4-4*3?", "gold": "0", "gold_source": "0", "status": "ok", "reason": ""}]
    pq.write_table(pa.Table.from_pylist(own), folder / "benchmarks/chain.parquet")
    write_report(folder, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "3 training problems and 1 questions in 1 benchmarks" in page
    assert html.escape(render_text("demo", "4-4*3?")) in page
    assert "Overlap" not in page


def test_a_folder_without_data(tmp_path):
    with pytest.raises(UserError, match=r"train\.parquet: no such file; make the data first"):
        write_report(tmp_path, tmp_path / "page.html")
    (tmp_path / "train.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match=r"train\.parquet: not a readable parquet file"):
        write_report(tmp_path, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_tables_and_bars_escape():
    assert "<td>&lt;b&gt;</td>" in table(["a", "b"], [["x", "<b>"]])
    assert "&lt;b&gt;" in bars({"<b>": 3, "none": 0}, "a & b") and 'aria-label="a &amp; b"' in bars({}, "a & b")
