"""verl's configuration, rendered from ours into one resolved file that is stored with the run (verl.yaml).

`settings` is a pure function of the run; it names only keys that verl's own configuration has, except those under
`ADDED`, which its dataclasses know but its YAML leaves out. `render` lays the settings over verl's defaults and
fails with the key's name where verl no longer has it.
"""

from pathlib import Path
from typing import Any

from fr3e.config.scenario import RunConfig
from fr3e.config.training import TrainingConfig
from fr3e.errors import UserError

Tree = dict[str, Any]

TRAINER_MODE = "fr3e_sync"
MANAGER = "fr3e.engine.verl.rollout.FR3EManager"
PROBE = "fr3e.engine.verl.entropy_probe:EntropyProbe"
ADDED = ("actor_rollout_ref.rollout.agent.agent_loop_manager_class", "actor_rollout_ref.rollout.enable_sleep_mode")
FREE = (
    "actor_rollout_ref.ref.fsdp_config.mixed_precision",
    "actor_rollout_ref.rollout.engine_kwargs.vllm",
    "actor_rollout_ref.model.override_config",
    "actor_rollout_ref.actor.fsdp_config.mixed_precision",
)
"""Mappings whose keys verl hands on to vLLM, transformers or torch as they are."""


def longest_sequence(training: TrainingConfig) -> int:
    """Tokens of the longest row: prompt, prefix and continuation."""
    return training.rollout.max_prompt_tokens + training.rollout.max_total_tokens


def check(run: RunConfig) -> None:
    """Refuse (`UserError`) what this engine cannot do, before anything is started."""
    training, verl = run.training, run.training.verl
    longest = longest_sequence(training)
    if verl.max_tokens_per_gpu < longest:
        raise UserError(
            f"train.verl.max_tokens_per_gpu is {verl.max_tokens_per_gpu}, but a row may have {longest} tokens "
            "(rollout.max_prompt_tokens + rollout.max_total_tokens); raise the first or lower the others"
        )
    if verl.entropy == "topk" and training.rollout.temperature != 1.0:
        raise UserError(
            f"train.verl.entropy topk knows log-probs at temperature 1 only, rollout.temperature is "
            f"{training.rollout.temperature}; set one of them"
        )
    if (
        run.training.fr3e.anchor_score == "topk_entropy"
        and verl.entropy == "topk"
        and training.fr3e.topk_entropy_k > 20
    ):
        raise UserError(
            f"fr3e.topk_entropy_k is {training.fr3e.topk_entropy_k}; with train.verl.entropy topk at most 20 is allowed"
        )
    if verl.device == "cpu" and verl.dtype != "float32":
        raise UserError(f"train.verl.device cpu needs train.verl.dtype float32, found {verl.dtype}")


def settings(run: RunConfig, out: Path) -> Tree:
    """Our values as a tree of verl's keys. `out` is the run's folder."""
    check(run)
    training, verl = run.training, run.training.verl
    return {
        "actor_rollout_ref": {
            "model": _model(run),
            "actor": _actor(training),
            "ref": _reference(training),
            "rollout": _rollout(run),
        },
        "algorithm": {
            # FR3ETrainer computes the advantages; the name only has to be one that asks for no critic.
            "adv_estimator": "grpo",
            "use_kl_in_reward": False,
        },
        "data": _data(run),
        "reward": _reward(training),
        "trainer": _trainer(run, out),
        "transfer_queue": {
            "backend": {
                "SimpleStorage": {
                    # Each unit is a Ray actor that claims a core: eight on a small machine wait for ever, silently.
                    "num_data_storage_units": 1 if verl.device == "cpu" else 8 * verl.nodes,
                    "total_storage_size": 1_000_000,
                }
            }
        },
    }


def _model(run: RunConfig) -> Tree:
    cpu = run.training.verl.device == "cpu"
    # flash-attn, which verl asks for by itself, has kernels for 16-bit types on GPUs only.
    flash = run.training.verl.dtype == "bfloat16"
    override: Tree = {} if flash else {"attn_implementation": "sdpa"}
    return {
        "path": run.base,  # a rope override is in this folder's config.json already, for trainer and vLLM alike
        "trust_remote_code": False,
        "use_remove_padding": flash,  # sequence packing needs flash-attn's variable-length kernels
        "enable_gradient_checkpointing": not cpu,  # activations of one layer at a time; the toy model needs none of it
        "override_config": override,
    }


def _actor(training: TrainingConfig) -> Tree:
    verl, loss, optim = training.verl, training.loss, training.optim
    return {
        "strategy": "fsdp2",
        # Both inert: FR3ETrainer names the number of mini-batches, since a group's rows are not a fixed number.
        "ppo_mini_batch_size": 1,
        "ppo_epochs": 1,
        "shuffle": False,  # FR3ETrainer lays the rows out, mini-batch by mini-batch
        "use_dynamic_bsz": True,
        "ppo_max_token_len_per_gpu": verl.max_tokens_per_gpu,
        "grad_clip": optim.clip_norm,
        "entropy_coeff": loss.entropy,
        "use_kl_loss": loss.kl > 0,  # decides whether a reference model exists; the loss itself is ours
        "kl_loss_coef": loss.kl,
        "clip_ratio_low": loss.clip_low,
        "clip_ratio_high": loss.clip_high,
        "loss_agg_mode": {"token_mean": "token-mean", "seq_mean": "seq-mean-token-mean"}[loss.agg],
        "use_torch_compile": verl.device == "cuda",
        # 152k logits a token: the entropy is taken piece by piece instead of over the whole micro-batch.
        "entropy_from_logits_with_chunking": True,
        "entropy_checkpointing": True,
        "optim": {
            "lr": optim.lr,
            "betas": [optim.beta1, optim.beta2],
            "weight_decay": optim.weight_decay,
            "clip_grad": optim.clip_norm,
            "lr_scheduler_type": "constant",
            "lr_warmup_steps": 0,
        },
        "fsdp_config": _fsdp(training),
        # The export merges the shards itself, so that a checkpoint holds each weight once.
        "checkpoint": {"save_contents": ["model", "optimizer", "extra"]},
    }


def _fsdp(training: TrainingConfig) -> Tree:
    verl = training.verl
    compute = {"bfloat16": "bf16", "float32": "fp32"}[verl.dtype]
    return {
        "model_dtype": "fp32",  # parameters and optimiser state; at lr 1e-6 bfloat16 would round most steps away
        "dtype": verl.dtype,
        "mixed_precision": {"param_dtype": compute, "reduce_dtype": "fp32", "buffer_dtype": "fp32"},
        "param_offload": verl.offload,
        "optimizer_offload": verl.offload,
        "reshard_after_forward": True,
        "fsdp_size": -1,  # sharded over all ranks: optimiser state is what fills the memory
        "use_torch_compile": verl.device == "cuda",
    }


def _reference(training: TrainingConfig) -> Tree:
    return {
        "log_prob_use_dynamic_bsz": True,
        "log_prob_max_token_len_per_gpu": training.verl.max_tokens_per_gpu,
        "fsdp_config": {**_fsdp(training), "param_offload": training.verl.offload, "optimizer_offload": False},
    }


def _rollout(run: RunConfig) -> Tree:
    training, verl = run.training, run.training.verl
    cpu = verl.device == "cpu"
    engine: Tree = {"logits_processors": [PROBE]} if verl.entropy == "exact" else {"max_logprobs": 20}
    if cpu:
        engine["block_size"] = 16  # the CPU's default of 128 tokens would leave short prompts out of the prefix cache
    longest = longest_sequence(training)
    return {
        "name": "vllm",
        "mode": "async",
        "n": 1,  # inert: FR3EWorker decides how many rollouts a prompt has
        "temperature": training.rollout.temperature,
        "top_p": 1.0,  # anything less would make vLLM's log-probs those of another distribution
        "top_k": -1,
        "seed": run.seed,
        "prompt_length": training.rollout.max_prompt_tokens,
        "response_length": training.rollout.max_total_tokens,
        "max_model_len": longest,
        "dtype": verl.dtype,
        "tensor_model_parallel_size": verl.tensor_parallel,
        "gpu_memory_utilization": 0.05 if cpu else verl.gpu_memory_utilization,
        "enforce_eager": cpu,
        "free_cache_engine": not cpu,  # gives the cache's memory to the update; the CPU has no sleep mode
        "enable_sleep_mode": not cpu,
        "load_format": "auto" if cpu else "dummy",  # weights come from the trainer before the first request
        "enable_prefix_caching": True,
        "enable_chunked_prefill": True,
        "max_num_seqs": 64 if cpu else 256,
        # Enough for every prompt of a CPU test at once: a prompt in pieces would rewind a generator, which CPUs cannot.
        "max_num_batched_tokens": 64 * longest if cpu else max(8192, longest),
        "calculate_log_probs": True,
        "log_prob_use_dynamic_bsz": True,
        "log_prob_max_token_len_per_gpu": verl.max_tokens_per_gpu,  # equal to the update's: same batches, same numbers
        "engine_kwargs": {"vllm": engine},
        "agent": {"num_workers": 1 if cpu else 4 * verl.nodes, "agent_loop_manager_class": MANAGER},
        "checkpoint_engine": {"update_weights_bucket_megabytes": 16 if cpu else 2048},
    }


def _data(run: RunConfig) -> Tree:
    training = run.training
    return {
        "train_files": [run.data],
        "val_files": [run.data],
        "custom_cls": {"path": "pkg://fr3e.engine.verl.dataset", "name": "Problems"},
        "max_prompt_length": training.rollout.max_prompt_tokens,
        "max_response_length": training.rollout.max_total_tokens,
        "train_batch_size": 1,  # inert, as is the data loader: FR3ETrainer draws prompts in the local engine's order
        "gen_batch_size": 1,
        "shuffle": False,
        "seed": run.seed,
        "dataloader_num_workers": 0,
        "filter_overlong_prompts": False,
    }


def _reward(training: TrainingConfig) -> Tree:
    return {
        "num_workers": 1 if training.verl.device == "cpu" else 4 * training.verl.nodes,
        "custom_reward_function": {"path": "pkg://fr3e.engine.verl.reward", "name": "compute_score"},
    }


def _trainer(run: RunConfig, out: Path) -> Tree:
    training, verl = run.training, run.training.verl
    return {
        "project_name": "fr3e",
        "experiment_name": run.run,
        "logger": ["console"],  # metrics.jsonl is ours: verl's own file is truncated on resume
        "nnodes": verl.nodes,
        "n_gpus_per_node": verl.gpus_per_node,
        "device": verl.device,
        "total_epochs": 1_000_000_000,  # a run ends by its updates
        "total_training_steps": training.optim.updates,
        "save_freq": training.checkpoint.every,
        "test_freq": -1,  # probes are ours (docs/metrics.md), at updates of their own
        "val_before_train": False,
        "resume_mode": "auto",
        "default_local_dir": str(out / "checkpoint"),
        "max_actor_ckpt_to_keep": None,  # FR3ETrainer removes old checkpoints after the new one is whole
        "use_v1": True,
        "v1": {"trainer_mode": TRAINER_MODE},
    }


def render(run: RunConfig, out: Path, extra: Tree | None = None, ray_init: Tree | None = None) -> Any:
    """The whole verl configuration, an `omegaconf.DictConfig` with everything resolved and our run under `fr3e.run`.

    `extra` is laid over our settings; `ray_init`, which verl hands on to Ray as it is, replaces verl's own. Needs verl. Raises `UserError` naming a key that verl's defaults do not have.
    """
    from hydra import compose, initialize_config_module
    from omegaconf import OmegaConf, open_dict

    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer")
    tree = settings(run, out)
    for key in _unknown(config, tree, ""):
        raise UserError(f"verl has no setting {key}; this engine is written for another version (docs/verl.md)")
    with open_dict(config):
        config = OmegaConf.merge(config, tree, extra or {}, {"fr3e": {"run": run.model_dump(mode="json")}})
        config.ray_kwargs.ray_init = ray_init or {}
    OmegaConf.resolve(config)
    return config


def _unknown(config: Any, tree: Tree, prefix: str) -> list[str]:
    """Keys of `tree` that `config` lacks, dotted."""
    found = []
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if key in ADDED or key in FREE:
            continue
        if name not in list(config):  # `in` would also be False for a key whose value verl leaves to be filled in
            found.append(key)
        elif isinstance(value, dict):
            found += _unknown(config[name], value, f"{key}.")
    return found
