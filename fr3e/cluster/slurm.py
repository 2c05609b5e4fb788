"""Check of Slurm: would the jobs that the rules submit ever start in the partitions that the site file names?"""

import re
import shutil
from dataclasses import dataclass, replace

from fr3e.cluster.finding import Finding, command, runs_of, site
from fr3e.config.scenario import Scenario, SyntheticModel

Record = dict[str, str]
DEFAULTS = {"base": (4000, 30), "train": (4000, 60), "export": (4000, 30), "sample": (4000, 60), "grade": (4000, 30)}
"""MB and minutes of the stages that the scenario's `resources` leave out, as in workflow/rules."""
AWAY = {
    "DOWN",
    "DRAIN",
    "DRAINED",
    "DRAINING",
    "FAIL",
    "FAILING",
    "FUTURE",
    "INVAL",
    "MAINT",
    "NOT_RESPONDING",
    "UNKNOWN",
}
"""Words in a node's state (`man sinfo`) with which no job starts there; a cloud node that is POWERED_DOWN starts for one."""
MIN_JOB_AGE = 120
SCORE_MINUTES = 60


@dataclass(frozen=True)
class Request:
    """What one kind of job asks for; GPUs, cores and MB are of each node."""

    stage: str
    partition: str
    nodes: int
    gpus: int
    cpus: int
    mem_mb: int
    minutes: int


def requests(scenario: Scenario) -> list[Request]:
    """The scenario's jobs as workflow/rules submit them, alike ones once."""
    partitions = {"cpu": site().cpu_partition, "gpu": site().gpu_partition}

    def request(stage: str, gpus: int, cpus: int, nodes: int = 1) -> Request:
        asked = scenario.resources.get(stage)
        mem_mb, runtime = (asked.mem_mb, asked.runtime) if asked else DEFAULTS[stage]
        return Request(stage, partitions["gpu" if gpus else "cpu"], nodes, gpus, cpus, mem_mb, runtime)

    def cores(stage: str, default: int) -> int:
        asked = scenario.resources.get(stage)
        return asked.cpus if asked else default

    own = [model.base.threads for model in scenario.models.values() if isinstance(model.base, SyntheticModel)]
    found = [request("base", 0, max(threads, cores("base", 1))) for threads in own]
    found.append(request("export", 0, cores("export", 1)))
    found.append(_graded(request("grade", 0, cores("grade", scenario.evaluation.grade_workers)), scenario))
    for run in runs_of(scenario, "local"):
        found.append(request("train", 0, run.training.threads))
    for run in runs_of(scenario, "verl"):
        shape = run.training.verl
        found.append(request("train", shape.gpus_per_node, cores("train", 64), shape.nodes))
    gpus = scenario.evaluation.tensor_parallel if scenario.evaluation.engine == "vllm" else 0
    found.append(request("sample", gpus, cores("sample", 1)))
    return list(dict.fromkeys(found))


def _graded(one: Request, scenario: Scenario) -> Request:
    """The job that grades and scores a model: all its benchmarks side by side, then the scores (the profile's 60 minutes)."""
    count = len(scenario.benchmarks)
    return replace(one, cpus=count * one.cpus, mem_mb=count * one.mem_mb, minutes=one.minutes + SCORE_MINUTES)


def records(text: str) -> list[Record]:
    """`scontrol show … -o`: one record a line, key=value; words without `=` belong to the value before them."""
    found = []
    for line in text.splitlines():
        record: Record = {}
        key = ""
        for word in line.split():
            name, equals, value = word.partition("=")
            if equals and re.fullmatch(r"[A-Za-z][\w:/]*", name):
                key, record[name] = name, value
            elif key:
                record[key] += f" {word}"
        if record:
            found.append(record)
    return found


def minutes(text: str) -> float:
    """Slurm's time ([days-]hours:minutes:seconds, minutes:seconds or minutes) in minutes; UNLIMITED and the like: infinite."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text)
    if not match:
        return float("inf")
    days, first, second, third = (int(group or 0) for group in match.groups())
    if match[1] or match[4]:
        return days * 1440 + first * 60 + second + third / 60
    return first + second / 60


def gpus_of(node: Record, gpu_type: str = "") -> int:
    """GPUs, of one type where it is named, that a node declares: gpu:8, gpu:h200:8(S:0-1), gpu:a100:4,gpu:h100:4, (null)."""
    items = [item.split(":") for item in re.sub(r"\([^)]*\)", "", node.get("Gres", "")).split(",")]
    counts = [item[-1] for item in items if item[0] == "gpu" and (not gpu_type or gpu_type in item[1:])]
    return sum(int(count) if count.isdigit() else 1 for count in counts)


def _number(text: str | None) -> float:
    """A limit or an amount; UNLIMITED, (null) and absent ones are infinite."""
    return int(text) if text and text.isdigit() else float("inf")


def _limit(request: Request, partition: Record) -> tuple[str, str] | None:
    """What the partition itself forbids: (found, remedy)."""
    name, stage = request.partition, request.stage
    if partition.get("State", "UP") != "UP":
        return (
            f"partition {name} is {partition['State']}",
            "name another in config/site.yaml, or ask your administrator",
        )
    if request.minutes > (most := minutes(partition.get("MaxTime", ""))):
        goes_on = "; a run that reaches it goes on in the next job" if stage == "train" else ""
        return (
            f"{stage} asks for {request.minutes} minutes, partition {name} allows {most:.0f}",
            f"lower resources.{stage}.runtime{goes_on}",
        )
    for key, wanted, what in (
        ("MaxNodes", request.nodes, "nodes"),
        ("MaxMemPerNode", request.mem_mb, "MB a node"),
        ("MaxCPUsPerNode", request.cpus, "cores a node"),
    ):
        if wanted > (most := _number(partition.get(key))):
            remedy = f"lower resources.{stage} in the scenario, or name another partition in config/site.yaml"
            return f"{stage} asks for {wanted} {what}, partition {name} allows {most:.0f}", remedy
    return None


def unmet(request: Request, partitions: dict[str, Record], nodes: list[Record]) -> tuple[str, str] | None:
    """Why a job could never start, and the remedy; None where it could."""
    name, stage = request.partition, request.stage
    if name not in partitions:
        there = ", ".join(sorted(partitions)) or "none"
        return (
            f"no partition {name}; there are {there}",
            "name yours in config/site.yaml (cpu_partition, gpu_partition)",
        )
    if limit := _limit(request, partitions[name]):
        return limit
    members = [node for node in nodes if name in node.get("Partitions", "").split(",")]
    up = [node for node in members if not AWAY & set(re.findall(r"\w+", node.get("State", "").upper()))]
    state = f"partition {name} has {len(up)} nodes in service of {len(members)}"
    if len(up) < request.nodes:
        remedy = "bring nodes back (sinfo -R says why they are away), or name another partition in config/site.yaml"
        return f"{stage} needs {request.nodes} nodes, {state}", remedy
    key = "train.verl.gpus_per_node" if stage == "train" else "evaluation.tensor_parallel"
    wanted = (
        (
            "GPUs",
            lambda node: gpus_of(node, site().gpu_type),
            request.gpus,
            f"correct {key} or gpu_partition, or ask for gres gpu in slurm.conf",
        ),
        ("cores", lambda node: _number(node.get("CPUTot")), request.cpus, f"lower resources.{stage}.cpus"),
        ("MB", lambda node: _number(node.get("RealMemory")), request.mem_mb, f"lower resources.{stage}.mem_mb"),
    )
    for what, amount, least, remedy in wanted:
        amounts = sorted((amount(node) for node in up), reverse=True)
        fitting = [node for node in up if amount(node) >= least]
        if len(fitting) < request.nodes:
            most = amounts[request.nodes - 1]
            return f"{stage} needs {request.nodes} nodes with {least} {what} each, {state}, with {most:.0f}", remedy
        up = fitting
    return None


def slurm(scenario: Scenario) -> Finding:
    """Slurm answers, keeps finished jobs visible, and has room for every kind of job that the rules submit."""
    if shutil.which("sbatch") is None:
        return Finding("Slurm", None, "no sbatch here; runs are local")
    shown = command("scontrol", "-a", "show", "partition", "-o")
    if shown is None:
        needed = bool(runs_of(scenario, "verl"))
        remedy = "ask your administrator, or check SLURM_CONF"
        return Finding("Slurm", False if needed else None, "scontrol does not answer", remedy)
    partitions = {record["PartitionName"]: record for record in records(shown) if "PartitionName" in record}
    nodes = records(command("scontrol", "-a", "show", "node", "-o") or "")
    jobs = requests(scenario)
    faults = [fault for job in jobs if (fault := unmet(job, partitions, nodes))]
    age = re.search(r"^MinJobAge\s*=\s*(\d+)", command("scontrol", "show", "config") or "", re.M)
    seconds = int(age[1]) if age else 0
    if seconds < MIN_JOB_AGE:
        remedy = f"finished jobs vanish from squeue before they are seen: ask for MinJobAge >= {MIN_JOB_AGE}, or lower slurm-init-seconds-before-status-checks to a third of it"
        faults.append((f"MinJobAge is {seconds} s", remedy))
    if faults:
        found, remedies = (list(dict.fromkeys(part)) for part in zip(*faults, strict=True))
        return Finding("Slurm", False, "; ".join(found), "; ".join(remedies))
    kinds = ", ".join(sorted({job.partition for job in jobs}))
    return Finding("Slurm", True, f"partitions {kinds} have room for {len(jobs)} kinds of jobs, MinJobAge {seconds} s")
