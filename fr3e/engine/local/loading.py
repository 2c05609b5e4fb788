"""The base model of a run, for training."""

import os
from pathlib import Path
from typing import Any

import torch

from fr3e.config.scenario import RunConfig
from fr3e.engine.local.model import is_fast
from fr3e.errors import UserError


def load_for_training(run: RunConfig) -> tuple[Any, torch.device]:
    """The base model in float32, without dropout, and its device: the CPU for models the plain path serves, else a GPU
    where there is one. Positions that prompt and response need and the model lacks are a `UserError`."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    if not (Path(run.base) / "config.json").is_file():
        raise UserError(f"{run.base}: not a model folder (no config.json); make the base model first (fr3e base)")
    module = AutoModelForCausalLM.from_pretrained(run.base, dtype=torch.float32, local_files_only=True).eval()
    rollout, positions = run.training.rollout, module.config.max_position_embeddings
    if (needed := rollout.max_prompt_tokens + rollout.max_total_tokens) > positions:
        raise UserError(
            f"{run.base}: rollout.max_prompt_tokens + rollout.max_total_tokens = {needed}, the model has {positions} "
            "positions; lower them"
        )
    device = torch.device("cpu")
    if torch.cuda.is_available() and not is_fast(module, device):
        device = torch.device("cuda", 0)
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
    return module.to(device), device


def load_tokenizer(folder: str | Path) -> Any:
    """The base model's tokenizer."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
