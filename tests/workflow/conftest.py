"""One real run of the whole DAG that all tests of the workflow start from."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workflow.checkout import Checkout


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The tiny scenario, run from nothing to the last page."""
    checkout = Checkout.make(tmp_path_factory.mktemp("finished") / "project")
    checkout.snakemake("all")
    assert checkout.due() == {}, "a finished run has nothing to do"
    return checkout


@pytest.fixture
def project(finished: Checkout, tmp_path: Path) -> Iterator[Checkout]:
    """A copy of the finished project to edit."""
    yield finished.copy(tmp_path / "project")
    shutil.rmtree(tmp_path / "project")
