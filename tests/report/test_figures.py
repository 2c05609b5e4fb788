"""All figures as files: what is written, that fonts are embedded, that what has not run says so."""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.text import Text

from fr3e.errors import UserError
from fr3e.report import style
from fr3e.report.figures import FIGURES, draw_all, write_figures
from fr3e.report.figures_bars import bars_table, draw_bars
from fr3e.report.figures_tokens import chosen_trajectories, lines, tokens_table
from fr3e.report.runs import load_runs
from tests.report.synthetic import scenario_plan, write_results


def test_the_list_of_names_needs_no_matplotlib() -> None:
    code = "import sys, fr3e.report.figures as f; assert f.FIGURES; assert 'matplotlib' not in sys.modules and 'pandas' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def check_files(folder: Path, name: str) -> None:
    """PDF with embedded TrueType fonts and no date, PNG at 200 dpi, CSV with rows."""
    pdf = (folder / f"{name}.pdf").read_bytes()
    assert b"/FontFile2" in pdf, f"{name}: no TrueType font embedded"
    assert b"/Type3" not in pdf, f"{name}: Type 3 fonts are refused by publishers"
    assert b"/CreationDate" not in pdf
    png = (folder / f"{name}.png").read_bytes()
    # pHYs: 200 dpi are 7874 pixels per metre.
    assert re.search(rb"pHYs(.{4})", png, re.S).group(1) == (7874).to_bytes(4, "big")
    assert len(pd.read_csv(folder / f"{name}.csv")), f"{name}: no data"


def test_every_figure_draws_the_demo_and_three_of_them_are_sound_files(in_demo: Path, demo_plan) -> None:
    seen = set()
    with pyplot.style.context(style.style_file()):
        for name, figure, data in draw_all(demo_plan):
            assert len(data), f"{name}: no data"
            words = {text.get_text() for text in figure.findobj(Text)}
            assert "not run" not in words, name
            seen.add(name)
            if name in ("length_reward_covariance", "alpha_histogram", "fig2_tokens"):
                style.save(figure, data, Path("some"), name)
                check_files(Path("some"), name)
            pyplot.close(figure)
    assert seen == set(FIGURES)


@pytest.mark.slow
def test_every_figure_is_a_pdf_with_embedded_fonts_a_png_and_its_data(in_demo: Path) -> None:
    write_figures(Path("results/demo/report.yaml"), Path("figures"))
    made = {path.name for path in Path("figures").iterdir()}
    assert made == {f"{name}.{ending}" for name in FIGURES for ending in ("pdf", "png", "csv")}
    for name in FIGURES:
        check_files(Path("figures"), name)


def test_absent_runs_leave_panels_that_say_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = scenario_plan()
    write_results(tmp_path, plan, skip=tuple(entry.tag for entry in plan.evaluated))
    seen = set()
    for name, figure, data in draw_all(plan):
        assert data.empty
        words = {text.get_text() for text in figure.findobj(Text)}
        assert "not run" in words, f"{name} does not say that nothing has run"
        seen.add(name)
        pyplot.close(figure)
    assert seen == set(FIGURES)


def test_the_papers_marks_name_their_method_where_nothing_has_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = scenario_plan("paper")
    figure = draw_bars(bars_table(plan), plan)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(legend) == ["FR3E, paper", "GRPO++, paper"]
    marks = [line for axes in figure.axes for line in axes.lines if line.get_linestyle() == "None"]
    assert len(marks) == 2 * len(plan.models)
    assert len({(line.get_marker(), line.get_markeredgecolor()) for line in marks}) == 2
    pyplot.close(figure)


def test_a_broken_metrics_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = scenario_plan()
    write_results(tmp_path, plan, updates=10)
    broken = tmp_path / "results/demo/runs/toy-fr3e-s1/metrics.jsonl"
    broken.write_text(broken.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    with pytest.raises(UserError, match=r"toy-fr3e-s1/metrics\.jsonl:11: not JSON"):
        write_figures(Path("results/demo/report.yaml"), Path("figures"))
    assert not Path("figures").exists()


def test_the_trajectories_shown_follow_a_fixed_rule(in_demo: Path, demo_plan) -> None:
    runs = [run for run in load_runs(demo_plan) if run.method == "fr3e"]
    chosen = chosen_trajectories(runs)
    assert [row["update"] for row in chosen] == [0, 20, 50]
    assert {row["run"] for row in chosen} == {"toy-fr3e-s0"}
    table = tokens_table(runs, ["toy"], "fr3e")
    assert table.groupby("update").anchor.sum().tolist() == [3, 3, 3]


def test_tokens_are_set_in_lines_without_being_split() -> None:
    # Width 5: "ab" "cd" fill 4, "ef" goes to the next line, where "⏎" and "gh" fill it.
    assert lines(["ab", "cd", "ef", "⏎", "gh", "i"], width=5) == [(0, 0), (0, 2), (1, 0), (1, 2), (1, 3), (2, 0)]
    assert lines(["abcdefgh", "i"], width=5) == [(0, 0), (1, 0)]
