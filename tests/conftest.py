"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The local mirror of the real data sets; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("FR3E_MIRROR", ROOT.parent / "shared" / "data"))
    if not (folder / "benchmarks").is_dir():
        pytest.skip(
            f"no mirror of the real data sets at {folder}; set FR3E_MIRROR to a folder that holds benchmarks/ and train/"
        )
    return folder
