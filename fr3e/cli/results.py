"""The verbs around a launch: what it would cost, whether the machine is ready, and what its results hold."""

from pathlib import Path
from typing import Annotated

import typer

from fr3e.cli.options import ConfigFile
from fr3e.errors import UserError

app = typer.Typer()


@app.command()
def verify(results: Annotated[Path, typer.Argument(help="A results folder.")]) -> None:
    """Check a results folder against its manifests; says what is stale, altered or missing."""
    from fr3e.provenance.verify import verify as start

    raise typer.Exit(start(results))


@app.command()
def trace(
    table: Annotated[str, typer.Argument(help="table1.")],
    cell: Annotated[str, typer.Option(help="<model>/<method>/<benchmark>.")],
    results: Annotated[Path, typer.Option(help="The scenario's results folder.")] = Path("results/demo"),
) -> None:
    """Print the chain from a table cell to files, run, configuration and commit."""
    from fr3e.provenance.trace import trace as start

    print(start(table, cell, results))


@app.command()
def plan(
    config: ConfigFile,
    tokens_per_second: Annotated[
        float | None, typer.Option(help="Generated tokens per second and GPU; default: a stated model.")
    ] = None,
    probe: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of a run that has made some updates: measured inputs, not stated ones."),
    ] = None,
    probe_updates: Annotated[int, typer.Option(min=1, help="Updates of each probe that count.")] = 5,
) -> None:
    """Estimate runs, memory per GPU, tokens, GPU-hours and wall time before launch."""
    from fr3e.cluster.plan import plan as start

    if tokens_per_second is not None and not 0 < tokens_per_second < float("inf"):
        raise UserError(f"--tokens-per-second: expected a number above 0, found {tokens_per_second}")
    print(start(config, tokens_per_second, probe or (), probe_updates))


@app.command()
def doctor(config: ConfigFile = Path("config/demo.yaml")) -> None:
    """Check Slurm, GPUs, file systems, disk, environments, data, models and ports; each fault comes with its remedy."""
    from fr3e.cluster.doctor import doctor as start

    raise typer.Exit(start(config))
