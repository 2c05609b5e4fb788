"""The doctor runs here and names remedies."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from fr3e.cluster import doctor as module
from fr3e.cluster.doctor import CHECKS, OTHER_GIB, doctor, needed_gib
from fr3e.config import load_scenario
from fr3e.engine.verl.memory import QWEN25, parameters

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_every_failed_check_has_a_remedy() -> None:
    for name in ("demo", "paper"):
        scenario = load_scenario(f"config/{name}.yaml")
        for check in CHECKS:
            finding = check(scenario)
            assert finding.found
            assert finding.ok is not False or finding.remedy, finding.name


def test_a_missing_pin_fails_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "constraints").mkdir()
    (tmp_path / "constraints/default.txt").write_text("pandas==0.1\n", encoding="utf-8")
    scenario = ROOT / "config/demo.yaml"
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    assert doctor(scenario) == 1
    printed = capsys.readouterr().out
    assert "instead of 0.1" in printed
    assert "remedy: make the environment anew" in printed


def test_disk_is_that_of_the_runs_still_to_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scenario = load_scenario("config/paper.yaml")
    assert needed_gib(load_scenario("config/demo.yaml")) == OTHER_GIB
    # Four runs of 7B and two of 32B: 2 checkpoints and one being saved, 12 bytes a parameter, and a model of 2 bytes; a
    # base model of 2 bytes for each of the three.
    seven, large = parameters(QWEN25["Qwen/Qwen2.5-7B"]), parameters(QWEN25["Qwen/Qwen2.5-32B"])
    runs = (3 * 12 + 2) * (4 * seven + 2 * large)
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    assert needed_gib(scenario) == pytest.approx(OTHER_GIB + (runs + 2 * (2 * seven + large)) / 2**30)
    for name in ("runs/qwen2.5-32b-fr3e-s0/trained.json", "base/qwen2.5-32b/manifest.json"):
        path = tmp_path / "results/paper" / name
        path.parent.mkdir(parents=True)
        path.write_text("{}", encoding="utf-8")
    less = (3 * 12 + 2) * large + 2 * large
    assert needed_gib(scenario) == pytest.approx(OTHER_GIB + (runs + 2 * (2 * seven + large) - less) / 2**30)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=600 * 2**30))
    finding = module.disk(scenario)
    assert finding.ok is False and finding.found.startswith("600 GiB free, about 22")
    assert "checkpoint.keep" in finding.remedy
