"""Counter-based draws: known answers, and independence of batch and order."""

import numpy as np

from fr3e.engine.local.draws import philox, stream_key, uniforms


def test_known_answers() -> None:
    """Known-answer vectors of the Random123 distribution (kat_vectors, philox4x32 10)."""

    def words(*values: int) -> tuple[np.ndarray, ...]:
        return tuple(np.array([value], np.uint64) for value in values)

    zero = philox(words(0, 0, 0, 0), words(0, 0))
    assert [int(word[0]) for word in zero] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    ones = philox(words(*[0xFFFFFFFF] * 4), words(*[0xFFFFFFFF] * 2))
    assert [int(word[0]) for word in ones] == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    pi = philox(words(0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), words(0xA4093822, 0x299F31D0))
    assert [int(word[0]) for word in pi] == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def test_a_uniform_is_fixed_by_its_name() -> None:
    keys = np.array([stream_key(0, "a"), stream_key(0, "b"), stream_key(1, "a")], np.uint64)
    rows = np.array([0, 5, 2], np.uint64)
    whole = uniforms(keys, rows, 0, 10)
    order = np.array([2, 0, 1])
    assert (uniforms(keys[order], rows[order], 0, 10) == whole[order]).all()
    assert (uniforms(keys[1:2], rows[1:2], 4, 6) == whole[1:2, 4:]).all()
    assert len(np.unique(whole)) == whole.size


def test_uniform_in_distribution() -> None:
    sample = uniforms(np.full(2000, stream_key(0, "x"), np.uint64), np.arange(2000, dtype=np.uint64), 0, 8)
    # 16,000 uniforms: standard error of the mean is sqrt(1/12)/126.5 = 0.0023, of a tenth's share 0.0024.
    assert abs(sample.mean() - 0.5) < 0.01
    assert np.abs(np.histogram(sample, 10, (0, 1))[0] / sample.size - 0.1).max() < 0.01
    assert sample.min() > 0 and sample.max() < 1
