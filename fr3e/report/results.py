"""What has been evaluated, gathered from verdict files: one array per model, method and benchmark."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fr3e.config.plans import Evaluated, ReportPlan
from fr3e.errors import UserError
from fr3e.evaluation.statistics import Estimate, mean_interval, solved, wilson
from fr3e.evaluation.verdicts import load_verdicts, problems_by_samples


@dataclass(frozen=True, eq=False)
class Result:
    """One method on one benchmark: `correct_NPG` over the training seeds that ran, in the order of `seeds`.

    Problems are sorted by id, so that two results on one benchmark are paired by position. `files` are the verdicts.
    """

    seeds: tuple[int | None, ...]
    ids: tuple[str, ...]
    correct_NPG: NDArray[np.float64]
    files: tuple[str, ...]
    tokens: float

    @property
    def values_NP(self) -> NDArray[np.float64]:
        """Share of right samples per seed and problem."""
        return solved(self.correct_NPG)

    def estimate(self, confidence: float, draws: int) -> Estimate:
        """Mean and interval: Wilson for a single greedy run, else `mean_interval` over problems (and seeds)."""
        if self.correct_NPG.shape[0] == 1 and self.correct_NPG.shape[2] == 1:
            return wilson(int(self.correct_NPG.sum()), self.correct_NPG.shape[1], confidence)
        return mean_interval([self.values_NP], confidence, draws)


Results = dict[tuple[str, str, str], Result]


def gather(plan: ReportPlan) -> Results:
    """(model, method, benchmark) -> `Result` at the benchmark's headline protocol; what has not run is absent.

    Raises `UserError` for a broken verdicts file, and where two runs answered different problems.
    """
    found: dict[tuple[str, str, str], list[tuple[Evaluated, Path]]] = {}
    for evaluated in plan.evaluated:
        for benchmark in plan.benchmarks:
            path = Path(evaluated.folder) / benchmark / "verdicts.parquet"
            if path.is_file():
                found.setdefault((evaluated.model, evaluated.method, benchmark), []).append((evaluated, path))
    results = {key: _result(plan, key[2], runs) for key, runs in found.items()}
    _check_same_problems(results)
    return results


def _result(plan: ReportPlan, benchmark: str, runs: list[tuple[Evaluated, Path]]) -> Result:
    protocol = plan.benchmarks[benchmark].protocols[0]
    samples = plan.evaluation.protocols[protocol].samples
    arrays, tokens = {}, []
    for _, path in runs:
        frame = load_verdicts(path)
        frame = frame[frame["benchmark"] == benchmark]
        arrays[path] = problems_by_samples(frame, protocol, samples, str(path))
        tokens.append(float(frame.loc[frame["protocol"] == protocol, "response_tokens"].mean()))
    first = next(iter(arrays.values()))[0]
    for path, (ids, _) in arrays.items():
        if ids != first:
            raise UserError(f"{path}: answers other problems than {runs[0][1]}; evaluate both on the same file")
    return Result(
        seeds=tuple(evaluated.seed for evaluated, _ in runs),
        ids=tuple(first),
        correct_NPG=np.stack([values for _, values in arrays.values()]),
        files=tuple(str(path) for path in arrays),
        tokens=float(np.mean(tokens)),
    )


def _check_same_problems(results: Results) -> None:
    first: dict[str, Result] = {}
    for (_, _, benchmark), result in results.items():
        reference = first.setdefault(benchmark, result)
        if reference.ids != result.ids:
            raise UserError(
                f"{result.files[0]}: answers other problems than {reference.files[0]}; evaluate both on the same file"
            )


def over_benchmarks(
    results: Results, model: str, method: str, benchmarks: list[str]
) -> list[NDArray[np.float64]] | None:
    """One [N, P_b] array per benchmark over the seeds that ran all of them, or None where no seed did."""
    parts = [results.get((model, method, benchmark)) for benchmark in benchmarks]
    if any(part is None for part in parts):
        return None
    whole = [part for part in parts if part is not None]
    common = [seed for seed in whole[0].seeds if all(seed in part.seeds for part in whole)]
    if not common:
        return None
    return [part.values_NP[[part.seeds.index(seed) for seed in common]] for part in whole]
