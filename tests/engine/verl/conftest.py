"""verl in the tests' own process runs on the CPU platform, as it does in the attempts that they start."""

import os
from importlib import metadata

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
