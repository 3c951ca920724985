"""What the history says of tables whose structures come from the log."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lockstep.pipeline.schema.context import ServerDialect
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.tracker import SchemaTracker, StructuresInMemory
from lockstep.pipeline.values.position import Coordinates, LogFile
from tests.schema.schemas_made import MYSQL, named, table

MOMENT = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("rename table t to u", "u"),
        ("create table u like t", "u"),
        ("rename table known to x, t to known", "known"),
        ("alter table t add k int, rename to u", "u"),
    ],
)
def test_defaults_stay_unknown_under_another_name(text: str, name: str) -> None:
    """A TABLE_MAP event has none, and a RENAME or LIKE tells none."""
    tracker = SchemaTracker(StructuresInMemory())
    first, second, third = (Coordinates(LogFile("binlog", 1), 100 * n) for n in (1, 2, 3))
    for given in ("create table known (i int)", "create table u (i int)", "drop table u"):
        tracker.follow(LoggedStatement(given, MYSQL, first, second, "", MOMENT, MOMENT))
    structure = row_structure(table("create table t (i int primary key, j int not null)"))
    tracker.record_table_map(structure, second)
    tracker.follow(LoggedStatement(text, MYSQL, second, third, "", MOMENT, MOMENT))
    assert tracker.is_from_table_map(named(name))


def test_a_renamed_column_keeps_its_values_on_a_server_that_ignores_case() -> None:
    """With lower_case_table_names = 2 a table has the name Orders, and its key is orders."""
    context = replace(MYSQL, facts=ServerDialect(lower_case_table_names=2))
    tracker = SchemaTracker(StructuresInMemory(), lower_case_table_names=2)
    for number, text in enumerate(
        (
            "create database shop",
            "create table Orders (id int primary key, b int)",
            "alter table ORDERS rename column b to c",
            "alter table Orders drop column missing",
        )
    ):
        begin, end = (Coordinates(LogFile("binlog", 1), 100 * (number + n)) for n in (1, 2))
        tracker.follow(LoggedStatement(text, context, begin, end, "", MOMENT, MOMENT))
    _, renamed, unknown = tracker.history.versions
    assert renamed.columns_from == ("id", "b")
    assert unknown.reason == "it names the column missing, which does not exist"
