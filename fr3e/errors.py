"""Errors made for people: what was found, where, and what is allowed, on one line."""


class UserError(Exception):
    """Something the user can mend (a key, a file, a value). The command line prints it on one line and exits with 2."""

    def __str__(self) -> str:
        return " ".join(super().__str__().split())
