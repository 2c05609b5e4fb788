"""All traffic with verl's data plane (TransferQueue), and the mapping between training rows and state groups.

A row is one rollout of one group. It carries its own facts, `fr3e_group` and `fr3e_member` first of all: whatever verl
does to the order of rows, and however many ranks share them, a row's advantage is found by these two.

Partitions: `train` and `val` hold a status tag per prompt (and `train` the rows of the running update), `<partition>_results`
what each prompt gave, pickled. Only processes of the run itself write there.
"""

import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transfer_queue as tq
from tensordict import TensorDict
from torch import Tensor
from transfer_queue import KVBatchMeta
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

from fr3e.algorithm.loss import trained_tokens
from fr3e.config.training import TrainingConfig
from fr3e.engine.verl.layout import RowLoss
from fr3e.exploration.records import Rollout, StateGroup

TRAIN = "train"


def _results(partition: str) -> str:
    return f"{partition}_results"


async def tell(uid: str, partition: str, status: str, reason: str = "") -> None:
    """Set a prompt's status: running, finished or failure (with its reason)."""
    await tq.async_kv_put(key=uid, partition_id=partition, tag={"status": status, "reason": reason})


async def hand_over(uid: str, partition: str, result: Any) -> None:
    """Give what a prompt yielded to the trainer."""
    payload = torch.frombuffer(bytearray(pickle.dumps(result, protocol=5)), dtype=torch.uint8)
    await tq.async_kv_batch_put(
        keys=[uid],
        partition_id=_results(partition),
        fields=TensorDict({"payload": payload[None]}, batch_size=[1]),
        tags=[{"status": "success"}],
    )


def register(uids: Sequence[str], partition: str, update: int) -> None:
    """Enter prompts as pending, before they are sent to a rollout worker."""
    tags = [{"is_prompt": True, "status": "pending", "reason": "", "global_steps": update} for _ in uids]
    tq.kv_batch_put(keys=list(uids), partition_id=partition, tags=tags)


def statuses(partition: str) -> dict[str, dict[str, Any]]:
    """Tag of each prompt of the partition: {"status", "reason", ...}."""
    listed = tq.kv_list(partition) or {}
    return {key: tag for key, tag in listed.get(partition, {}).items() if tag.get("is_prompt")}


def collect(uid: str, partition: str) -> Any:
    """Take a finished prompt's result out of the data plane."""
    payload = tq.kv_batch_get(keys=[uid], partition_id=_results(partition), select_fields=["payload"])["payload"]
    result = pickle.loads(payload.unbind()[0].numpy().tobytes())
    tq.kv_clear(keys=[uid], partition_id=_results(partition))
    tq.kv_clear(keys=[uid], partition_id=partition)
    return result


def clear(batch: KVBatchMeta) -> None:
    """Remove an update's rows."""
    tq.kv_clear(keys=batch.keys, partition_id=batch.partition_id)


def put_groups(groups: Sequence[StateGroup], training: TrainingConfig, update: int) -> KVBatchMeta:
    """Store every rollout of the groups as a row, in the order given, and return their batch."""
    keys, fields, tags = [], [], []
    for group in groups:
        for member, rollout in enumerate(group.rollouts):
            keys.append(f"{group.uid}_{member}_0")
            fields.append(row_fields(group, member, training))
            tags.append(_tag(group, rollout, update))
    tq.kv_batch_put(keys=keys, partition_id=TRAIN, fields=list_of_dict_to_tensordict(fields), tags=tags)
    return KVBatchMeta(partition_id=TRAIN, keys=keys, tags=tags)


def row_fields(group: StateGroup, member: int, training: TrainingConfig) -> dict[str, Any]:
    """One rollout as verl's trainer reads it: ids [P], [T], [P+T], masks, log-probs and scores [T], and its facts."""
    rollout = group.rollouts[member]
    prompt = torch.tensor(group.prompt.token_ids, dtype=torch.int64)
    response = torch.tensor(rollout.response_ids, dtype=torch.int64)
    mask = torch.from_numpy(trained_tokens(rollout, training.fr3e.prefix_loss)).to(torch.int64)
    scores = torch.zeros(len(response), dtype=torch.float32)
    scores[-1] = rollout.reward
    return {
        "prompts": prompt,
        "responses": response,
        "input_ids": torch.cat([prompt, response]),
        "position_ids": torch.arange(len(prompt) + len(response)),
        "response_mask": mask,
        "loss_mask": mask,
        "rm_scores": scores,
        "rollout_log_probs": torch.from_numpy(np.array(rollout.logprobs, dtype=np.float32)),
        "uid": group.uid,
        "num_turns": 2,
        "multi_modal_inputs": {},
        "fr3e_group": group.uid,
        "fr3e_member": member,
        "fr3e_base": group.base,
        "fr3e_state": group.state,
        "fr3e_prefix": group.prefix_len,
        "fr3e_value": group.value,
        "fr3e_previous": math.nan if group.previous is None else group.previous,
        "fr3e_alpha": group.alpha,
    }


def _tag(group: StateGroup, rollout: Rollout, update: int) -> dict[str, Any]:
    prompt_len, response_len = len(group.prompt.token_ids), len(rollout.response_ids)
    return {
        "status": "success",
        "prompt_len": prompt_len,
        "response_len": response_len,
        "seq_len": prompt_len + response_len,
        "global_steps": update,
        "min_global_steps": group.born - 1,
        "max_global_steps": group.born - 1,
        "fr3e_group": group.uid,
    }


@dataclass(frozen=True, slots=True, eq=False)
class StoredRow:
    """A row as read back from the data plane, tensors [T]."""

    key: str
    padding: bool
    group: str
    member: int
    response_mask: Tensor
    reward: float
    rollout_logprobs: Tensor
    old_logprobs: Tensor
    value: float
    alpha: float


def read_rows(batch: KVBatchMeta) -> list[StoredRow]:
    """The batch's rows with their facts, in its order; padding rows are marked."""
    names = ["response_mask", "rm_scores", "rollout_log_probs", "old_log_probs"]
    facts = ["fr3e_group", "fr3e_member", "fr3e_value", "fr3e_alpha"]
    data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=names + facts)
    tensors = {name: data[name].unbind() for name in names}
    plain = {name: [getattr(value, "data", value) for value in data[name]] for name in facts}
    return [
        StoredRow(
            key=key,
            padding=bool(tag.get("is_padding", False)),
            group=str(plain["fr3e_group"][i]),
            member=int(plain["fr3e_member"][i]),
            response_mask=tensors["response_mask"][i],
            reward=float(tensors["rm_scores"][i].sum()),
            rollout_logprobs=tensors["rollout_log_probs"][i],
            old_logprobs=tensors["old_log_probs"][i],
            value=float(plain["fr3e_value"][i]),
            alpha=float(plain["fr3e_alpha"][i]),
        )
        for i, (key, tag) in enumerate(zip(batch.keys, batch.tags, strict=True))
    ]


def verify(stored: Sequence[StoredRow], trained: Sequence[StateGroup]) -> None:
    """Raise `RuntimeError` unless the rows are exactly the groups' rollouts, with the rewards and facts they had."""
    rewards: dict[str, dict[int, float]] = {}
    for row in stored:
        if not row.padding:
            rewards.setdefault(row.group, {})[row.member] = row.reward
    facts = {row.group: (row.value, row.alpha) for row in stored if not row.padding}
    for group in trained:
        expected = {member: rollout.reward for member, rollout in enumerate(group.rollouts)}
        if rewards.pop(group.uid, None) != expected or facts[group.uid] != (group.value, group.alpha):
            raise RuntimeError(f"group {group.uid}: the rows in verl's data plane are not the group's rollouts")
    if rewards:
        raise RuntimeError(f"verl's data plane holds rows of groups that are not trained: {sorted(rewards)[:3]}")


def put_losses(batch: KVBatchMeta, stored: Sequence[StoredRow], losses: dict[tuple[str, int], RowLoss]) -> KVBatchMeta:
    """Write each row's advantages, token weights, normaliser and old log-probs; padding rows weigh nothing."""
    advantages, weights, normalisers, old = [], [], [], []
    for row in stored:
        length = len(row.response_mask)
        if row.padding:
            advantages.append(torch.zeros(length))
            weights.append(torch.zeros(length))
            normalisers.append(1.0)
            old.append(row.old_logprobs)
        else:
            loss = losses[row.group, row.member]
            advantages.append(torch.from_numpy(loss.advantages).to(torch.float32))
            weights.append(torch.from_numpy(loss.weights).to(torch.float32))
            normalisers.append(loss.normaliser)
            old.append(row.old_logprobs if loss.old is None else torch.from_numpy(np.array(loss.old, dtype=np.float32)))
    fields = TensorDict(
        {
            "advantages": torch.nested.as_nested_tensor(advantages, layout=torch.jagged),
            "fr3e_weights": torch.nested.as_nested_tensor(weights, layout=torch.jagged),
            "old_log_probs": torch.nested.as_nested_tensor(old, layout=torch.jagged),
            "fr3e_normaliser": torch.tensor(normalisers, dtype=torch.float64),
        },
        batch_size=[len(batch)],
    )
    return tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=fields)
