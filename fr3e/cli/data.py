"""`fr3e data`: fetch, assemble, check and describe data."""

from pathlib import Path
from typing import Annotated

import typer

from fr3e.cli.options import Mirror, Out
from fr3e.errors import UserError

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
    config: Annotated[Path, typer.Option("--config", help="Scenario whose data.mix is used.")] = Path(
        "config/paper.yaml"
    ),
    tokenizer: Annotated[
        str | None, typer.Option(help="Folder or hub id of the tokenizer that counts prompt tokens.")
    ] = None,
) -> None:
    """Assemble the training mix: train.parquet, dropped.parquet, manifest.json."""
    from fr3e.config import load_scenario
    from fr3e.data.assemble import assemble

    data = load_scenario(config).data
    if data.kind != "real":
        raise UserError(f"{config}: data.kind is {data.kind!r}; `fr3e data assemble` needs 'real'")
    table, overlap = Path(data.sources), data.remove_overlap
    assemble(mirror, out, data.mix, tokenizer, data.max_prompt_tokens, table=table, remove_overlap=overlap)


@app.command("ensure")
def data_ensure(
    data: Annotated[Path, typer.Option(help="Data folder.")] = Path("data"),
    lock: Annotated[Path, typer.Option(help="Its content lock.")] = Path("data.dvc"),
    mirror: Mirror = None,
    accept_difference: Annotated[bool, typer.Option(help="Go on although the data differ from the lock.")] = False,
    stamp: Annotated[Path | None, typer.Option(help="Written when the data are there: each file's SHA-256.")] = None,
    config: Annotated[Path | None, typer.Option("--config", help="Resolved plan whose data.mix is used.")] = None,
) -> None:
    """Use, pull or assemble data/, then compare it with its lock."""
    from fr3e.data.lock import ensure
    from fr3e.files import read_yaml, sha256, write_json

    plan = read_yaml(config) if config else {"data": {"mix": {}}}
    try:
        mix = plan["data"]["mix"]
    except (KeyError, TypeError) as error:
        raise UserError(f"{config}: data.mix is missing; give a resolved plan of real data") from error
    ensure(data, lock, mirror, accept_difference, mix=mix or None)
    if stamp is not None:
        write_json(stamp, {str(path): sha256(path) for path in sorted(data.rglob("*")) if path.is_file()})


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
def data_report(data: Annotated[Path, typer.Option(help="Data folder.")], out: Out) -> None:
    """Write data_report.html."""
    from fr3e.data.report import write_report
    from fr3e.provenance.manifest import recorded

    with recorded("data-report", [out], sorted(data.rglob("*.parquet"))):
        write_report(data, out)
