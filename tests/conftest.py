"""Fixtures shared by all tests."""

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# A shell starts background jobs with SIGINT ignored, nohup with SIGHUP, and so would be everything that the tests start and end.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The local mirror of the real data sets; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("FR3E_MIRROR", ROOT.parent / "shared" / "data"))
    if not (folder / "benchmarks").is_dir():
        pytest.skip(
            f"no mirror of the real data sets at {folder}; set FR3E_MIRROR to a folder that holds benchmarks/ and train/"
        )
    return folder
