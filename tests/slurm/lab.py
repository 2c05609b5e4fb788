"""A real Slurm on one host for the tests: munged, slurmctld and two slurmd with gpu gres, all below one folder.

Debian's packages slurm-wlm, slurm-client and munge are needed, and root. Outside the folder stand node names in /etc/hosts
where they are missing (srun inside a job resolves them), and links from /etc/slurm while the cluster is up: Snakemake's job step
hides SLURM_CONF from the srun it calls. Scheduling, signals, states and limits are
real; memory and devices are not isolated (no cgroups).
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

MUNGED, SLURMCTLD, SLURMD = "/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd"
SYSTEM = Path("/etc/slurm")
PACKAGES = ("slurm-wlm", "slurm-client", "munge")


def missing() -> str | None:
    """Why no Slurm can be started here, or None."""
    if os.geteuid() != 0:
        return "a Slurm on one host needs root"
    if (SYSTEM / "slurm.conf").exists() and not (SYSTEM / "slurm.conf").is_symlink():
        return f"{SYSTEM}/slurm.conf belongs to a cluster of this machine"
    absent = [path for path in (MUNGED, SLURMCTLD, SLURMD) if not Path(path).exists()]
    return f"install Debian's {', '.join(PACKAGES)} ({', '.join(absent)} not found)" if absent else None


def install() -> None:
    """Install the packages where they are missing; Debian only."""
    if (
        all(Path(path).exists() for path in (MUNGED, SLURMCTLD, SLURMD))
        or shutil.which("apt-get") is None
        or os.geteuid() != 0
    ):
        return
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    subprocess.run(["apt-get", "update", "-q"], check=False, env=environment, capture_output=True, timeout=300)
    command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *PACKAGES]
    subprocess.run(command, check=False, env=environment, capture_output=True, timeout=600)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Poll until `condition` holds; `TimeoutError` says what did not happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen within {seconds:.0f} s")
        time.sleep(0.2)


class SlurmLab:
    """Start with `up`, stop with `down`; commands run with `lab.environment`. Its partitions are `gpu` and `cpu`."""

    def __init__(
        self,
        folder: Path,
        nodes: int = 2,
        cpus: int = 16,
        gpus: int = 8,
        memory_mb: int = 200_000,
        gpu: str = "gpu",
        cpu: str = "cpu",
    ) -> None:
        self.folder, self.nodes, self.cpus, self.gpus, self.memory_mb = folder, nodes, cpus, gpus, memory_mb
        self.gpu, self.cpu = gpu, cpu
        self.environment = dict(os.environ, SLURM_CONF=str(folder / "slurm.conf"))
        self.names = [f"n{index}" for index in range(1, nodes + 1)]

    def run(self, *command: str, check: bool = True) -> str:
        """Output of a Slurm command."""
        return subprocess.run(
            command, env=self.environment, check=check, capture_output=True, text=True, timeout=60
        ).stdout

    def up(self) -> None:
        """Write the configuration, start the daemons, wait until every node is idle."""
        for name in ("munge", "state", "log", "gres"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self._resolve_names()
        self._start_munge()
        self._configure()
        subprocess.run([SLURMCTLD], env=self.environment, check=True, timeout=60)
        for name in self.names:
            (self.folder / "spool" / name).mkdir(parents=True, exist_ok=True)
            subprocess.run([SLURMD, "-N", name], env=self.environment, check=True, timeout=60)
        wait_for(self.idle, 60, "all Slurm nodes becoming idle")

    def idle(self) -> bool:
        """True when every node is idle."""
        return (
            self.run("sinfo", "-h", "-N", "-p", self.gpu, "-t", "idle", "-o", "%N", check=False).split() == self.names
        )

    def down(self) -> None:
        """End the daemons by their own process ids, jobs first."""
        self.run("scancel", "--full", "--state=RUNNING", check=False)
        self.run("scancel", "--state=PENDING", check=False)
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: not self.run("squeue", "-h", "-t", "R,CG", check=False).strip(), 20, "all jobs ending")
        for pid_file in [
            self.folder / "slurmctld.pid",
            *self.folder.glob("slurmd.*.pid"),
            self.folder / "munge/munged.pid",
        ]:
            self.stop(pid_file)

    def stop(self, pid_file: Path, sign: signal.Signals = signal.SIGTERM) -> None:
        """End one daemon and wait for it."""
        with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
            pid = int(pid_file.read_text(encoding="utf-8"))
            os.kill(pid, sign)
            for _ in range(100):
                os.kill(pid, 0)
                time.sleep(0.1)

    def restart_controller(self) -> None:
        """Stop slurmctld as a crash would, and start it again from its saved state."""
        self.stop(self.folder / "slurmctld.pid")
        subprocess.run([SLURMCTLD], env=self.environment, check=True, timeout=60)
        wait_for(lambda: "UP" in self.run("scontrol", "ping", check=False), 30, "slurmctld answering again")

    def node_of(self, job: str) -> str:
        """Where a running job runs, empty for one that does not run."""
        return self.run("squeue", "-h", "-j", job, "-t", "R", "-o", "%N", check=False).strip()

    def resume(self, node: str) -> None:
        """Take a drained node back into service; right after a restart slurmctld may not know its state yet."""

        def back() -> bool:
            self.run("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
            state = self.run("sinfo", "-h", "-n", node, "-p", self.gpu, "-o", "%T", check=False).strip()
            return state in ("idle", "mixed", "allocated")

        wait_for(back, 60, f"{node} coming back")

    def _resolve_names(self) -> None:
        hosts = Path("/etc/hosts")
        known = hosts.read_text(encoding="utf-8")
        wanted = [name for name in [*self.names, socket.gethostname().split(".")[0]] if name not in known.split()]
        if wanted:
            hosts.write_text(
                known.rstrip("\n") + "\n" + "".join(f"127.0.0.1 {name}\n" for name in wanted), encoding="utf-8"
            )

    def _start_munge(self) -> None:
        munge = self.folder / "munge"
        key = munge / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(1024))
        names = {
            "key-file": key,
            "socket": munge / "munge.socket",
            "pid-file": munge / "munged.pid",
            "log-file": munge / "munged.log",
            "seed-file": munge / "seed",
        }
        subprocess.run(
            [MUNGED, "--force", *(f"--{name}={path}" for name, path in names.items())], check=True, timeout=30
        )
        wait_for((munge / "munge.socket").exists, 10, "munged opening its socket")

    def _configure(self) -> None:
        folder, host = self.folder, socket.gethostname().split(".")[0]
        for index in range(self.gpus):
            (folder / "gres" / f"nvidia{index}").touch()
        (folder / "gres.conf").write_text(
            f"Name=gpu Type=h200 File={folder}/gres/nvidia[0-{self.gpus - 1}]\n", encoding="utf-8"
        )
        nodes = [
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={_free_port()} CPUs={self.cpus} Boards=1 SocketsPerBoard=1 "
            f"CoresPerSocket={self.cpus} ThreadsPerCore=1 RealMemory={self.memory_mb} Gres=gpu:h200:{self.gpus} State=UNKNOWN"
            for name in self.names
        ]
        all_nodes = f"n[1-{self.nodes}]"
        lines = [
            "ClusterName=lab",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={_free_port()}",
            "SlurmUser=root",
            "SlurmdUser=root",
            "AuthType=auth/munge",
            # A requeued job waits as long as credentials last: two minutes by default.
            f"AuthInfo=socket={folder}/munge/munge.socket,cred_expire=30",
            "CredType=cred/munge",
            "MpiDefault=none",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "JobAcctGatherType=jobacct_gather/none",
            "AccountingStorageType=accounting_storage/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core_Memory",
            "SchedulerType=sched/backfill",
            "SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0",
            "GresTypes=gpu",
            "ReturnToService=2",
            "SwitchType=switch/none",
            "SlurmdParameters=config_overrides",  # one host declares two nodes of a size it does not have
            "MinJobAge=3600",  # finished jobs stay visible to squeue, which the executor polls
            "KillWait=30",
            "SlurmctldTimeout=120",
            "SlurmdTimeout=300",
            f"StateSaveLocation={folder}/state",
            f"SlurmdSpoolDir={folder}/spool/%n",
            f"SlurmctldPidFile={folder}/slurmctld.pid",
            f"SlurmdPidFile={folder}/slurmd.%n.pid",
            f"SlurmctldLogFile={folder}/log/slurmctld.log",
            f"SlurmdLogFile={folder}/log/slurmd.%n.log",
            *nodes,
            f"PartitionName={self.gpu} Nodes={all_nodes} Default=YES MaxTime=2-00:00:00 DefaultTime=60 DefMemPerCPU=1000 State=UP",
            f"PartitionName={self.cpu} Nodes={all_nodes} MaxTime=1-00:00:00 DefaultTime=30 DefMemPerCPU=1000 State=UP",
        ]
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
        SYSTEM.mkdir(exist_ok=True)
        for name in ("slurm.conf", "gres.conf"):
            (SYSTEM / name).unlink(missing_ok=True)
            (SYSTEM / name).symlink_to(folder / name)


def main(command: list[str]) -> int:
    """Run one command with a cluster up: `python -m tests.slurm.lab snakemake --profile slurm … all`; its exit code."""
    if reason := missing():
        sys.exit(reason)
    with tempfile.TemporaryDirectory(prefix="slurm") as folder:
        lab = SlurmLab(Path(folder))
        try:
            lab.up()
            return subprocess.run(command, env=lab.environment, check=False).returncode
        finally:
            lab.down()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
