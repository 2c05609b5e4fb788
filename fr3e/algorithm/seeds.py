"""Draws keyed by a name, not by a position in a stream, so that no result depends on the order of calls."""

import hashlib

import numpy as np


def generator(*key: object) -> np.random.Generator:
    """A counter-based generator (Philox) whose stream is fixed by the parts of `key` alone.

    The parts are joined by a separator that no part may hold, so that ("a", "bc") and ("ab", "c") differ.
    """
    name = "\x1f".join(str(part) for part in key)
    digest = hashlib.sha256(name.encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))


def rank(*key: object) -> bytes:
    """A pseudo-random sort key fixed by the parts of `key` alone: sorting names by it shuffles them reproducibly."""
    return hashlib.sha256("\x1f".join(str(part) for part in key).encode()).digest()
