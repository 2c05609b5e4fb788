"""A trained module written as a model folder, proven equal to the trainer's own before it counts as done."""

import shutil
from pathlib import Path
from typing import Any

import torch

from fr3e.config.scenario import RunConfig
from fr3e.engine.base import TOKENIZER
from fr3e.engine.local.loading import load_tokenizer
from fr3e.engine.local.problems import load_problems
from fr3e.errors import UserError
from fr3e.evaluation.prompts import render
from fr3e.files import sha256, write_json
from fr3e.progress import log

COMPARED = 4
"""Training prompts on which the folder's logits are compared with the trainer's."""
TOLERANCE = 1e-5


def write_model_folder(run: RunConfig, module: Any, facts: dict[str, Any], out: Path) -> None:
    """Write `module`, on the CPU and in the type it is to be kept in, and the base model's tokenizer to the folder `out`.

    `facts` are those of trained.json; they enter manifest.json with the SHA-256 of every file. The folder is loaded again
    and its logits compared with those of `module`; only then does it get its name, by one rename.
    Raises `UserError` for logits that differ and for a place that cannot be written.
    """
    tokenizer = load_tokenizer(run.base)
    partial = out.with_name(f".{out.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        module.save_pretrained(partial)
        for name in TOKENIZER:  # as they are: saving a loaded tokenizer adds how it was loaded
            if (source := Path(run.base) / name).is_file():
                shutil.copyfile(source, partial / name)
        difference = _compare(run, module.float(), tokenizer, partial)
        files = {path.name: sha256(path) for path in sorted(partial.iterdir()) if path.is_file()}
        kept = {name: facts[name] for name in ("run", "updates", "checkpoint_sha256")}
        write_json(partial / "manifest.json", kept | {"files": files, "largest_logit_difference": difference})
        shutil.rmtree(out, ignore_errors=True)
        partial.replace(out)
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise UserError(f"{out}: cannot be written ({error.strerror}); choose a folder you may write to") from error
    log.info("%s: %d files, logits as in training (largest difference %.1e)", out, len(files) + 1, difference)


@torch.no_grad()
def _compare(run: RunConfig, module: Any, tokenizer: Any, folder: Path) -> float:
    """Largest difference of logits between `module` and the folder as loaded anew, each prompt rendered by its tokenizer."""
    from transformers import AutoModelForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32, local_files_only=True).eval()
    again = load_tokenizer(folder)
    largest = 0.0
    for problem in load_problems(run.data)[:COMPARED]:
        ids = render(run.model.template, problem.question, tokenizer)[1]
        if ids != render(run.model.template, problem.question, again)[1]:
            raise UserError(f"{folder}: its tokenizer renders problem {problem.id} unlike the base model's")
        whole = torch.tensor([ids])
        largest = max(largest, float((module(whole).logits - loaded(whole).logits).abs().max()))
    if not largest <= TOLERANCE:
        raise UserError(
            f"{folder}: its logits differ from the trainer's by {largest:.3g}; at most {TOLERANCE} is allowed"
        )
    return largest
