"""Which tables statements changed while an XA transaction with rows of `shop.t` was prepared."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lockstep.pipeline.run.dump.log_reader import tables_changed_by
from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.effects import FollowedStatement, LoggedStatement, recorded_statement
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName

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
