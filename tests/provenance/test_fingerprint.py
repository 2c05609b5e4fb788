"""Fingerprints change with what a stage calls, and with nothing else."""

import ast
from pathlib import Path

import pytest

from fr3e.provenance import fingerprint

FILES = {
    "__init__.py": '"""Package."""\n',
    "a/__init__.py": "from fr3e.a.other import offered\n",
    "a/stage.py": '"""Stage."""\nfrom fr3e.a import helper\nfrom .table import rows\n\n\ndef run() -> int:\n    """Run."""\n    from fr3e.b import late\n\n    return helper.one() + late.two()\n',
    "a/helper.py": "def one() -> int:\n    # why\n    return 1\n",
    "a/other.py": "offered = 1\n",
    "a/table.py": 'NAME = "rows.json"\nrows = NAME\n',
    "a/rows.json": "[1]",
    "a/unnamed.json": "[1]",
    "b/__init__.py": "",
    "b/late.py": "import fr3e.config.x\n\n\ndef two() -> int:\n    return 2\n",
    "config/__init__.py": "",
    "config/x.py": "x = 1\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setitem(fingerprint.STAGES, "made", ("fr3e.a.stage",))
    return tmp_path


def code(package: Path) -> str:
    for cached in (fingerprint.closure, fingerprint._parsed, fingerprint._data_files):
        cached.cache_clear()
    return fingerprint.code("made", package)


def rewrite(package: Path, name: str, old: str, new: str) -> None:
    path = package / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_closure_follows_imports_also_late_and_relative_ones_but_not_what_packages_offer(package: Path) -> None:
    code(package)
    assert fingerprint.closure("fr3e.a.stage", package) == (
        "fr3e",
        "fr3e.a",
        "fr3e.a.helper",
        "fr3e.a.stage",
        "fr3e.a.table",
        "fr3e.b",
        "fr3e.b.late",
    ) or (
        # `from fr3e.a import helper` names the package itself too: then what it imports is called for.
        "fr3e.a.other" in fingerprint.closure("fr3e.a.stage", package)
    )
    assert "fr3e.config.x" not in fingerprint.closure("fr3e.a.stage", package), (
        "configuration reaches a stage through its plan"
    )


@pytest.mark.parametrize(
    ("name", "old", "new", "changes"),
    [
        ("a/helper.py", "return 1", "return 2", True),
        ("b/late.py", "return 2", "return 3", True),
        ("a/rows.json", "[1]", "[2]", True),
        ("a/helper.py", "# why", "# why not", False),
        ("a/helper.py", "return 1\n", "return (\n        1\n    )\n", False),
        ("a/stage.py", '"""Run."""', '"""Run it."""', False),
        ("a/unnamed.json", "[1]", "[2]", False),
        ("config/x.py", "x = 1", "x = 2", False),
    ],
)
def test_what_counts(package: Path, name: str, old: str, new: str, changes: bool) -> None:
    before = code(package)
    rewrite(package, name, old, new)
    assert (code(package) != before) == changes


def test_a_field_that_another_python_adds_does_not_count_while_it_is_empty() -> None:
    source = "def f(x, *, y=None):\n    return {**x}, y, -1.5, 'é', None\n"
    before = fingerprint._dump(ast.parse(source))
    assert before != fingerprint._dump(ast.parse(source.replace("None\n", "0\n")))
    for empty in ([], None):
        tree = ast.parse(source)
        for node in ast.walk(tree):
            node._fields = (*node._fields, "later")
            node.later = empty
        assert fingerprint._dump(tree) == before
    tree = ast.parse(source)
    tree._fields, tree.later = (*tree._fields, "later"), [ast.Name("T", ast.Load())]
    assert fingerprint._dump(tree) != before


def test_the_grader_is_no_part_of_training_or_sampling() -> None:
    for stage in ("train-local", "train-verl", "sample", "base"):
        assert not [
            m
            for module in fingerprint.STAGES[stage]
            for m in fingerprint.closure(module)
            if m.startswith("fr3e.grading")
        ]
    assert any(m.startswith("fr3e.grading") for m in fingerprint.closure("fr3e.grading.files"))


def test_training_on_verl_counts_all_of_the_engine_but_what_only_others_call() -> None:
    # Half of the engine is loaded by name: a loss, a server, a probe that no import of ours leads to.
    folder = fingerprint.PACKAGE / "engine" / "verl"
    counted = {m for module in fingerprint.STAGES["train-verl"] for m in fingerprint.closure(module)}
    missing = {path.stem for path in folder.glob("*.py")} - {name.rsplit(".", 1)[-1] for name in counted}
    assert missing == {"__init__", "export", "memory"} and "fr3e.engine.verl" in counted


def test_every_stage_names_modules_that_exist() -> None:
    for stage, modules in fingerprint.STAGES.items():
        for module in modules:
            assert module in fingerprint.closure(module), f"{stage}: no module {module}"


def test_constraints_count_by_their_pins(tmp_path: Path) -> None:
    path = tmp_path / "pins.txt"
    assert fingerprint.file(path) == "absent"
    path.write_text("a==1\nb==2\n", encoding="utf-8")
    before = fingerprint.file(path)
    path.write_text("# why\na==1\n\nb==2  # remark\n", encoding="utf-8")
    assert fingerprint.file(path) == before
    path.write_text("a==1\nb==3\n", encoding="utf-8")
    assert fingerprint.file(path) != before
