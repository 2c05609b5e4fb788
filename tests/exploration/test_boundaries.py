"""The scientific core stands alone: no engine, no workflow tool, no upward import."""

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import fr3e.algorithm
import fr3e.exploration

BANNED = {"verl", "ray", "vllm", "snakemake", "dvc", "transformers", "pandas"}
ROOT = Path(__file__).resolve().parents[2]
MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (fr3e.algorithm, fr3e.exploration)
    for module in pkgutil.iter_modules(package.__path__)
]


def imported(source: Path) -> set[str]:
    """Dotted names that a file imports anywhere, also inside functions; those for type checkers alone left out."""
    names = set()
    tree = ast.parse(source.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("room", ["algorithm", "exploration", "grading"])
def test_no_file_names_an_engine(room: str) -> None:
    files = sorted((ROOT / "fr3e" / room).rglob("*.py"))
    assert files
    for source in files:
        assert not {name.split(".")[0] for name in imported(source)} & BANNED, source


def test_the_algorithm_knows_nothing_above_it() -> None:
    for source in sorted((ROOT / "fr3e" / "algorithm").glob("*.py")):
        above = {
            n for n in imported(source) if n.startswith("fr3e.") and not n.startswith(("fr3e.algorithm", "fr3e.config"))
        }
        assert not above, source


def test_importing_the_core_loads_no_engine() -> None:
    code = f"import sys\nfor m in {MODULES!r}: __import__(m)\nprint(*sorted({{n.split('.')[0] for n in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(run.stdout.split())
    assert "torch" in loaded
    assert not loaded & BANNED
