"""Captions: one per reported output, rendered as Snakemake renders them, with the scenario's facts."""

import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils.core import publish_parts
from jinja2 import Environment

from fr3e.config.load import load_scenario, resolve_run, run_ids
from fr3e.report.captions import facts
from fr3e.report.names import FIGURES
from fr3e.report.overview import write_overview
from fr3e.report.runs import ROOT

FOLDER = ROOT / "workflow" / "report"
OTHERS = ("table1", "cost", "explorer", "grading", "overview", "arms", "arms_tokens", "data_report")
# The settings of Snakemake's own report: snakemake/report/__init__.py.
JINJA = Environment(trim_blocks=True, lstrip_blocks=True)
STRICT = {"report_level": 1, "halt_level": 1}


def rendered(name: str, params: dict, categories: dict | None = None) -> str:
    snakemake = SimpleNamespace(params=params, config={"scenario": "demo"})
    template = JINJA.from_string((FOLDER / f"{name}.rst").read_text(encoding="utf-8"))
    text = template.render(snakemake=snakemake, categories=categories or {})
    return publish_parts(text, writer="html", settings_overrides=STRICT)["html_body"]


def scenario_facts(name: str) -> dict[str, str]:
    scenario = load_scenario(ROOT / "config" / f"{name}.yaml")
    return facts(scenario, {run: resolve_run(scenario, *key) for run, key in run_ids(scenario).items()})


@pytest.mark.parametrize("name", [*FIGURES, *OTHERS])
def test_every_output_has_a_caption_with_and_without_facts(name: str) -> None:
    bare = rendered(name, {})
    full = rendered(name, {"facts": scenario_facts("demo")})
    for text in (bare, full):
        assert "{{" not in text
        assert "None" not in text
    if name in FIGURES:
        assert "What to see" in full
        assert "What not to conclude" in full
        assert "3 training seeds (0, 1, 2)" in full
        assert "K = 3 anchors, M = 8 continuations" in full
        assert "T = 1" in full


def test_no_caption_is_without_its_output() -> None:
    assert {path.stem for path in FOLDER.glob("*.rst")} == {*FIGURES, *OTHERS, "workflow"}
    assert "FR3E" in rendered("workflow", {})


class Frame(HTMLParser):
    """The document inside the frame."""

    document = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "iframe":
            self.document = dict(attrs)["srcdoc"] or ""


def words(document: str) -> str:
    """What stands between the tags."""
    return re.sub(r"<[^>]*>", "|", document)


def test_the_report_opens_with_the_overview(in_demo: Path) -> None:
    page = Path("opening/overview.html")
    write_overview(Path("results/demo/report.yaml"), page)
    record, other = (SimpleNamespace(path=path) for path in (page, Path("cost.html")))
    frame = Frame()
    frame.feed(rendered("workflow", {}, {"Cost": {"Cost": [other]}, "Overview": {"Overview": [record]}}))
    assert words(frame.document) == "|" + words(page.read_text(encoding="utf-8").strip())
    for part in ("What was run", "Table 1", "Claims tested", "Cost"):
        assert f"<h2\n>{part}</h2\n>" in frame.document


def test_the_paper_scenario_says_that_it_has_one_seed() -> None:
    found = scenario_facts("paper")
    scenario = load_scenario(ROOT / "config" / "paper.yaml")
    assert ("one training seed" in found["seeds"]) == (len(scenario.seeds) == 1)
    assert re.search(r"GRPO\+\+: n = 16 rollouts per prompt", found["methods"])
    assert "greedy" in found["protocols"]


def test_learning_curves_say_which_benchmarks_have_none() -> None:
    probed = scenario_facts("paper")["probed"]
    assert probed.startswith("3 of 8 benchmarks have a curve")
    assert "GSM8K, Minerva, Gaokao2023en, Olympiad, College are evaluated once" in probed
    assert "3 of 8 benchmarks" in rendered("learning_curves", {"facts": scenario_facts("paper")})
