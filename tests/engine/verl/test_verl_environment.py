"""What the processes of an attempt find around them. Needs neither verl nor a GPU."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fr3e.config import load_scenario, resolve_run
from fr3e.config.scenario import RunConfig
from fr3e.engine.verl.environment import LONGEST_SCRATCH, MARK, SCRATCH, environment, make_scratch, ray_init
from fr3e.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
WITH_RAY = ROOT / "workflow" / "scripts" / "with_ray.sh"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    for name in ("RAY_ADDRESS", SCRATCH, "SLURM_JOB_ID", "VLLM_LOGGING_LEVEL", "VLLM_USE_V2_MODEL_RUNNER"):
        monkeypatch.delenv(name, raising=False)
    return resolve_run(
        load_scenario(ROOT / "config" / "paper.yaml"), "qwen2.5-32b", "fr3e", 0, arms=ROOT / "config/arms"
    )


def test_workers_of_a_ray_that_is_there_get_our_variables(run: RunConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "DEBUG")
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "1")
    monkeypatch.setenv("SOME_SECRET", "x")
    started = ray_init(run, "mark", None)
    assert list(started) == ["runtime_env"], "cores and GPUs are the cluster's"
    handed = started["runtime_env"]["env_vars"]
    assert handed["VLLM_USE_V2_MODEL_RUNNER"] == "0", "exact entropies need it, whatever the user says"
    assert handed["VERL_USE_EXTERNAL_PLUGINS"] == "auto" and handed["HF_HUB_OFFLINE"] == "1" and handed[MARK] == "mark"
    assert handed["VLLM_LOGGING_LEVEL"] == "DEBUG", "a preference of ours gives way to the user's"
    assert not [name for name in handed if name.startswith("RAY_") or name == "SOME_SECRET"]
    assert handed.items() <= environment(run, "mark").items()


def test_a_ray_of_its_own_lies_in_the_scratch_folder(run: RunConfig, tmp_path: Path) -> None:
    started = ray_init(run, "mark", tmp_path)
    assert started["_temp_dir"] == str(tmp_path) and "runtime_env" not in started, "its daemons inherit the environment"


def test_the_scratch_folder_is_the_sites_and_not_the_jobs_long_one(
    run: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/tmp/" + "x" * 60)
    monkeypatch.setenv(SCRATCH, "/tmp")
    folder = make_scratch()
    assert folder is not None and folder.parent == Path("/tmp") and len(str(folder)) <= LONGEST_SCRATCH
    folder.rmdir()
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert make_scratch() is None


def test_a_scratch_folder_that_is_too_long_or_absent_is_one_line(
    run: RunConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    long = tmp_path / ("x" * 40)
    long.mkdir()
    monkeypatch.setenv(SCRATCH, str(long))
    with pytest.raises(UserError, match=r"too long a path for Ray's sockets: \d+ .* at most 42 .*shorter ray_scratch"):
        make_scratch()
    assert not list(long.iterdir())
    monkeypatch.setenv(SCRATCH, str(tmp_path / "absent"))
    with pytest.raises(UserError, match=r"absent: cannot be written .*ray_scratch"):
        make_scratch()


def test_with_ray_hands_the_scratch_folder_on_where_there_is_one_node(run: RunConfig) -> None:
    assert subprocess.run(["bash", "-n", str(WITH_RAY)], check=False).returncode == 0
    bash = shutil.which("bash")
    assert bash is not None
    command = [str(WITH_RAY), "--nodes", "1", "--gpus", "8", "--scratch", "/short"]
    done = subprocess.run(
        [*command, "--", bash, "-c", f"echo ${SCRATCH}"],
        env={name: value for name, value in os.environ.items() if not name.startswith("SLURM_")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "/short"
