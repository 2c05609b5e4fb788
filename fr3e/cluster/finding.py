"""What the checks of `fr3e doctor` share: a finding, commands of the system, the site file, the scenario's runs."""

import subprocess
from dataclasses import dataclass

from fr3e.config import resolve_run, run_ids
from fr3e.config.scenario import RunConfig, Scenario
from fr3e.config.site import SITE, Site, load_site


@dataclass(frozen=True)
class Finding:
    """One check: `ok` is None where it does not apply."""

    name: str
    ok: bool | None
    found: str
    remedy: str = ""


def command(*words: str, seconds: float = 20) -> str | None:
    """Output of a command; None where it is absent, fails or takes longer than `seconds`."""
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def site() -> Site:
    """config/site.yaml, or the defaults where there is no such file."""
    return load_site(SITE)


def runs_of(scenario: Scenario, engine: str) -> list[RunConfig]:
    """The scenario's runs that an engine trains."""
    runs = [resolve_run(scenario, *key) for key in run_ids(scenario).values()]
    return [run for run in runs if run.training.engine == engine]
