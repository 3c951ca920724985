"""What the history says of tables whose structures come from the log."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

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
