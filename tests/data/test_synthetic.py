"""The demo's problems: exact golds, imperfect solutions of known kind, and nothing held out in any training."""

import hashlib
import itertools
import json
import random
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fr3e.config import load_scenario
from fr3e.config.scenario import SyntheticFamily
from fr3e.data import chains, synthetic
from fr3e.engine.local import warm_start
from fr3e.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
FLAWLESS = chains.Flaws(careful=1, merge_careful=0, merge_hasty=0, jump=0, slip=0)
CHAINS = st.integers(1, 12).flatmap(
    lambda n: st.builds(
        chains.Chain,
        st.lists(st.integers(0, 9), min_size=n + 1, max_size=n + 1).map(tuple),
        st.text("+-*", min_size=n, max_size=n),
    )
)


def answer_by_hand(question: str) -> int:
    """Slow and obvious: read the text from left to right, modulo 10 after every operation."""
    value = int(question[0])
    for operator, digit in zip(question[1:-1:2], question[2:-1:2], strict=True):
        value = eval(f"({value}) {operator} {digit}") % 10
    return value


def write(tmp_path: Path, plan: dict, name: str) -> Path:
    source = tmp_path / f"{name}.yaml"
    source.write_text(yaml.safe_dump(plan))
    out = tmp_path / f"{name}.parquet"
    synthetic.write_problems(source, out)
    return out


def plan(train: dict, benchmark: dict | None = None) -> dict:
    return {"scenario": "test", "data": {"kind": "synthetic", "train": train}, "benchmark": benchmark}


def test_worked_example():
    # 4-4=0, 0*3=0, 0+5=5; then 5-7=-2, which is 8 modulo 10.
    chain = chains.Chain((4, 4, 3, 5, 7), "-*+-")
    assert (chain.question, chain.gold) == ("4-4*3+5-7?", "8")
    solution = chains.demonstrate(chain, random.Random(0), FLAWLESS)
    assert solution == "4-4=0\n0*3=0\n0+5=5\n5-7=8\n\\boxed{8}"


@given(CHAINS)
def test_gold_equals_the_slow_reference(chain):
    assert int(chain.gold) == answer_by_hand(chain.question)


@given(CHAINS, st.integers(0, 1000))
def test_without_slips_every_solution_is_right_whatever_its_style(chain, seed):
    flaws = chains.Flaws(careful=0.5, merge_careful=0.3, merge_hasty=0.9, jump=0.2, slip=0)
    *steps, last = chains.demonstrate(chain, random.Random(seed), flaws).split("\n")
    assert last == f"\\boxed{{{chain.gold}}}"
    value = chain.question[0]
    for step in steps:
        left, result = step.split("=")
        assert left[0] == value and len(left) in (3, 5)
        assert int(result) == answer_by_hand(left + "?")
        value = result


def test_flaws_come_as_often_as_stated():
    rng, flaws = random.Random(1), chains.Flaws()
    chain = chains.Chain((3, 4, 5, 6, 7, 8, 9), "+-*+-*")
    solutions = [chains.demonstrate(chain, rng, flaws).split("\n") for _ in range(6000)]
    # The first step merges with .45 * .08 + .55 * .70 = .421; one standard error is .0064.
    merged = sum(len(solution[0].split("=")[0]) == 5 for solution in solutions) / len(solutions)
    assert merged == pytest.approx(0.421, abs=0.026)
    # After the first step 6 of 100 solutions jump; one standard error is .0031.
    jumped = sum(len(solution) == 2 for solution in solutions) / len(solutions)
    assert jumped == pytest.approx(0.06, abs=0.0125)
    # Steps off by one or two: 3 of 100.
    steps = [step.split("=") for solution in solutions for step in solution[:-1]]
    wrong = [(int(result) - answer_by_hand(left + "?")) % 10 for left, result in steps]
    slips = [difference for difference in wrong if difference]
    assert set(slips) == {1, 2, 8, 9}
    assert len(slips) / len(wrong) == pytest.approx(0.03, abs=0.005)


def test_training_and_held_out_families_never_meet(tmp_path):
    # 300 problems have one operation: without the split, 200 of them and 25 of them would meet.
    few = {"min_ops": 1, "max_ops": 1, "problems": 200, "seed": 1}
    train = pq.read_table(write(tmp_path, plan(few), "train")).column("question").to_pylist()
    held_out = few | {"problems": 25}
    bench = pq.read_table(write(tmp_path, plan(few, {"family": held_out}), "bench")).column("question").to_pylist()
    assert len(set(train)) == 200 and len(set(bench)) == 25
    assert not set(train) & set(bench)


def test_nothing_held_out_is_in_the_warm_start():
    shortest = {
        chain.question
        for n in (1, 2)
        for digits in itertools.product(range(10), repeat=n + 1)
        for operators in itertools.product("+-*", repeat=n)
        if (chain := chains.Chain(digits, "".join(operators))).held_out
    }
    assert len(shortest) > 1000  # an eighth of 9300
    # Enough short problems (half of them of one operation) that nearly all of the 300 would have been met.
    seen = {question for pairs in warm_start.corpus(0, 60, 64) for question, _ in pairs}
    assert len({question for question in seen if len(question) == 4}) > 200
    assert not seen & shortest
    assert not any(chains.Chain(*parse(question)).held_out for question in seen)


def parse(question: str) -> tuple[tuple[int, ...], str]:
    return tuple(int(digit) for digit in re.findall(r"\d", question)), "".join(re.findall(r"[+*-]", question))


def test_same_plan_same_bytes_and_other_files_do_not_matter(tmp_path):
    family = {"min_ops": 4, "max_ops": 9, "problems": 50, "seed": 7}
    out = write(tmp_path, plan(family), "train")
    first = out.read_bytes()
    fewer = pq.read_table(out).column("question").to_pylist()
    assert write(tmp_path, plan(family), "train").read_bytes() == first
    assert write(tmp_path, plan(family | {"seed": 8}), "train").read_bytes() != first
    # More problems of a family begin with the fewer.
    more = pq.read_table(write(tmp_path, plan(family | {"problems": 80}), "train")).column("question").to_pylist()
    assert more[:50] == fewer


def test_golden_problems():
    family = SyntheticFamily(min_ops=4, max_ops=9, problems=1000, seed=1)
    questions = [chain.question for chain in synthetic.problems(family, held_out=False, where="here")]
    assert questions[:2] == ["2-9*9+7-8-6+5?", "5*3+5+2*2?"]
    digest = hashlib.sha256("\n".join(questions).encode()).hexdigest()
    assert digest == "42f9951b9b207f0ea6dec63e7f82b0f16cee83cc76e62aafead020604eaecc74"


def test_rows_are_in_verls_layout(tmp_path):
    out = write(tmp_path, plan({"min_ops": 2, "max_ops": 3, "problems": 20, "seed": 0}), "train")
    for index, row in enumerate(pq.read_table(out).to_pylist()):
        assert row["prompt"] == [{"role": "user", "content": row["question"]}]
        assert row["reward_model"] == {"style": "rule", "ground_truth": row["gold"]}
        assert row["extra_info"] == {"split": "train", "index": index, "id": row["id"]}
        assert row["ops"] == len(row["question"]) // 2 - 1
        assert int(row["gold"]) == answer_by_hand(row["question"])


def test_demo_scenario_has_its_families(tmp_path):
    scenario = load_scenario(ROOT / "config" / "demo.yaml")
    train = scenario.data.train
    families = {name: benchmark.family for name, benchmark in scenario.benchmarks.items() if benchmark.family}
    assert len(families) >= 4
    assert any(family.min_ops > train.max_ops for family in families.values())
    for name, family in families.items():
        rows = synthetic.benchmark_rows(name, synthetic.BenchmarkSource(family=family))
        assert len(rows) == family.problems
        ops = [len(row["question"]) // 2 - 1 for row in rows]
        assert (min(ops), max(ops)) == (family.min_ops, family.max_ops)
        assert set("".join(row["question"] for row in rows)) <= set("0123456789?" + family.operators)


def test_gsm8k_sample_is_the_real_one(mirror):
    lines = (mirror / "benchmarks" / "gsm8k" / "test.jsonl").read_text(encoding="utf-8").splitlines()[:50]
    rows = synthetic.benchmark_rows("gsm8k_50", synthetic.BenchmarkSource(sample_of="gsm8k_50"))
    assert [row["question"] for row in rows] == [json.loads(line)["question"] for line in lines]
    assert [row["gold_source"] for row in rows] == [json.loads(line)["answer"] for line in lines]


def test_gsm8k_golds_are_bare_numbers():
    rows = synthetic.benchmark_rows("gsm8k_50", synthetic.BenchmarkSource(sample_of="gsm8k_50"))
    assert len(rows) == 50 and all(re.fullmatch(r"-?\d+", row["gold"]) for row in rows)
    assert rows[2]["gold"] == "70000"
    assert synthetic.gsm8k_gold("so 1 #### not\n#### 1,234") == "1234"
    assert (Path(synthetic.__file__).parent / "samples" / "gsm8k_50.LICENSE.txt").read_text().count("MIT License") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problems": 301}, "301 asked for, but only 2.. different ones"),
        ({"operators": "+/"}, "data.train.operators: '/' is not an operator; allowed"),
        ({"min_ops": 3}, "min_ops 3 is above max_ops 1"),
        ({"opps": 3}, "did you mean 'operators'|not an allowed key|allowed: "),
    ],
)
def test_families_that_cannot_be_are_refused(tmp_path, change, message):
    family = {"min_ops": 1, "max_ops": 1, "problems": 10, "seed": 0} | change
    with pytest.raises(UserError, match=message):
        write(tmp_path, plan(family), "train")
    assert not (tmp_path / "train.parquet").exists()


@pytest.mark.parametrize("benchmark", [{}, {"sample_of": "math_50"}])
def test_benchmarks_without_a_source_are_refused(tmp_path, benchmark):
    with pytest.raises(UserError, match=r"benchmarks\.odd: needs either a family or sample_of, one of gsm8k_50"):
        write(tmp_path, plan({"min_ops": 1, "max_ops": 1, "problems": 1, "seed": 0}, benchmark), "odd")
