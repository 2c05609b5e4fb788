"""Random numbers that depend on nothing but their name: Philox4x32-10 (Salmon et al., SC 2011) as a pure function.

A sample's uniform is fixed by (seed, draw, row, token index). So it is the same whatever else is in the batch, in
whatever order the rows stand, and when a killed run samples it again.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

WORDS = 4
ROUNDS = 10
MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
WEYL = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
LOW, SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)

Words = NDArray[np.uint64]


def philox(counter: tuple[Words, Words, Words, Words], key: tuple[Words, Words]) -> tuple[Words, Words, Words, Words]:
    """Ten rounds over 32-bit words held in uint64; all arrays broadcast together."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        left, right = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c1, c2, c3 = (right >> SHIFT) ^ c1 ^ k0, right & LOW, (left >> SHIFT) ^ c3 ^ k1, left & LOW
        k0, k1 = (k0 + WEYL[0]) & LOW, (k1 + WEYL[1]) & LOW
    return c0, c1, c2, c3


def stream_key(seed: int, draw: str) -> int:
    """64-bit key of a named stream."""
    return int.from_bytes(hashlib.blake2b(f"{seed}|{draw}".encode(), digest_size=8).digest(), "little")


def uniforms(keys: Words, rows: Words, start: int, count: int) -> NDArray[np.float64]:
    """Uniforms in (0, 1), [R, count], for token indices start .. start + count - 1 of R sequences.

    `keys` [R] are stream keys, `rows` [R] the sequence's number within its request. `start` is a multiple of four.
    """
    if start % WORDS:
        raise ValueError(f"start {start} is not a multiple of {WORDS}")
    blocks = np.arange(start // WORDS, (start + count + WORDS - 1) // WORDS, dtype=np.uint64)[None, :]
    zero = np.zeros((1, 1), np.uint64)
    counter = (blocks, rows.astype(np.uint64)[:, None], zero, zero)
    words = philox(counter, ((keys & LOW)[:, None], (keys >> SHIFT)[:, None]))
    stacked = np.stack(np.broadcast_arrays(*words), axis=-1).reshape(len(keys), -1)
    return (stacked[:, :count].astype(np.float64) + 0.5) / 2.0**32
