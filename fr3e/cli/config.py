"""`fr3e config`: check, resolve and describe configurations."""

from pathlib import Path
from typing import Annotated

import typer

from fr3e.cli.options import ConfigFile, Out
from fr3e.errors import UserError

app = typer.Typer(no_args_is_help=True, help="Check, resolve and describe configurations.")


@app.command("check")
def config_check(config: ConfigFile) -> None:
    """Check a scenario and every run it implies."""
    from fr3e.config import load_scenario, resolve_run, run_ids

    scenario = load_scenario(config)
    runs = run_ids(scenario, scenario.methods + scenario.arms)
    for model, arm, seed in runs.values():
        resolve_run(scenario, model, arm, seed)
    print(f"{config}: fine, {len(runs)} runs, {len(scenario.benchmarks)} benchmarks")


@app.command("write")
def config_write(
    values: Annotated[str, typer.Option("--json", help="The resolved section as JSON.")], out: Out
) -> None:
    """Write a resolved configuration as YAML."""
    import json

    import yaml

    from fr3e.files import write_text

    try:
        section = json.loads(values)
    except ValueError as error:
        raise UserError(f"--json: not JSON ({error})") from error
    write_text(out, yaml.safe_dump(section, sort_keys=False, allow_unicode=True, width=120))


@app.command("schema")
def config_schema(out: Out = Path("config/schema.json")) -> None:
    """Write the JSON schema of a scenario file."""
    from fr3e.config import schema
    from fr3e.files import write_json

    write_json(out, schema())
