"""When no further update may begin. Needs neither verl nor a GPU."""

from pathlib import Path

import pytest

from fr3e.engine.verl import stopping
from fr3e.engine.verl.stopping import MARGIN_SECONDS, Stopping


class Clock:
    """A clock that the test sets."""

    now = 1000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(stopping, "time", found)
    return found


def test_the_next_update_and_two_checkpoints_have_to_fit(clock: Clock, tmp_path: Path) -> None:
    # Updates of 300 and 200 s, a checkpoint of 40 s: 300 + 2 * 40 + the margin are needed.
    attempt = Stopping(tmp_path / "stop", job_end=1000 + 500 + 380 + MARGIN_SECONDS + 1)
    clock.now += 300
    attempt.update_ended(0.0)
    clock.now += 200
    attempt.update_ended(40.0)
    assert attempt.reason() is None
    clock.now += 1
    assert attempt.reason() == "the job ends in 440 s, one more update may take 440 s"


def test_without_an_end_only_the_file_stops(clock: Clock, tmp_path: Path) -> None:
    attempt = Stopping(tmp_path / "stop")
    clock.now += 1e9
    attempt.update_ended(0.0)
    assert attempt.reason() is None
    (tmp_path / "stop").touch()
    assert attempt.reason() == "stopped by SIGTERM"
