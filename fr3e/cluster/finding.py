"""What the checks of `fr3e doctor` share: a finding, commands of the system, the site file, the scenario's runs."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from fr3e.config import resolve_run, run_ids
from fr3e.config.scenario import RunConfig, Scenario
from fr3e.files import read_yaml

SITE = Path("config/site.yaml")


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


def site() -> dict[str, str]:
    """The keys of config/site.yaml; none where there is no such file."""
    return (read_yaml(SITE) or {}) if SITE.is_file() else {}


def runs_of(scenario: Scenario, engine: str) -> list[RunConfig]:
    """The scenario's runs that an engine trains."""
    runs = [resolve_run(scenario, *key) for key in run_ids(scenario).values()]
    return [run for run in runs if run.training.engine == engine]
