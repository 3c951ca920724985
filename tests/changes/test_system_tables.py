"""Rows of `_transactions` and `_ddl`: what they say, from values made here."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from lockstep.pipeline.mirror.layout import MARKS, mirror_path
from lockstep.pipeline.mirror.marks import TransactionMarks
from lockstep.pipeline.mirror.system_tables import (
    SYSTEM_TABLE_SCHEMAS,
    PlacedStatement,
    statement_rows,
    system_table_path,
    transaction_rows,
)
from lockstep.pipeline.schema.consequences import consequences
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.schema.statements.changes import StatementKind
from lockstep.pipeline.schema.tracker import SchemaTracker, StructuresInMemory
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.segment import SystemTable
from lockstep.pipeline.values.table import TableName
from tests.schema.schemas_made import MYSQL

MOMENT = datetime(2026, 11, 1, 6, tzinfo=UTC)


def numbers(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


@pytest.mark.parametrize("table", SystemTable)
def test_a_name_with_an_underscore_is_a_changelogs(table: SystemTable) -> None:
    """And means the same there; the others are no mark's name."""
    for field in SYSTEM_TABLE_SCHEMAS[table]:
        assert (field.name in MARKS.names) == field.name.startswith("_")
        if field.name in MARKS.names:
            assert field == MARKS.field(field.name)


@pytest.mark.parametrize("table", SystemTable)
def test_no_mirror_lies_where_they_do(table: SystemTable) -> None:
    """Whatever a database is called."""
    odd = TableName(table.value, "t")
    assert not mirror_path("shop", odd).startswith(system_table_path("shop", table))


def test_transactions_without_changes_have_no_numbers() -> None:
    """Nor has an anonymous one a GTID."""
    marks = TransactionMarks(
        file=pa.array(["binlog.000001"] * 2),
        gtid=pa.array(["u:1", None]),
        committed_at=numbers(1_700_000_000_000_001, 0),
    )
    made = transaction_rows(
        marks,
        begin=numbers(4, 100),
        end=numbers(100, 200),
        server_id=numbers(7, 7),
        rows=numbers(3, 0),
        sequences=(numbers(11, 0), numbers(14, 0)),
        statements=pa.array([["insert"], None], pa.list_(pa.string())),
        cut=np.array([True, False]),
        batch=5,
    )
    picked = ("_offset", "end_offset", "_gtid", "rows", "first_sequence", "last_sequence", "_batch")
    assert [tuple(row[name] for name in picked) for row in made.to_pylist()] == [
        (4, 100, "u:1", 3, 11, 14, 5),
        (100, 200, None, 0, None, None, 5),
    ]
    told = [(row["statements"], row["statements_cut"]) for row in made.to_pylist()]
    assert told == [(["insert"], True), (None, None)]
    assert made["_committed_at"][0].as_py().microsecond == 1


def followed(*texts: str) -> pa.Table:
    """`_ddl` of statements that follow each other; those about `shop.t` are of a captured
    table."""
    tracker = SchemaTracker(StructuresInMemory())
    placed = []
    for number, text in enumerate(texts):
        begin, end = (Coordinates(LogFile("binlog", 1), 100 * (number + n)) for n in (1, 2))
        logged = LoggedStatement(text, MYSQL, begin, end, "", MOMENT, MOMENT, 3)
        done = tracker.follow(logged)
        found = consequences(done, lambda table: LakePolicies(), logged, lambda schema: {})
        mine = {table: one for table, one in found.items() if table == TableName("shop", "t")}
        placed.append(PlacedStatement(logged, done, mine, number))
    return statement_rows(tracker.history, placed, batch=5)


def test_a_statement_tells_each_tables_version() -> None:
    """Numbered as in the history, with what follows for a captured table."""
    texts = "create database shop", "create table t (i int)", "alter table t add j int, rename to u"
    rows = followed(*texts).to_pylist()
    assert [row["_sequence"] for row in rows] == [0, 1, 2]
    database, created, renamed = (
        {one["name"]: (one["schema_version"], one["action"]) for one in row["tables"]}
        for row in rows
    )
    assert database == {}
    assert created == {"t": (1, "create")}
    assert renamed == {"t": (2, "drop"), "u": (1, None)}
    assert rows[2]["_gtid"] is None
    assert [row["_server_id"] for row in rows] == [3, 3, 3]


KINDS = {
    "create table t (i int)": "create_table",
    "create table u like t": "create_table",
    "create index k on t (i)": "alter_table",
    "alter table t add j int, rename to w": "alter_table",
    "rename table w to t": "rename_table",
    "truncate t": "truncate_table",
    "repair table t": "repair_table",
    "drop table t, u": "drop_table",
    "create database d": "create_database",
    "alter database d charset latin1": "alter_database",
    "drop database d": "drop_database",
    "alter table t frobnicate": "not_understood",
}


def test_every_statement_has_a_code_for_its_kind() -> None:
    """Codes are what a reader picks statements by: these stay as they are."""
    assert followed(*KINDS).column("kind").to_pylist() == list(KINDS.values())
    assert {*KINDS.values()} == {kind.value for kind in StatementKind}


def test_bytes_that_mean_nothing_are_shown() -> None:
    """A file holds no surrogates."""
    (row,) = followed("create table t (i int) comment 'a\udcff'").to_pylist()
    assert row["statement"] == "create table t (i int) comment 'a\\xff'"


def test_what_nobody_understands_has_its_reason() -> None:
    """For each table that it may have changed."""
    (row,) = followed("alter table t frobnicate").to_pylist()
    assert row["outcome"] == "not understood"
    ((told),) = row["tables"]
    assert (told["database"], told["name"]) == ("shop", "t")
    assert told["effect"]
