"""The opening page: what it says, that it is safe and self-contained."""

from html.parser import HTMLParser
from math import nan
from pathlib import Path

import pytest

from fr3e.report.claims import Comparison, Judged
from fr3e.report.cost import write_cost
from fr3e.report.overview import document, hours, lead, write_overview
from fr3e.report.runs import ROOT
from fr3e.report.table1 import write_table1
from tests.report.synthetic import scenario_plan, write_results

VOID = {"meta", "br", "link", "hr", "img", "input", "col"}


class Balanced(HTMLParser):
    """Fails on a tag that is closed but not open, or open at the end; collects what would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.fetched += [value or "" for name, value in attrs if name == "src" or (name == "href" and tag == "link")]

    def handle_endtag(self, tag: str) -> None:
        if tag in ("p", "li") and self.open[-1] != tag:
            return
        assert self.open.pop() == tag


def checked(page: str) -> Balanced:
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    return parser


def test_the_page_of_the_demo(in_demo: Path) -> None:
    plan, out = Path("results/demo/report.yaml"), Path("results/demo")
    write_table1(plan, out)
    write_cost(plan, out)
    write_overview(plan, out / "overview.html")
    page = (out / "overview.html").read_text(encoding="utf-8")
    assert checked(page).fetched == []
    assert "<script" not in page
    assert "6 of 6 finished" in page
    assert "Cost to equal accuracy" in page
    assert "Chain" in page
    assert page.count("<main>") == 2  # its own, and the one that frames the cost tables
    assert "On Toy-0.2M, FR3E ends" in page
    assert 'id="claim-entropy"' in page


def test_an_empty_results_folder_gives_an_honest_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = scenario_plan()
    path = write_results(tmp_path, plan, skip=tuple(entry.tag for entry in plan.evaluated))
    write_overview(path, Path("overview.html"))
    page = Path("overview.html").read_text(encoding="utf-8")
    checked(page)
    assert "have not both been trained and evaluated yet" in page
    assert "0 of 6 finished" in page
    assert page.count(">not run<") >= 6 + 2
    assert page.count('class="status attempted">not attempted') >= 12


def test_text_from_results_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = scenario_plan().model_copy(update={"models": {"toy": "<script>alert(1)</script>"}})
    path = write_results(tmp_path, plan, updates=10)
    write_overview(path, Path("overview.html"))
    page = Path("overview.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_the_lead_says_what_the_interval_says() -> None:
    plan = scenario_plan()

    def words(value: float, low: float, high: float) -> str:
        found = Comparison("Toy-0.2M, FR3E − GRPO++", value, low, high, 100, "points")
        return lead(plan, [Judged("accuracy", "", (found,))])

    assert "1.0 points below GRPO++" in words(-0.01, -0.03, 0.01)
    assert "neither is shown to be better" in words(-0.01, -0.03, 0.01)
    assert "the interval excludes 0" in words(-0.02, -0.03, -0.01)
    assert "2.0 points above GRPO++" in words(0.02, 0.01, 0.03)
    assert "(no interval): neither is shown to be better" in words(0.02, nan, nan)


def test_documents_are_rendered_without_raw_html(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "deviations.md").write_text(
        "# A\n\n| a | b |\n| - | - |\n| <b>x</b> | `y` |\n", encoding="utf-8"
    )
    monkeypatch.setattr("fr3e.report.overview.ROOT", tmp_path)
    made = document("deviations.md")
    assert "<h3>A</h3>" in made
    assert "&lt;b&gt;x&lt;/b&gt;" in made
    assert "<td><code>y</code></td>" in made
    assert "is not there" in document("absent.md")


def test_the_claims_document_renders() -> None:
    assert (ROOT / "docs" / "claims.md").is_file()
    assert document("claims.md").count("<tr>") == 13


def test_durations() -> None:
    assert [hours(s) for s in (59, 600, 9000)] == ["59 s", "10.0 min", "2.5 h"]
