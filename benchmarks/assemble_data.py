"""Time and memory of making data/ from a mirror: the eight benchmarks and the training mix.

    python benchmarks/assemble_data.py MIRROR [--runs 3]

Limit: 120 s and 2048 MiB on two cores. Prints one line per run and the worst; exits with 1 beyond the limit.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

LIMIT_SECONDS, LIMIT_MIB = 120, 2048


def once(mirror: Path) -> tuple[float, float, float]:
    """(wall seconds, CPU seconds, peak MiB) of one run in a process of its own."""
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        from fr3e.config.scenario import RealData
        from fr3e.data.assemble import assemble
        from fr3e.data.benchmarks import write_benchmarks

        with tempfile.TemporaryDirectory() as folder:
            write_benchmarks(mirror, Path(folder) / "benchmarks", None)
            assemble(mirror, Path(folder), RealData())
        os._exit(0)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"the run ended with status {status}")
    return time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> int:
    """Run, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mirror", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    runs = [once(arguments.mirror) for _ in range(arguments.runs)]
    for wall, cpu, peak in runs:
        print(f"{wall:6.1f} s wall  {cpu:6.1f} s CPU  {peak:7.0f} MiB")
    wall, peak = max(run[0] for run in runs), max(run[2] for run in runs)
    print(f"worst: {wall:.1f} of {LIMIT_SECONDS} s, {peak:.0f} of {LIMIT_MIB} MiB; load {os.getloadavg()[0]:.1f}")
    return int(wall > LIMIT_SECONDS or peak > LIMIT_MIB)


if __name__ == "__main__":
    sys.exit(main())
