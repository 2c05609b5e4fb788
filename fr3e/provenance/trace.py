"""From a table cell back to everything that made it: verdicts, generations, model, run, data, configuration, commit."""

import difflib
from pathlib import Path
from typing import Any

import pandas as pd

from fr3e.errors import UserError
from fr3e.files import read_json
from fr3e.provenance.manifest import KEYS, SUFFIX, project_of

COLUMNS = ("model", "method", "benchmark", "quantity", "value", "low", "high", "verdicts")
TRACED = ("score", "difference")
"""Quantities that are ours alone: their cells name the verdict files they were computed from."""


def trace(table: str, cell: str, results: Path) -> str:
    """The chain behind a cell as indented text, one file a line with the stage that made it.

    `cell` is <model>/<method>/<benchmark>; of a difference the method is <first>-<second>, as in the table's file. Raises `UserError` for a table or a cell that does not exist.
    """
    path = results / f"{table}.csv"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in results.glob("*.csv"))) or "none"
        raise UserError(f"{path}: no such table; tables there: {known}")
    try:
        frame = pd.read_csv(path, dtype=str).fillna("")
    except (
        ValueError
    ) as error:  # pandas' errors of empty files, broken rows and bytes that are not text are ValueErrors
        raise UserError(f"{path}: not a CSV table ({error}); make it again") from error
    if missing := [name for name in COLUMNS if name not in frame.columns]:
        raise UserError(f"{path}: no column {missing[0]!r}; `fr3e trace` reads tables with {', '.join(COLUMNS)}")
    traced = frame[(frame["verdicts"] != "") & frame["quantity"].isin(TRACED)]
    names = traced["model"] + "/" + traced["method"] + "/" + traced["benchmark"]
    rows = traced[names == cell]
    if rows.empty:
        near = ", ".join(difflib.get_close_matches(cell, list(names), n=8, cutoff=0)) or "none"
        raise UserError(
            f"--cell {cell!r}: no such cell in {path}, expected <model>/<method>/<benchmark>; nearest cells: {near}"
        )
    row = rows.iloc[0]
    lines = [f"{path}: {cell} = {row['value']} [{row['low']}, {row['high']}]"]
    manifests = {path: read_json(path, *KEYS) for path in sorted(results.rglob(f"*{SUFFIX}"))}
    makers = {output: manifest for manifest in manifests.values() for output in manifest["outputs"]}
    project = next((project_of(path, manifest) for path, manifest in manifests.items()), Path.cwd())
    for verdicts in row["verdicts"].split(";"):
        lines += _chain(verdicts, project, makers, 1, set())
    return "\n".join(lines)


def _chain(path: str, project: Path, makers: dict[str, dict[str, Any]], depth: int, seen: set[str]) -> list[str]:
    """Lines of `path`, relative to `project`, and of what it was made from; `makers`: result -> manifest of its stage."""
    indent = "  " * depth
    if path in seen:
        return [f"{indent}{path} (above)"]
    seen.add(path)
    maker = makers.get(path)
    if maker is None:
        return [f"{indent}{path}" + ("" if (project / path).is_file() else " (missing)")]
    commit = (maker["commit"] or "no commit")[:12] + (", uncommitted changes" if maker["dirty"] else "")
    seed = f", seed {maker['facts']['seed']}" if maker["facts"].get("seed") is not None else ""
    lines = [f"{indent}{path} sha256 {maker['outputs'][path][:12]}"]
    lines.append(
        f"{indent}  by {maker['stage']} (code {maker['code']}, commit {commit}{seed}, {maker['started']}, {maker['seconds']} s)"
    )
    if maker["plan"]:
        lines.append(f"{indent}  from plan {maker['plan']['path']} sha256 {maker['plan']['sha256'][:12]}")
    for source in maker["inputs"]:
        lines += _chain(source, project, makers, depth + 1, seen)
    return lines
