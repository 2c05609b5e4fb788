"""Base models as folders: the demo's own, trained here, or a pinned one of the hub, fetched or taken from a local folder.

`out` appears by one rename when it is complete; `out/manifest.json` holds the SHA-256 of its files. A download that was
cut short goes on where it stopped.
"""

import shutil
from pathlib import Path
from typing import Any

from fr3e.config.load import checked
from fr3e.config.scenario import HubModel, RunModel, SyntheticModel
from fr3e.errors import UserError
from fr3e.files import read_json, read_yaml, sha256, write_json
from fr3e.progress import log

FETCHED = ("*.safetensors", "*.safetensors.index.json", "config.json", "generation_config.json")
TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
)
LICENCE = ("LICENSE*", "NOTICE*")
PATTERNS = (*FETCHED, *TOKENIZER, *LICENCE)
ROPE_KEYS = ("rope_theta", "rope_scaling", "rope_parameters", "max_position_embeddings")


def make_base(plan: Path, out: Path) -> None:
    """Make the base model of a resolved plan (`RunModel`) in the folder `out`.

    Raises `UserError`, one line, for a plan that is not one, sizes that cannot run, a hub that cannot be reached, an
    incomplete or damaged folder, a rope override that is none, or an `out` that cannot be written.
    """
    model = checked(RunModel, read_yaml(plan), str(plan))
    partial = out.with_name(f".{out.name}.partial")
    downloads = isinstance(model.base, HubModel) and model.base.path is None
    try:
        if not downloads:
            shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True, exist_ok=True)
        if isinstance(model.base, SyntheticModel):
            facts = _warm_start(model, model.base, partial)
        else:
            facts = _fetch(model, model.base, partial)
        files = {path.name: sha256(path) for path in sorted(partial.iterdir()) if path.is_file()}
        write_json(partial / "manifest.json", {"source": model.base.model_dump(mode="json"), "files": files, **facts})
        shutil.rmtree(out, ignore_errors=True)
        partial.replace(out)
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise UserError(f"{out}: cannot be written ({error.strerror}); choose a folder you may write to") from error
    finally:
        if not downloads:
            shutil.rmtree(partial, ignore_errors=True)


def _warm_start(model: RunModel, base: SyntheticModel, folder: Path) -> dict[str, Any]:
    """Train the demo's model into `folder`; returns the manifest's further facts."""
    import torch
    from transformers import Qwen2ForCausalLM
    from transformers.utils import logging as transformers_logging

    from fr3e.engine.local import toy, warm_start

    transformers_logging.disable_progress_bar()
    tokenizer = toy.build_tokenizer(model.max_positions)
    config = toy.build_config(model, base, tokenizer)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(base.seed)
            network = Qwen2ForCausalLM(config)
        parameters = sum(parameter.numel() for parameter in network.parameters())
        if parameters > toy.MAX_PARAMETERS:
            raise UserError(f"base: {parameters} parameters; at most {toy.MAX_PARAMETERS}: lower hidden or layers")
        losses = warm_start.train(network, tokenizer, base, model.template)
    finally:
        torch.set_num_threads(threads)
    network.generation_config = toy.build_generation_config(tokenizer)
    network.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)  # the library writes it for its owner alone
    return {"parameters": parameters, "loss": losses[-1], "rope_override": _override(model, folder)}


def _fetch(model: RunModel, base: HubModel, folder: Path) -> dict[str, Any]:
    """Bring a hub model into `folder`: links to the files of `base.path`, or a download of the pinned revision."""
    (folder / "manifest.json").unlink(missing_ok=True)
    if base.path is not None:
        _link(Path(base.path), folder)
    else:
        _download(base, folder)
    _check(folder, base.path or f"{base.id} at {base.revision}")
    facts = {"rope_override": _override(model, folder)}
    positions = read_json(folder / "config.json").get("max_position_embeddings")
    if positions is not None and model.max_positions > positions:
        raise UserError(
            f"max_positions {model.max_positions}: {base.id} was made for {positions}; lower it or set rope_override"
        )
    return facts


def _link(source: Path, folder: Path) -> None:
    if not source.is_dir():
        raise UserError(f"base.path {source}: no such folder; give one with config.json, safetensors and tokenizer")
    for pattern in PATTERNS:
        for path in sorted(source.glob(pattern)):
            target = folder / path.name
            target.unlink(missing_ok=True)
            target.symlink_to(path.resolve())


def _download(base: HubModel, folder: Path) -> None:
    from huggingface_hub import errors, logging, snapshot_download

    pinned = f"{base.id} at {base.revision}"
    log.info("fetching %s", pinned)
    logging.set_verbosity_error()  # its retries are its own affair; what cannot be mended is said below
    try:
        snapshot_download(base.id, revision=base.revision, allow_patterns=list(PATTERNS), local_dir=folder)
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise UserError(
            f"{pinned}: not on the hub, or not open to you; check id and revision, or set base.path"
        ) from error
    except (
        errors.HfHubHTTPError,
        errors.LocalEntryNotFoundError,
        errors.OfflineModeIsEnabled,
        errors.HTTPError,
    ) as error:
        raise UserError(
            f"{pinned}: the hub cannot be reached ({type(error).__name__}); "
            "connect, or set base.path to a folder with the same files"
        ) from error
    shutil.rmtree(folder / ".cache", ignore_errors=True)


def _check(folder: Path, source: str) -> None:
    """Refuse a model without weights or tokenizer, with a missing shard, or with a file that was cut short."""
    from safetensors import SafetensorError, safe_open

    names = {path.name for path in folder.iterdir()}
    index = folder / "model.safetensors.index.json"
    needed = {
        "config.json",
        *(read_json(index)["weight_map"].values() if index.name in names else ["model.safetensors"]),
    }
    if missing := sorted(needed - names):
        raise UserError(f"{source}: {missing[0]} is missing; the folder must hold every file of the model")
    if not names & {"tokenizer.json", "vocab.json"}:
        raise UserError(f"{source}: tokenizer.json is missing; the folder must hold every file of the model")
    for name in sorted(name for name in names if name.endswith(".safetensors")):
        try:
            with safe_open(folder / name, "pt"):
                pass
        except SafetensorError as error:
            raise UserError(f"{source}: {name} is damaged or cut short ({error}); fetch it again") from error


def _override(model: RunModel, folder: Path) -> dict[str, Any] | None:
    """Write `model.rope_override` into `folder`/config.json; returns what was changed, old and new."""
    if not model.rope_override:
        return None
    if unknown := sorted(set(model.rope_override) - set(ROPE_KEYS)):
        raise UserError(f"rope_override.{unknown[0]}: not a rope setting; allowed: {', '.join(ROPE_KEYS)}")
    config = read_json(folder / "config.json")
    before = {key: config.get(key) for key in model.rope_override}
    write_json(folder / "config.json", config | model.rope_override)
    return {"before": before, "after": model.rope_override}
