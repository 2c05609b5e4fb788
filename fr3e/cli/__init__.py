"""The `fr3e` command: one verb per stage. Each verb takes files and gives files; none knows of Snakemake."""

import logging
import os
import sys

# Idle OpenMP threads that spin slow small matrices down a hundredfold (docs/demo.md); this must precede torch.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import typer

from fr3e.cli import config, data, report, results, stages
from fr3e.errors import UserError

app = typer.Typer(no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, help=__doc__)
app.add_typer(config.app, name="config")
app.add_typer(data.app, name="data")
app.add_typer(stages.app)
app.add_typer(report.app, name="report")
app.add_typer(results.app)


def main() -> None:
    """Entry point: user errors are one line and exit code 2."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    for noisy in ("httpx", "transformers", "matplotlib", "fontTools"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        app()
    except UserError as error:
        print(f"fr3e: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        if error.filename is None and error.strerror is None:
            raise
        print("fr3e: " + (f"{error.filename}: " if error.filename else "") + f"{error.strerror}", file=sys.stderr)
        sys.exit(2)
