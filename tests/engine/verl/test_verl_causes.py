"""One clear sentence out of the wrappers around an error."""

from fr3e.engine.verl.causes import cause_of, in_brief
from fr3e.errors import UserError


class Wrapper(UserError):
    """Like Ray's wrapper: an instance of what it wraps, with a traceback as its text."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__("Traceback (most recent call last): ...")
        self.cause = cause


def test_the_innermost_cause_is_found() -> None:
    error = RuntimeError("outer")
    error.__cause__ = ValueError("inner")
    assert str(cause_of(error)) == "inner"


def test_an_error_made_for_people_is_not_looked_behind() -> None:
    mine = UserError("the disk is full")
    mine.__cause__ = OSError("unexpected pos 128 vs 0")
    assert cause_of(Wrapper(mine)) is mine


def test_a_long_message_keeps_both_ends() -> None:
    brief = in_brief("begin " + "x" * 5000 + " end", 100)
    assert brief.startswith("begin") and brief.endswith("end") and len(brief) < 120
    assert in_brief("short\n  and plain") == "short and plain"
