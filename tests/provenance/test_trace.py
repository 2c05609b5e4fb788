"""`fr3e trace` on tables that are not what it reads."""

from pathlib import Path

import pytest

from fr3e.errors import UserError
from fr3e.provenance.trace import trace

HEADER = "model,method,benchmark,quantity,value,low,high,verdicts\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such table; tables there: none"),
        (b"", "not a CSV table"),
        (b"hello world", "no column 'model'"),
        (b"\xff\xfe\x00", "not a CSV table"),
        (HEADER.encode(), "no such cell"),
    ],
)
def test_a_table_that_is_absent_or_damaged_is_named(tmp_path: Path, content: bytes | None, says: str) -> None:
    if content is not None:
        (tmp_path / "table1.csv").write_bytes(content)
    with pytest.raises(UserError, match=says) as error:
        trace("table1", "toy/fr3e/chain", tmp_path)
    assert "table1.csv" in str(error.value)
