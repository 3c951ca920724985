"""Changelogs that begin again, and are read as one."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lockstep.pipeline.mirror.generations import (
    ChangelogGenerations,
    SharedColumn,
    can_take,
    one_table,
    shared_columns,
)
from lockstep.pipeline.mirror.layout import (
    MARKS,
    application_id,
    changelog_path,
    changelog_schema,
    keep_flag_names,
)
from lockstep.pipeline.mirror.mapping import last_changes, mapped
from lockstep.pipeline.mirror.marks import changelog_rows
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.ports.mirror_writes import ColumnOrigin
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.values.table import TableName
from tests.changes.tables_made import ID, PLACE, TABLE, a_column, a_table, a_version

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
CHANGELOG = changelog_schema(row_structure(a_table(ID, a_column("a"))))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["a int"], True),
        (["a int", "b int"], True),
        (["b int"], True),
        (["a bigint"], False),
        (["A int"], False),
    ],
)
def test_a_changelog_only_grows(columns: list[str], expected: bool) -> None:
    """Another type, or the name in another case, is the next generation's."""
    version = a_version(2, a_table(ID, *(a_column(*text.split()) for text in columns)), [])
    assert can_take(CHANGELOG, changelog_schema(version.shown_structure)) is expected


@pytest.mark.parametrize("name", ["_logged", "_updated"])
def test_a_name_that_lockstep_may_take_begins_a_generation(name: str) -> None:
    """Before the table has such a column ours is called so, whenever it is asked for; from then
    on both are there, and ours gets a `_` in front."""
    before = [a_version(1, a_table(ID), [])]
    assert ChangelogGenerations(before).choose(a_table(ID, a_column("a"))) == 1
    assert ChangelogGenerations(before).choose(a_table(ID, a_column(name))) == 2


def test_generations_are_read_together() -> None:
    """A name has its newest type where older values can be cast to it; others stand beside
    it, and what a generation lacks is NULL."""
    schemas = [
        pa.schema([("id", pa.int32()), ("a", pa.int32()), ("gone", pa.string())]),
        pa.schema([("id", pa.int32()), ("a", pa.int64())]),
        pa.schema([("ID", pa.decimal128(10, 0)), ("a", pa.string()), ("new", pa.bool_())]),
    ]
    columns = shared_columns(schemas)
    assert columns == (
        SharedColumn("ID", pa.decimal128(10, 0), ("id", "id", "ID")),
        SharedColumn("a", pa.string(), (None, None, "a")),
        SharedColumn("new", pa.bool_(), (None, None, "new")),
        SharedColumn("a@2", pa.int64(), (None, "a", None)),
        SharedColumn("a@1", pa.int32(), ("a", None, None)),
        SharedColumn("gone", pa.string(), ("gone", None, None)),
    )
    tables = [
        pa.Table.from_pylist(
            [{field.name: value for field, value in zip(schema, row, strict=True)}], schema
        )
        for schema, row in zip(
            schemas, [(1, 10, "x"), (2, 20), (Decimal(3), "30", True)], strict=True
        )
    ]
    rows = [tuple(row.values()) for row in one_table(tables, columns).to_pylist()]
    assert rows == [
        (Decimal(1), None, None, None, 10, "x"),
        (Decimal(2), None, None, 20, None, None),
        (Decimal(3), "30", True, None, None, None),
    ]


def test_each_generation_has_a_place_and_a_name() -> None:
    """The first ones are those of a changelog without generations."""
    assert changelog_path("shop", TABLE) == "shop/_changes/shop/people"
    assert changelog_path("shop", TABLE, 2) == "shop/_changes/shop/people@2"
    assert changelog_path("shop", TableName("shop", "people@2")) == "shop/_changes/shop/people=402"
    state = TableState(TABLE, TableCondition.FOLLOWING, 3, "m", "c")
    assert application_id("shop", state, "changelog") == "lockstep/shop/shop.people/changelog/3"
    assert application_id("shop", state, "changelog", 2).endswith("/changelog@2/3")


def test_marks_of_what_is_kept_meet_no_column() -> None:
    """Whatever the table's columns are called."""
    assert keep_flag_names(["id", "_KEEPS_1"]) == {"id": "_keeps_0", "_KEEPS_1": "__keeps_1"}


def test_a_mark_is_a_row_without_columns_that_no_fold_sees() -> None:
    """It has a place in the log and in the order of changes, and is no image."""
    marks = {"_change_type": "truncate", "_sequence": 7, "_file": str(PLACE.file)}
    moments = {"_committed_at": MOMENT, "_executed_at": MOMENT}
    mark = changelog_rows(CHANGELOG, 1, marks | moments)
    (row,) = mark.to_pylist()
    assert (row["_change_type"], row["_sequence"], row["id"], row["a"]) == (
        "truncate",
        7,
        None,
        None,
    )
    assert row["_committed_at"] == row["_executed_at"] == MOMENT
    assert mark.schema.names[: len(MARKS)] == MARKS.names
    own = [ColumnOrigin("id", pa.int32())]
    kept = ["_change_type", "_sequence"]
    images = mapped(pa.Table.from_batches([mark]), own, pa.schema([("id", pa.int32())]), kept)
    assert last_changes(images, ["id"]).num_rows == 0
