"""What config/site.yaml says reaches every job: partitions, account, GPUs, images. Nothing is submitted."""

import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.workflow.checkout import TINY, Checkout

pytestmark = pytest.mark.workflow

SITE = {"cpu_partition": "batch", "gpu_partition": "accel", "account": "grant7", "qos": "long", "gpu_type": "h200"}
JOBS = {
    "train": "accel",
    "train_nodes": "accel",
    "sample": "accel",
    "export": "batch",
    "grade": "batch",
    "score": "batch",
}
FAKE_APPTAINER = """#!/usr/bin/env bash
# Runs on the host what follows the image, and keeps a record.
if [ "$1" = --version ]; then echo "apptainer version 1.3.4"; exit; fi
echo "bind=$APPTAINER_BINDPATH nv=$APPTAINER_NV $*" >> "$(dirname "$0")/record"
while [[ "$1" != *.sif ]]; do shift; done
shift
exec "$@"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout.make(tmp_path / "project")


def with_site(checkout: Checkout, **values: object) -> None:
    (checkout.folder / "config/site.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")


def with_apptainer(checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake `apptainer` and an image's `python3` on PATH; the record of calls."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("apptainer", FAKE_APPTAINER), ("python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n')):
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return programs / "record"


def planned(checkout: Checkout, config: str) -> dict[str, list[dict[str, str]]]:
    """Rule -> resources of its jobs in a dry run; rules that run where Snakemake does are left out."""
    local = {"all"}
    for path in [checkout.folder / "Snakefile", *(checkout.folder / "workflow/rules").glob("*.smk")]:
        text = path.read_text(encoding="utf-8")
        for names in re.findall(r"localrules:\n((?: +\w+,\n)+)", text):
            local |= set(re.findall(r"\w+", names))
        # A rule that has a message does not print what it asks for.
        path.write_text(re.sub(r"^( +)message:\n\1 .*\n", "", text, flags=re.M), encoding="utf-8")
    done = checkout.run("snakemake", "--profile", "slurm", "--cores", "64", "-n", "--configfile", config, "all")
    found: dict[str, list[dict[str, str]]] = {}
    for _, rule, body in re.findall(r"^( *)(?:local|)rule (\w+):\n((?:\1    .*\n)+)", done.stdout + "\n", re.M):
        if rule not in local:
            asked = re.search(r"    resources: (.*)\n", body)
            threads = re.search(r"    threads: (\d+)\n", body)
            resources = dict(part.split("=", 1) for part in asked.group(1).split(", ")) if asked else {}
            found.setdefault(rule, []).append(resources | {"threads": threads.group(1) if threads else "1"})
    return found


def test_every_job_asks_for_what_the_site_says(checkout: Checkout) -> None:
    with_site(checkout, **SITE)
    found = planned(checkout, "config/paper.yaml")
    assert set(found) == set(JOBS), "hub models come by a local rule"
    for rule, partition in JOBS.items():
        for asked in found[rule]:
            assert (asked["slurm_partition"], asked["slurm_account"], asked["qos"]) == (partition, "grant7", "long"), (
                rule
            )
            assert ("gres" in asked) == (partition == "accel"), rule
    assert {asked["gres"] for asked in found["train"] + found["train_nodes"]} == {"gpu:h200:8"}
    assert {asked["gres"] for asked in found["sample"]} == {"gpu:h200:1"}
    assert {asked["threads"] for asked in found["export"]} == {"16"}
    # Snakemake asks for the sum over the jobs of a group that can run side by side: a model's eight benchmarks.
    group = found["grade"][: len(found["grade"]) // len(found["score"])]
    assert len(group) == 8
    assert sum(int(asked["mem_mb"]) for asked in group) <= 32_000
    assert sum(int(asked["threads"]) for asked in group) <= 16


def test_a_synthetic_base_model_is_a_job_of_the_cpu_partition(checkout: Checkout) -> None:
    with_site(checkout, **SITE)
    found = planned(checkout, TINY)
    assert "base_model" in found
    assert {job["slurm_partition"] for jobs in found.values() for job in jobs} == {"batch"}, "no GPU is needed"


def test_a_fault_of_the_site_file_is_one_line(checkout: Checkout) -> None:
    for values, said in (
        ({"gpu_partitoin": "a100"}, "config/site.yaml: gpu_partitoin: Extra inputs are not permitted; did you mean"),
        ({"gpus_per_node": 4}, "train.verl.gpus_per_node is 8, config/site.yaml says gpus_per_node: 4"),
    ):
        with_site(checkout, **values)
        done = checkout.run("snakemake", "--profile", "slurm", "-n", "all", check=False)
        assert done.returncode != 0
        output = done.stdout + done.stderr
        assert said in output and "Traceback" not in output, output[-2000:]


def test_stages_run_in_the_image_and_local_rules_do_not(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = with_apptainer(checkout, tmp_path, monkeypatch)
    (tmp_path / "fr3e.sif").touch()
    with_site(checkout, container=str(tmp_path / "fr3e.sif"), bind=["/usr/share", "/srv:/srv:ro"])
    target = "results/tiny/evaluation/base-toy/scores.csv"
    checkout.snakemake("--software-deployment-method", "apptainer", "--", target)
    assert (checkout.folder / target).is_file()
    calls = record.read_text(encoding="utf-8").splitlines()
    assert sorted(re.findall(r"python3 -m fr3e (\w+)", "\n".join(calls))) == [
        "base",
        "grade",
        "grade",
        "sample",
        "score",
    ]
    assert all(call.startswith("bind=/usr/share,/srv:/srv:ro nv= exec ") for call in calls), calls
    # Without Apptainer in use, the same site file leaves the commands with the host's interpreter.
    again = checkout.snakemake("-n", "-p", "--forceall", "--", target)
    assert "python3 -m fr3e" not in re.sub(re.escape(sys.executable), "", again.stdout + again.stderr)


def test_the_verl_image_has_its_own_python_and_the_gpus(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_apptainer(checkout, tmp_path, monkeypatch)
    for name in ("fr3e.sif", "verl.sif"):
        (tmp_path / name).touch()
    image = str(tmp_path / "verl.sif")
    with_site(checkout, container=str(tmp_path / "fr3e.sif"), verl_container=image, verl_python="/opt/verl/bin/python")
    text = checkout.run(
        "snakemake", "--profile", "slurm", "-n", "-p", "--configfile", "config/paper.yaml", "all"
    ).stdout
    for command in (
        f"with_ray.sh --nodes 1 --gpus 8 --scratch /tmp --container {image} -- python3 -m fr3e train ",
        f"with_ray.sh --nodes 4 --gpus 8 --scratch /tmp --container {image} -- python3 -m fr3e train ",
        "python3 -m fr3e export ",
        "python3 -m fr3e sample ",
        "python3 -m fr3e grade ",
        f"{sys.executable} -m fr3e base ",
        f"{sys.executable} -m fr3e report table1 ",
    ):
        assert re.search(r"(^|[\s/])" + re.escape(command), text, re.M), command
    assert "/opt/verl/bin/python" not in text
