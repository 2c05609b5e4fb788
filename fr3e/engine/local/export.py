"""From the last checkpoint to a model folder that transformers, vLLM and verl load."""

from pathlib import Path

from fr3e.config.scenario import RunConfig
from fr3e.engine.folder import write_model_folder
from fr3e.engine.local import checkpoint
from fr3e.engine.local.loading import load_for_training
from fr3e.errors import UserError
from fr3e.files import read_json, sha256


def export(run: RunConfig, trained: Path, out: Path) -> None:
    """Write the model folder `out`: safetensors, tokenizer, generation config and manifest.json with SHA-256 of all.

    Raises `UserError` for a missing or altered checkpoint and as `write_model_folder`.
    """
    facts = read_json(trained)
    source = trained.parent / facts["checkpoint"]
    if not source.is_file():
        raise UserError(f"{source}: no such file; {trained} names it as the last checkpoint, train the run again")
    if sha256(source) != facts["checkpoint_sha256"]:
        raise UserError(f"{source}: its SHA-256 is not the one in {trained}; train the run again")
    module, _ = load_for_training(run)
    module.load_state_dict(checkpoint.load(source)["module"])
    write_model_folder(run, module.cpu(), facts, out)
