"""A table that was left out of the patterns for a time is known to have been."""

from __future__ import annotations

from lockstep.pipeline.model.table_state import OrderKind
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower

_IDLE_RUNS = 10_001
_IDLE = """
insert into lockstep.decisions (source, token, kind, rule, reason, facts, author)
select source, token, 'idle', 'nothing-to-do', 'nothing was written', '{}', ''
from (select source, max(token) as token from lockstep.leases group by source) newest,
    generate_series(1, %s)
"""


def test_however_long_ago_that_was(mysql: MySqlStand, database: str) -> None:
    """Its changes there were not read, however many runs came since: it is quarantined."""
    a, b = (TableName(database, name) for name in "ab")
    mysql.execute(
        *(f"create table {name} (id int primary key)" for name in "ab"), database=database
    )
    follower = Follower(server(mysql), [f"{database}.*"])
    for tables, row in (([f"{database}.*"], 1), ([str(b)], 2), ([f"{database}.*"], 3)):
        follower.tables = tables
        follower.run()
        mysql.execute(*(f"insert into {name} values ({row})" for name in "ab"), database=database)
        follower.run()
        follower.ledger.database.tell(_IDLE, _IDLE_RUNS)
    states = follower.ledger.table_states(SOURCE)
    assert states[a].has_stopped
    assert "left it out" in (states[a].reason or "")
    assert [row["id"] for row in follower.mirror(str(b))] == [1, 2, 3]


def test_whatever_is_seen_of_it_first(mysql: MySqlStand, database: str) -> None:
    """An ALTER leaves the rows of before, and a TRUNCATE those that nobody would expect; once the
    table was read from the source, it goes on."""
    a, b, c = (TableName(database, name) for name in "abc")
    tables = [f"{database}.*"]
    follower = Follower(server(mysql), tables, str(head(mysql)))

    def do(*statements: str) -> None:
        mysql.execute(*statements, database=database)

    do(*(f"create table {name} (id int primary key)" for name in "abc"))
    do(*(f"insert into {name} values (1)" for name in "abc"))
    follower.run()
    follower.tables = [str(c)]
    do(*(f"insert into {name} values (2)" for name in "abc"))
    follower.run()
    follower.tables = tables
    do("alter table a add column v int", "truncate b", "insert into c values (3)")
    follower.run()
    do("insert into a values (3, 3)", "insert into b values (3)")
    follower.run()
    states = follower.states()
    assert [table for table in (a, b, c) if states[table].is_complete] == [c]
    for table in (a, b):
        follower.order(OrderKind.RESUME, table)
    follower.run()
    do("alter table a add column w int", "insert into a values (4, 4, 4)")
    follower.run()
    assert all(state.is_complete for state in follower.states().values())
    assert [row["id"] for row in follower.mirror(str(a))] == [1, 2, 3, 4]
    assert [row["id"] for row in follower.mirror(str(b))] == [3]
