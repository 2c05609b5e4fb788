"""Entry point of the group `verl.plugins`: verl imports this module in the driver and in every Ray actor.

verl only logs a plug-in's failure at debug level, so the trainer asserts `LOADED`.
"""

import os

if os.environ.get("VERL_PLATFORM", "").strip().lower() == "cpu":
    from fr3e.engine.verl import cpu_platform

    cpu_platform.install()

LOADED = True
