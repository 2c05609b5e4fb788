"""When no further update may begin, and how long a save may be silent. Needs neither verl nor a GPU."""

import threading
import time
from pathlib import Path

import pytest

from fr3e.engine.verl import stopping
from fr3e.engine.verl.stopping import MARGIN_SECONDS, Stopping, beating, expected_save, parameters_of


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


def test_a_save_of_an_attempt_before_counts_from_the_first_update_on(clock: Clock, tmp_path: Path) -> None:
    # An update of 300 s; the attempt before saved in 400 s: 300 + 2 * 400 + the margin are needed.
    attempt = Stopping(tmp_path / "stop", job_end=1000 + 300 + 1100 + MARGIN_SECONDS, saved=400.0, expected=10.0)
    clock.now += 300
    attempt.update_ended(0.0)
    assert attempt.reason() == "the job ends in 1160 s, one more update may take 1160 s"


def test_an_estimate_stands_for_a_save_until_one_was_measured(clock: Clock, tmp_path: Path) -> None:
    attempt = Stopping(tmp_path / "stop", job_end=1000 + 600 + 1000, expected=400.0)
    clock.now += 300
    attempt.update_ended(0.0)
    assert attempt.reason() is None, "1300 s are left, 300 + 2 * 400 + 60 are needed"
    clock.now += 300
    attempt.update_ended(0.0)
    assert attempt.reason() is not None, "1000 s are left"
    attempt.update_ended(20.0)
    assert attempt.reason() is None, "300 + 2 * 20 + 60 are needed"


def test_the_estimate_by_hand(tmp_path: Path) -> None:
    # 32,763,876,352 parameters x 12 bytes / 4 nodes / 200 MB/s = 491.5 s.
    assert expected_save(32_763_876_352, 4) == pytest.approx(491.46, abs=0.01)
    import torch
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(3, 5, dtype=torch.bfloat16), "b": torch.zeros(7)}, tmp_path / "one.safetensors")
    save_file({"c": torch.zeros(2, 2)}, tmp_path / "two.safetensors")
    assert parameters_of(tmp_path) == 15 + 7 + 4


def test_a_long_save_beats_and_an_endless_one_stops_beating() -> None:
    beats, enough = [], threading.Event()

    def beat() -> None:
        beats.append(time.monotonic())
        if len(beats) == 3:
            enough.set()

    with beating(beat, seconds=60.0, every=0.01):
        assert enough.wait(30)
    there = len(beats)
    time.sleep(0.1)
    assert len(beats) == there, "nothing beats after the save"
    with beating(beat, seconds=0.0, every=0.01):
        time.sleep(0.2)
    assert len(beats) == there, "a save that hangs longer than it may is silent"


def test_a_save_that_fails_stops_beating_and_is_heard() -> None:
    with pytest.raises(OSError, match="full"), beating(lambda: None, every=0.01):
        raise OSError("full")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("beat")]
