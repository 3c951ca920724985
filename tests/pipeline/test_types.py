"""Which Arrow type each MySQL type becomes, where its width or sign decides."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lockstep.pipeline.catalog import EntryColumn
from lockstep.pipeline.mirror.fold import key_hashes
from lockstep.pipeline.schema.fills import fill_of
from lockstep.pipeline.schema.rows import schema_of
from lockstep.pipeline.schema.types import FAMILIES, Family, arrow_schema, arrow_type, sql_type
from lockstep.pipeline.snapshot.keys import FORMS
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column, TableName, TableStructure
from lockstep.resources.mysql.rehearsal import LOG_COLUMNS, RESULT_COLUMNS
from lockstep.resources.unity.catalog import column_json


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


# -- tables of types that mypy does not compare with the families -------------------------------

COLUMNS = tuple(
    Column("c", kind, False, length=1, precision=4, scale=2, charset="utf8mb4", members=("a",))
    for kind in FAMILIES
)
"""A column of each type."""


def test_every_type_cuts_a_table_into_chunks_or_is_known_not_to() -> None:
    """`FORMS` in `snapshot.keys`: only the key columns before one without a form are used."""
    without = {"enum", "set", "text", "blob", "json", "geometry", "vector"}
    assert FAMILIES.keys() - FORMS.keys() == without


def test_every_type_has_an_implicit_default_or_is_known_to_have_none() -> None:
    """`schema.fills`: without one, rows that are there when a column is added are read again."""
    structure = TableStructure(TableName("a", "b"), COLUMNS, ())
    fills = {
        column.type: fill_of(schema, arrow_type(column), None)
        for column, schema in zip(COLUMNS, schema_of(structure).columns, strict=True)
    }
    assert {kind for kind, fill in fills.items() if fill is None} == {"geometry", "vector"}


def test_every_arrow_type_has_a_name_and_a_hash() -> None:
    """`sql_type` in `schema.types`, `resources.unity.catalog`, `mirror.fold`: a list is no key."""
    for column in COLUMNS:
        kind = arrow_type(column)
        name = column_json(EntryColumn("c", sql_type(kind)), 0)["type_name"]
        assert (name == "STRING") == pa.types.is_string(kind), kind
        if not pa.types.is_list(kind):
            assert len(key_hashes(pa.table({"c": pa.array([None], kind)}))) == 1


def test_every_family_is_compiled_at_set_up() -> None:
    """`resources.mysql.rehearsal`: of the log, each; of a result, each decoder once."""
    assert {FAMILIES[column.type] for column, _, _ in LOG_COLUMNS} == set(Family)
    same_as_others = {Family.FLOATING, Family.BIT, Family.TIMESTAMP, Family.ENUM, Family.SET}
    same_as_others |= {Family.BYTES, Family.JSON}
    read = {FAMILIES[column.type] for column, _ in RESULT_COLUMNS}
    assert set(Family) - read == same_as_others
