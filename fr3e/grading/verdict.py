"""What a grading says: whether the answer counts as right, and why."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Kind = Literal["correct", "wrong", "no_answer", "unparseable", "timeout", "refused", "fault"]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one grading; true exactly when `kind` is "correct".

    kind    correct, wrong, no_answer (nothing was put forward), unparseable (put forward, but not readable as
            mathematics), timeout (the comparison ran out of time), refused (the text is outside the stated limits),
            fault (the grader itself failed; never evidence about the answer)
    answer  the text that was graded, None when there was none
    rule    what decided, in a few words
    """

    kind: Kind
    answer: str | None
    rule: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"verdict kind {self.kind!r}: allowed are {', '.join(KINDS)}")

    def __bool__(self) -> bool:
        return self.kind == "correct"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and tables."""
        return asdict(self)
