"""Check a results folder against its manifests, without Snakemake's metadata."""

from pathlib import Path

from fr3e.errors import UserError
from fr3e.files import read_json, sha256
from fr3e.provenance import fingerprint
from fr3e.provenance.manifest import KEYS, SUFFIX

# Working files of a stage and metadata of other tools: nothing downstream reads them.
UNRECORDED = (".snakemake", "logs", "benchmarks-of-rules", "checkpoints", "plans", ".shards")


def faults(results: Path) -> list[tuple[str, str]]:
    """(word, what) for each fault: `altered`, `missing`, `stale` (made from other inputs, plan or code), `unknown` (no manifest)."""
    if not results.is_dir():
        raise UserError(f"{results}: no such folder; give a results folder such as results/demo")
    found: list[tuple[str, str]] = []
    accounted: set[Path] = set()
    codes: dict[str, str] = {}
    for manifest_path in sorted(results.rglob(f"*{SUFFIX}")):
        accounted.add(manifest_path)
        try:
            manifest = read_json(manifest_path, *KEYS)
        except UserError as error:  # one broken manifest must not hide the others' faults
            found.append(("altered", str(error)))
            continue
        result = str(manifest_path)[: -len(SUFFIX)]
        for path, digest in manifest["outputs"].items():
            accounted.add(Path(path))
            if not Path(path).is_file():
                found.append(("missing", path))
            elif sha256(path) != digest:
                found.append(("altered", path))
        plan = manifest["plan"]
        sources = dict(manifest["inputs"]) | ({plan["path"]: plan["sha256"]} if plan else {})
        for path, digest in sources.items():
            if not Path(path).is_file():
                found.append(("missing", f"{path}, from which {result} was made"))
            elif sha256(path) != digest:
                found.append(("stale", f"{result}: {path} has changed since"))
        stage = manifest["stage"]
        current = codes.setdefault(stage, fingerprint.code(stage))
        if current != manifest["code"]:
            found.append(
                (
                    "stale",
                    f"{result}: the code of stage {stage} has changed since ({manifest['code']} then, {current} now)",
                )
            )
    found += [("unknown", f"{path} has no manifest") for path in _unaccounted(results, accounted)]
    return list(dict.fromkeys(found))


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
