"""One real Slurm for the whole module, one finished start of the tiny scenario to vary."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm import lab as slurm
from tests.workflow.checkout import Checkout


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm.SlurmLab]:
    """slurmctld and two slurmd with 8 declared GPUs each, ended when the tests end."""
    slurm.install()
    if reason := slurm.missing():
        pytest.skip(reason)
    started = slurm.SlurmLab(tmp_path_factory.mktemp("slurm"), gpu="accel", cpu="batch")
    try:
        started.up()
        yield started
    finally:
        started.down()


@pytest.fixture
def project(lab: slurm.SlurmLab, tmp_path: Path) -> Checkout:
    """A checkout of this tree whose site file names the lab's partitions; neither has its default's name."""
    checkout = Checkout.make(tmp_path / "project")
    checkout.edit("config/site.yaml", "cpu_partition: cpu", f"cpu_partition: {lab.cpu}")
    checkout.edit("config/site.yaml", "gpu_partition: gpu", f"gpu_partition: {lab.gpu}")
    return checkout
