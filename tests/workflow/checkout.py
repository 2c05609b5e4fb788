"""A throw-away checkout of this tree in which the real Snakemake runs: edits there touch nothing here."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TINY = "tests/workflow/tiny.yaml"


@dataclass(frozen=True)
class Checkout:
    """A folder with the project's tracked and new files, and a git history of its own."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> "Checkout":
        """Copy what git would commit here into `folder` and commit it there."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
        for name in filter(None, listed.decode().split("\0")):
            source, target = ROOT / name, folder / name
            if source.is_symlink() or source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        checkout = cls(folder)
        checkout.git("init", "-q", "-b", "main")
        checkout.git("add", "-A")
        checkout.git("commit", "-qm", "as it is")
        return checkout

    def copy(self, folder: Path) -> "Checkout":
        """The same checkout with its results and Snakemake's records, times kept."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Checkout(folder)

    @property
    def environment(self) -> dict[str, str]:
        """`fr3e` is this checkout's, whatever is installed."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("FR3E_", "SLURM_", "SNAKEMAKE"))}
        return kept | {
            "PYTHONPATH": str(self.folder),
            "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "passive",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "gc.auto=0"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=self.folder, capture_output=True, text=True, check=True
        ).stdout

    def run(self, *arguments: str, check: bool = True, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        """Run a command of this environment's Python folder (snakemake, fr3e through -m) in the checkout."""
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode != 0:
            raise AssertionError(
                f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
            )
        return done

    def snakemake(
        self, *arguments: str, config: str = TINY, check: bool = True, timeout: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """The real Snakemake with the local profile."""
        return self.run(
            "snakemake",
            "--profile",
            "workflow/profiles/local",
            "--configfile",
            config,
            "--cores",
            "2",
            *arguments,
            check=check,
            timeout=timeout,
        )

    def due(self, config: str = TINY) -> dict[str, int]:
        """Rule -> number of jobs that Snakemake would run now (the target `all` left out)."""
        text = self.snakemake("-n", "--quiet", "host", config=config).stdout
        stats = re.search(r"^job +count\n-+ +-+\n(.*?)^total", text, re.M | re.S)
        jobs = re.findall(r"^(\w+) +(\d+)$", stats.group(1), re.M) if stats else []
        return {rule: int(count) for rule, count in jobs if rule != "all"}

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace text in a file; a text that is not there is a fault of the test."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
