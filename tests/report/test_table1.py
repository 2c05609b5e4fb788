"""Table 1 from made verdicts: numbers, boldness, what has not run, traceability, and the paper's cells."""

import html.parser
import re

import numpy as np
import pandas as pd
import pytest
import yaml

from fr3e.errors import UserError
from fr3e.evaluation import statistics
from fr3e.report import published, tables
from fr3e.report.table1 import signed, write_table1
from tests.evaluation import made

RNG = np.random.default_rng(0)
P_EASY, P_HARD = 60, 40


def answers(rate, problems, samples):
    return (RNG.random((problems, samples)) < rate).astype(int)


@pytest.fixture(scope="module")
def made_results(tmp_path_factory):
    """One model with base, three GRPO++ seeds and two of three FR3E seeds; another that has not run."""
    root = tmp_path_factory.mktemp("table")
    plan = made.report_plan(root, {"a": "Toy & Co_1", "b": "Absent"}, ["grpo_pp", "fr3e"], [0, 1, 2])
    arrays = {}
    for tag, rate in [
        ("base-a", 0.2),
        *((f"a-grpo_pp-s{s}", 0.4) for s in range(3)),
        *((f"a-fr3e-s{s}", 0.7) for s in (0, 1)),
    ]:
        arrays[tag] = answers(rate, P_EASY, 4), answers(0.3, P_HARD, 1)
        made.write_run(root / tag, *arrays[tag])
    write_table1(plan, root / "out")
    return root, arrays


@pytest.fixture(scope="module")
def cells(made_results):
    frame = pd.read_csv(made_results[0] / "out" / "table1.csv", keep_default_na=True)
    return frame.set_index(["model", "method", "benchmark", "quantity"]).sort_index()


def test_scores_are_means_over_seeds_of_the_headline_protocol(made_results, cells):
    _, arrays = made_results
    easy = [arrays[f"a-grpo_pp-s{s}"][0].mean() for s in range(3)]
    hard = [arrays[f"a-grpo_pp-s{s}"][1].mean() for s in range(3)]
    cell = cells.loc[("a", "grpo_pp", "easy", "score")]
    assert cell["value"] == pytest.approx(100 * np.mean(easy), abs=1e-4)
    assert (cell["n"], cell["k"], cell["protocol"], cell["seeds"], cell["status"]) == (P_EASY, 4, "avg4", "0;1;2", "ok")
    average = cells.loc[("a", "grpo_pp", "average", "score")]
    assert average["value"] == pytest.approx(100 * (np.mean(easy) + np.mean(hard)) / 2, abs=1e-4)


def test_a_single_greedy_run_has_wilsons_interval(made_results, cells):
    right = int(made_results[1]["base-a"][1].sum())
    expected = [100 * value for value in statistics.wilson(right, P_HARD)]
    assert cells.loc[("a", "base", "hard", "score"), ["value", "low", "high"]].tolist() == pytest.approx(
        expected, abs=1e-4
    )


def test_missing_seeds_are_told(made_results, cells):
    cell = cells.loc[("a", "fr3e", "easy", "score")]
    assert (cell["seeds"], cell["status"]) == ("0;1", "partial")
    assert "(2 of 3 seeds)" in (made_results[0] / "out" / "table1.md").read_text()


def test_difference_is_paired_and_bold_only_where_the_interval_excludes_zero(cells):
    rows = cells.xs("difference", level="quantity").loc["a"].loc["fr3e-grpo_pp"]
    assert rows.loc["easy", "value"] == pytest.approx(
        cells.loc[("a", "fr3e", "easy", "score"), "value"] - cells.loc[("a", "grpo_pp", "easy", "score"), "value"],
        abs=1e-3,
    )
    assert bool(rows.loc["easy", "bold"]) and rows.loc["easy", "low"] > 0
    for _, row in rows.iterrows():
        assert bool(row["bold"]) == (row["low"] > 0 or row["high"] < 0)
    holm = statistics.holm(rows.loc[["easy", "hard"], "p"].tolist())
    assert rows.loc[["easy", "hard"], "p_holm"].tolist() == pytest.approx(holm)


def test_nothing_but_differences_is_bold(made_results, cells):
    assert set(cells[cells["bold"].astype(bool)].reset_index()["quantity"]) == {"difference"}
    lines = (made_results[0] / "out" / "table1.md").read_text().splitlines()
    for line in lines:
        if re.search(r"\| \*\*[+−\d]", line):
            assert line.startswith("| FR3E − GRPO++ |")


def test_a_difference_of_one_seed_is_marked(made_results, tmp_path):
    text = (made_results[0] / "out" / "table1.md").read_text()
    several = next(line for line in text.splitlines() if line.startswith("| FR3E − GRPO++"))
    assert tables.ONE_SEED not in several and tables.ONE_SEED_NOTE in text
    plan = made.report_plan(tmp_path, {"a": "Toy"}, ["grpo_pp", "fr3e"], [0])
    for method, rate in (("grpo_pp", 0.1), ("fr3e", 0.9)):
        made.write_run(tmp_path / f"a-{method}-s0", answers(rate, P_EASY, 4), answers(rate, P_HARD, 1))
    write_table1(plan, tmp_path / "out")
    lines = (tmp_path / "out" / "table1.md").read_text().splitlines()
    row = next(line for line in lines if line.startswith("| FR3E − GRPO++"))
    cells = row.split(" | ")[1:]
    assert len(cells) == 3 and all(re.match(r"\*\*\+\d.*\]†", cell) for cell in cells)


def test_a_benchmark_that_neither_solves_has_no_interval_of_no_width(tmp_path):
    plan = made.report_plan(tmp_path, {"a": "Toy"}, ["grpo_pp", "fr3e"], [0, 1])
    for tag in (f"a-{method}-s{seed}" for method in ("grpo_pp", "fr3e") for seed in (0, 1)):
        made.write_run(tmp_path / tag, answers(0.5, P_EASY, 4), np.zeros((P_HARD, 1), int))
    write_table1(plan, tmp_path / "out")
    text = (tmp_path / "out" / "table1.md").read_text()
    row = next(line for line in text.splitlines() if line.startswith("| FR3E − GRPO++"))
    assert row.split(" | ")[2] == "0.0"
    assert tables.NO_INTERVAL_NOTE in text


def test_every_cell_names_its_verdict_files(made_results, cells):
    root, arrays = made_results
    for key, cell in cells[cells["status"] != "not run"].iterrows():
        files = cell["verdicts"].split(";")
        assert all((root / path).is_file() for path in files), key
        if key[2] != "average":
            assert all(path.endswith(f"{key[2]}/verdicts.parquet") for path in files)
    one = cells.loc[("a", "grpo_pp", "hard", "score"), "verdicts"].split(";")
    assert [path.split("/")[-3] for path in one] == [tag for tag in arrays if "grpo_pp" in tag]


def test_what_has_not_run_says_so(made_results, cells):
    absent = cells.loc["b"]
    assert set(absent["status"]) == {"not run"} and absent["value"].isna().all()
    for ending in ("md", "tex", "html"):
        assert (made_results[0] / "out" / f"table1.{ending}").read_text().count("not run") >= 12


def test_an_average_needs_all_benchmarks(tmp_path):
    plan = made.report_plan(tmp_path, {"a": "Toy"}, ["grpo_pp", "fr3e"], [0])
    made.write_run(tmp_path / "a-fr3e-s0", answers(0.5, 5, 4), answers(0.5, 5, 1))
    (tmp_path / "a-fr3e-s0" / "hard" / "verdicts.parquet").unlink()
    write_table1(plan, tmp_path / "out")
    frame = pd.read_csv(tmp_path / "out" / "table1.csv").set_index(["method", "benchmark"])
    assert frame.loc[("fr3e", "easy"), "status"] == "ok"
    assert frame.loc[("fr3e", "average"), "status"] == "not run"


def test_runs_over_different_problems_are_not_compared(tmp_path):
    plan = made.report_plan(tmp_path, {"a": "Toy"}, ["grpo_pp", "fr3e"], [0])
    made.write_run(tmp_path / "a-fr3e-s0", answers(0.5, 5, 4), answers(0.5, 5, 1))
    made.write_run(tmp_path / "a-grpo_pp-s0", answers(0.5, 6, 4), answers(0.5, 5, 1))
    with pytest.raises(UserError, match="answers other problems than"):
        write_table1(plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()


class Text(html.parser.HTMLParser):
    """Cells of an HTML table, row by row, and whether every tag closes in order."""

    def __init__(self):
        super().__init__()
        self.open, self.rows = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "tr" in self.open and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_html_is_whole_escaped_and_says_what_the_csv_says(made_results, cells):
    parsed = Text()
    parsed.feed((made_results[0] / "out" / "table1.html").read_text())
    assert not parsed.open
    assert ["Toy & Co_1"] in parsed.rows
    head = parsed.rows[0]
    assert (
        "n=60, k=4" in head[1]
        and "avg@4" in head[1]
        and "T=1" in head[1]
        and "n=40, k=1" in head[2]
        and "greedy" in head[2]
    )
    base = next(row for row in parsed.rows if row[0] == "Base model")
    assert base[1].startswith(f"{cells.loc[('a', 'base', 'easy', 'score'), 'value']:.1f}")


def test_latex_is_balanced_booktabs(made_results):
    text = (made_results[0] / "out" / "table1.tex").read_text()
    assert text.count("{") - text.count("\\{") == text.count("}") - text.count("\\}")
    for rule in ("toprule", "midrule", "bottomrule"):
        assert f"\\{rule}" in text
    assert "Toy \\& Co\\_1" in text and "Hard \\& long" in text and "±" not in text and "−" not in text
    inner = re.sub(r"\\begin\{tabular\}\[t\].*?\\end\{tabular\}", "cell", text)
    rows = [line for line in inner.splitlines() if line.endswith("\\\\") and "multicolumn" not in line]
    assert len(rows) == 4 + 8 and all(len(re.findall(r"(?<!\\)&", row)) == 3 for row in rows)


def test_tex_escapes_every_special_character():
    assert tables.tex("50% & $x_1^2$ #{~}\\") == (
        "50\\% \\& \\$x\\_1\\textasciicircum{}2\\$ \\#\\{\\textasciitilde{}\\}\\textbackslash{}"
    )


@pytest.mark.parametrize(("value", "text"), [(1.25, "+1.2"), (-0.04, "0.0"), (0.0, "0.0"), (-3.16, "−3.2")])
def test_signed(value, text):
    assert signed(value) == text


# --- the paper's numbers


def test_published_cells_are_all_there():
    data = published.load()
    assert len(data["models"]) == 3 and "2507.07017" in data["source"]
    for methods in data["models"].values():
        assert set(methods) == {"fr3e", "grpo_pp"}
        for row in methods.values():
            assert set(row) == {*data["problems"], "average"}
    assert sum(len(row) - 1 for methods in data["models"].values() for row in methods.values()) == 48


def test_published_averages_agree_with_their_cells():
    # A printed average may differ from the mean of its printed cells by .05 for its own rounding; ties go either way.
    off = [
        (model, method, printed, mean)
        for model, method, printed, mean in published.averages()
        if abs(printed - mean) > 0.05 + 1e-9
    ]
    assert off == []  # docs/evaluation.md says which averages would stand here


def test_published_cells_can_be_reached_with_these_problem_counts():
    # 39.1 is 375 of 30 * 32 answers; a cell that no count rounds to would mean other problems or another protocol.
    assert published.attainable(39.1, 960) and published.attainable(67.5, 40) and not published.attainable(67.0, 40)
    assert published.unattainable() == []


def test_published_numbers_stand_beside_ours(tmp_path):
    plan = made.report_plan(tmp_path, {"m": "Qwen2.5-7B"}, ["grpo_pp", "fr3e"], [0])
    values = yaml.safe_load(plan.read_text())
    values["benchmarks"] = {name: {"title": name, "protocols": ["greedy"]} for name in published.load()["problems"]}
    values["report"] = {"published": True, "bootstrap_draws": 200}
    plan.write_text(yaml.safe_dump(values, sort_keys=False))
    for name in values["benchmarks"]:
        correct = np.array([[1], [0], [1], [0]])
        made.write_verdicts(tmp_path / "m-fr3e-s0" / name / "verdicts.parquet", name, greedy=correct)
    write_table1(plan, tmp_path / "out")
    cells = pd.read_csv(tmp_path / "out" / "table1.csv").set_index(["method", "benchmark", "quantity"])["value"]
    assert cells[("fr3e", "amc23", "published")] == 67.5
    assert cells[("fr3e", "amc23", "ours_minus_published")] == pytest.approx(50 - 67.5)
    assert cells[("fr3e", "average", "ours_minus_published")] == pytest.approx(50 - 57.3)
    assert cells[("fr3e-grpo_pp", "average", "published_difference")] == pytest.approx(3.0)
    assert np.isnan(cells[("grpo_pp", "amc23", "ours_minus_published")])
    text = (tmp_path / "out" / "table1.md").read_text()
    row = next(line for line in text.splitlines() if line.startswith("| FR3E, ours − paper |"))
    assert "| +24.8 [" in row and "| −7.3 [" in row  # 50 - 25.2 on AIME24, 50 - 57.3 on average
    assert "| FR3E, paper | 25.2 |" in text and "| GRPO++, ours − paper | *not run*" in text


def test_other_benchmarks_get_no_published_average(tmp_path):
    plan = made.report_plan(tmp_path, {"m": "Qwen2.5-7B"}, ["grpo_pp", "fr3e"], [0], report={"published": True})
    values = yaml.safe_load(plan.read_text())
    values["benchmarks"]["amc23"] = {"title": "AMC23", "protocols": ["greedy"]}
    plan.write_text(yaml.safe_dump(values, sort_keys=False))
    write_table1(plan, tmp_path / "out")
    cells = pd.read_csv(tmp_path / "out" / "table1.csv").set_index(["method", "benchmark", "quantity"])
    assert cells.loc[("fr3e", "amc23", "published"), "value"] == 67.5
    assert cells.loc[("fr3e", "average", "published"), "status"] == "not published"
