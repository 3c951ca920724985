"""The texts of statements in `_transactions`, where a real server logs them."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.pipeline.binlog.stream.ring import MOST_TEXT_BYTES
from lockstep.pipeline.mirror.system_tables import system_table_path
from lockstep.pipeline.values.segment import SystemTable
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower

LOGGED = "set binlog_rows_query_log_events = on"
TABLE = "create table t (id int primary key, a varchar(10000)) character set utf8mb4"


def followed(stand: MySqlStand, database: str) -> Follower:
    stand.execute(TABLE, database=database)
    follower = Follower(server(stand), [f"{database}.*"])
    follower.run()
    return follower


def told(follower: Follower) -> list[dict[str, Any]]:
    """What the newest run added to `_transactions`."""
    folder = system_table_path(SOURCE, SystemTable.TRANSACTIONS)
    rows = follower.lake.tables[folder][-1].rows.to_pylist()
    return [row for row in rows if row["_batch"] == rows[-1]["_batch"]]


def statements(follower: Follower, *, changing: bool = True) -> list[Any]:
    """Of the transactions that changed rows, or of all."""
    return [row["statements"] for row in told(follower) if row["rows"] or not changing]


@pytest.mark.since(8, 0, 20)
def test_a_transaction_has_its_statements(mysql: MySqlStand, database: str) -> None:
    """Those that changed rows, as they were written, also where the transaction is compressed; none
    that was taken back, and none of a session that does not log them."""
    follower = followed(mysql, database)
    mysql.execute("insert into t values (1, 'x')", database=database)
    mysql.execute(
        LOGGED,
        "begin",
        "insert into t values (2, 'ä€'), (3, null) /* why */",
        "select * from t",
        "update t set a = 'y' where id = 2",
        "update t set a = 'y' where id = 99",
        "commit",
        "begin",
        "insert into t values (11, 'x')",
        "savepoint a",
        "insert into t values (12, 'x')",
        "rollback to a",
        "insert into t values (13, 'x')",
        "commit",
        "begin",
        "insert into t values (14, 'x')",
        "rollback",
        "set binlog_transaction_compression = on",
        "delete from t where id = 3",
        database=database,
    )
    follower.run()
    assert statements(follower, changing=False) == [
        None,
        [
            "insert into t values (2, 'ä€'), (3, null) /* why */",
            "update t set a = 'y' where id = 2",
        ],
        ["insert into t values (11, 'x')", "insert into t values (13, 'x')"],
        ["delete from t where id = 3"],
    ]
    assert [row["statements_cut"] for row in told(follower)] == [None, False, False, False]


def test_what_others_wrote_is_not_told(mysql: MySqlStand, database: str) -> None:
    """A transaction that changed no captured table keeps its words to itself."""
    mysql.execute(TABLE, TABLE.replace("table t", "table secret"), database=database)
    follower = Follower(server(mysql), [f"{database}.t"])
    follower.run()
    mysql.execute(
        LOGGED,
        "insert into secret values (1, 'diagnosis')",
        "insert into t values (1, 'x')",
        database=database,
    )
    follower.run()
    assert statements(follower, changing=False) == [None, ["insert into t values (1, 'x')"]]


def test_a_prepared_transaction_has_none(mysql: MySqlStand, database: str) -> None:
    """The log has them with the prepare; rows count where it is committed, here a run later."""
    follower = followed(mysql, database)
    xid = f"'{database}'"
    mysql.execute(
        LOGGED,
        f"xa start {xid}",
        "insert into t values (1, 'x')",
        f"xa end {xid}",
        f"xa prepare {xid}",
        database=database,
    )
    follower.run()
    assert [(row["rows"], row["statements"]) for row in told(follower)] == [(0, None)]
    mysql.execute(f"xa commit {xid}", database=database)
    follower.run()
    assert [(row["rows"], row["statements"]) for row in told(follower)] == [(1, None)]


def test_long_texts_are_cut_and_odd_bytes_shown(mysql: MySqlStand, database: str) -> None:
    """The character set of a client is not logged with its statement's text."""
    follower = followed(mysql, database)
    latin1: Any = b"insert into t values (7, '\xe4')"
    mysql.execute(
        LOGGED,
        "begin",
        *(f"insert into t values ({n}, '{'ä' * 10_000}')" for n in range(4)),
        "commit",
        "set character_set_client = latin1",
        latin1,
        database=database,
    )
    follower.run()
    cut, odd = (row for row in told(follower) if row["rows"])
    whole = [len(text) for text in cut["statements"]]
    assert (whole[:3], cut["statements_cut"]) == ([10_028] * 3, True)
    size = sum(len(text.encode()) + 1 for text in cut["statements"])
    assert MOST_TEXT_BYTES - 2 < size <= MOST_TEXT_BYTES
    assert odd["statements_cut"] is False
    assert odd["statements"] == ["insert into t values (7, '\\xe4')"]
    assert follower.mirror(f"{database}.t")[-1] == {"id": 7, "a": "ä"}


def test_mariadb_logs_them_unless_told_otherwise(
    mariadb: MySqlStand, mariadb_database: str
) -> None:
    """`binlog_annotate_row_events` is on there."""
    follower = followed(mariadb, mariadb_database)
    mariadb.execute(
        "begin",
        "insert into t values (1, 'ä')",
        "savepoint a",
        "insert into t values (2, 'x')",
        "rollback to a",
        "update t set a = 'y'",
        "commit",
        "set binlog_annotate_row_events = off",
        "delete from t",
        database=mariadb_database,
    )
    follower.run()
    assert statements(follower) == [["insert into t values (1, 'ä')", "update t set a = 'y'"], None]
