"""What a resumed run needs beyond verl's own checkpoint: the carry, the place in the data, and the counters.

`fr3e.pt` lies in the checkpoint's folder; `complete.json`, written last, lists the folder's files and their sizes, so that
a checkpoint that was cut off is told from a whole one.
"""

import hashlib
import json
import pickle
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from fr3e.config.scenario import RunConfig
from fr3e.errors import UserError
from fr3e.exploration.records import StateGroup
from fr3e.files import read_json, replacing, write_json, write_text

STATE, COMPLETE, TRACKER = "fr3e.pt", "complete.json", "latest_checkpointed_iteration.txt"


@dataclass(slots=True)
class RunState:
    """`position` in the stream of prompts; the counters run from the run's beginning."""

    update: int = 0
    position: int = 0
    tokens_total: int = 0
    rollouts_total: int = 0
    carried: list[StateGroup] = field(default_factory=list)


def folder_of(checkpoints: Path, update: int) -> Path:
    """The folder of one update's checkpoint, as verl names it."""
    return checkpoints / f"global_step_{update}"


def save(checkpoints: Path, state: RunState) -> None:
    """Write the state into the folder of its update."""
    with replacing(folder_of(checkpoints, state.update) / STATE) as temporary:
        temporary.write_bytes(pickle.dumps(state, protocol=5))


def load(checkpoints: Path, update: int) -> RunState:
    """Read the state of one update's checkpoint."""
    path = folder_of(checkpoints, update) / STATE
    try:
        state = pickle.loads(path.read_bytes())
    except (OSError, pickle.UnpicklingError, EOFError) as error:
        raise UserError(
            f"{path}: cannot be read ({error}); remove its folder to go on from an older checkpoint"
        ) from error
    assert isinstance(state, RunState)
    return state


def seal(checkpoints: Path, update: int, identity: str) -> None:
    """Declare the checkpoint whole, and say which settings made it."""
    folder = folder_of(checkpoints, update)
    files = {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
    write_json(folder / COMPLETE, {"update": update, "identity": identity, "files": files})


def sound(folder: Path) -> bool:
    """True for a sealed checkpoint whose files all have the sizes they were sealed with."""
    if not (folder / COMPLETE).is_file():
        return False
    try:
        files = read_json(folder / COMPLETE)["files"]
    except (UserError, KeyError, TypeError):
        return False
    return all((folder / name).is_file() and (folder / name).stat().st_size == size for name, size in files.items())


def updates_saved(checkpoints: Path) -> list[int]:
    """Updates of the sound checkpoints, rising."""
    numbers = [path.name.removeprefix("global_step_") for path in checkpoints.glob("global_step_*")]
    return sorted(int(n) for n in numbers if n.isdigit() and sound(folder_of(checkpoints, int(n))))


def prune(checkpoints: Path, keep: int) -> None:
    """Remove sound checkpoints but the newest `keep`, and older remains of ones that were cut off."""
    kept = updates_saved(checkpoints)[-keep:]
    for path in checkpoints.glob("global_step_*"):
        number = path.name.removeprefix("global_step_")
        if number.isdigit() and int(number) not in kept and kept and int(number) < kept[-1]:
            shutil.rmtree(path)


def identity(run: RunConfig) -> str:
    """What a checkpoint must share with a run to be resumed: settings, seed, model and files, as a hash.

    A run may be made longer, saved or probed at other updates, or spread over vLLM and GPUs in another way.
    """
    settings = run.training.model_dump(mode="json", exclude={"checkpoint", "verl", "engine", "probe", "threads"})
    del settings["optim"]["updates"]
    content = {"settings": settings, "seed": run.seed, "model": run.model.model_dump(mode="json")}
    content |= {"base": run.base, "data": run.data}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def choose(checkpoints: Path, world_size: int, identity: str) -> int:
    """The update to resume from (0: from the start), with verl's tracker set to it.

    Raises `UserError` when the newest sound checkpoint was written by another number of ranks, since its shards fit no
    other, or under other settings, or when there are only broken ones.
    """
    saved = updates_saved(checkpoints)
    if not saved:
        if any(checkpoints.glob("global_step_*/" + COMPLETE)):
            raise UserError(
                f"{checkpoints}: no checkpoint is whole (files are missing or cut short); remove the folder to start anew"
            )
        (checkpoints / TRACKER).unlink(missing_ok=True)
        for path in checkpoints.glob("global_step_*"):
            shutil.rmtree(path)
        return 0
    folder = folder_of(checkpoints, saved[-1])
    written_by = int(read_json(folder / "actor" / "fsdp_config.json")["world_size"])
    if written_by != world_size:
        raise UserError(
            f"{folder}: written by {written_by} ranks, this run has {world_size} (train.verl.nodes x gpus_per_node); "
            f"a sharded checkpoint resumes on the same number only: use {written_by}, or `fr3e export` and start anew"
        )
    if read_json(folder / COMPLETE)["identity"] != identity:
        raise UserError(
            f"{folder}: made with other settings, seed, model or data than this run has; remove {checkpoints} to start anew"
        )
    write_text(checkpoints / TRACKER, str(saved[-1]))
    for path in checkpoints.glob("global_step_*"):
        # What was cut off is written anew; files in its way could not be told from new ones.
        if not sound(path):
            shutil.rmtree(path)
    return saved[-1]
