"""Checkpoints that are whole or absent: written beside their name and renamed, checked by SHA-256 before they are used.

`update-000020.pt` holds everything a run needs to go on as if nothing had happened; `update-000020.json`, written after
it, holds its checksum and the identity of the run. Without that second file a checkpoint does not count.
"""

import contextlib
import fcntl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fr3e.errors import UserError
from fr3e.exploration.records import Prompt, Rollout, StateGroup
from fr3e.files import read_json, replacing, sha256, write_json
from fr3e.grading.verdict import Verdict
from fr3e.progress import log

RECORDS = [Prompt, Rollout, StateGroup, Verdict]
ARRAYS = ("logprobs", "entropies", "topk_entropies")


@dataclass(slots=True)
class Progress:
    """What a run has done, at the end of an update: all of its state but weights and optimiser.

    `position` is the data stream's; `carried` the groups that wait; `metrics` and `trajectories` are the files' lines,
    kept here so that a resumed run can write both anew without a lost, doubled or reordered row.
    """

    update: int = 0
    position: int = 0
    tokens: int = 0
    rollouts: int = 0
    carried: tuple[StateGroup, ...] = ()
    metrics: tuple[str, ...] = ()
    trajectories: tuple[str, ...] = ()


def path_of(folder: Path, update: int) -> Path:
    """File of the checkpoint after `update`."""
    return folder / f"update-{update:06d}.pt"


def save(folder: Path, identity: str, progress: Progress, module: Any, optimiser: Any, keep: int) -> Path:
    """Write the checkpoint of `progress.update` and delete all but the newest `keep`."""
    path = path_of(folder, progress.update)
    state = {name: getattr(progress, name) for name in Progress.__dataclass_fields__}
    content = {
        "progress": state | {"carried": _with_tensors(progress.carried)},
        "module": module.state_dict(),
        "optimiser": optimiser.state_dict(),
    }
    path.with_suffix(".json").unlink(missing_ok=True)
    with replacing(path) as temporary:
        torch.save(content, temporary)
    write_json(path.with_suffix(".json"), {"identity": identity, "sha256": sha256(path), "update": progress.update})
    _delete(_found(folder)[keep:])
    return path


def restore(folder: Path, identity: str, module: Any, optimiser: Any) -> Progress:
    """Load the newest sound checkpoint of this run into `module` and `optimiser`; without one, a fresh `Progress`.

    A damaged checkpoint is passed over with a warning and deleted, or `save` would count it among the newest. Checkpoints
    of another configuration are deleted and said so.
    """
    progress, useless = Progress(), []
    for path in _found(folder):
        facts = _facts(path)
        if facts is not None and facts.get("identity") != identity:
            log.warning("%s: made by another configuration or other code; the run starts afresh", path)
            useless = _found(folder)
            break
        if facts is None or sha256(path) != facts["sha256"]:
            log.warning("%s: damaged (its checksum is missing or differs); trying the checkpoint before it", path)
            useless.append(path)
            continue
        content = load(path)
        module.load_state_dict(content["module"])
        optimiser.load_state_dict(content["optimiser"])
        log.info("resuming after update %d from %s", content["progress"]["update"], path)
        progress = Progress(**content["progress"] | {"carried": _with_arrays(content["progress"]["carried"])})
        break
    _delete(useless)
    return progress


def load(path: Path) -> dict[str, Any]:
    """The content of a checkpoint; only tensors and the records of exploration are ever built from it."""
    with torch.serialization.safe_globals(RECORDS):
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return content


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; a second run on the same folder is a `UserError`. Left-over temporary files are removed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / "lock").open("w")
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror}); choose a folder you may write to") from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{folder}: another process trains into it; wait for it or give another --out") from None
        for leftover in folder.glob(".*.tmp"):
            leftover.unlink()
        yield


def _found(folder: Path) -> list[Path]:
    """Checkpoints, the newest first."""
    return sorted(folder.glob("update-*.pt"), reverse=True)


def _delete(paths: Sequence[Path]) -> None:
    for path in paths:
        path.with_suffix(".json").unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def _facts(path: Path) -> dict[str, Any] | None:
    try:
        facts = read_json(path.with_suffix(".json"))
    except UserError:
        return None
    return facts if isinstance(facts, dict) and "sha256" in facts else None


def _with_tensors(groups: Sequence[StateGroup]) -> tuple[StateGroup, ...]:
    """Arrays of the rollouts as slices of one tensor, which the file holds once."""
    arrays = [a for g in groups for r in g.rollouts for a in (getattr(r, name) for name in ARRAYS) if a is not None]
    whole = torch.from_numpy(np.concatenate(arrays)) if arrays else torch.empty(0)
    pieces = iter(whole.split([len(a) for a in arrays]))

    def tensors(rollout: Rollout) -> Rollout:
        return replace(rollout, **{n: next(pieces) for n in ARRAYS if getattr(rollout, n) is not None})

    return tuple(replace(g, rollouts=tuple(tensors(r) for r in g.rollouts)) for g in groups)


def _with_arrays(groups: Sequence[StateGroup]) -> tuple[StateGroup, ...]:
    def arrays(rollout: Rollout) -> Rollout:
        found = {name: getattr(rollout, name) for name in ARRAYS}
        return replace(rollout, **{name: t.numpy().copy() for name, t in found.items() if t is not None})

    return tuple(replace(g, rollouts=tuple(arrays(r) for r in g.rollouts)) for g in groups)
