"""What the history says of tables whose structures come from the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lockstep.pipeline.mirror.generations import ChangelogGenerations
from lockstep.pipeline.schema.context import ServerDialect, StatementContext
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.tracker import SchemaTracker, StructuresInMemory
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import TableName
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


def follow(tracker: SchemaTracker, context: StatementContext, *statements: str) -> None:
    for number, text in enumerate(statements):
        begin, end = (Coordinates(LogFile("binlog", 1), 100 * (number + n)) for n in (1, 2))
        tracker.follow(LoggedStatement(text, context, begin, end, "", MOMENT, MOMENT))


def test_a_renamed_column_keeps_its_values_on_a_server_that_ignores_case() -> None:
    """With lower_case_table_names = 2 a table has the name Orders, and its key is orders."""
    context = replace(MYSQL, facts=ServerDialect(lower_case_table_names=2))
    tracker = SchemaTracker(StructuresInMemory(), lower_case_table_names=2)
    follow(
        tracker,
        context,
        "create database shop",
        "create table Orders (id int primary key, b int)",
        "alter table ORDERS rename column b to c",
        "alter table Orders drop column missing",
    )
    _, renamed, unknown = tracker.history.versions
    assert renamed.columns_from == ("id", "b")
    assert unknown.reason == "it names the column missing, which does not exist"


class CountedReads(StructuresInMemory):
    """Structures in memory, which count how often all versions of a table are read."""

    reads = 0

    def versions(self, table: TableName) -> Sequence[SchemaVersion]:
        self.reads += 1
        return super().versions(table)


def test_the_versions_of_a_table_are_read_once_for_all_its_statements() -> None:
    """A table may have thousands of versions, and a log as many statements on it."""
    initial = CountedReads()
    tracker = SchemaTracker(initial, generations_of=ChangelogGenerations)
    follow(
        tracker,
        MYSQL,
        "create database shop",
        "create table t (id int primary key)",
        *(f"alter table t add c{n} int" for n in range(20)),
        "alter table t modify c1 bigint",
        "alter table t modify c1 varchar(5)",
        "alter table t drop c1",
    )
    generations = [version.generation for version in tracker.history.versions]
    assert (generations, initial.reads) == ([1] * 21 + [2, 3, 3], 1)


def test_a_statement_does_not_sort_tables_that_it_does_not_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server may have thousands of tables, and a log as many statements."""
    tracker = SchemaTracker(StructuresInMemory())
    begin, end = (Coordinates(LogFile("binlog", 1), 100 * n) for n in (1, 2))
    tables = [f"create table t{n} (id int primary key)" for n in range(200)]
    for text in ("create database shop", *tables):
        tracker.follow(LoggedStatement(text, MYSQL, begin, end, "", MOMENT, MOMENT))
    comparisons = list[TableName]()
    is_less = TableName.__lt__

    def counted(self: TableName, other: TableName) -> bool:
        comparisons.append(self)
        return is_less(self, other)

    monkeypatch.setattr(TableName, "__lt__", counted)
    tracker.follow(
        LoggedStatement("alter table t7 add v int", MYSQL, begin, end, "", MOMENT, MOMENT)
    )
    assert (len(tracker.history.versions), comparisons) == (201, [])
