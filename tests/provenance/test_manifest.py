"""Manifests say what was there when the stage began, and a workflow's stage refuses code that is no longer the workflow's."""

from pathlib import Path

import pytest

from fr3e.errors import UserError
from fr3e.files import write_json, write_text
from fr3e.provenance import fingerprint
from fr3e.provenance.manifest import CODE_SNAPSHOT, load, recorded


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(CODE_SNAPSHOT, raising=False)
    return Path("results/a.csv")


def test_code_commit_and_pins_are_those_of_the_beginning(result: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"code": "before"}
    monkeypatch.setattr("fr3e.provenance.fingerprint.code", lambda stage: now["code"])
    monkeypatch.setattr("fr3e.provenance.manifest.commit", lambda: {"commit": now["code"], "dirty": False})
    monkeypatch.setattr("fr3e.provenance.manifest.environment", lambda: {"torch": now["code"]})
    write_text("constraints/default.txt", "a==1\n")
    pins = fingerprint.file("constraints/default.txt")
    with recorded("score", [result]) as facts:
        now["code"] = "after"
        write_text("constraints/default.txt", "a==2\n")
        write_text(result, "a")
        facts["tokens"] = 3
    manifest = load(result)
    assert (manifest["code"], manifest["commit"], manifest["environment"]) == ("before", "before", {"torch": "before"})
    assert manifest["constraints"] == {"constraints/default.txt": pins}
    assert list(manifest["outputs"]) == [str(result)] and manifest["facts"] == {"tokens": 3}
    assert 0 <= manifest["seconds"] < 60


def test_code_that_is_not_the_workflows_is_refused(result: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_json("code.json", {"score": fingerprint.code("score"), "grade": "of another time"})
    monkeypatch.setenv(CODE_SNAPSHOT, "code.json")
    with recorded("score", [result]):
        write_text(result, "a")
    for stage in ("grade", "table1"):
        with (
            pytest.raises(
                UserError, match=f"stage {stage}: its code was changed since the command was given; give the"
            ),
            recorded(stage, [Path("b.csv")]),
        ):
            pytest.fail("the stage ran")
