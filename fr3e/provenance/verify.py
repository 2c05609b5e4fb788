"""Check a results folder against its manifests, without Snakemake's metadata."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fr3e.errors import UserError
from fr3e.files import read_json, sha256
from fr3e.provenance import fingerprint
from fr3e.provenance.manifest import KEYS, SUFFIX, located, project_of

# Working files of a stage and metadata of other tools: nothing downstream reads them.
UNRECORDED = (".snakemake", "logs", "benchmarks-of-rules", "checkpoints", "plans", ".shards")


def faults(results: Path) -> list[tuple[str, str]]:
    """(word, what) for each fault: `altered`, `missing`, `stale` (made from other inputs, plan or code), `unknown` (no manifest).

    Paths in `what` are the manifests' own, relative to the project, wherever the call is made from.
    """
    if not results.is_dir():
        raise UserError(f"{results}: no such folder; give a results folder such as results/demo")
    found: list[tuple[str, str]] = []
    accounted: set[Path] = set()
    codes: dict[str, str] = {}
    project = Path.cwd()
    for path in sorted(results.rglob(f"*{SUFFIX}")):
        try:
            manifest = read_json(path, *KEYS)
        except UserError as error:  # one broken manifest must not hide the others' faults
            found.append(("altered", str(error)))
            continue
        project, stage = project_of(path, manifest), manifest["stage"]
        accounted |= {project / output for output in manifest["outputs"]}
        result = str(_shown(located(path), project)).removesuffix(SUFFIX)
        found += _faults(result, manifest, project, codes.setdefault(stage, fingerprint.code(stage)))
    unknown = _unaccounted(located(results), accounted)
    found += [("unknown", f"{_shown(path, project)} has no manifest") for path in unknown]
    return list(dict.fromkeys(found))


def _faults(result: str, manifest: dict[str, Any], project: Path, code: str) -> Iterator[tuple[str, str]]:
    """Those of one manifest; `code` is its stage's fingerprint now."""
    for path, digest in manifest["outputs"].items():
        if not (project / path).is_file():
            yield "missing", path
        elif sha256(project / path) != digest:
            yield "altered", path
    plan = manifest["plan"]
    sources = dict(manifest["inputs"]) | ({plan["path"]: plan["sha256"]} if plan else {})
    for path, digest in sources.items():
        if not (project / path).is_file():
            yield "missing", f"{path}, from which {result} was made"
        elif sha256(project / path) != digest:
            yield "stale", f"{result}: {path} has changed since"
    if code != manifest["code"]:
        stage = manifest["stage"]
        yield "stale", f"{result}: the code of stage {stage} has changed since ({manifest['code']} then, {code} now)"


def _shown(path: Path, project: Path) -> Path:
    return path.relative_to(project) if path.is_relative_to(project) else path


def _unaccounted(results: Path, accounted: set[Path]) -> list[Path]:
    relevant = {".parquet", ".csv", ".safetensors"}
    return [
        path
        for path in sorted(results.rglob("*"))
        if path.is_file()
        and path.suffix in relevant
        and path not in accounted
        and not set(path.relative_to(results).parts) & set(UNRECORDED)
    ]


def verify(results: Path) -> int:
    """Print every fault, one per line; exit code 1 if there is one."""
    found = faults(results)
    for word, what in found:
        print(f"{word}: {what}")
    if not found:
        count = sum(1 for _ in results.rglob(f"*{SUFFIX}"))
        print(
            f"{results}: {count} manifests, all results as they were made, nothing stale"
            if count
            else f"{results}: no manifests; nothing has run here"
        )
    return int(bool(found))
