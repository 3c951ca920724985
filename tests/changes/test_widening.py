"""Which types become others where they are, by a cast, or not at all."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lockstep.pipeline.mirror.widening import TypeChange, type_change

D = pa.decimal128
CHANGES: list[tuple[pa.DataType, pa.DataType, TypeChange]] = [
    (pa.int8(), pa.int8(), TypeChange.SAME),
    (pa.int8(), pa.int64(), TypeChange.WIDEN),
    (pa.int32(), pa.float64(), TypeChange.WIDEN),
    (pa.int32(), D(10, 0), TypeChange.WIDEN),
    (pa.int64(), D(20, 0), TypeChange.WIDEN),
    (D(5, 2), D(8, 4), TypeChange.WIDEN),
    (D(5, 5), D(10, 5), TypeChange.WIDEN),
    (D(5, 2), D(6, 4), TypeChange.REREAD),
    (D(5, 2), D(6, 1), TypeChange.REREAD),
    (pa.float32(), pa.float64(), TypeChange.WIDEN),
    (pa.date32(), pa.timestamp("us"), TypeChange.WIDEN),
    (pa.date32(), pa.timestamp("us", tz="UTC"), TypeChange.REREAD),
    (pa.int8(), D(3, 0), TypeChange.REWRITE),
    (pa.int64(), D(19, 0), TypeChange.REWRITE),
    (pa.int64(), D(18, 0), TypeChange.REREAD),
    (pa.int16(), pa.float32(), TypeChange.REWRITE),
    (pa.int32(), pa.float32(), TypeChange.REREAD),
    (pa.int64(), pa.float64(), TypeChange.REREAD),
    (pa.bool_(), pa.int64(), TypeChange.REWRITE),
    (pa.bool_(), D(20, 0), TypeChange.REWRITE),
    (pa.int32(), pa.int16(), TypeChange.REREAD),
    (pa.int32(), pa.string(), TypeChange.REREAD),
    (pa.string(), pa.binary(), TypeChange.REREAD),
]


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_pairs_of_types(old: pa.DataType, new: pa.DataType, expected: TypeChange) -> None:
    """In place, by a cast, or not at all."""
    assert type_change(old, new) is expected
