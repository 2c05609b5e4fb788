"""config/site.yaml shows every key with its default, and its faults speak to people."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fr3e.config import RunConfig, Scenario, Site, load_scenario, load_site, merge, resolve_run, run_ids
from fr3e.config.site import check_gpus
from fr3e.errors import UserError
from fr3e.files import read_yaml

ROOT = Path(__file__).resolve().parents[2]


def written(folder: Path, text: str) -> Path:
    path = folder / "site.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_file_shows_every_key_with_its_default(tmp_path: Path) -> None:
    assert read_yaml(ROOT / "config/site.yaml") == Site().model_dump()
    assert load_site(tmp_path / "absent.yaml") == load_site(written(tmp_path, "# nothing yet\n")) == Site()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpu_partitoin: a100\n", ["site.yaml: gpu_partitoin", "did you mean 'gpu_partition'?"]),
        ("gpus_per_node: none\n", ["site.yaml: gpus_per_node", "integer", "'none'"]),
        ("bind: [models]\n", ["site.yaml: bind.0", "'models'"]),
        ("ray_scratch: scratch\n", ["site.yaml: ray_scratch", "'scratch'"]),
        ("[cpu]\n", ["site.yaml", "expected a mapping"]),
    ],
)
def test_a_fault_is_one_line(tmp_path: Path, text: str, said: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        load_site(written(tmp_path, text))
    assert "\n" not in str(caught.value)
    assert all(part in str(caught.value) for part in said), str(caught.value)


def test_gpus_are_asked_for_with_the_sites_type() -> None:
    assert Site().gres(8) == "gpu:8"
    assert Site(gpu_type="h200").gres(4) == "gpu:h200:4"


def paper(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> tuple[Scenario, dict[str, RunConfig]]:
    monkeypatch.chdir(ROOT)
    scenario = load_scenario(merge(yaml.safe_load((ROOT / "config/paper.yaml").read_text(encoding="utf-8")), changes))
    return scenario, {name: resolve_run(scenario, *key) for name, key in run_ids(scenario).items()}


def test_a_run_on_more_gpus_than_a_node_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, runs = paper(monkeypatch)
    check_gpus(Site(), scenario, runs)
    with pytest.raises(UserError, match=r"gpus_per_node is 8, config/site.yaml says gpus_per_node: 4; set train.verl"):
        check_gpus(Site(gpus_per_node=4), scenario, runs)
    scenario, runs = paper(monkeypatch, train={"verl": {"device": "cpu"}}, evaluation={"tensor_parallel": 8})
    with pytest.raises(UserError, match=r"evaluation\.tensor_parallel is 8"):
        check_gpus(Site(gpus_per_node=4), scenario, runs)
