"""`fr3e data`: fetch, assemble, check and describe data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fr3e.cli.options import Mirror, Out
from fr3e.errors import UserError

if TYPE_CHECKING:
    from fr3e.config.scenario import RealData

app = typer.Typer(no_args_is_help=True, help="Fetch, assemble, check and describe data.")


@app.command("synthetic")
def data_synthetic(
    plan: Annotated[Path, typer.Option(help="Resolved plan: the training problems, or one benchmark.")], out: Out
) -> None:
    """Write the demo's training problems or one of its benchmarks."""
    from fr3e.data.synthetic import write_problems
    from fr3e.provenance.manifest import recorded

    with recorded("data", [out], plan=plan):
        write_problems(plan, out)


@app.command("fetch")
def data_fetch(
    out: Out,
    sources: Annotated[Path, typer.Option(help="Table of sources.")] = Path("config/sources.yaml"),
    mirror: Mirror = None,
    name: Annotated[list[str] | None, typer.Option(help="Only these sources.")] = None,
) -> None:
    """Fetch the sources' files from the hub, or from a mirror; what is there and right is kept."""
    from fr3e.data.fetch import fetch

    fetch(sources, out, mirror, name)


@app.command("benchmarks")
def data_benchmarks(
    mirror: Annotated[Path, typer.Option("--mirror", help="Folder with the sources' files.")],
    out: Out,
    name: Annotated[list[str] | None, typer.Option(help="Only these benchmarks.")] = None,
) -> None:
    """Write one parquet per benchmark, golds ready for grading."""
    from fr3e.data.benchmarks import write_benchmarks

    write_benchmarks(mirror, out, name)


@app.command("assemble")
def data_assemble(
    mirror: Annotated[Path, typer.Option("--mirror", help="Folder with the sources' files.")],
    out: Out,
    config: Annotated[Path, typer.Option("--config", help="Scenario whose data section is used.")] = Path(
        "config/paper.yaml"
    ),
    tokenizer: Annotated[
        str | None, typer.Option(help="Folder or hub id of the tokenizer that counts prompt tokens.")
    ] = None,
) -> None:
    """Assemble the training mix: train.parquet, dropped.parquet, manifest.json."""
    from fr3e.data.assemble import assemble

    assemble(mirror, out, _section(config), tokenizer)


def _section(config: Path) -> "RealData":
    """The data section of a scenario or of a resolved plan; a `UserError` where it is missing or not of real data."""
    from fr3e.config.load import checked
    from fr3e.config.scenario import RealData
    from fr3e.files import read_yaml

    content = read_yaml(config)
    section = content.get("data") if isinstance(content, dict) else None
    if not isinstance(section, dict):
        raise UserError(f"{config}: no section `data`; give a scenario of real data, or its resolved plan")
    if section.get("kind") != "real":
        raise UserError(f"{config}: data.kind is {section.get('kind')!r}; the command needs 'real'")
    return checked(RealData, section, f"{config}: data")


@app.command("ensure")
def data_ensure(
    data: Annotated[Path, typer.Option(help="Data folder.")] = Path("data"),
    lock: Annotated[Path, typer.Option(help="Its content lock.")] = Path("data.dvc"),
    mirror: Mirror = None,
    accept_difference: Annotated[bool, typer.Option(help="Go on although the data differ from the lock.")] = False,
    stamp: Annotated[Path | None, typer.Option(help="Written when the data are there: each file's SHA-256.")] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="Scenario, or its resolved plan, whose data section is used.")
    ] = None,
) -> None:
    """Use, pull or assemble data/, then compare it with its lock."""
    from fr3e.data.lock import ensure
    from fr3e.files import sha256, write_json

    wanted = _section(config) if config else None
    if wanted is not None:
        mirror = mirror or (Path(wanted.mirror) if wanted.mirror else None)
        accept_difference = accept_difference or wanted.accept_difference
    accepted = ensure(data, lock, mirror, accept_difference, wanted=wanted)
    if stamp is not None:
        files = {str(path): sha256(path) for path in sorted(data.rglob("*")) if path.is_file()}
        write_json(stamp, files | ({"accepted_difference": accepted} if accepted else {}))


@app.command("status")
def data_status() -> None:
    """What DVC tracks here: present files against their locks, and what is not there."""
    from fr3e.data.lock import status

    print(status(Path()))


@app.command("check")
def data_check(
    data: Annotated[Path, typer.Option()] = Path("data"), lock: Annotated[Path, typer.Option()] = Path("data.dvc")
) -> None:
    """Compare data/ with its content lock."""
    from fr3e.data.lock import check

    check(data, lock)


@app.command("version")
def data_version(
    folder: Annotated[Path, typer.Argument(help="Model folder, or another result, to put under DVC.")],
) -> None:
    """Put a result under DVC: one lock around every call, modification times kept."""
    from fr3e.data.lock import add

    add(folder)


@app.command("report")
def data_report(
    data: Annotated[Path, typer.Option(help="Data folder.")],
    out: Out,
    template: Annotated[
        list[str] | None, typer.Option(help="The models' prompt templates; default: that of the mix, or the demo's.")
    ] = None,
) -> None:
    """Write data_report.html."""
    from fr3e.data.report import write_report
    from fr3e.provenance.manifest import recorded

    with recorded("data-report", [out], sorted(data.rglob("*.parquet"))):
        write_report(data, out, template or ())
