"""Which tables statements changed while an XA transaction with rows of `shop.t` was prepared."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lockstep.pipeline.run.dump.captured_tables import CapturedTables
from lockstep.pipeline.run.dump.log_reader import tables_changed_by
from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.effects import (
    FollowedStatement,
    LoggedStatement,
    Renamed,
    recorded_statement,
)
from lockstep.pipeline.schema.statements.changes import Irrelevant, NotUnderstood, RenameTables
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from tests.pipeline.buffered import a_buffer
from tests.pipeline.segmented import made_segmenter
from tests.twins.lake import MemoryLake
from tests.twins.segments import MemorySegments

AT = Coordinates.parse("binlog.000001:4")
NEVER = datetime(2026, 1, 1, tzinfo=UTC)
CASES = {
    "drop table u": "",
    "truncate table u": "",
    "create table u like t": "",
    "create table if not exists t (id int)": "",
    "create or replace table t (id int)": "t",
    "grant select on t to somebody": "",
    "truncate table t": "t",
    "drop table t": "t",
    "drop database shop": "t",
    "drop database other": "",
    "rename table t to u": "t u",
    "rename table t to u; rename table u to v": "t u v",
    "rename table u to v; rename table t to u": "t u",
    "rename table a to b, t to a": "a b t",
    "alter table t rename to u": "t u",
    "alter table t alter v set default 1": "t",
    "drop table t; create table t (id int)": "t",
    "repair table t": "",
}


@pytest.mark.parametrize("statements", CASES)
def test_every_name_that_the_rows_may_have_is_found(statements: str) -> None:
    """Along a chain of renames; what creates a table where none is takes no rows."""
    context = StatementContext(database="shop")
    recorded = [
        recorded_statement(
            LoggedStatement(text, context, AT, AT, "", NEVER, NEVER), FollowedStatement()
        )
        for text in statements.split("; ")
    ]
    found = tables_changed_by([TableName("shop", "t")], recorded, lambda table: table)
    assert " ".join(sorted(table.name for table in found)) == CASES[statements]


RENAMES = {
    "rename table a to b": "a-b",
    "rename table a to b; rename table b to c": "a-c b-c",
    "rename table a to x, b to a, x to b": "a-b b-a x-b",
    "rename table z to a; rename table a to x, b to a, x to b": "a-b b-a x-b z-b",
}


@pytest.mark.parametrize("statements", RENAMES)
def test_a_renamed_table_has_its_present_name(statements: str) -> None:
    """Also where a statement renames a table to a name that it renames again: two tables that
    change places by a third name."""
    context = StatementContext(database="shop")
    store = MemorySegments(MemoryLake())
    tables = CapturedTables(store, source="shop", batch_id=3, last_sequence_before=100, states={})
    segmenter = made_segmenter(tables)
    segmenter.use_buffer(a_buffer(is_captured=segmenter.is_wanted))
    for text in statements.split("; "):
        read = read_change(text, context)
        assert not isinstance(read, Irrelevant | NotUnderstood)
        renames = (change for change in read if isinstance(change, RenameTables))
        effects = tuple(Renamed(old, new) for rename in renames for old, new in rename.pairs)
        statement = LoggedStatement(text, context, AT, AT, "", NEVER, NEVER)
        segmenter.apply_statement(statement, FollowedStatement(effects))
    found = {old.name: new.name for old, new in segmenter.present_names.items()}
    assert " ".join(f"{old}-{new}" for old, new in sorted(found.items())) == RENAMES[statements]
