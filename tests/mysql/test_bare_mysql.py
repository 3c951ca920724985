"""A MySQL without GTIDs: anonymous transactions, engines mixed, starts and crashes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from demo.mysql_search import MySql
from demo.mysqld import mysql_server
from lockstep.pipeline.binlog.rows.table_map import read_table_map
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.binlog.stream.intake import dump_events
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import ACCOUNT, PASSWORD, MySqlStand, killed_at_last
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.mysql.sessions import after, changes_after, changes_since, inserted

_OPTIONS = (
    "--gtid-mode=OFF",
    "--enforce-gtid-consistency=OFF",
    "--binlog-row-metadata=FULL",
)


@pytest.fixture(scope="module")
def bare(mysql_program: MySql, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlStand]:
    """A server of this module's own."""
    folder = tmp_path_factory.mktemp("bare")
    made = mysql_server(mysql_program, folder, os.environ, options=_OPTIONS)
    with killed_at_last(made) as running:
        stand = MySqlStand(running)
        stand.execute(
            f"create user {ACCOUNT} identified by '{PASSWORD}'",
            f"grant replication slave, replication client, select on *.* to {ACCOUNT}",
        )
        yield stand


@pytest.fixture
def shop(bare: MySqlStand) -> Iterator[str]:
    """A database with a table `t` of InnoDB and a table `m` of MyISAM."""
    with bare.own_database() as name:
        bare.execute(
            "create table t (id int primary key)",
            "create table m (id int primary key) engine = myisam",
            database=name,
        )
        yield name


def test_what_knows_no_rollback_is_logged_at_once(bare: MySqlStand, shop: str) -> None:
    """MyISAM's rows are transactions of their own, before the one they stand in."""
    found = after(
        bare,
        shop,
        "begin",
        "insert into t values (1)",
        "insert into m values (1)",
        "savepoint s",
        "insert into t values (2)",
        "insert into m values (2)",
        "rollback to s",
        "insert into t values (3)",
        "commit",
        "begin",
        "insert into t values (4)",
        "insert into m values (4)",
        "rollback",
    )
    names = [[name.name for name in one.tables] for one in found]
    assert names == [["m"], ["m"], ["t", "t"], ["m"]]
    assert [one.gtid for one in found] == [""] * 4


def test_xa_with_mixed_engines(bare: MySqlStand, shop: str) -> None:
    """The rows that wait for the XA COMMIT are those of the engine that can wait."""
    found = changes_after(
        bare,
        shop,
        "xa start 'mixed'",
        "insert into t values (1)",
        "insert into m values (1)",
        "xa end 'mixed'",
        "xa prepare 'mixed'",
        "insert into m values (2)",
        "xa commit 'mixed'",
    )
    assert [(name, row) for name, _, row in found] == [("m", (1,)), ("m", (2,)), ("t", (1,))]


def test_a_table_as_select_in_two_parts(bare: MySqlStand, shop: str) -> None:
    """Where DDL is not atomic the statement is one transaction and the rows another."""
    found = after(bare, shop, "create table c engine = myisam as select 1 id")
    assert [(len(one.statements), len(one.tables)) for one in found] == [(1, 0), (0, 1)]


def test_a_statement_that_fails_half_way(bare: MySqlStand, shop: str) -> None:
    """MyISAM keeps what it did, and the log has just that."""
    found = changes_after(
        bare, shop, "insert into m values (7)", "insert ignore into m values (8), (7), (9)"
    )
    assert inserted(found, "m") == [7, 8, 9]


def test_a_server_that_starts_anew_counts_its_tables_anew(bare: MySqlStand, shop: str) -> None:
    """The same table id is another table in the next file, with a STOP before it or not."""
    tables = ("t", "u", "v", "w")
    bare.execute(*(f"create table {name} like t" for name in tables[1:]), database=shop)
    start = head(bare)
    for number, (end, order) in enumerate(
        ((bare.server.stop, tables), (bare.server.kill, tables[::-1]))
    ):
        end()
        bare.server.start()
        bare.execute(*(f"insert into {name} values ({number})" for name in order), database=shop)
    found = changes_since(bare, start)
    assert {name: inserted(found, name) for name in tables} == {key: [0, 1] for key in tables}
    assert any(len(tables) > 1 for tables in tables_by_id(bare, start).values())


def tables_by_id(stand: MySqlStand, start: Coordinates) -> dict[int, set[str]]:
    """The tables that each table id of the log stands for."""
    found: dict[int, set[str]] = {}
    dump = server(stand).dump(start)
    for event in dump_events(dump):
        if event[4] == EventType.TABLE_MAP:
            known = read_table_map(event)
            found.setdefault(known.table_id, set()).add(known.table.name)
    dump.close()
    return found


def test_marks_without_gtids_are_places(bare: MySqlStand, shop: str) -> None:
    """Nothing is executed by name; at rest both marks are the log's end."""
    source = server(bare)
    baseline = source.baseline([TableName(shop, "t")])
    (table,) = baseline.tables
    with source.snapshot(table) as snapshot:
        assert list(snapshot.batches) == []
    for found in (baseline, snapshot):
        assert (found.low, found.high) == (head(bare), head(bare))
        assert found.low_set == ""
    assert snapshot.exact
