"""Which Arrow type each MySQL type becomes, where its width or sign decides."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lockstep.pipeline.schema.types import arrow_schema, arrow_type
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column, TableName, TableStructure


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Column("c", "tinyint"), pa.int8()),
        (Column("c", "tinyint", unsigned=True), pa.int16()),
        (Column("c", "smallint", unsigned=True), pa.int32()),
        (Column("c", "mediumint", unsigned=True), pa.int32()),
        (Column("c", "int", unsigned=True), pa.int64()),
        (Column("c", "bigint"), pa.int64()),
        (Column("c", "bigint", unsigned=True), pa.decimal128(20, 0)),
        (Column("c", "decimal", precision=38, scale=30), pa.decimal128(38, 30)),
        (Column("c", "decimal", precision=39, scale=0), pa.string()),
        (Column("c", "bit", length=1), pa.bool_()),
        (Column("c", "bit", length=2), pa.int64()),
        (Column("c", "bit", length=63), pa.int64()),
        (Column("c", "bit", length=64), pa.decimal128(20, 0)),
        (Column("c", "year", unsigned=True), pa.int16()),
        (Column("c", "varchar", length=9, charset="sjis"), pa.string()),
    ],
    ids=str,
)
def test_width_and_sign_decide(column: Column, expected: pa.DataType) -> None:
    """Nothing that MySQL can hold is beyond the type it gets."""
    assert arrow_type(column) == expected


@pytest.mark.parametrize("kind", ["compressed text", "old time", "tuple"])
def test_unlisted_types_quarantine_the_table(kind: str) -> None:
    """No type is ever guessed."""
    with pytest.raises(TableError, match=kind.upper()):
        arrow_schema(TableStructure(TableName("a", "b"), (Column("c", kind),), ()))


def test_a_vector_is_no_key() -> None:
    """Nothing in the lake joins on a list."""
    with pytest.raises(TableError, match="VECTOR"):
        arrow_schema(TableStructure(TableName("a", "b"), (Column("v", "vector"),), ("v",)))
