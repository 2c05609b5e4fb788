"""Content fingerprints: of a stage's code, and of values.

A stage's code is the static import closure of its module inside this package, hashed as an AST without docstrings and
positions, so that comments and formatting do not count. What a stage takes from configuration reaches it through its
resolved plan, and what grades an answer is recorded apart, so `fr3e.config`, `fr3e.grading` and the leaves below never
count unless they are the stage itself: a changed grader regrades, it does not retrain.
"""

import ast
import functools
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent
NEVER = ("fr3e.config", "fr3e.grading", "fr3e.provenance", "fr3e.errors", "fr3e.files", "fr3e.progress", "fr3e.cli")

DATA = {".txt", ".jinja", ".json", ".jsonl", ".css", ".js", ".html", ".mplstyle"}

STAGES: dict[str, tuple[str, ...]] = {
    "data": ("fr3e.data.synthetic",),
    "data-real": ("fr3e.data.assemble", "fr3e.data.benchmarks"),
    "base": ("fr3e.engine.base",),
    "train-local": ("fr3e.engine.local.train",),
    # What verl, Ray and vLLM load by name or import only in their own processes has to be named here.
    "train-verl": tuple(
        f"fr3e.engine.verl.{name}"
        for name in ("dataset", "entropy_probe", "launch", "plugin", "reward", "rollout", "run", "server", "trainer")
    ),
    "export-local": ("fr3e.engine.local.export",),
    "export-verl": ("fr3e.engine.verl.export",),
    "sample": ("fr3e.evaluation.sample",),
    "grade": ("fr3e.grading.files",),
    "score": ("fr3e.evaluation.score",),
    "table1": ("fr3e.report.table1",),
    "arms": ("fr3e.report.arms",),
    "figures": ("fr3e.report.figures",),
    "cost": ("fr3e.report.cost",),
    "grading": ("fr3e.report.grading",),
    "explorer": ("fr3e.report.explorer",),
    "overview": ("fr3e.report.overview",),
    "data-report": ("fr3e.data.report",),
}


def _path(module: str, package: Path) -> Path | None:
    base = package.joinpath(*module.split(".")[1:])
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".") if is_package else module.split(".")[:-1]
                parts = parts[: len(parts) - (node.level - 1)]
                base = ".".join(parts + ([node.module] if node.module else []))
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _bare(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body
            if (
                body
                and isinstance(body[0], ast.Expr)
                and isinstance(body[0].value, ast.Constant)
                and isinstance(body[0].value.value, str)
            ):
                node.body = body[1:] or [ast.Pass()]
        if getattr(node, "type_params", None) == []:  # Python 3.12 has the field, 3.11 not; their fingerprints are one
            del node.type_params
    return tree


def _dump(node: Any) -> str:
    """A syntax tree as text, without positions and empty fields: Python versions differ in the fields that may be empty."""
    if isinstance(node, list):
        return f"[{', '.join(map(_dump, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, getattr(node, name, None)) for name in node._fields)
    filled = (f"{name}={_dump(value)}" for name, value in fields if value is not None and value != [])
    return f"{type(node).__name__}({', '.join(filled)})"


@functools.cache
def _parsed(path: Path) -> tuple[ast.AST, str]:
    tree = _bare(ast.parse(path.read_text(encoding="utf-8")))
    return tree, _dump(tree)


@functools.cache
def closure(module: str, package: Path = PACKAGE) -> tuple[str, ...]:
    """Modules of this package that `module` imports, itself included, sorted.

    A parent package's `__init__` counts by its own text; what it imports for others' convenience does not.
    """
    skipped = tuple(name for name in NEVER if not module.startswith(name))
    followed: set[str] = set()
    parents: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name in followed or any(name == skip or name.startswith(skip + ".") for skip in skipped):
            continue
        path = _path(name, package) if name.split(".")[0] == "fr3e" else None
        if path is None:
            continue
        followed.add(name)
        parts = name.split(".")
        parents |= {".".join(parts[:end]) for end in range(1, len(parts))}
        todo += _imports(_parsed(path)[0], name, path.name == "__init__.py")
    return tuple(sorted(followed | parents))


@functools.cache
def _data_files(path: Path) -> tuple[Path, ...]:
    """Files shipped beside a module (templates, tables) that its source names, itself or by their folder."""
    if path.name == "__init__.py":
        return ()
    text = path.read_text(encoding="utf-8")
    shipped = (file for file in sorted(path.parent.rglob("*")) if file.is_file() and file.suffix in DATA)
    return tuple(
        file
        for file in shipped
        if f'"{file.name}"' in text or (file.parent != path.parent and f'"{file.parent.name}"' in text)
    )


def code(stage: str, package: Path = PACKAGE) -> str:
    """Fingerprint of a stage's code and of the data files it ships, 16 hex digits. An unknown stage is a `KeyError`."""
    digest = hashlib.sha256()
    for name in sorted({name for module in STAGES[stage] for name in closure(module, package)}):
        path = _path(name, package)
        assert path is not None
        digest.update(f"{name}\0{_parsed(path)[1]}\0".encode())
        for file in _data_files(path):
            digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def values(content: Any) -> str:
    """Fingerprint of JSON-able values, 16 hex digits, whatever the order of keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]


def file(path: str | Path) -> str:
    """Fingerprint of a small text file such as a constraints file, comments and blank lines left out; 'absent' if missing."""
    path = Path(path)
    if not path.is_file():
        return "absent"
    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return values([line for line in lines if line])
