"""The single source of configuration: pydantic models, their loading and their schema."""

from fr3e.config.load import dump, load_run, load_scenario, merge, resolve_run, run_ids, schema
from fr3e.config.scenario import RunConfig, Scenario
from fr3e.config.site import Site, load_site
from fr3e.config.training import TrainingConfig

__all__ = [
    "RunConfig",
    "Scenario",
    "Site",
    "TrainingConfig",
    "dump",
    "load_run",
    "load_scenario",
    "load_site",
    "merge",
    "resolve_run",
    "run_ids",
    "schema",
]
