"""scores.csv: what one model scored, with intervals, and beside every score what went wrong on the way."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from fr3e.config.plans import EvalPlan, load_eval_plan
from fr3e.errors import UserError
from fr3e.evaluation import statistics
from fr3e.evaluation.verdicts import load_verdicts, problems_by_samples
from fr3e.files import read_parquet, write_text

FAILURES = ("no_answer", "unparseable", "timeout", "refused", "fault")
COLUMNS = [
    *("tag", "model", "method", "seed", "benchmark", "protocol", "metric", "value", "low", "high", "n", "k"),
    *FAILURES,
    *("truncated", "too_long", "mean_tokens", "qwen_compatible"),
]


def score_files(verdicts: list[Path], plan: Path, out: Path) -> None:
    """Score the verdicts of one model into a tidy CSV, one row per benchmark, protocol and metric.

    Metrics: `accuracy` for one sample per problem (Wilson interval), `avg@k` and the unbiased `pass@j` for j = 1, 2, 4, ..
    <= k (bootstrap over problems). n is the number of problems, k of samples; failure counts are over the n * k responses.
    `qwen_compatible` is the same metric under the rules of the published harness.
    Raises `UserError` for a file that is missing, incomplete, double or not of this plan.
    """
    resolved = load_eval_plan(plan)
    rows: list[dict[str, Any]] = []
    seen: dict[str, Path] = {}
    for path in verdicts:
        frame = load_verdicts(path)
        for benchmark, part in frame.groupby("benchmark", sort=False):
            name = str(benchmark)
            if name in seen:
                raise UserError(f"{path}: benchmark {name!r} is also in {seen[name]}; give each once")
            if name not in resolved.benchmarks:
                raise UserError(f"{path}: benchmark {name!r}; {plan} has {', '.join(resolved.benchmarks)}")
            seen[name] = path
            rows.extend(_benchmark_rows(resolved, name, part, path))
    order = {name: index for index, name in enumerate(resolved.benchmarks)}
    table = pd.DataFrame(rows, columns=COLUMNS)
    table = table.sort_values("benchmark", key=lambda names: names.map(order), kind="stable")
    write_text(out, table.to_csv(index=False, lineterminator="\n"))


def _benchmark_rows(plan: EvalPlan, benchmark: str, frame: pd.DataFrame, path: Path) -> Iterator[dict[str, Any]]:
    _check_problems(plan, benchmark, frame, path)
    for protocol in plan.benchmarks[benchmark].protocols:
        samples = plan.evaluation.protocols[protocol].samples
        _, correct = problems_by_samples(frame, protocol, samples, str(path))
        _, compatible = problems_by_samples(frame, protocol, samples, str(path), "qwen_compatible")
        common = {
            "tag": plan.tag,
            "model": plan.model_name,
            "method": plan.method,
            "seed": plan.seed,
            "benchmark": benchmark,
            "protocol": protocol,
            "n": len(correct),
            "k": samples,
        } | failures(frame[frame["protocol"] == protocol])
        yield from (
            common | metric | {"qwen_compatible": other["value"]}
            for metric, other in zip(metrics(correct), metrics(compatible, draws=0), strict=True)
        )


def _check_problems(plan: EvalPlan, benchmark: str, frame: pd.DataFrame, path: Path) -> None:
    """Verdicts must cover the benchmark's file, where that is at hand: neither fewer problems nor others.

    Rows without a usable gold are not graded (docs/data.md), so they are not missed.
    """
    source = Path(plan.files[benchmark])
    if source.is_file():
        table = read_parquet(source)
        if "id" not in table.column_names:
            raise UserError(f"{source}: no column 'id'; found {', '.join(table.column_names)}")
        status = table["status"].to_pylist() if "status" in table.column_names else ["ok"] * len(table)
        asked = {str(name) for name, kind in zip(table["id"].to_pylist(), status, strict=True) if kind != "unusable"}
        answered = set(frame["id"].astype(str))
        if asked != answered:
            raise UserError(
                f"{path}: answers other problems than {source} asks ({len(answered)} and {len(asked)}, "
                f"{len(asked & answered)} in both); sample and grade again"
            )


def failures(rows: pd.DataFrame) -> dict[str, float]:
    """Counts of every way to fail but a wrong answer, and the mean response length in tokens."""
    kinds, finish = rows["verdict"].value_counts(), rows["finish"].value_counts()
    return {
        **{kind: int(kinds.get(kind, 0)) for kind in FAILURES},
        "truncated": int(finish.get("length", 0)),
        "too_long": int(finish.get("too_long", 0)),
        "mean_tokens": round(float(rows["response_tokens"].mean()), 2),
    }


def metrics(correct_PG: NDArray[Any], draws: int = 10_000, confidence: float = 0.95) -> list[dict[str, Any]]:
    """Metric name, value and interval of one model on one protocol; `draws=0` leaves the intervals out."""
    problems, samples = correct_PG.shape
    if samples == 1:
        estimate = statistics.wilson(int(correct_PG.sum()), problems, confidence)
        return [{"metric": "accuracy", **estimate._asdict()}]
    values = {f"avg@{samples}": statistics.solved(correct_PG)}
    values |= {
        f"pass@{2**power}": statistics.solved_within(correct_PG, 2**power) for power in range(samples.bit_length())
    }
    if not draws:
        return [{"metric": name, "value": float(value.mean())} for name, value in values.items()]
    return [
        {"metric": name, **statistics.mean_interval([value], confidence, draws)._asdict()}
        for name, value in values.items()
    ]
