"""A results folder with realistic metrics, shared by the report's tests."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fr3e.config.plans import ReportPlan
from tests.report.synthetic import scenario_plan, write_results


@pytest.fixture(scope="session")
def demo_plan() -> ReportPlan:
    return scenario_plan()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory, demo_plan: ReportPlan) -> Path:
    """Working folder with results/demo: two methods, three seeds, evaluations."""
    folder = tmp_path_factory.mktemp("demo")
    write_results(folder, demo_plan)
    write_evaluations(folder, demo_plan)
    return folder


@pytest.fixture
def in_demo(demo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, as the working folder."""
    monkeypatch.chdir(demo)
    return demo


def write_evaluations(folder: Path, plan: ReportPlan, rates: dict[str, float] | None = None) -> None:
    """verdicts.parquet for every model and benchmark: base .25, GRPO++ .70, FR3E .72 unless `rates` says otherwise."""
    rates = {"base": 0.25, "grpo_pp": 0.70, "fr3e": 0.72} | (rates or {})
    for entry in plan.evaluated:
        rng = np.random.default_rng([sum(map(ord, entry.tag))])
        for name, benchmark in plan.benchmarks.items():
            problems = 40
            difficulty = np.random.default_rng(sum(map(ord, name))).normal(0, 0.15, problems)
            rows = []
            for protocol in benchmark.protocols:
                samples = plan.evaluation.protocols[protocol].samples
                for problem in range(problems):
                    chance = min(max(rates[entry.method] + difficulty[problem], 0.01), 0.99)
                    for sample in range(samples):
                        right = bool(rng.random() < chance)
                        rows.append(
                            {
                                "benchmark": name,
                                "id": f"{name}-{problem:03d}",
                                "protocol": protocol,
                                "sample": sample,
                                "verdict": "correct" if right else "wrong",
                                "correct": right,
                                "qwen_compatible": right,
                                "finish": "stop",
                                "response_tokens": 30,
                            }
                        )
            path = folder / entry.folder / name / "verdicts.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(rows).to_parquet(path)
