"""What the Slurm plug-in makes of a training job's resources, as the rules state them; no cluster is needed."""

import re
from collections import UserDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string

RULES = (Path(__file__).resolve().parents[2] / "workflow/rules/train.smk").read_text(encoding="utf-8")
PARAMETERS = {
    "run_uuid": "u",
    "slurm_logfile": "l",
    "comment_str": "c",
    "account": "",
    "partition": "-p gpu",
    "workdir": ".",
}


class Resources(UserDict[str, Any]):
    """Snakemake's resources: keys are attributes too."""

    def __getattr__(self, name: str) -> Any:
        if name == "data":
            raise AttributeError(name)
        return self.data[name]


def submitted(**resources: Any) -> str:
    job = SimpleNamespace(
        resources=Resources(mem_mb=900000, runtime=60, **resources), threads=64, is_group=lambda: False
    )
    return get_submit_command(job, PARAMETERS) + set_gres_string(job)


def test_four_nodes_run_one_task_each_with_all_their_gpus() -> None:
    rule = RULES[RULES.index("use rule train as train_nodes") :]
    assert re.search(r"mpi=.srun.,\s+nodes=.*,\s+tasks=.*,\s+tasks_per_gpu=0,", rule.split("rule export")[0]), (
        "the rule states them so"
    )
    call = submitted(gres="gpu:8", nodes=4, tasks=4, tasks_per_gpu=0, mpi="srun")
    assert "--nodes=4" in call
    assert "--ntasks=4" in call
    assert "--gres=gpu:8" in call
    assert "--ntasks-per-gpu" not in call, "the command would start once per GPU"


def test_one_node_starts_the_command_once() -> None:
    call = submitted(gres="gpu:8")
    assert "--gres=gpu:8" in call
    assert "--ntasks-per-gpu" not in call


@pytest.mark.parametrize("word", ["tasks", "mpi"])
def test_default_resources_never_name(word: str) -> None:
    profile = (Path(__file__).resolve().parents[2] / "workflow/profiles/slurm/config.yaml").read_text(encoding="utf-8")
    assert f"{word}:" not in profile.split("default-resources")[1]
