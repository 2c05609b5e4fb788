"""FR3E as a trainer of verl: stock phases, with our accumulation, advantages, loss, metrics and checkpoints in their places.

One update: `GroupSampler.sample` gathers groups -> `_balance_batch` lays the rows out by mini-batch -> verl recomputes
log-probs -> `_compute_advantage` writes each row's A' and weight by the facts it carries -> `_update_actor` -> weights go to
vLLM -> `_compute_metrics` probes, writes the metrics row and then the checkpoint, so that no saved update lacks its row.
"""

import logging
import math
import pickle
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import ray
from omegaconf import OmegaConf
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.padding_utils import upsample_batch_to_divisible_size
from verl.trainer.ppo.v1 import PPOTrainerSync, register_trainer
from verl.utils import tensordict_utils as tu

from fr3e.algorithm.advantage import advantages
from fr3e.algorithm.diagnostics import update_metrics
from fr3e.algorithm.loss import combine
from fr3e.config.scenario import RunConfig
from fr3e.engine.local.probe import probe_prompts
from fr3e.engine.local.problems import Problem, PromptStream, load_problems
from fr3e.engine.local.trajectories import sample_trajectories
from fr3e.engine.verl import plugin, rows, state
from fr3e.engine.verl.causes import cause_of, in_brief
from fr3e.engine.verl.config import TRAINER_MODE
from fr3e.engine.verl.layout import layout, row_losses
from fr3e.engine.verl.loss import SUMS, make_loss
from fr3e.engine.verl.metrics import RowFile, mismatch
from fr3e.engine.verl.probe import due, probe_columns, probe_uid
from fr3e.engine.verl.sampler import Explorers, GroupSampler, Round
from fr3e.engine.verl.stopping import Stopped, Stopping, beating
from fr3e.errors import UserError
from fr3e.exploration.records import Prompt

log = logging.getLogger("fr3e")


@register_trainer(TRAINER_MODE)
class FR3ETrainer(PPOTrainerSync):
    """verl's synchronous trainer; what is not overridden here is verl's own."""

    def __init__(self, config: Any) -> None:
        assert plugin.LOADED
        self.run = RunConfig.model_validate(OmegaConf.to_container(config.fr3e.run, resolve=True))
        self.checkpoints = Path(config.trainer.default_local_dir)
        self.progress = state.RunState()
        self._heartbeat = Path(config.fr3e.heartbeat)
        own = config.fr3e
        self._stopping = Stopping(Path(own.stop), own.job_end, own.longest_save, own.expected_save)
        self._metrics_file = RowFile(Path(config.fr3e.metrics))
        self._started = time.time() - config.fr3e.seconds_before
        self._trajectories = RowFile(Path(config.fr3e.trajectories))
        self._batches = Path(config.fr3e.batches) if config.fr3e.get("batches") else None
        self._update: dict[str, Any] = {}
        self._save_seconds = 0.0
        self._save_due = False
        self._problems: dict[str, Problem] = {}
        super().__init__(config)

    # ---------------------------------------------------------------- prompts and groups

    def _build_replay_buffer(self) -> GroupSampler:
        # verl asks for "sync" by name where it decides what to save and how prompts are registered.
        self.trainer_mode = "sync"
        self.explorers = Explorers(self._send_round, self._check_workers, self.beat)
        return GroupSampler(self.run, self.explorers)

    def prepare_step(self) -> dict[str, Any]:
        """Nothing: the sampler starts its own rounds."""
        return {}

    def _send_round(self, prompts: int) -> list[str]:
        """Start the next prompts in the order of the data; their uids."""
        taken, self.progress.position = self._stream.take(self.progress.position, prompts)
        self._problems |= {prompt.uid: problem for prompt, problem in taken}
        return self._send([prompt for prompt, _ in taken], "train", {})

    def _send(self, prompts: Sequence[Prompt], partition: str, extra: dict[str, Any]) -> list[str]:
        """Hand prompts to the rollout workers; `extra` holds columns (lists) and plain values for all of them."""
        uids = [prompt.uid for prompt in prompts]
        columns = {
            "uid": _objects(uids),
            "gold": _objects([prompt.gold for prompt in prompts]),
            "token_ids": _objects([list(prompt.token_ids) for prompt in prompts]),
            "raw_prompt": _objects([[] for _ in prompts]),
            "index": _objects(list(range(len(prompts)))),
            **{key: _objects(value) for key, value in extra.items() if isinstance(value, list)},
        }
        batch = tu.get_tensordict(columns)
        tu.assign_non_tensor_data(batch, "global_steps", self.global_steps)
        for key, value in extra.items():
            if not isinstance(value, list):
                tu.assign_non_tensor_data(batch, key, value)
        rows.register(uids, partition, self.global_steps)
        self.agent_loop_manager.generate_sequences(batch)
        return uids

    def _check_workers(self) -> None:
        """Raise when a rollout or reward worker is dead; their tasks are fired and forgotten, so nobody else would say."""
        workers = [*self.agent_loop_manager.agent_loop_workers, *(self.get_reward_handles() or [])]
        ray.get([worker.__ray_ready__.remote() for worker in workers], timeout=300)

    def beat(self) -> None:
        """Tell the watching process that there is progress."""
        self._heartbeat.touch()

    # ---------------------------------------------------------------- one update

    def _balance_batch(
        self, batch: KVBatchMeta, metrics: dict[str, Any], logging_prefix: str = "", keep_minibatch: bool = False
    ) -> KVBatchMeta:
        """Lay the rows out so that verl's plain cut into ranks and mini-batches gives our mini-batches."""
        lengths, first = [], 0
        for groups in self._round.minibatches:
            count = sum(len(group.rollouts) for group in groups)
            lengths.append([tag["seq_len"] for tag in batch.tags[first : first + count]])
            first += count
        placed = layout(lengths, self.run.training.verl.nodes * self.run.training.verl.gpus_per_node)
        real = len(batch)
        if placed.padding:
            batch = upsample_batch_to_divisible_size(batch, real + placed.padding, self.tokenizer.eos_token_id)
        batch.reorder([number if number >= 0 else real - 1 - number for number in placed.order])
        self.beat()
        return batch

    def _compute_advantage(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        """A' and token weight of every row, found by the facts the row itself carries."""
        self.beat()
        training, trained = self.run.training, self._round.selection.trained
        stored = rows.read_rows(batch)
        rows.verify(stored, trained)
        self._advantages = advantages(trained, training.fr3e, training.adv, self.replay_buffer.name(self.global_steps))
        by_uid = {group.uid: found for group, found in zip(trained, self._advantages, strict=True)}
        losses = row_losses(self._round.minibatches, by_uid, training, self.global_steps)
        self._update["mismatch"] = self._mismatch(stored)
        if self._batches:
            self._update["stored"], self._update["losses"] = stored, losses
        return rows.put_losses(batch, stored, losses)

    def _mismatch(self, stored: list[rows.StoredRow]) -> dict[str, float]:
        """Log-probs of vLLM against the trainer's, on this update's own groups: older ones come from an older policy."""
        fresh = {group.uid for group in self._round.selection.trained if group.born == self.global_steps}
        found = mismatch(
            [
                (row.rollout_logprobs - row.old_logprobs)[row.response_mask > 0]
                for row in stored
                if not row.padding and row.group in fresh
            ]
        )
        if found and found["mismatch/mean"] > self.run.training.verl.logprob_alarm:
            log.warning(
                "update %d: log-probs of vLLM and trainer differ by %.4f nat on average, more than train.verl.logprob_alarm "
                "%.4f: the policy that is sampled is not the one that is trained",
                self.global_steps,
                found["mismatch/mean"],
                self.run.training.verl.logprob_alarm,
            )
        return found

    def _update_actor(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        """Optimiser steps over the mini-batches, whose number (not size) is given. A gradient that is not finite ends the run."""
        training = self.run.training
        batch.extra_info.update(
            {
                "calculate_entropy": training.loss.entropy > 0,
                "distillation_use_topk": False,
                "distillation_only": False,
                "num_mini_batch": training.optim.minibatches,
                "epochs": 1,
                "seed": self.run.seed,
                "dataloader_kwargs": {"shuffle": False},
                "temperature": training.rollout.temperature,
            }
        )
        found = self.actor_rollout_wg.update_actor(batch)["metrics"]
        norms, losses = _flat(found["grad_norm"]), _flat(found["loss"])
        if not all(math.isfinite(norm) for norm in norms):
            raise FloatingPointError(
                f"update {self.global_steps}: gradient norms {norms} are not finite; the step was left out and the run ends, "
                "its last checkpoint is from before"
            )
        sums = {key.rsplit("/", 1)[-1]: _flat(found[key]) for key in found if key.startswith(SUMS)}
        columns = combine([dict(zip(sums, values, strict=True)) for values in zip(*sums.values(), strict=True)])
        columns |= {"loss": float(np.mean(losses)), "grad_norm": float(np.mean(norms)), "lr": training.optim.lr}
        self._update |= {"columns": columns, "grad_norms": norms, "minibatch_losses": losses}
        metrics.update({f"actor/{name}": value for name, value in columns.items()})
        self.beat()
        return batch

    # ---------------------------------------------------------------- metrics, probes, checkpoints

    def on_train_begin(self) -> None:
        """Probe the base model, unless this is a resumed run."""
        super().on_train_begin()
        self.actor_rollout_wg.set_loss_fn(make_loss(self.run.training.loss))
        if self.global_steps == 1:
            self._metrics_file.add({"update": 0, "seconds": self._seconds(), **self._probe(0)})
        self._stopping.update_ended(0.0)

    def _compute_metrics(
        self, batch: KVBatchMeta, metrics: dict[str, Any], timing_raw: dict[str, float], global_steps: int, epoch: int
    ) -> None:
        """Write the update's row (docs/metrics.md), then the checkpoint where one is due."""
        self.beat()
        training, last = self.run.training, self._round
        columns = update_metrics(
            last.explorations,
            last.selection,
            self._advantages,
            training.fr3e,
            token_text=self._token_text,
            carried_in=last.carried_in,
            rounds=last.rounds,
        )
        self.progress.update = global_steps
        self.progress.carried = self.replay_buffer.pool
        self.progress.tokens_total += columns["tokens/generated_first"] + columns["tokens/generated_explore"]
        self.progress.rollouts_total += columns["rollouts/first"] + columns["rollouts/explore"]
        columns |= self._update["columns"] | self._update["mismatch"]
        columns |= {"update": global_steps, "tokens_total": self.progress.tokens_total}
        if training.verl.entropy == "topk":
            columns["entropy/approximate"] = 1
        columns["seconds/generate"] = timing_raw["gen"]
        columns["seconds/update"] = sum(
            timing_raw.get(phase, 0.0) for phase in ("old_log_prob", "ref", "adv", "update_actor", "update_weights")
        )
        if self._save_seconds:
            columns["seconds/checkpoint"] = self._save_seconds
        self._stopping.update_ended(self._save_seconds)
        self._save_seconds = 0.0
        if due(global_steps, self.total_training_steps, training.probe.every):
            started = time.monotonic()
            columns |= self._probe(global_steps)
            columns["seconds/probe"] = time.monotonic() - started
            for row in sample_trajectories(
                last.explorations, self._problems, self.tokenizer, self._token_text, global_steps
            ):
                self._trajectories.add(row)
        self._metrics_file.add({**columns, "seconds": self._seconds()})
        self._keep_batch()
        stopped = self._stopping.reason() if global_steps < self.total_training_steps else None
        if self._save_due or stopped:
            self._write_checkpoint()
        if stopped:
            raise Stopped(f"{stopped}; the checkpoint of update {global_steps} is written")
        self._update, self._problems = {}, {}

    def _seconds(self) -> float:
        """Wall time since the run began, attempts added up."""
        return time.time() - self._started

    def _token_text(self, token: int) -> str:
        return self.tokenizer.decode([token])

    def _probe(self, update: int) -> dict[str, float]:
        """Full rollouts from the fixed problems, under the present weights."""
        asked = [(name, prompt) for name, prompts in self._probed.items() for prompt in prompts]
        prompts = [replace(prompt, uid=probe_uid(update, name, prompt.uid)) for name, prompt in asked]
        draws = [f"{self.run.seed}/probe/{name}/{prompt.uid}/update{update}" for name, prompt in asked]
        uids = self._send(prompts, "val", {"validate": True, "benchmark": [name for name, _ in asked], "draw": draws})
        return probe_columns(self.explorers.wait(uids, "val"))

    def _save_checkpoint(self) -> None:
        """verl asks before the weights have gone to vLLM; the checkpoint is written after the metrics row."""
        self._save_due = True

    def _write_checkpoint(self) -> None:
        """State, verl's own files, then the seal; only after that are older checkpoints removed."""
        started = time.monotonic()
        verl, made_by = self.run.training.verl, self.config.fr3e.identity
        try:
            with beating(self.beat):
                state.save(self.checkpoints, self.progress)
                super()._save_checkpoint()
                took = time.monotonic() - started
                state.seal(self.checkpoints, self.global_steps, made_by, verl.nodes * verl.gpus_per_node, took)
        except Exception as error:
            # torch says "unexpected pos" where the disk is full; what matters is which file system, and what is left.
            free = shutil.disk_usage(self.checkpoints).free / 2**30
            raise UserError(
                f"update {self.global_steps}: its checkpoint could not be written to {self.checkpoints}, where "
                f"{free:.1f} GiB are free: {in_brief(str(cause_of(error)))}"
            ) from error
        state.prune(self.checkpoints, self.run.training.checkpoint.keep)
        self._save_due, self._save_seconds = False, time.monotonic() - started
        self.beat()

    def _load_checkpoint(self) -> None:
        """verl's state, then ours: carried groups wait where they waited."""
        super()._load_checkpoint()
        if self.global_steps:
            self.progress = state.load(self.checkpoints, self.global_steps)
            self.replay_buffer.pool = list(self.progress.carried)
        self.beat()

    def _keep_batch(self) -> None:
        """On request, what this update trained on and what came of it, for a replay by another engine."""
        if not self._batches:
            return
        self._batches.mkdir(parents=True, exist_ok=True)
        names = ("stored", "losses", "grad_norms", "minibatch_losses", "columns")
        kept = {name: self._update[name] for name in names} | {"round": self._round, "advantages": self._advantages}
        (self._batches / f"{self.global_steps}.pkl").write_bytes(pickle.dumps(kept, protocol=5))

    def _init_dataloader(self) -> None:
        """verl's, which loads the problems; our stream of prompts over them, and the problems that are probed."""
        super()._init_dataloader()
        limit = self.run.training.rollout.max_prompt_tokens
        self._stream = PromptStream(
            self.train_dataset.problems, self.run.model.template, self.tokenizer, str(self.run.seed), limit
        )
        files = {"train": self.run.data, **self.run.benchmarks}
        count, template = self.run.training.probe.problems, self.run.model.template
        self._probed = {
            name: probe_prompts(name, load_problems(path), count, template, self.tokenizer, limit)
            for name, path in files.items()
        }

    @property
    def _round(self) -> Round:
        """The running update's rounds."""
        assert self.replay_buffer.last is not None
        return self.replay_buffer.last


def _objects(values: list[Any]) -> np.ndarray:
    """A one-dimensional array of objects, whatever the objects are."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _flat(values: Any) -> list[float]:
    """The numbers in verl's nested lists of metrics, in order."""
    if isinstance(values, list | tuple):
        return [number for value in values for number in _flat(value)]
    return [float(values)]
