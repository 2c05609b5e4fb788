"""From a sharded checkpoint to a model folder that transformers and vLLM load.

verl's own merger rounds every weight to bfloat16; here the weights keep the run's compute type, so that the demo's float32
model leaves as it was trained.
"""

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fr3e.config.scenario import RunConfig
from fr3e.engine.folder import write_model_folder
from fr3e.engine.verl import state
from fr3e.errors import UserError
from fr3e.files import read_json, sha256

SHARD = re.compile(r"model_world_size_(\d+)_rank_(\d+)\.pt")


def export(run: RunConfig, trained: Path, out: Path) -> None:
    """Write the model folder `out`: safetensors, tokenizer, generation config and manifest.json with SHA-256 of all.

    Raises `UserError` for a checkpoint that is missing, cut short or altered, and as `write_model_folder`.
    """
    facts = read_json(trained)
    source = trained.parent / facts["checkpoint"]
    if not state.sound(source):
        raise UserError(f"{source}: not a whole checkpoint, though {trained} names it as the last; train the run again")
    if sha256(source / state.COMPLETE) != facts["checkpoint_sha256"]:
        raise UserError(f"{source}: not the checkpoint that {trained} names; train the run again")
    dtype = {"bfloat16": torch.bfloat16, "float32": torch.float32}[run.training.verl.dtype]
    weights = {name: tensor.to(dtype) for name, tensor in merged(source / "actor").items()}
    write_model_folder(run, _module(run, weights).to(dtype), facts, out)


def merged(actor: Path) -> dict[str, Tensor]:
    """Whole weights out of the shards of all ranks, in the type they were trained in.

    Raises `UserError` when a rank's shard is missing.
    """
    shards = {int(m[2]): path for path in actor.iterdir() if (m := SHARD.fullmatch(path.name))}
    world = int(read_json(actor / "fsdp_config.json")["world_size"])
    if sorted(shards) != list(range(world)):
        raise UserError(f"{actor}: shards of ranks {sorted(shards)} found, {world} ranks wrote the checkpoint")
    parts: dict[str, list[Any]] = {}
    for rank in range(world):
        # Distributed tensors are more than weights_only allows; the file is the run's own and its size was checked.
        for name, tensor in torch.load(shards[rank], map_location="cpu", weights_only=False).items():
            parts.setdefault(name, []).append(tensor)
    return {name: _whole(tensors) for name, tensors in parts.items()}


def _whole(tensors: list[Any]) -> Tensor:
    """One tensor from the ranks' parts: a distributed tensor is sharded along one dimension, anything else replicated."""
    placements = getattr(tensors[0], "placements", None)
    if placements is None:
        return tensors[0]
    (placement,) = placements
    local = [tensor.to_local() for tensor in tensors]
    return torch.cat(local, dim=placement.dim) if placement.is_shard() else local[0]


def _module(run: RunConfig, weights: dict[str, Tensor]) -> Any:
    """The base model's architecture with the trained weights; every weight must have its place."""
    from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

    module = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(run.base, local_files_only=True))
    missing, unexpected = module.load_state_dict(weights, strict=False)
    if missing or unexpected:
        raise UserError(f"the checkpoint does not fit {run.base}: missing {missing[:3]}, unexpected {unexpected[:3]}")
    if (Path(run.base) / "generation_config.json").is_file():
        module.generation_config = GenerationConfig.from_pretrained(run.base, local_files_only=True)
    return module.eval()
