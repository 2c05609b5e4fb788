"""scores.csv from verdict files with known answers."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fr3e.errors import UserError
from fr3e.evaluation import statistics
from fr3e.evaluation.score import COLUMNS, score_files
from tests.evaluation import made, toy

# Right answers of 4 samples: 4, 2, 1 and 0.
EASY = [[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
GREEDY = [[1], [1], [0], [0]]


def scored(tmp_path, path, names=("a",)):
    plan = toy.eval_plan(tmp_path, {name: tmp_path / f"{name}.parquet" for name in names})
    paths = path if isinstance(path, list) else [path]
    score_files(paths, plan, tmp_path / "scores.csv")
    return pd.read_csv(tmp_path / "scores.csv").set_index(["benchmark", "protocol", "metric"])


def test_worked_scores(tmp_path):
    table = scored(tmp_path, made.write_verdicts(tmp_path / "v.parquet", "a", avg4=EASY, greedy=GREEDY))
    # avg@4 = 7/16; pass@2 = (1 + (1 - C(2,2)/C(4,2)) + (1 - C(3,2)/C(4,2)) + 0) / 4 = (1 + 5/6 + 1/2) / 4.
    assert table.loc[("a", "avg4", "avg@4"), "value"] == 7 / 16
    assert table.loc[("a", "avg4", "pass@1"), "value"] == 7 / 16
    assert table.loc[("a", "avg4", "pass@2"), "value"] == pytest.approx((1 + 5 / 6 + 1 / 2) / 4)
    assert table.loc[("a", "avg4", "pass@4"), "value"] == 3 / 4
    greedy = table.loc[("a", "greedy", "accuracy")]
    assert (greedy["value"], greedy["low"], greedy["high"]) == pytest.approx(statistics.wilson(2, 4))
    assert (greedy["n"], greedy["k"]) == (4, 1)
    assert table.loc[("a", "avg4", "avg@4"), "mean_tokens"] == 11.5
    assert list(table.reset_index().columns.sort_values()) == sorted(COLUMNS)


def test_everything_that_went_wrong_is_counted(tmp_path):
    path = made.write_verdicts(tmp_path / "v.parquet", "a", avg4=np.zeros((4, 4)), greedy=GREEDY)
    rows = pq.read_table(path).to_pandas().sort_values(["protocol", "id", "sample"]).reset_index(drop=True)
    kinds = ["no_answer"] * 5 + ["unparseable"] * 4 + ["timeout"] * 3 + ["refused"] * 2 + ["fault"]
    rows.loc[: len(kinds) - 1, "verdict"] = kinds
    rows.loc[:2, "finish"] = "length"
    rows.loc[3:4, "finish"] = "too_long"
    rows.loc[6, "qwen_compatible"] = True
    pq.write_table(pa.Table.from_pandas(rows), path)
    line = scored(tmp_path, path).loc[("a", "avg4", "avg@4")]
    assert line[["no_answer", "unparseable", "timeout", "refused", "fault"]].tolist() == [5, 4, 3, 2, 1]
    assert line[["truncated", "too_long"]].tolist() == [3, 2]
    assert line["value"] == 0 and line["qwen_compatible"] == 1 / 16


def test_rows_follow_the_plan_whatever_the_order_of_files(tmp_path):
    paths = [made.write_verdicts(tmp_path / f"{name}.v.parquet", name, avg4=EASY, greedy=GREEDY) for name in ("b", "a")]
    table = scored(tmp_path, paths, ("a", "b")).reset_index()
    assert table["benchmark"].drop_duplicates().tolist() == ["a", "b"]


def test_incomplete_or_double_verdicts_are_refused(tmp_path):
    good = made.write_verdicts(tmp_path / "v.parquet", "a", avg4=EASY, greedy=GREEDY)
    frame = pq.read_table(good).to_pandas()

    def refused(rows, names=("a",)):
        path = tmp_path / "bad.parquet"
        pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), path)
        with pytest.raises(UserError) as error:
            scored(tmp_path, path, names)
        assert not (tmp_path / "scores.csv").exists()
        return str(error.value)

    lost = (frame["id"] == "p001") & (frame["protocol"] == "avg4") & (frame["sample"] == 2)
    assert "'p001' has 3 samples" in refused(frame[~lost])
    assert "'p001' has 5 samples" in refused(pd.concat([frame, frame[lost]]))
    renumbered = frame.copy()
    renumbered.loc[lost, "sample"] = 3
    assert "[0, 1, 3, 3]" in refused(renumbered)
    assert "no verdicts of protocol 'greedy'" in refused(frame[frame["protocol"] == "avg4"])
    assert "benchmark 'a'" in refused(frame, ("b",))
    assert "no column 'finish'" in refused(frame.drop(columns="finish"))
    assert "holds no verdicts" in refused(frame[:0])
    with pytest.raises(UserError, match="also in"):
        scored(tmp_path, [good, good])
    (tmp_path / "text.parquet").write_text("no parquet")
    with pytest.raises(UserError, match="not a readable parquet"):
        scored(tmp_path, tmp_path / "text.parquet")
    with pytest.raises(UserError, match="no such file"):
        scored(tmp_path, tmp_path / "absent.parquet")


def test_verdicts_of_other_problems_than_the_benchmark_are_refused(tmp_path):
    toy.write_benchmark(tmp_path / "a.parquet", ["1+1?", "2+2?"])  # q0, q1; the verdicts are of p000 .. p003
    with pytest.raises(UserError, match="answers other problems than"):
        scored(tmp_path, made.write_verdicts(tmp_path / "v.parquet", "a", avg4=EASY, greedy=GREEDY))
