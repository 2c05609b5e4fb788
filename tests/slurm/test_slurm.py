"""`snakemake --profile slurm all` on a real Slurm: the whole DAG, and everything a cluster does to jobs."""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from fr3e.files import read_json
from tests.slurm.lab import SlurmLab, wait_for
from tests.workflow.checkout import TINY, Checkout

pytestmark = pytest.mark.slurm

# A job is seen a few seconds after it ended instead of after 40; everything else is the shipped profile.
OPTIONS = ("--slurm-init-seconds-before-status-checks", "3", "--latency-wait", "5")
# More than any machine does within the minutes of the test.
LONG = ("updates: 2", "updates: 100000")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "snakemake", "--profile", "slurm", *OPTIONS, "--configfile", TINY, *arguments]


def run(project: Checkout, lab: SlurmLab, *arguments: str, timeout: float = 400) -> subprocess.CompletedProcess[str]:
    environment = project.environment | lab.environment | {"PYTHONPATH": str(project.folder)}
    return subprocess.run(
        command(*arguments),
        cwd=project.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@contextmanager
def running(project: Checkout, lab: SlurmLab, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Snakemake in the background, ended with the block."""
    environment = project.environment | lab.environment | {"PYTHONPATH": str(project.folder)}
    with (project.folder / "snakemake.out").open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command(*arguments),
            cwd=project.folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def jobs(lab: SlurmLab, rule: str, state: str = "R") -> list[str]:
    """Ids of this cluster's jobs of a rule in a state."""
    lines = lab.run("squeue", "-h", "-t", state, "-o", "%i %k").splitlines()
    return [line.split()[0] for line in lines if f"rule_{rule}" in line]


def wait_for_job(
    lab: SlurmLab, rule: str, seconds: float = 120, snakemake: "subprocess.Popen[str] | None" = None
) -> str:
    """Wait for a running job of a rule; a Snakemake that has ended meanwhile is an error at once."""
    found: list[str] = []

    def there() -> bool:
        found[:] = jobs(lab, rule)
        assert found or snakemake is None or snakemake.poll() is None, "Snakemake ended before the job ran"
        return bool(found)

    wait_for(there, seconds, f"a running job of rule {rule}")
    return found[0]


def metrics(project: Checkout, name: str) -> Path:
    return project.folder / "results/tiny/runs" / name / "metrics.jsonl"


def updates(path: Path) -> list[int]:
    return (
        [int(number) for number in re.findall(r'"update": ?(\d+)', path.read_text(encoding="utf-8"))]
        if path.is_file()
        else []
    )


def test_whole_dag_through_drain_controller_restart_and_requeue(project: Checkout, lab: SlurmLab) -> None:
    project.edit(TINY, "updates: 2", "updates: 12")
    with running(project, lab, "all") as snakemake:
        job = wait_for_job(lab, "train", 240, snakemake)
        drained = lab.node_of(job)
        lab.run("scontrol", "update", f"NodeName={drained}", "State=DRAIN", "Reason=test")
        lab.run("scontrol", "requeue", job)
        lab.restart_controller()
        wait_for(lambda: lab.node_of(job) not in ("", drained), 240, "the requeued job starting on the other node")
        lab.resume(drained)
        snakemake.wait(timeout=500)
        output = (project.folder / "snakemake.out").read_text(encoding="utf-8")
        assert snakemake.returncode == 0, output[-4000:]
    for name in ("toy-fr3e-s0", "toy-grpo_pp-s0"):
        assert updates(metrics(project, name)) == list(range(13)), "no row lost or doubled by the requeue"
    verified = project.run("fr3e", "verify", "results/tiny")
    assert "nothing stale" in verified.stdout
    manifests = (project.folder / "results/tiny/runs").rglob("trained.json.provenance.json")
    assert all(str(read_json(path)["slurm_job"]).isdigit() for path in manifests), "the manifest names the Slurm job"
    submitted = lab.run("squeue", "-h", "-t", "all", "-o", "%P %k").splitlines()
    partitions = {line.split()[0] for line in submitted if "rule_" in line or "group_" in line}
    assert partitions == {lab.cpu}, "every stage of this scenario runs where config/site.yaml says"
    frame = pd.read_csv(project.folder / "results/tiny/table1.csv")
    assert set(frame.loc[frame["quantity"] == "score", "status"]) == {"ok"}
    again = run(project, lab, "-n", "all")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_an_edit_while_a_job_waits_reaches_the_next_call_only(project: Checkout, lab: SlurmLab) -> None:
    name = "toy-grpo_pp-s0"
    trained = f"results/tiny/runs/{name}/trained.json"
    prepared = run(project, lab, "--", "results/tiny/base/toy/manifest.json", "results/tiny/data/train.parquet")
    assert prepared.returncode == 0, prepared.stderr[-3000:]
    nodes = ",".join(lab.names)
    lab.run("scontrol", "update", f"NodeName={nodes}", "State=DRAIN", "Reason=test")
    with running(project, lab, "--", trained) as snakemake:
        wait_for(lambda: bool(jobs(lab, "train", "PD")), 120, "the training job waiting in the queue")
        project.edit(TINY, "lr: 1.0e-4", "lr: 2.0e-4")
        for node in lab.names:
            lab.resume(node)
        assert snakemake.wait(timeout=300) == 0, (project.folder / "snakemake.out").read_text(encoding="utf-8")[-4000:]
    rows = metrics(project, name).read_text(encoding="utf-8")
    assert re.findall(r'"lr": ?([0-9.e-]+)', rows) == ["0.0001", "0.0001"]
    due = run(project, lab, "-n", "--", trained)
    assert re.search(r"^train +1$", due.stdout + due.stderr, re.MULTILINE), "the next call trains with the new value"


def resumed_after(project: Checkout, name: str) -> int:
    """The update after which the run's present job went on, from its log; -1 where it has not (yet) resumed."""
    log = project.folder / "results/tiny/logs/train" / f"{name}.log"
    found = re.search(r"resuming after update (\d+)", log.read_text(encoding="utf-8")) if log.is_file() else None
    return int(found.group(1)) if found else -1


def test_cancelled_and_timed_out_jobs_are_reported_and_the_next_one_goes_on(project: Checkout, lab: SlurmLab) -> None:
    project.edit(TINY, *LONG)
    name = "toy-grpo_pp-s0"
    trained = f"results/tiny/runs/{name}/trained.json"
    with running(project, lab, "--retries", "0", "--", trained) as snakemake:
        job = wait_for_job(lab, "train", 240, snakemake)
        wait_for(lambda: len(updates(metrics(project, name))) > 8, 200, "some updates")
        lab.run("scancel", job)
        snakemake.wait(timeout=200)
        output = (project.folder / "snakemake.out").read_text(encoding="utf-8")
    assert snakemake.returncode != 0
    assert "CANCELLED" in output
    assert not (project.folder / trained).exists(), "nothing half-made is left as a result"

    # The time limit: Slurm's smallest is one minute. The job checkpoints on SIGTERM; the profile's retry goes on from there.
    with running(project, lab, "--set-resources", "train:runtime=1", "--", trained) as snakemake:
        first = wait_for_job(lab, "train", 120, snakemake)
        wait_for(lambda: resumed_after(project, name) >= 7, 60, "going on from the checkpoint of the cancelled job")
        reached = resumed_after(project, name)
        second = ""
        deadline = time.monotonic() + 300
        while not second and time.monotonic() < deadline:
            second = next((job for job in jobs(lab, "train") if job != first), "")
            time.sleep(0.5)
        assert second, "the profile's retry submits the job again after its time limit"
        wait_for(lambda: resumed_after(project, name) > reached, 60, "going on from the checkpoint at the time limit")
        lab.run("scancel", second)
        snakemake.kill()
    assert "TIMEOUT" in (project.folder / "snakemake.out").read_text(encoding="utf-8")


def test_a_failing_job_shows_its_log_and_the_others_go_on(project: Checkout, lab: SlurmLab) -> None:
    broken = project.folder / "results/tiny/data/benchmarks/near.parquet"
    prepared = run(
        project,
        lab,
        "--",
        str(broken.relative_to(project.folder)),
        "results/tiny/base/toy/manifest.json",
        "results/tiny/data/train.parquet",
    )
    assert prepared.returncode == 0, prepared.stderr[-3000:]
    weights = project.folder / "results/tiny/base/toy/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    done = run(
        project, lab, "--retries", "0", "results/tiny/runs/toy-fr3e-s0/trained.json", "results/tiny/data_report.html"
    )
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert "FAILED" in output
    assert re.search(r"fr3e: .*model\.safetensors", output), f"the job's own line is shown: {output[-3000:]}"
    assert (project.folder / "results/tiny/data_report.html").is_file(), "what does not depend on it was made"


RAY_DRIVER = """
import os, ray, sys, time
ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)
left = float(os.environ["FR3E_JOB_END"]) - time.time()
print("nodes", len(ray.nodes()), "gpus", int(ray.cluster_resources()["GPU"]), "half an hour", 0 < left <= 1800, flush=True)
time.sleep(float(sys.argv[1]))
sys.exit(int(sys.argv[2]))
"""


def _ray_processes(job: str) -> list[str]:
    """Living processes that carry the job's mark."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"FR3E_RAY_JOB={job}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(entry.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("arguments", "ended_by", "code"), [(("0", "0"), None, "0"), (("0", "3"), None, "3"), (("300", "0"), "TERM", None)]
)
def test_ray_over_two_nodes_is_taken_down_however_it_ends(
    lab: SlurmLab,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    arguments: tuple[str, str],
    ended_by: str | None,
    code: str | None,
) -> None:
    root = Path(__file__).resolve().parents[2]
    python = root / ".venv-verl/bin/python"
    if not (python.parent / "ray").exists():
        pytest.skip("no Ray: make the verl environment first (make test-verl)")
    driver, output = tmp_path / "driver.py", tmp_path / "out.txt"
    scratch = tempfile.mkdtemp(prefix="ray")  # short: Ray's sockets lie below it
    request.addfinalizer(lambda: shutil.rmtree(scratch, ignore_errors=True))
    driver.write_text(RAY_DRIVER, encoding="utf-8")
    script = f"{root}/workflow/scripts/with_ray.sh --nodes 2 --gpus 4 --scratch {scratch} -- {python} {driver} {' '.join(arguments)}"
    options = [
        "--parsable",
        "-p",
        lab.gpu,
        "--gres=gpu:4",
        "-N2",
        "--ntasks-per-node=1",
        "-c",
        "4",
        "-t",
        "30",
        "-o",
        str(output),
    ]
    job = lab.run("sbatch", *options, "--wrap", f"{script}; echo ended $?").strip()
    text: Callable[[], str] = lambda: output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""  # noqa: E731
    wait_for(
        lambda: "nodes 2 gpus 8 half an hour True" in text(), 200, f"the driver seeing both nodes: {text()[-2000:]}"
    )
    if ended_by:
        lab.run("scancel", "--batch", "--signal", ended_by, job)
        lab.run("scancel", job)
    wait_for(lambda: not lab.run("squeue", "-h", "-j", job, "-t", "R,CG", check=False).strip(), 120, "the job ending")
    if code is not None:
        assert f"ended {code}" in text()
        assert "Ray sees 2 nodes and 8 GPUs" in text()
    deadline = time.monotonic() + 20
    while _ray_processes(job) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert not _ray_processes(job), "no process is left"
