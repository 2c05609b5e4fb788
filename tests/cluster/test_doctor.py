"""The doctor runs here and names remedies."""

from pathlib import Path

import pytest

from fr3e.cluster import doctor as module
from fr3e.cluster.doctor import CHECKS, doctor
from fr3e.config import load_scenario

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


def test_paper_scenario_needs_the_second_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "SITE", tmp_path / "absent.yaml")
    finding = module.verl_environment(load_scenario("config/paper.yaml"))
    assert finding.ok is False
    assert "install_verl_env.sh" in finding.remedy
