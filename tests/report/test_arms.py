"""The ablation table and its figure from made verdicts and metrics."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import yaml

from fr3e.report.arms import write_arms
from fr3e.report.arms_figure import _panel
from fr3e.report.style import SPARE
from tests.evaluation import made

METHODS, ARMS = ["grpo_pp", "fr3e"], ["random_anchors", "no_alpha"]
RATES = {"base": 0.2, "grpo_pp": 0.4, "fr3e": 0.7, "random_anchors": 0.7}
SEEDS = [0, 1]


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """Two models planned, one run; `no_alpha` is planned and absent."""
    folder = tmp_path_factory.mktemp("arms")
    plan = made.report_plan(folder, {"a": "Toy", "b": "Other"}, [*METHODS, *ARMS], SEEDS)
    values = yaml.safe_load(plan.read_text()) | {
        "methods": METHODS,
        "arms": ARMS,
        "questions": {"random_anchors": "Chance?"},
        "subjects": {"random_anchors": "anchors", "no_alpha": "alpha"},
    }
    values["evaluated"] = [e for e in values["evaluated"] if e["model"] == "a" or e["method"] in ("base", *METHODS)]
    plan.write_text(yaml.safe_dump(values, sort_keys=False))
    rng = np.random.default_rng(1)
    easy, hard = rng.random((80, 4)), rng.random((40, 1))
    made.write_run(folder / "base-a", (easy < 0.2).astype(int), (hard < 0.1).astype(int))
    for method in ("grpo_pp", "fr3e", "random_anchors"):
        for seed in SEEDS:
            tag = f"a-{method}-s{seed}"
            made.write_run(folder / tag, (easy < RATES[method]).astype(int), (hard < 0.3).astype(int))
            write_metrics(folder / "runs" / tag, RATES[method], seed)
    write_arms(plan, folder / "out")
    return folder


def write_metrics(run: Path, rate: float, seed: int) -> None:
    run.mkdir(parents=True)
    rows = [
        {"update": u, "tokens_total": 1000 * u, "prompts/sampled": 24 * (u % 2)}  # a round every second update
        | ({"probe/easy/accuracy": 0.2 + rate * u / 40 + 0.1 * seed} if u % 10 == 0 else {})
        for u in range(21)
    ]
    del rows[0]["tokens_total"]  # nothing is generated before the first update
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run / "trained.json").write_text(json.dumps({"tokens_total": 2_000_000 + seed, "seconds": 60.0 + seed}))


@pytest.fixture(scope="module")
def table(root):
    return pd.read_csv(root / "out" / "arms.csv").set_index(["model", "method", "quantity", "benchmark"]).sort_index()


def test_average_is_over_the_benchmarks_drawn_like_training(table):
    # `easy` alone is in distribution.
    for method in ("base", "grpo_pp", "fr3e"):
        assert (
            table.loc[("a", method, "accuracy", "average"), "value"]
            == table.loc[("a", method, "accuracy", "easy"), "value"]
        )


def test_costs_come_from_trained_json(root, table):
    tokens = table.loc[("a", "fr3e", "tokens_total", np.nan)]
    assert tokens[["value", "low", "high"]].to_numpy().ravel().tolist() == [2_000_000.5, 2_000_000, 2_000_001]
    assert table.loc[("a", "fr3e", "seconds", np.nan)]["value"].item() == 60.5
    line = next(
        line for line in (root / "out" / "arms.md").read_text().splitlines() if line.startswith("| FR3E (2 seeds)")
    )
    assert line.endswith("| 12.0 | 2.00 | 60 |")


def test_differences_to_both_controls(root, table):
    better = table.loc[("a", "fr3e", "minus_grpo_pp", "average")]
    assert better["low"] > 0 and better["p"] < 0.05
    same = table.loc[("a", "fr3e", "minus_random_anchors", "average")]
    # The same answers on the same problems, and not an interval of no width.
    assert same["value"] == 0 and np.isnan(same["low"]) and np.isnan(same["high"]) and same["p"] == 1
    text = (root / "out" / "arms.md").read_text()
    assert "| FR3E (2 seeds) |" in text and "Chance?" in text
    row = next(line for line in text.splitlines() if line.startswith("| GRPO++"))
    assert row.split("|")[3].strip() == "*–*"  # no difference to itself


def test_a_difference_of_one_seed_is_marked(root, tmp_path):
    assert "]†" not in (root / "out" / "arms.md").read_text()
    plan = made.report_plan(tmp_path, {"a": "Toy"}, METHODS, [0])
    for method in METHODS:
        tag = f"a-{method}-s0"
        rng = np.random.default_rng(0)
        made.write_run(tmp_path / tag, (rng.random((80, 4)) < RATES[method]).astype(int), np.ones((40, 1), int))
        write_metrics(tmp_path / "runs" / tag, RATES[method], 0)
    write_arms(plan, tmp_path / "out")
    assert (tmp_path / "out" / "arms.md").read_text().count("]†") == 1


def test_what_has_not_run_says_so(root, table):
    assert np.isnan(table.loc[("a", "no_alpha", "accuracy", "average"), "value"])
    assert ("b", "random_anchors") not in {key[:2] for key in table.index}  # not planned: no row
    rows = [line for line in (root / "out" / "arms.md").read_text().splitlines() if line.startswith("| no alpha")]
    assert len(rows) == 1 and rows[0].count("not run") == 8


def test_points_are_last_updates_against_generated_tokens(root, table):
    points = pd.read_csv(root / "out" / "arms_tokens.csv", keep_default_na=False).set_index("method")
    # What has not run (no_alpha, model b) has no point; the compared methods belong to every panel.
    assert points["subject"].to_dict() == {"grpo_pp": "", "fr3e": "", "random_anchors": "anchors"}
    assert points.loc["fr3e", "tokens"] == pytest.approx(2_000_000.5)
    row = table.loc[("a", "fr3e", "accuracy", "average")]
    for column, name in (("accuracy", "value"), ("low", "low"), ("high", "high")):
        assert points.loc["fr3e", column] == pytest.approx(row[name].item(), rel=1e-5)
    for ending, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        assert (root / "out" / f"arms_tokens.{ending}").read_bytes().startswith(magic)


def test_nothing_run_still_gives_a_table_and_an_empty_figure(tmp_path):
    plan = made.report_plan(tmp_path, {"a": "Toy"}, METHODS, SEEDS)
    write_arms(plan, tmp_path / "out")
    assert pd.read_csv(tmp_path / "out" / "arms.csv")["value"].isna().all()
    assert (tmp_path / "out" / "arms_tokens.png").stat().st_size > 1000


def test_more_arms_of_one_subject_than_looks_are_drawn() -> None:
    figure, axes = plt.subplots()
    methods = ["grpo_pp", "fr3e", *(f"arm_{n}" for n in range(2 * len(SPARE) + 1))]
    data = pd.DataFrame({"subject": "", "method": methods, "tokens": 1e6, "accuracy": 50.0, "low": 45.0, "high": 55.0})
    _panel(axes, data, "", ["grpo_pp", "fr3e"])
    drawn = [line for line in axes.lines if line.get_marker() not in ("None", "")]
    looks = [(line.get_color(), line.get_marker(), line.get_markerfacecolor()) for line in drawn]
    assert len(looks) == len(methods)
    assert len(set(looks[:-1])) == len(methods) - 1, "only the last one repeats a look"
    plt.close(figure)
