"""A table that was left out of the patterns for a time is known to have been."""

from __future__ import annotations

from pipeline.table import TableName
from pipeline.table_state import TableCondition
from tests.fix_mysql import MySqlStand
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
    assert states[a].condition is TableCondition.QUARANTINED
    assert "left it out" in (states[a].reason or "")
    assert [row["id"] for row in follower.mirror(str(b))] == [1, 2, 3]
