"""Inserted rows have the table's defaults where their images leave columns out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lockstep.pipeline.run.dump.image_decoder import with_default_values
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    ExpressionDefault,
    KeyPart,
    KeySchema,
    TableSchema,
    ValueDefault,
    WrittenDefault,
)
from lockstep.pipeline.values.errors import TableError, ValueLeftOut
from lockstep.pipeline.values.row_images import RowImages, pack_bits, unpack_bits
from tests.changes.tables_made import ID, a_column, a_table

SCHEMA = pa.schema([("id", pa.int32()), ("a", pa.int32()), ("b", pa.string())])
INSERT, BEFORE, AFTER = 0, 1, 2


def images(*there: tuple[int, bool, bool]) -> RowImages:
    """Of each its kind, and whether it has `a` and `b`."""
    count = len(there)
    has = [[True, a, b] for _, a, b in there]
    return RowImages(
        columns=pa.RecordBatch.from_pydict(
            {
                "id": list(range(count)),
                "a": [9 if a else None for _, a, _ in there],
                "b": ["given" if b else None for _, _, b in there],
            },
            schema=SCHEMA,
        ),
        event=pa.array([0] * count, pa.int32()),
        row=pa.array(range(count), pa.int32()),
        change_type=pa.array([kind for kind, _, _ in there], pa.int8()),
        nulled_counts={},
        present=_packed(has),
    )


def _packed(has: list[list[bool]]) -> pa.Array:
    there = np.array(has, bool)
    return pack_bits(there, np.asarray(there.all(axis=1)))


def table(*columns: ColumnSchema) -> TableSchema:
    return a_table(ID, *columns)


def dated_images() -> RowImages:
    """A row whose image has neither `a`, a date, nor `b`."""
    schema = pa.schema([("id", pa.int32()), ("a", pa.date32()), ("b", pa.string())])
    row = pa.RecordBatch.from_pydict({"id": [1], "a": [None], "b": [None]}, schema=schema)
    return replace(images((INSERT, False, False)), columns=row)


SEVEN = a_column("a", default=ValueDefault("7"))
EMPTY = a_column("b", "varchar", nullable=False)


def test_what_is_left_out_is_the_default() -> None:
    """A literal, and the type's own where NULL is not allowed; rows are whole then."""
    found = with_default_values(
        images((INSERT, False, False), (INSERT, True, True)), table(SEVEN, EMPTY)
    )
    assert found.columns.to_pylist() == [
        {"id": 0, "a": 7, "b": ""},
        {"id": 1, "a": 9, "b": "given"},
    ]
    assert found.present is None


def test_updates_are_left_as_they_are() -> None:
    """What they leave out did not change, and is still told apart from NULL."""
    found = with_default_values(
        images((INSERT, False, True), (BEFORE, False, False), (AFTER, True, False)),
        table(SEVEN, EMPTY),
    )
    assert found.columns.column("a").to_pylist() == [7, None, 9]
    assert found.present is not None
    assert unpack_bits(found.present, 3).tolist() == [
        [True, True, True],
        [True, False, False],
        [True, True, False],
    ]


@pytest.mark.parametrize(
    ("schema", "read"),
    [
        (table(SEVEN, a_column("b", "varchar", default=ExpressionDefault("uuid()"))), False),
        (table(SEVEN, a_column("b", "varchar", generated="a")), False),
        (table(SEVEN, a_column("b", "varchar", default=WrittenDefault("_latin1 x'E9'"))), True),
        (None, True),
    ],
)
def test_what_only_the_source_knows_is_refused(schema: TableSchema | None, read: bool) -> None:
    """No value is made up; what the source tells once and for all is read from it."""
    with pytest.raises(TableError, match="leaves out column") as refused:
        with_default_values(images((INSERT, schema is not None, False)), schema)
    assert isinstance(refused.value, ValueLeftOut) == read


def test_a_zero_date_in_a_key_is_refused() -> None:
    """NULL would stand for other rows, too."""
    dated = a_column("a", "date", nullable=False, default=ValueDefault("0000-00-00"))
    keyed = TableSchema(
        table(dated, EMPTY).name,
        table(dated, EMPTY).columns,
        (KeySchema("PRIMARY", "primary", (KeyPart("a"),)),),
    )
    with pytest.raises(TableError, match="of its key holds a zero or partial date"):
        with_default_values(dated_images(), keyed)
