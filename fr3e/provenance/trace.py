"""From a table cell back to everything that made it: verdicts, generations, model, run, data, configuration, commit."""

from pathlib import Path
from typing import Any

import pandas as pd

from fr3e.errors import UserError
from fr3e.files import read_json
from fr3e.provenance.manifest import KEYS, SUFFIX

COLUMNS = ("model", "method", "benchmark", "quantity", "value", "low", "high", "verdicts")


def trace(table: str, cell: str, results: Path) -> str:
    """The chain behind a cell as indented text, one file a line with the stage that made it.

    `cell` is <model>/<method>/<benchmark>. Raises `UserError` for a table or a cell that does not exist.
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
    parts = cell.split("/")
    if len(parts) != 3:
        raise UserError(f"--cell {cell!r}: expected <model>/<method>/<benchmark>")
    rows = frame[(frame["model"] == parts[0]) & (frame["method"] == parts[1]) & (frame["benchmark"] == parts[2])]
    rows = rows[(rows["verdicts"] != "") & (rows["quantity"] == "score")]
    if rows.empty:
        known = sorted(
            {
                "/".join(row)
                for row in frame[(frame["verdicts"] != "") & (frame["quantity"] == "score")][
                    ["model", "method", "benchmark"]
                ].values
            }
        )
        raise UserError(
            f"--cell {cell!r}: no such cell in {path}; cells: {', '.join(known[:8])}{' ...' if len(known) > 8 else ''}"
        )
    row = rows.iloc[0]
    lines = [f"{path}: {cell} = {row['value']} [{row['low']}, {row['high']}]"]
    makers = _makers(results)
    for verdicts in row["verdicts"].split(";"):
        lines += _chain(verdicts, makers, 1, set())
    return "\n".join(lines)


def _makers(results: Path) -> dict[str, dict[str, Any]]:
    """Result path -> the manifest of the stage that wrote it."""
    manifests = (read_json(path, *KEYS) for path in sorted(results.rglob(f"*{SUFFIX}")))
    return {output: manifest for manifest in manifests for output in manifest["outputs"]}


def _chain(path: str, makers: dict[str, dict[str, Any]], depth: int, seen: set[str]) -> list[str]:
    indent = "  " * depth
    if path in seen:
        return [f"{indent}{path} (above)"]
    seen.add(path)
    maker = makers.get(path)
    if maker is None:
        return [f"{indent}{path}" + ("" if Path(path).is_file() else " (missing)")]
    commit = (maker["commit"] or "no commit")[:12] + (", uncommitted changes" if maker["dirty"] else "")
    seed = f", seed {maker['facts']['seed']}" if maker["facts"].get("seed") is not None else ""
    lines = [f"{indent}{path} sha256 {maker['outputs'][path][:12]}"]
    lines.append(
        f"{indent}  by {maker['stage']} (code {maker['code']}, commit {commit}{seed}, {maker['started']}, {maker['seconds']} s)"
    )
    if maker["plan"]:
        lines.append(f"{indent}  from plan {maker['plan']['path']} sha256 {maker['plan']['sha256'][:12]}")
    for source in maker["inputs"]:
        lines += _chain(source, makers, depth + 1, seen)
    return lines
