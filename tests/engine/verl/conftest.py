"""verl in the tests' own process runs on the CPU platform, as it does in the attempts that they start."""

import os
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.engine.verl.verl_runs import Materials

try:
    metadata.version("verl")
except metadata.PackageNotFoundError:
    pass
else:
    # pytest itself may have imported verl already, in search of this folder's package, before the platform could be named.
    if os.environ.get("FR3E_TEST_DEVICE", "cpu") == "cpu":
        os.environ.setdefault("VERL_PLATFORM", "cpu")
        from fr3e.engine.verl import cpu_platform

        cpu_platform.install()


@pytest.fixture(scope="session")
def materials(tmp_path_factory: pytest.TempPathFactory) -> "Materials":
    """Base model and data that all runs of a session share."""
    from tests.engine.verl.verl_runs import make_materials

    return make_materials(tmp_path_factory.mktemp("verl"))
