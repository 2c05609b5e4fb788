"""Options that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[Path, typer.Option("--config", help="Scenario file, for example config/demo.yaml.")]
Out = Annotated[Path, typer.Option("--out", help="What is written, by atomic rename.")]
Mirror = Annotated[
    Path | None, typer.Option("--mirror", help="Folder with the sources' files, used instead of the hub.")
]
