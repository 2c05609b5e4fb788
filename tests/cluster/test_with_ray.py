"""What workflow/scripts/with_ray.sh asks of Slurm and Apptainer, with stand-ins for both (tests/slurm has the real ones)."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "workflow/scripts/with_ray.sh"
STANDINS = {
    "squeue": 'case "$*" in *%N*) echo "n[1-2]" ;; *) echo NONE ;; esac',
    "scontrol": """case "$*" in
      *hostnames*) printf "n1\\nn2\\n" ;;
      "show node"*) echo "NodeName=x NodeAddr=127.0.0.1 Port=1" ;;
      *) echo "JobId=7 NumNodes=2 NumCPUs=12 NumTasks=2 CPUs/Task=6 ReqB:S:C:T=0:0:*:*" ;;
    esac""",
    "srun": """echo "$*" >> "$RECORD"
    case "$*" in *getent*) echo "10.0.0.1 STREAM n1" ;; *"ray start"*) exec sleep 60 ;; esac""",
    "apptainer": 'echo "apptainer $*" >> "$RECORD"',
    "ray": "exit 0",
    "python": 'if [ "$1" = - ]; then echo "2 16"; else echo "driver at $RAY_ADDRESS"; fi',
}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in STANDINS.items():
        (folder / name).write_text(f"#!/usr/bin/env bash\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


def run(programs: Path, *arguments: str, job: str = "7") -> tuple[str, list[str]]:
    """Output of the script and what its stand-ins were called with."""
    record = programs / "record"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "RAY_", "FR3E_"))}
    environment = kept | {"PATH": f"{programs}:{os.environ['PATH']}", "RECORD": str(record)}
    environment |= {"SLURM_JOB_ID": job} if job else {}
    done = subprocess.run(
        [SCRIPT, *arguments], env=environment, cwd=programs, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, record.read_text(encoding="utf-8").splitlines()


def test_ray_gets_all_cpus_of_its_task_on_every_node(programs: Path) -> None:
    output, calls = run(programs, "--nodes", "2", "--gpus", "8", "--", str(programs / "python"), "driver.py")
    assert output.startswith("driver at 10.0.0.1:")
    started = [call for call in calls if "ray start" in call]
    assert [call.split(" -w ")[1].split()[0] for call in started] == ["n1", "n2"]
    assert all(" -c 6 --cpu-bind=none --gpus-per-node=8 " in call for call in started), started


def test_in_an_image_the_interpreter_is_the_images(programs: Path) -> None:
    arguments = ("--nodes", "1", "--gpus", "8", "--scratch", "/tmp", "--container", "verl.sif", "--")
    _, calls = run(programs, *arguments, "python3", "-m", "fr3e", "train", job="")
    assert calls == [f"apptainer exec --nv --bind {programs} --bind /tmp verl.sif python3 -m fr3e train"]
