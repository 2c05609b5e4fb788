"""A scenario: models x methods x seeds x benchmarks, and everything the pipeline needs to run them."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from fr3e.config.base import Section, Template
from fr3e.config.mix import Mix
from fr3e.config.training import TrainingConfig

Name = Annotated[
    str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", description="Lower-case letters, digits, '.', '_' and '-'. [ours]")
]
Revision = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$", description="A 40-hex commit, never a branch name. [ours]")]


class HubModel(Section):
    """A base model on the Hugging Face hub, or the same files in a local folder."""

    kind: Literal["hub"] = "hub"
    id: str = Field(description="Hub id. [paper 5.1] Qwen/Qwen2.5-Math-7B, Qwen/Qwen2.5-7B, Qwen/Qwen2.5-32B")
    revision: Revision
    path: str | None = Field(None, description="Local folder with the same files; then nothing is downloaded. [ours]")


class SyntheticModel(Section):
    """The demo's base model: a small Qwen2 trained on imperfect worked solutions for a fixed number of steps."""

    kind: Literal["synthetic"] = "synthetic"
    hidden: int = Field(64, ge=32, description="Hidden size. [ours]")
    layers: int = Field(3, ge=1, description="Decoder layers. [ours]")
    heads: int = Field(
        2, ge=1, description="Attention heads; hidden / heads must be 32 or 64, which vLLM's CPU kernels need. [ours]"
    )
    kv_heads: int = Field(1, ge=1, description="Key/value heads. [ours]")
    intermediate: int = Field(192, ge=32, description="Width of the MLP. [ours]")
    steps: int = Field(900, ge=1, description="Supervised steps; fixed, not timed, so that the model repeats. [ours]")
    batch: int = Field(96, ge=1, description="Worked solutions per step. [ours]")
    lr: float = Field(4e-3, gt=0, description="Peak learning rate. [ours]")
    seed: int = Field(0, ge=0, description="Seed of initial weights and corpus order, >= 0. [ours]")
    threads: int = Field(2, ge=1, description="CPU threads of the warm start; part of the model's identity. [ours]")


class RunModel(Section):
    """What training and sampling need to know of a model."""

    base: HubModel | SyntheticModel = Field(
        discriminator="kind", description="Base model. [paper 5.1] hub; [ours] synthetic"
    )
    max_positions: int = Field(
        ge=64,
        description="Positions of the model in tokens; prompt + response must fit. [ours]",
    )
    rope_override: dict[str, Any] | None = Field(
        None,
        description="Explicit change of the rope settings that makes a longer context legal; recorded in every manifest. [ours] none",
    )
    template: Template = Field(
        description="Prompt template in fr3e/evaluation/templates, without .txt. [ours] docs/data.md"
    )


class ModelConfig(RunModel):
    """One row block of Table 1."""

    title: str = Field(description="Name in tables and figures. [ours]")
    train: dict[str, Any] = Field(
        default_factory=dict, description="Changes to the scenario's training settings for this model. [ours]"
    )


class SyntheticFamily(Section):
    """Left-to-right arithmetic modulo 10, `min_ops` to `max_ops` operations (docs/demo.md)."""

    min_ops: int = Field(ge=1, le=30, description="Fewest operations in a problem, 1 to 30. [ours]")
    max_ops: int = Field(ge=1, le=30, description="Most operations in a problem, 1 to 30. [ours]")
    operators: str = Field("+-*", min_length=1, description="Operators drawn from. [ours]")
    problems: int = Field(ge=1, description="Problems in the file, >= 1. [ours]")
    seed: int = Field(ge=0, description="Seed of the problems, >= 0; no held-out problem occurs in training. [ours]")

    @model_validator(mode="after")
    def _range(self) -> Self:
        if self.min_ops > self.max_ops:
            raise ValueError(f"min_ops {self.min_ops} is above max_ops {self.max_ops}")
        return self


class SyntheticData(Section):
    """The demo's training problems; its benchmarks name their own families."""

    kind: Literal["synthetic"] = "synthetic"
    train: SyntheticFamily


class RealData(Section):
    """The paper's training mix, assembled by `fr3e data assemble` (docs/data.md)."""

    kind: Literal["real"] = "real"
    sources: str = Field("config/sources.yaml", description="Table of sources. [paper 5.1, ours]")
    mirror: str | None = Field(None, description="Folder with the sources' files, used instead of the hub. [ours]")
    mix: Mix = Field(
        default=Mix(), description="Which part of each source, and what happens to duplicates (docs/data.md). [ours]"
    )
    max_prompt_tokens: int = Field(1024, ge=1, description="Longest prompt in tokens. [code] 1024")
    remove_overlap: bool = Field(
        False,
        description="Drop training rows found in a benchmark, by `mix.overlap` or, where that is keep, by latex. "
        "[paper] not done; config/overlays/paper_clean.yaml does.",
    )
    accept_difference: bool = Field(
        False,
        description="Go on although data/ differ from data.dvc; the difference is kept in <results>/data.json. [ours]",
    )

    @property
    def chosen_mix(self) -> Mix:
        """The mix with `remove_overlap` applied."""
        removes = self.remove_overlap and self.mix.overlap == "keep"
        return self.mix.model_copy(update={"overlap": "latex"}) if removes else self.mix


class Benchmark(Section):
    """One column of Table 1."""

    title: str = Field(description="Column title. [paper] Table 1's")
    protocols: list[Name] = Field(min_length=1, description="Sampling protocols, the headline first. [paper 5.1]")
    family: SyntheticFamily | None = Field(None, description="Synthetic family; absent for real benchmarks. [ours]")
    sample_of: str | None = Field(None, description="Packaged sample of a real benchmark (gsm8k_50). [ours]")
    in_distribution: bool = Field(False, description="Drawn like the training problems. [ours]")


class Protocol(Section):
    """How a benchmark is sampled. avg@k is `samples: k`."""

    temperature: float = Field(
        ge=0,
        le=2,
        description="Softmax temperature; 0 is greedy. [paper 5.1] 0; [code] 1.0 for avg@k",
    )
    top_p: float = Field(1.0, gt=0, le=1, description="Nucleus mass. [code] 0.95 for avg@k")
    samples: int = Field(1, ge=1, description="k, samples per problem. [paper 5.1] 32 on AIME24; [code] 16")

    @model_validator(mode="after")
    def _greedy_once(self) -> Self:
        if self.temperature == 0 and self.samples != 1:
            raise ValueError(
                f"temperature 0 with samples {self.samples}: greedy samples are all equal; set samples to 1"
            )
        return self


class EvaluationConfig(Section):
    """Sampling and grading of finished models."""

    engine: Literal["transformers", "vllm"] = Field(
        "transformers", description="Sampling engine; the output is the same parquet. [code] vllm; [ours]"
    )
    protocols: dict[Name, Protocol] = Field(description="Protocol name -> how it samples. [paper 5.1] greedy, avg@32")
    max_tokens: int = Field(ge=1, description="Longest response in tokens. [code] 3072")
    seed: int = Field(0, ge=0, description="Base seed, >= 0; each sample has its own. [ours]")
    batch_rows: int = Field(256, ge=1, description="Sequences side by side (transformers engine). [ours]")
    shard_rows: int = Field(2000, ge=1, description="Rows of a shard; a killed job loses at most one. [ours]")
    tensor_parallel: int = Field(1, ge=1, description="GPUs of one vLLM engine. [ours]")
    grade_workers: int = Field(2, ge=1, description="Grading processes. [ours]")


class ReportConfig(Section):
    """Statistics and presentation."""

    reported: Literal["last"] = Field(
        "last",
        description="The checkpoint that is scored, fixed in advance: the one of the last update. [ours]",
    )
    confidence: float = Field(0.95, gt=0.5, lt=1, description="Level of intervals. [ours] 0.95")
    bootstrap_draws: int = Field(10_000, ge=100, description="Bootstrap draws over problems and seeds. [ours]")
    comparison: tuple[Name, Name] = Field(
        ("fr3e", "grpo_pp"),
        description="The paired difference shown: first minus second. [paper Table 1]",
    )
    published: bool = Field(False, description="Show the paper's numbers beside ours. [ours]")
    version_models: bool = Field(
        False, description="Put every method's final model under DVC (results/<scenario>/runs/<run>/model.dvc). [ours]"
    )
    gpu_hour_price: float | None = Field(
        None, gt=0, description="Currency units per GPU-hour in the cost section. [ours]"
    )


class StageResources(Section):
    """What a job of a stage asks of a cluster. Nodes and GPUs come from train.verl and evaluation.tensor_parallel.

    The grading of a model's benchmarks is one group of jobs side by side: Snakemake asks for the sum of theirs.
    """

    cpus: int = Field(1, ge=1, description="CPU cores. [ours]")
    mem_mb: int = Field(4000, ge=100, description="Memory in MB. [ours]")
    runtime: int = Field(60, ge=1, description="Minutes. [ours]")


class Speed(Section):
    """Throughput of one GPU (engine verl) or one process (engine local) on one model."""

    generate: float = Field(gt=0, description="Generated tokens per second during rollouts. [ours]")
    train: float = Field(gt=0, description="Trained tokens per second, forward and backward. [ours]")


class PlanningConfig(Section):
    """The stated model behind `fr3e plan`: where its numbers come from stands in `source`."""

    source: str = Field(description="Where these numbers come from. [ours]")
    response_tokens: float = Field(gt=0, description="Mean length of a full response in tokens. [ours]")
    mixed_share: float = Field(
        gt=0,
        le=1,
        description="Share of a prompt's state groups that are trained on: mixed rewards, prompt not dropped. [ours]",
    )
    mixed_share_of: dict[Name, float] = Field(default_factory=dict, description="The same for single arms. [ours]")
    anchor_position: float = Field(0.4, ge=0, lt=1, description="Mean anchor position / base length, 0 to 1. [ours]")
    overhead_seconds: float = Field(
        ge=0, description="Seconds of an update that are neither generation nor training. [ours]"
    )
    speed: dict[Name, Speed] = Field(description="Model -> throughput. [ours]")


class Scenario(Section):
    """The whole of config/<scenario>.yaml."""

    scenario: Name = Field(description="Name; results go to results/<scenario>/. [ours]")
    models: dict[Name, ModelConfig] = Field(min_length=1)
    methods: list[Name] = Field(
        min_length=1, description="Arms in Table 1, files of config/arms. [paper Table 1] FR3E and GRPO++"
    )
    arms: list[Name] = Field(default_factory=list, description="Further arms, trained by the target `arms`. [ours]")
    arm_models: list[Name] = Field(
        default_factory=list, description="Models on which the further arms run; empty means all. [ours]"
    )
    seeds: list[Annotated[int, Field(ge=0, lt=2**32)]] = Field(min_length=1, description="Training seeds. [ours]")
    data: SyntheticData | RealData = Field(discriminator="kind")
    train: dict[str, Any] = Field(
        default_factory=dict,
        description="Training settings common to all runs (TrainingConfig). [paper 5.1]; what it leaves open is [code] or [ours] there",
    )
    overrides: dict[Name, dict[str, Any]] = Field(
        default_factory=dict, description="Changes per arm; they also reach the arms that extend it. [ours]"
    )
    benchmarks: dict[Name, Benchmark] = Field(min_length=1)
    evaluation: EvaluationConfig
    report: ReportConfig = ReportConfig()
    planning: PlanningConfig | None = Field(None, description="Inputs of `fr3e plan`. [ours]")
    resources: dict[Literal["base", "train", "export", "sample", "grade"], StageResources] = Field(default_factory=dict)

    @field_validator("methods", "arms", "arm_models", "seeds")
    @classmethod
    def _once(cls, values: list[Any]) -> list[Any]:
        if double := [value for number, value in enumerate(values) if value in values[:number]]:
            raise ValueError(f"{double[0]!r} stands there twice; name each once")
        return values

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for name, benchmark in self.benchmarks.items():
            for protocol in benchmark.protocols:
                if protocol not in self.evaluation.protocols:
                    raise ValueError(
                        f"benchmarks.{name}.protocols names {protocol!r}; evaluation.protocols has {', '.join(self.evaluation.protocols)}"
                    )
        for model in self.arm_models:
            if model not in self.models:
                raise ValueError(f"arm_models names {model!r}; models has {', '.join(self.models)}")
        for model in self.planning.speed if self.planning else []:
            if model not in self.models:
                raise ValueError(f"planning.speed names {model!r}; models has {', '.join(self.models)}")
        for method in self.report.comparison:
            if method not in self.methods:
                raise ValueError(f"report.comparison names {method!r}; methods has {', '.join(self.methods)}")
        return self


class RunConfig(Section):
    """One training run, resolved: the content of run.yaml, the only configuration the training stage reads."""

    run: str = Field(description="<model>-<arm>-s<seed>.")
    scenario: Name
    arm: Name
    model_name: Name
    model: RunModel
    seed: int = Field(ge=0, lt=2**32)
    training: TrainingConfig
    base: str = Field(description="Folder of the base model.")
    data: str = Field(description="Training parquet.")
    benchmarks: dict[Name, str] = Field(default_factory=dict, description="Probed benchmark files.")

    @model_validator(mode="after")
    def _fits_positions(self) -> Self:
        needed = self.training.rollout.max_prompt_tokens + self.training.rollout.max_total_tokens
        if needed > self.model.max_positions and self.model.rope_override is None:
            raise ValueError(
                f"models.{self.model_name}: rollout.max_prompt_tokens + rollout.max_total_tokens = {needed} is more than max_positions {self.model.max_positions}; "
                "lower them or set rope_override"
            )
        return self
