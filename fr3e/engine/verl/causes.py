"""Why something failed, below the wrappers that Ray puts around an exception."""

from fr3e.errors import UserError


def cause_of(error: BaseException) -> BaseException:
    """The exception that a chain of wrappers began with, or the first in it that was made for people."""
    while True:
        # Ray's wrapper is also an instance of what it wraps, with a traceback as its text: look inside first.
        inner = getattr(error, "cause", None)
        if inner is None and not isinstance(error, UserError):
            inner = error.__cause__
        if not isinstance(inner, BaseException) or inner is error:
            return error
        error = inner


def in_brief(message: str, length: int = 500) -> str:
    """The beginning and the end of a long message."""
    text = " ".join(message.split())
    return text if len(text) <= length else f"{text[: length // 2]} ... {text[-length // 2 :]}"
