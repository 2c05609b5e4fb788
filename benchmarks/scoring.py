"""Time of scoring and Table 1 at paper size: 48 evaluations, 10,000 bootstrap draws. Target: 30 s on 2 cores.

    python benchmarks/scoring.py [--seeds N] [--draws N]

Writes random verdict files of the paper's scenario (3 models x 2 methods x 8 benchmarks, and the base models) to a
temporary folder, then times `score_files` for all of them and `write_table1`. Both are single processes.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from fr3e.config import dump, load_scenario
from fr3e.config.plans import eval_plan, report_plan
from fr3e.evaluation.score import score_files
from fr3e.report.published import load
from fr3e.report.table1 import write_table1


def write_verdicts(
    path: Path, benchmark: str, protocols: dict[str, int], problems: int, rng: np.random.Generator
) -> None:
    """Random verdicts at 50 %."""
    tables = []
    for protocol, samples in protocols.items():
        count = problems * samples
        right = rng.random(count) < 0.5
        tables.append(
            pa.table(
                {
                    "benchmark": [benchmark] * count,
                    "id": np.repeat([f"p{i}" for i in range(problems)], samples),
                    "protocol": [protocol] * count,
                    "sample": np.tile(np.arange(samples, dtype=np.int32), problems),
                    "verdict": np.where(right, "correct", "wrong"),
                    "correct": right,
                    "qwen_compatible": right,
                    "finish": ["stop"] * count,
                    "response_tokens": np.full(count, 500, dtype=np.int32),
                }
            )
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.concat_tables(tables), path)


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--draws", type=int, default=10_000)
    arguments = parser.parse_args()
    scenario = load_scenario("config/paper.yaml")
    scenario = scenario.model_copy(
        update={
            "seeds": list(range(arguments.seeds)),
            "report": scenario.report.model_copy(update={"bootstrap_draws": arguments.draws}),
        }
    )
    plan = report_plan(scenario, with_arms=False)
    problems, rng = load()["problems"], np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        entries = [entry.model_copy(update={"folder": str(root / entry.tag)}) for entry in plan.evaluated]
        plan = plan.model_copy(update={"evaluated": entries})
        for entry in entries:
            for name, benchmark in plan.benchmarks.items():
                protocols = {p: plan.evaluation.protocols[p].samples for p in benchmark.protocols}
                write_verdicts(Path(entry.folder) / name / "verdicts.parquet", name, protocols, problems[name], rng)
        (root / "report.yaml").write_text(yaml.safe_dump(plan.model_dump(mode="json")))
        start, cpu = time.perf_counter(), time.process_time()
        for entry in entries:
            own = eval_plan(scenario, entry.model, None if entry.method == "base" else entry.method, entry.seed)
            files = {name: str(root / "absent.parquet") for name in own.files}
            dump(own.model_copy(update={"files": files}), root / "eval.yaml")
            paths = [Path(entry.folder) / name / "verdicts.parquet" for name in plan.benchmarks]
            score_files(paths, root / "eval.yaml", Path(entry.folder) / "scores.csv")
        scored = time.perf_counter()
        write_table1(root / "report.yaml", root)
        done, cpu = time.perf_counter(), time.process_time() - cpu
    print(f"{len(entries) * len(problems)} evaluations, {arguments.seeds} seed(s), {arguments.draws} draws")
    print(
        f"scores {scored - start:.1f} s, Table 1 {done - scored:.1f} s, together {done - start:.1f} s ({cpu:.1f} s of CPU)"
    )


if __name__ == "__main__":
    main()
