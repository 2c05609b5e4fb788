"""One attempt of a run, in its own process: `python -m fr3e.engine.verl.run verl.yaml error.json`.

Started and watched by `launch`. An error ends it with exit code 1, after its message was written to error.json.
"""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import ray
from omegaconf import OmegaConf
from verl.trainer.main_ppo import TaskRunnerV1, run_ppo
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.utils.config import validate_config

from fr3e.engine.verl import plugin
from fr3e.engine.verl.causes import cause_of
from fr3e.engine.verl.environment import MARK
from fr3e.engine.verl.launch import end_processes
from fr3e.engine.verl.stopping import PREEMPTED, Stopped
from fr3e.errors import UserError
from fr3e.files import write_json

_Runner = TaskRunnerV1.__ray_metadata__.modified_class


class FR3ERunner(_Runner):  # type: ignore[misc, valid-type]
    """verl's task runner, in whose process our trainer and our replicas have to be known."""

    def run(self, config: Any) -> None:
        """Register what verl looks up by name, then verl's own run."""
        from fr3e.engine.verl import server, trainer

        assert plugin.LOADED and config.trainer.v1.trainer_mode == trainer.TRAINER_MODE
        if config.fr3e.run["training"]["verl"]["entropy"] == "exact":
            server.register()
        super().run(config)


def end_with(parent: int) -> None:
    """End this attempt when the command that watches it is gone, lest it train on beside the next attempt."""
    while os.getppid() == parent:
        time.sleep(1.0)
    end_processes(os.environ.get(MARK, ""), os.getsid(0))
    os._exit(1)


def main(config_file: str, error_file: str) -> int:
    """Run to the last update; 0, or 75 where it was stopped after a checkpoint, or 1 with the reason in `error_file`."""
    # Under its own name, so that Ray does not pickle the class as one of __main__.
    from fr3e.engine.verl.run import FR3ERunner as runner

    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    config = OmegaConf.load(config_file)
    assert plugin.LOADED
    validate_config(config=config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config))
    try:
        run_ppo(config, task_runner_class=ray.remote(runner))
    except Exception as error:
        cause = cause_of(error)
        if isinstance(cause, Stopped):
            print(cause, file=sys.stderr)
            return PREEMPTED
        write_json(
            Path(error_file),
            {"type": type(cause).__name__, "message": str(cause), "user": isinstance(cause, UserError)},
        )
        raise
    return 0


if __name__ == "__main__":
    try:
        code = main(*sys.argv[1:])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    # Ray's threads may outlive main; the processes of this attempt are taken down by `launch`.
    os._exit(code)
