"""What a checkpoint must share with a run to be resumed: a hash for each part of what the run's weights come from.

Both engines use it. A run whose checkpoints were made from anything else starts afresh: whatever makes the workflow order
the training again must also train again.
"""

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from fr3e.config.scenario import RunConfig
from fr3e.errors import UserError
from fr3e.files import read_json, sha256
from fr3e.provenance import fingerprint

WEIGHTS = {".safetensors", ".json", ".txt", ".jinja"}
"""Endings of a base model's files: weights, configuration, tokenizer, template."""


def made_from(run: RunConfig, stage: str, settings: dict[str, Any], packages: Sequence[str]) -> dict[str, str]:
    """Part -> hash: settings, seed, model, base, data, benchmarks (those that are probed), code, software.

    `stage` names the engine's code (`fingerprint.STAGES`), `settings` are those of `run.training` that the engine learns
    by, `packages` those whose version counts; one that is not installed counts as absent. Files count by content, wherever
    they lie. Raises `UserError` for a file that cannot be read.
    """
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "absent"
    return {
        "settings": fingerprint.values(settings),
        "seed": str(run.seed),
        "model": fingerprint.values(run.model.model_dump(mode="json", exclude={"base"})),
        "base": fingerprint.values(_base(Path(run.base))),
        "data": _hash(Path(run.data)),
        "benchmarks": fingerprint.values({name: _hash(Path(path)) for name, path in run.benchmarks.items()}),
        "code": fingerprint.code(stage),
        "software": fingerprint.values(versions),
    }


def identity(parts: dict[str, str]) -> str:
    """All parts as one hash."""
    return fingerprint.values(parts)


def _base(folder: Path) -> dict[str, str]:
    """Name -> SHA-256 of a base model's files; manifest.json, which says when and where it was made, does not count.

    Reading 64 GB takes minutes: the hash is the manifest's own where it lists the file and is not older than it.
    """
    manifest = folder / "manifest.json"
    listed = read_json(manifest).get("files", {}) if manifest.is_file() else {}
    try:
        parts = sorted(path for path in folder.iterdir() if path.suffix in WEIGHTS)
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be read ({error.strerror}); make the base model first (fr3e base)"
        ) from error
    return {
        path.name: listed[path.name]
        if path.name in listed and path.stat().st_mtime <= manifest.stat().st_mtime
        else _hash(path)
        for path in parts
        if not path.name.startswith("manifest.json")
    }


def _hash(path: Path) -> str:
    try:
        return sha256(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); make it first") from error
