"""Training data: order, epochs, limits, and files that cannot be used."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fr3e.engine.local.problems import Problem, PromptStream, load_problems
from fr3e.engine.local.toy import build_tokenizer
from fr3e.errors import UserError
from tests.engine.local.tiny_run import write_problems


@pytest.fixture(scope="module")
def tokenizer() -> object:
    return build_tokenizer(64)


def stream(tokenizer: object, count: int = 7, seed: str = "0", longest: int = 50) -> PromptStream:
    problems = [Problem(f"id{i}", "9" * (i + 1), str(i)) for i in range(count)]
    return PromptStream(problems, "demo", tokenizer, seed, longest)


def test_order_is_a_function_of_position(tokenizer: object) -> None:
    whole, end = stream(tokenizer).take(0, 21)
    assert end == 21
    pieces, position = [], 0
    for count in (1, 5, 9, 6):
        taken, position = stream(tokenizer).take(position, count)
        pieces += taken
    assert pieces == whole
    uids = [prompt.uid for prompt, _ in whole]
    assert len(set(uids)) == 21
    for epoch in range(3):
        assert Counter(uid.split("/")[0] for uid in uids)[str(epoch)] == 7
    assert [u.split("/")[1] for u in uids[:7]] != [u.split("/")[1] for u in uids[7:14]]
    assert stream(tokenizer, seed="1").take(0, 7)[0] != whole[:7]


def test_long_prompts_are_passed_over(tokenizer: object) -> None:
    # <|im_start|> + digits + <|im_end|> + <|im_start|>: i + 4 tokens; at most 7 leaves ids 0 .. 3.
    taken, position = stream(tokenizer, longest=7).take(0, 4)
    assert {problem.id for _, problem in taken} == {"id0", "id1", "id2", "id3"}
    assert position <= 7
    with pytest.raises(UserError, match="no prompt of the training data has at most 3 tokens"):
        stream(tokenizer, longest=3).take(0, 1)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    good = tmp_path / "good.parquet"
    write_problems(good, "t", 200)
    assert len(load_problems(good)) == 200
    with pytest.raises(UserError, match=r"absent\.parquet: no such file"):
        load_problems(tmp_path / "absent.parquet")
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(good.read_bytes()[:-20])
    with pytest.raises(UserError, match=r"cut\.parquet: not a readable parquet file, it may be cut short"):
        load_problems(cut)
    pq.write_table(pa.table({"id": ["a"], "question": ["q"]}), tmp_path / "column.parquet")
    with pytest.raises(UserError, match="no column 'gold'; found id, question"):
        load_problems(tmp_path / "column.parquet")
    pq.write_table(
        pa.table({n: pa.array([], pa.string()) for n in ("id", "question", "gold")}), tmp_path / "none.parquet"
    )
    with pytest.raises(UserError, match="no problems in it"):
        load_problems(tmp_path / "none.parquet")
    pq.write_table(pa.table({n: ["a", "a"] for n in ("id", "question", "gold")}), tmp_path / "twice.parquet")
    with pytest.raises(UserError, match="ids occur twice"):
        load_problems(tmp_path / "twice.parquet")
    pq.write_table(
        pa.table({"id": ["a", "b"], "question": ["q", "r"], "gold": ["1", "2"], "status": ["ok", "excluded"]}),
        tmp_path / "status.parquet",
    )
    assert [p.id for p in load_problems(tmp_path / "status.parquet")] == ["a"]
