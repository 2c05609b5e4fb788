"""The table of sources: where each data set comes from, at which revision, with which rows, columns and licence.

The table is `config/sources.yaml`; nothing else in the package knows a repository, a revision or a checksum.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fr3e.errors import UserError
from fr3e.files import read_yaml, sha256

Hex40 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Readable = Annotated[str, Field(pattern=r"^[^*?]+\.(jsonl|json|parquet)$", description="A kind that read_rows knows.")]
HubId = Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
Gold = Literal["plain", "integer", "boxed_integer", "after_hashes", "minerva", "gaokao", "olympiad"]
BENCHMARKS = ("aime24", "gsm8k", "math500", "minerva_math", "gaokao2023en", "olympiadbench", "college_math", "amc23")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Columns(_Strict):
    """Dotted paths into a source's row (`extra_info.question`, `prompt.0.content`); absent ones are null."""

    question: str
    gold: str
    id: str | None = None
    solution: str | None = None
    unit: str | None = None
    tolerance: str | None = None
    multiple: str | None = None
    level: str | None = None
    subject: str | None = None
    licence: str | None = None


class SourceFile(_Strict):
    """One file of a place."""

    path: Readable = Field(description="Path in the repository.")
    local: Readable = Field(description="Path in a mirror or raw folder; `.gz` may be appended there.")
    sha256: Hex64 | None = Field(description="Of the uncompressed bytes; null where it is not known.")
    part: str | None = Field(None, description="Name of the part, in ids and source rows.")
    level: int | None = Field(None, description="Difficulty level of the whole file.")


class Place(_Strict):
    """A repository at one revision that holds the source."""

    hub: str | None = None
    github: str | None = None
    revision: Hex40
    rows: int = Field(ge=1)
    columns: Columns
    files: list[SourceFile] = Field(min_length=1)
    gold: Gold | None = Field(None, description="Normaliser of golds, where it differs from the source's.")

    @model_validator(mode="after")
    def _one_repository(self) -> Self:
        if (self.hub is None) == (self.github is None):
            raise ValueError("a place names either hub or github")
        return self

    @property
    def repository(self) -> str:
        return self.hub or str(self.github)

    def url(self, file: SourceFile) -> str:
        """Where `file` can be looked at or downloaded by hand."""
        if self.hub:
            return f"https://huggingface.co/datasets/{self.hub}/resolve/{self.revision}/{file.path}"
        return f"https://raw.githubusercontent.com/{self.github}/{self.revision}/{file.path}"


class Note(_Strict):
    """Something that users or the source say of the data."""

    what: str
    url: str | None = None
    row: int | None = Field(None, description="Row in the first place, from 0.")
    dispute: bool = Field(False, description="The row's gold is disputed: it is named in the row's reason.")


class Repair(_Strict):
    """A gold of the source that is a plain slip of the pen, and what it means."""

    from_: str = Field(alias="from")
    to: str
    why: str


class Source(_Strict):
    """One data set."""

    kind: Literal["benchmark", "train"]
    gold: Gold = Field(description="Normaliser of golds (fr3e/data/normalise.py).")
    licence: str
    hub_id: HubId | None = Field(None, description="The data set on the hub, be a place of the table there or not.")
    config: str | None = Field(None, description="Its configuration on the hub, where it has several.")
    split: str | None = Field(None, description="Its split on the hub.")
    hub_note: str | None = Field(None, description="What else people need to know of it.")
    places: list[Place] = Field(min_length=1)
    notes: list[Note] = Field(default_factory=list)
    repairs: list[Repair] = Field(default_factory=list)


class Sources(_Strict):
    """The whole table."""

    sources: dict[str, Source]

    def choose(self, names: list[str] | None, kind: str | None = None) -> dict[str, Source]:
        """The named sources (or all), of one kind (or any), in the table's order; unknown names are a `UserError`."""
        allowed = {name: source for name, source in self.sources.items() if kind in (None, source.kind)}
        unknown = [name for name in names or [] if name not in allowed]
        if unknown:
            raise UserError(f"{', '.join(unknown)}: no such {kind or 'source'}; allowed: {', '.join(allowed)}")
        return {name: source for name, source in allowed.items() if names is None or name in names}


class Located(_Strict):
    """A source found on disk: the place whose files are all there, and where each of them lies."""

    name: str
    source: Source
    place: Place
    paths: list[Path]


def default_table() -> Path:
    """`config/sources.yaml` of the working folder, else the one of the repository this package lies in."""
    here = Path("config/sources.yaml")
    return here if here.exists() else Path(__file__).resolve().parents[2] / "config" / "sources.yaml"


def load_sources(table: Path | None = None) -> Sources:
    """Load and check the table; a wrong key or value is a `UserError` that names it."""
    table = table or default_table()
    content: Any = read_yaml(table)
    try:
        return Sources.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{table}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def find_local(folder: Path, file: SourceFile) -> Path | None:
    """The file in a mirror or raw folder, plain or gzipped; None when it is absent."""
    for candidate in (folder / file.local, folder / f"{file.local}.gz"):
        if candidate.is_file():
            return candidate
    return None


def locate(folder: Path, name: str, source: Source) -> Located:
    """Find the first place of `source` whose files are all in `folder`; else a `UserError` says which file is missing."""
    missing: list[str] = []
    for place in source.places:
        paths = [find_local(folder, file) for file in place.files]
        if all(paths):
            return Located(name=name, source=source, place=place, paths=[path for path in paths if path])
        missing.extend(f.local for f, path in zip(place.files, paths, strict=True) if path is None)
    file = source.places[0].files[0] if missing[0] == source.places[0].files[0].local else None
    where = f" (from {source.places[0].url(file)})" if file else ""
    raise UserError(
        f"{folder / missing[0]}: {name} is missing{where}; "
        "give a folder that holds it with --mirror DIR, or fetch it with `fr3e data fetch --out DIR`"
    )


def check_sha256(path: Path, file: SourceFile) -> None:
    """Compare the uncompressed bytes with the table; a difference is a `UserError`."""
    from fr3e.data.read import sha256_uncompressed

    if file.sha256 is None:
        return
    found = sha256_uncompressed(path) if path.suffix == ".gz" else sha256(path)
    if found != file.sha256:
        raise UserError(
            f"{path}: SHA-256 {found[:16]}... is not the pinned {file.sha256[:16]}... of config/sources.yaml; "
            "the file was changed or is another version: fetch it again, or pin the new one in the table"
        )
