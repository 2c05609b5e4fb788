"""What one training run needs to know: FR3E's switches, loss, optimiser, batch and rollout settings.

GRPO++ is not a second method here: it is `fr3e` with no first return (`first_n: 0`) and no anchors (`num_anchors: 0`),
so that the root state's `rollouts_per_state` continuations are GRPO's group.

Sources named in the descriptions: [paper] arXiv 2507.07017 with its section; [code] the authors' released code;
[ours] a choice made here where both are silent. The full list of differences is docs/deviations.md.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from fr3e.config.base import Section


class RolloutConfig(Section):
    """Sampling from the old policy during training (paper, sections 4.1 and 4.2)."""

    temperature: float = Field(
        1.0, gt=0, le=2, description="Softmax temperature of sampling, log-probs and entropies, > 0. [code] 1.0"
    )
    max_prompt_tokens: int = Field(
        1024, ge=1, description="Longest prompt in tokens; longer prompts leave the data with a reason. [code] 1024"
    )
    max_total_tokens: int = Field(
        3072,
        ge=1,
        description="Budget of prefix + continuation in tokens, the prompt not counted. [paper 5.1] 16k; [ours] 3072 for Qwen2.5-Math-7B with its 4096 positions",
    )
    prompts_per_round: int = Field(
        32,
        ge=1,
        description="Prompts that start together in one accumulation round (paper 3.2); rounds follow until the update is full. [code] 32",
    )
    batch_rows: int = Field(
        512,
        ge=1,
        description="Sequences decoded side by side by the local engine. Part of a run's identity: batch shapes change floating-point sums. [ours]",
    )


class Fr3eConfig(Section):
    """First Return and Entropy-Eliciting Explore (paper, sections 4.1-4.3). K = num_anchors, M = rollouts_per_state."""

    first_n: int = Field(
        4,
        ge=0,
        description="Full rollouts per prompt in First Return; 0 switches the stage off, as in GRPO++. [paper] one base, several per prompt in the article; [code] 4",
    )
    first_filter: Literal["none", "all_correct", "degenerate"] = Field(
        "all_correct",
        description="Prompts that leave after First Return: none, those answered right by all first rollouts, or also those answered wrong by all. [article] all_correct; [code] none",
    )
    base_select: Literal["one_correct_else_wrong", "correct_and_wrong", "one_correct", "any", "all"] = Field(
        "one_correct_else_wrong",
        description="Base trajectories of a prompt: one right one, else a wrong one; one of each; only a right one; any one; or all first rollouts, as in VinePPO. Drawn at random among equals. [article] first; [code] correct_and_wrong",
    )
    anchor_score: Literal[
        "entropy", "surprisal", "topk_entropy", "random", "uniform", "paragraph", "low_entropy", "percentile"
    ] = Field(
        "entropy",
        description="Score by which anchors are chosen (Eq. 7): H_k over the full vocabulary at rollout temperature. surprisal = -log p of the sampled token [code]; the others are controls. [paper 4.1] entropy",
    )
    num_anchors: int = Field(
        4,
        ge=0,
        le=64,
        description="K, anchors per base trajectory (Eq. 7); 0 leaves the root state alone. [paper] not reported; [code] 4",
    )
    topk_entropy_k: int = Field(
        20,
        ge=2,
        description="Tokens kept by anchor_score topk_entropy, the rest as one residual mass. [ours] vLLM's default log-prob limit",
    )
    percentile: float = Field(
        80.0,
        gt=0,
        lt=100,
        description="anchor_score percentile: tokens above this percentile of the trajectory's entropies are candidates. [ours] 80, as in 80/20 work",
    )
    peak_distance: int = Field(
        3,
        ge=1,
        description="anchor_score percentile: candidates at most this many tokens apart form one decision point. [ours] 3",
    )
    anchor_in_prefix: bool = Field(
        False,
        description="True: the state ends with the anchor token (Eq. 8-10); False: just before it, so that the uncertain token is drawn anew. [paper 4.1.4, code] False",
    )
    min_gap: int = Field(
        0, ge=0, description="Smallest distance between two anchors in tokens; 0 or 1 means none. [paper, code] none"
    )
    skip_first: int = Field(0, ge=0, description="First response tokens that cannot be anchors. [paper, code] 0")
    exclude_answer_span: bool = Field(
        True,
        description="Tokens from the start of the final answer's box on cannot be anchors; special tokens never are. [ours] True; [code] nothing is excluded",
    )
    include_root: bool = Field(True, description="Explore from the prompt itself (S_0) as well. [article, code] True")
    rollouts_per_state: int = Field(
        16,
        ge=1,
        description="M, continuations of each state (Eq. 12-13); the group size n of GRPO++. [paper 5.1] 16 per prompt; [code] 16 per state",
    )
    budget: Literal["per_state", "per_prompt", "token_matched"] = Field(
        "per_state",
        description="M is the number of continuations of each state; or of all states of a prompt together, split evenly; or the same number for each state, so many that the prompt's first rollouts and continuations together cost about the tokens of M full rollouts. At least two of each state. [code] per_state",
    )
    root_alpha: Literal["one", "one_minus_v"] = Field(
        "one", description="alpha of the root: 1, or exp(-(1 - V_0)) as released. [paper] undefined; [code] one_minus_v"
    )
    prev_value: Literal["true", "surviving"] = Field(
        "true",
        description="V(S_{j-1}) in Eq. 14: of the true previous state, also when its group was filtered, or of the last surviving one. [code] surviving",
    )
    sharpen_power: float = Field(
        0.0,
        ge=0,
        le=10,
        description="p > 0 replaces delta_j by sign(delta_j)|delta_j|^p / sum_i |delta_i|^p before Eq. 14; 0 is off. [paper] absent; [code] 1.5",
    )
    alpha_mode: Literal["paper", "none", "amplify_only", "brake_only", "shuffled"] = Field(
        "paper",
        description="alpha_j (Eq. 14) as it is; 1; max(1, alpha); min(1, alpha); or dealt out at random among the states of the update. [paper 4.3] paper",
    )
    train_first_rollouts: bool = Field(
        False,
        description="Train on the first rollouts too, as one group per prompt with alpha 1. [paper] unstated; [code] False",
    )
    prefix_loss: bool = Field(False, description="Tokens of the prefix enter the loss. [paper] unstated; [code] False")
    released_row_permutation: int = Field(
        0,
        ge=0,
        description="0: off. R > 1: permute rows as the released code does on R ranks before anchors and alpha are looked up, which decouples both from their rows. [code] a fault, for study only",
    )

    @model_validator(mode="after")
    def _states_exist(self) -> Self:
        if self.num_anchors == 0 and not self.include_root:
            raise ValueError("num_anchors 0 with include_root false leaves no state to explore from; set one of them")
        if self.num_anchors > 0 and self.first_n == 0:
            raise ValueError(
                f"num_anchors {self.num_anchors} needs first rollouts to find anchors in; set first_n to 1 or more, or num_anchors to 0"
            )
        return self


class AdvantageConfig(Section):
    """From rewards to advantages (Eq. 1-2, 15)."""

    estimator: Literal["group_mean", "value_difference"] = Field(
        "group_mean",
        description="A = r - mean of the group (Eq. 1); or VinePPO's A = V(next state) - V(state) on the tokens of the base trajectories, which are then what is trained, one group per prompt. [paper] group_mean",
    )
    group: Literal["state", "prompt"] = Field(
        "state",
        description="Rewards that share one mean: of one state, or of all states of a prompt. [paper] unstated; [code] state",
    )
    std_norm: bool = Field(
        False,
        description="Divide by the unbiased standard deviation of the rewards that share the mean, + 1e-6 (Eq. 2). [paper] in GRPO; [code] False",
    )


class LossConfig(Section):
    """The clipped surrogate (Eq. 1-2, paper 3.3)."""

    clip_low: float = Field(
        0.22,
        gt=0,
        lt=1,
        description="epsilon_low: the ratio is clipped below at 1 - epsilon_low. [paper 5.1] 0.22; [code] 0.2",
    )
    clip_high: float = Field(
        0.28,
        gt=0,
        lt=10,
        description="epsilon_high: the ratio is clipped above at 1 + epsilon_high. [paper 5.1] 0.28; [code] 0.3",
    )
    dual_clip: float | None = Field(
        None,
        gt=1,
        description="c > 1 bounds the loss of negative advantages at -c A; null is off. [paper] not mentioned; [code] 3.0",
    )
    agg: Literal["token_mean", "seq_mean"] = Field(
        "token_mean",
        description="Mean over all trained tokens of the mini-batch, or over sequences of their token means. [code] token mean per micro-batch; [ours] global",
    )
    kl: float = Field(
        0.0,
        ge=0,
        description="Weight of KL(policy || base model), k3 estimator; 0 runs no reference model. [paper 5.1] 0",
    )
    entropy: float = Field(0.0, ge=0, description="Weight of the entropy bonus. [paper 5.1] 0")
    entropy_token_fraction: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Share of the mini-batch's trained tokens, highest entropy first, that keep their loss; 0.2 is the 80/20 control. [ours] 1",
    )


class AccumulationConfig(Section):
    """Rejection sampling with accumulation to a full batch (paper, section 3.2)."""

    groups_per_update: int = Field(
        512,
        ge=1,
        description="State groups with mixed rewards per update; for GRPO++ a group is one prompt's rollouts. [paper 5.1] 512",
    )
    reject_degenerate: bool = Field(
        True, description="Leave out groups whose rewards are all equal; False is plain GRPO. [paper 3.2, code] True"
    )
    overflow: Literal["carry", "drop"] = Field(
        "carry", description="Surplus groups wait for the next update, or are dropped by a seeded rule. [ours] carry"
    )
    max_rounds: int = Field(
        30, ge=1, description="Rounds without a full batch after which the run ends with an error. [code] 30"
    )


class OptimConfig(Section):
    """AdamW at a constant rate."""

    lr: float = Field(1e-6, gt=0, lt=1, description="Learning rate. [paper 5.1] 1e-6; [code] 2e-6")
    beta1: float = Field(0.9, ge=0, lt=1, description="AdamW beta 1. [code] 0.9")
    beta2: float = Field(0.999, ge=0, lt=1, description="AdamW beta 2. [code] 0.999")
    weight_decay: float = Field(0.01, ge=0, description="AdamW decoupled weight decay. [code] 0.01")
    clip_norm: float = Field(1.0, gt=0, description="Largest global gradient norm. [code] 1.0")
    minibatches: int = Field(4, ge=1, description="Optimiser steps per update. [paper 5.1] 512 / 128 = 4; [code] 1")
    micro_batch_tokens: int = Field(
        16384, ge=1, description="Tokens of one forward and backward pass; changes memory, not the gradient. [ours]"
    )
    updates: int = Field(
        200, ge=1, description="Updates of a run; the model of the last one is reported. [paper] not given; [ours]"
    )


class RewardConfig(Section):
    """The 0/1 reward (Eq. 12)."""

    scope: Literal["full", "continuation"] = Field(
        "full",
        description="Text that is graded: prefix + continuation, or the continuation alone as released. [paper] full answer; [code] continuation",
    )


class ProbeConfig(Section):
    """The common protocol: full rollouts from fixed prompts, the same for every method (docs/metrics.md)."""

    every: int = Field(
        10, ge=1, description="Updates between two probes; the first is before training, the last after it. [ours]"
    )
    problems: int = Field(32, ge=1, description="Problems per benchmark, the first ones by id. [ours]")
    samples: int = Field(4, ge=1, description="Rollouts per problem at rollout temperature. [ours]")
    benchmarks: list[str] = Field(
        default_factory=list,
        description="Benchmarks that are probed; the training set is always probed as well. [ours]",
    )


class CheckpointConfig(Section):
    """Checkpoints: written atomically, checked on load."""

    every: int = Field(
        20, ge=1, description="Updates between two checkpoints; the last update always has one. [code] 100; [ours]"
    )
    keep: int = Field(2, ge=1, description="Newest checkpoints that are kept. [ours]")


class VerlConfig(Section):
    """The distributed engine's shape: verl with Ray, FSDP2 and vLLM (docs/verl.md)."""

    nodes: int = Field(1, ge=1, description="Machines of the run. [ours]")
    gpus_per_node: int = Field(8, ge=1, description="GPUs of a machine, all of them used. [ours]")
    tensor_parallel: int = Field(1, ge=1, description="vLLM tensor-parallel size; divides gpus_per_node. [ours]")
    gpu_memory_utilization: float = Field(0.6, gt=0, lt=1, description="Share of GPU memory that vLLM takes. [ours]")
    offload: bool = Field(
        False, description="Keep FSDP parameters and optimiser state in host memory between phases. [ours]"
    )
    max_tokens_per_gpu: int = Field(16384, ge=1, description="Packed tokens per GPU of a training micro-batch. [ours]")
    dtype: Literal["bfloat16", "float32"] = Field(
        "bfloat16", description="Compute type; parameters and optimiser state are float32. [ours]"
    )
    device: Literal["cuda", "cpu"] = Field("cuda", description="cpu is for the integration test. [ours]")
    entropy: Literal["exact", "topk"] = Field(
        "exact",
        description="Entropy from vLLM's logits, or over its top log-probs with the rest as one mass, labelled approximate. [ours] exact",
    )
    logprob_alarm: float = Field(
        0.1, gt=0, description="Mean |log-prob(vLLM) - log-prob(trainer)| above which a warning is logged. [ours]"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.gpus_per_node % self.tensor_parallel:
            raise ValueError(
                f"tensor_parallel {self.tensor_parallel} does not divide gpus_per_node {self.gpus_per_node}"
            )
        return self


class TrainingConfig(Section):
    """All settings of one training run that are not the model, the data or the seed."""

    engine: Literal["local", "verl"] = Field(
        "local",
        description="Single-process torch trainer, or verl. Same run.yaml, same metrics, same checkpoint to model hand-over. [code] verl; [ours] local",
    )
    rollout: RolloutConfig = RolloutConfig()
    fr3e: Fr3eConfig = Fr3eConfig()
    adv: AdvantageConfig = AdvantageConfig()
    loss: LossConfig = LossConfig()
    accum: AccumulationConfig = AccumulationConfig()
    optim: OptimConfig = OptimConfig()
    reward: RewardConfig = RewardConfig()
    probe: ProbeConfig = ProbeConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    verl: VerlConfig = VerlConfig()
    threads: int = Field(
        1,
        ge=1,
        description="CPU threads of the local engine. Part of a run's identity: results repeat to the bit only at the same count. [ours] 1",
    )

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.accum.groups_per_update < self.optim.minibatches:
            raise ValueError(
                f"accum.groups_per_update {self.accum.groups_per_update} is below optim.minibatches {self.optim.minibatches}; each mini-batch needs a group"
            )
        return self

    @model_validator(mode="after")
    def _values_need_bases(self) -> Self:
        fr3e = self.fr3e
        if self.adv.estimator == "value_difference":
            if fr3e.num_anchors == 0 or not fr3e.include_root:
                raise ValueError(
                    "adv.estimator value_difference needs the values of states on a base: set fr3e.num_anchors to 1 or more and fr3e.include_root to true"
                )
            if fr3e.train_first_rollouts or fr3e.released_row_permutation > 1:
                raise ValueError(
                    "adv.estimator value_difference trains the bases themselves: fr3e.train_first_rollouts and fr3e.released_row_permutation do not apply"
                )
        return self
