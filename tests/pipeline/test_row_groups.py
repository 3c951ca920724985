"""Batches of a table's rows, gathered for a file."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lockstep.pipeline.values import row_groups as room
from lockstep.pipeline.values.row_groups import row_groups


def batch(first: int, count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array(range(first, first + count), pa.int64())})


def sizes(batches: list[pa.RecordBatch]) -> list[int]:
    groups = list(row_groups(batches))
    assert [n for group in groups for n in group["n"].to_pylist()] == [
        n for one in batches for n in one["n"].to_pylist()
    ]
    return [group.num_rows for group in groups]


def test_batches_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until they have enough rows, or bytes; what is left over is the last, and nothing is none."""
    monkeypatch.setattr(room, "GROUP_ROWS", 5)
    assert sizes([batch(n, 2) for n in range(0, 14, 2)]) == [6, 6, 2]
    assert sizes([batch(0, 5), batch(5, 9)]) == [5, 9]
    assert sizes([]) == []
    monkeypatch.setattr(room, "GROUP_BYTES", 20)
    assert sizes([batch(0, 1), batch(1, 1), batch(2, 2), batch(4, 3), batch(7, 1)]) == [4, 3, 1]
