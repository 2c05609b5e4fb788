"""Resolved plans of the stages after training: eval.yaml for one model, report.yaml for a scenario.

Paths are relative to the working folder. A plan names all that its stage reads, so that an edit of config/ while a job
waits in a queue changes nothing.
"""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from fr3e.config.base import Section
from fr3e.config.load import checked, run_ids
from fr3e.config.scenario import Benchmark, EvaluationConfig, ReportConfig, Scenario
from fr3e.files import read_yaml


class EvalPlan(Section):
    """eval.yaml: one model, all its benchmarks."""

    tag: str = Field(description="Run id, or base-<model>.")
    scenario: str
    model_name: str
    method: str = Field(description="Arm, or 'base'.")
    seed: int | None = Field(description="Training seed; null for a base model.")
    model: str = Field(description="Model folder.")
    template: str
    max_positions: int
    files: dict[str, str] = Field(description="Benchmark -> parquet.")
    benchmarks: dict[str, Benchmark]
    evaluation: EvaluationConfig

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for name, benchmark in self.benchmarks.items():
            if name not in self.files:
                raise ValueError(
                    f"files has no file for benchmark {name!r}, only for {', '.join(self.files) or 'none'}"
                )
            for protocol in benchmark.protocols:
                if protocol not in self.evaluation.protocols:
                    allowed = ", ".join(self.evaluation.protocols)
                    raise ValueError(
                        f"benchmarks.{name}.protocols names {protocol!r}; evaluation.protocols has {allowed}"
                    )
        return self


class Evaluated(Section):
    """One evaluated model in a report; its folder holds <benchmark>/verdicts.parquet and scores.csv."""

    tag: str
    model: str
    method: str
    seed: int | None
    folder: str
    run: str | None = Field(description="Run folder with run.yaml, metrics.jsonl, trained.json; null for a base model.")


class ReportPlan(Section):
    """report.yaml: everything that tables, figures and pages are made from. Folders that are absent count as not run."""

    scenario: str
    results: str = Field(description="results/<scenario>.")
    data: str = Field(description="Folder that holds train.parquet, manifest.json and benchmarks/.")
    models: dict[str, str] = Field(description="Model -> title.")
    methods: list[str]
    arms: list[str] = Field(default_factory=list)
    questions: dict[str, str] = Field(default_factory=dict, description="Arm -> the question it answers.")
    subjects: dict[str, str] = Field(default_factory=dict, description="Arm -> what it varies; one panel each.")
    benchmarks: dict[str, Benchmark]
    evaluation: EvaluationConfig
    report: ReportConfig
    evaluated: list[Evaluated]


def eval_plan(scenario: Scenario, model: str, arm: str | None, seed: int | None) -> EvalPlan:
    """The eval.yaml of a trained run, or with `arm=None` of the base model."""
    root = f"results/{scenario.scenario}"
    data = "data" if scenario.data.kind == "real" else f"{root}/data"
    tag = f"base-{model}" if arm is None else f"{model}-{arm}-s{seed}"
    return EvalPlan(
        tag=tag,
        scenario=scenario.scenario,
        model_name=model,
        method=arm or "base",
        seed=seed,
        model=f"{root}/base/{model}" if arm is None else f"{root}/runs/{tag}/model",
        template=scenario.models[model].template,
        max_positions=scenario.models[model].max_positions,
        files={name: f"{data}/benchmarks/{name}.parquet" for name in scenario.benchmarks},
        benchmarks=scenario.benchmarks,
        evaluation=scenario.evaluation,
    )


def report_plan(
    scenario: Scenario, with_arms: bool, questions: dict[str, str] | None = None, subjects: dict[str, str] | None = None
) -> ReportPlan:
    """The report.yaml of a scenario; `with_arms` adds the ablation arms."""
    root = f"results/{scenario.scenario}"
    evaluated = [
        Evaluated(tag=f"base-{m}", model=m, method="base", seed=None, folder=f"{root}/evaluation/base-{m}", run=None)
        for m in scenario.models
    ]
    chosen = run_ids(scenario)
    if with_arms:
        chosen = chosen | run_ids(scenario, scenario.arms, scenario.arm_models or list(scenario.models))
    for run, (model, arm, seed) in chosen.items():
        evaluated.append(
            Evaluated(
                tag=run, model=model, method=arm, seed=seed, folder=f"{root}/evaluation/{run}", run=f"{root}/runs/{run}"
            )
        )
    return ReportPlan(
        scenario=scenario.scenario,
        results=root,
        data="data" if scenario.data.kind == "real" else f"{root}/data",
        models={name: model.title for name, model in scenario.models.items()},
        methods=scenario.methods,
        arms=[arm for arm in scenario.arms if arm not in scenario.methods] if with_arms else [],
        questions=questions or {},
        subjects=subjects or {},
        benchmarks=scenario.benchmarks,
        evaluation=scenario.evaluation,
        report=scenario.report,
        evaluated=evaluated,
    )


def load_eval_plan(source: str | Path) -> EvalPlan:
    """Load eval.yaml."""
    return checked(EvalPlan, read_yaml(source), str(source))


def load_report_plan(source: str | Path) -> ReportPlan:
    """Load report.yaml."""
    return checked(ReportPlan, read_yaml(source), str(source))
