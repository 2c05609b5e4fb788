"""What a cluster's site decides: config/site.yaml. Nothing here is part of a run's identity; no result depends on it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from fr3e.config.base import Section
from fr3e.config.load import checked
from fr3e.config.scenario import RunConfig, Scenario
from fr3e.errors import UserError
from fr3e.files import read_yaml

SITE = Path("config/site.yaml")
Bind = Annotated[str, Field(pattern=r"^/[^,\s]*$", description="Absolute folder, or SOURCE:TARGET[:ro].")]


class Site(Section):
    """The whole of config/site.yaml; every key may be left out."""

    cpu_partition: str = Field("cpu", min_length=1, description="Slurm partition of everything that needs no GPU.")
    gpu_partition: str = Field("gpu", min_length=1, description="Slurm partition of training and sampling on GPUs.")
    account: str = Field("", description="Slurm account; empty: the user's default.")
    qos: str = Field("", description="Slurm quality of service of every job; empty: the default.")
    gpus_per_node: int = Field(8, ge=1, description="GPUs that a node of gpu_partition has.")
    gpu_type: str = Field("", pattern=r"^[\w.-]*$", description="Type in the gres request (gpu:h200:8); empty: any.")
    verl_python: str = Field("", description="Interpreter with verl, vLLM and Ray; empty: the one that runs Snakemake.")
    container: str = Field("", description="Apptainer image of the default environment; empty: none.")
    verl_container: str = Field("", description="Apptainer image of the verl environment; empty: none.")
    bind: list[Bind] = Field(default_factory=list, description="Further folders that the images see.")
    ray_scratch: str = Field("/tmp", pattern="^/", description="Folder on each node for Ray's sockets and logs.")

    def gres(self, gpus: int) -> str:
        """The request for `gpus` GPUs on a node."""
        return f"gpu:{self.gpu_type}:{gpus}" if self.gpu_type else f"gpu:{gpus}"


def load_site(path: Path = SITE) -> Site:
    """The site file, or the defaults where there is none or it is empty. A fault is a `UserError` of one line."""
    return checked(Site, read_yaml(path) or {}, str(path)) if path.is_file() else Site()


def check_gpus(site: Site, scenario: Scenario, runs: Mapping[str, RunConfig]) -> None:
    """Refuse a run or a sampling job that asks for more GPUs of a node than there are.

    How many GPUs share a run is part of its settings, so that the site may not change it silently.
    """
    for name, run in runs.items():
        verl = run.training.verl
        if run.training.engine == "verl" and verl.device == "cuda" and verl.gpus_per_node > site.gpus_per_node:
            raise UserError(
                f"{name}: train.verl.gpus_per_node is {verl.gpus_per_node}, {SITE} says gpus_per_node: "
                f"{site.gpus_per_node}; set train.verl.nodes and train.verl.gpus_per_node to what there is, or correct {SITE}"
            )
    needed = scenario.evaluation.tensor_parallel
    if scenario.evaluation.engine == "vllm" and needed > site.gpus_per_node:
        raise UserError(
            f"evaluation.tensor_parallel is {needed}, {SITE} says gpus_per_node: {site.gpus_per_node}; "
            f"one engine samples on one node: lower it, or correct {SITE}"
        )
