"""MariaDB's ways of logging a transaction, each read from a real server's log."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from lockstep.pipeline.binlog.stream.framing import HEADER, EventType
from tests.fix_mysql import MySqlStand
from tests.mysql.sessions import Shop, inserted


@pytest.fixture(params=["mariadb", "mariadb11"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """On each MariaDB in turn, with a table each of InnoDB (t), MyISAM (m) and Aria (a)."""
    stand: MySqlStand = request.getfixturevalue(request.param)
    with stand.own_database() as name:
        for table, engine in (("t", "innodb"), ("m", "myisam"), ("a", "aria")):
            stand.execute(f"create table {name}.{table} (id int primary key) engine = {engine}")
        yield Shop(stand, name)


def after(shop: Shop, *statements: str) -> list[tuple[int, list[str]]]:
    """Of each transaction: how many statements, and the tables that rows changed."""
    start = shop.head()
    shop.do(*statements)
    return [(len(one.statements), [t.name for t in one.tables]) for one in shop.read(start)]


def test_a_group_ends_as_its_engine_does(shop: Shop) -> None:
    """XID after InnoDB's rows, COMMIT after the others'; the engines' groups are apart."""
    found = after(
        shop,
        "insert into t values (1)",
        "insert into m values (1)",
        "insert into a values (1)",
        "begin",
        "insert into t values (2)",
        "insert into m values (2)",
        "insert into t values (3)",
        "commit",
        "begin",
        "insert into t values (4)",
        "insert into a values (4)",
        "rollback",
    )
    assert found[:3] == [(0, ["t"]), (0, ["m"]), (0, ["a"])]
    assert found[3:5] == [(0, ["m"]), (0, ["t", "t"])]
    assert [(n, tables) for n, tables in found[5:] if tables] == [(0, ["a"])]


def test_a_gtid_is_domain_server_and_number(shop: Shop) -> None:
    """As the server itself writes it."""
    start = shop.head()
    with shop.stand.connect(shop.database) as session, session.cursor() as cursor:
        cursor.execute("set gtid_domain_id = 7")
        cursor.execute("insert into t values (1)")
        cursor.execute("select @@last_gtid")
        ((gtid,),) = cursor.fetchall()
    assert [one.gtid for one in shop.read(start)] == [gtid]


def test_what_a_savepoint_undid_stays_in_the_log(shop: Shop) -> None:
    """Where a table without rollback was written meanwhile. ROLLBACK TO names the savepoint
    as it likes: to the server É is e."""
    start = shop.head()
    shop.do(
        "begin",
        "insert into t values (1)",
        "savepoint `É`",
        "insert into t values (2)",
        "insert into m values (2)",
        "rollback to e",
        "insert into t values (3)",
        "savepoint s",
        "insert into t values (4)",
        "insert into a values (4)",
        "insert into t values (5)",
        "rollback to S",
        "commit",
    )
    found = shop.changes(start)
    assert inserted(found) == [1, 3]
    assert (inserted(found, "m"), inserted(found, "a")) == ([2], [4])
    assert sum(event[4] == EventType.WRITE_ROWS_V1 for event in shop.events(start)) == 7


def test_a_prepared_transaction_with_savepoints(shop: Shop) -> None:
    """What was undone before the prepare does not come out at the commit."""
    start = shop.head()
    shop.do(
        "xa start 'm'",
        "insert into t values (1)",
        "savepoint s",
        "insert into t values (2)",
        "insert into m values (2)",
        "rollback to S",
        "xa end 'm'",
        "xa prepare 'm'",
        "xa commit 'm'",
    )
    assert inserted(shop.changes(start)) == [1]


def test_a_prepared_transaction_may_be_empty(shop: Shop) -> None:
    """The rows of an engine that cannot wait are a group of their own before it."""
    start = shop.head()
    shop.do("xa start 'm'", "insert into m values (1)", "xa end 'm'", "xa prepare 'm'")
    found = inserted(shop.changes(start), "m")
    shop.do("xa rollback 'm'")
    assert found == [1]


def test_a_temporary_table_voids_a_group(shop: Shop) -> None:
    """The group is in the log, and ends in ROLLBACK."""
    start = shop.head()
    shop.do("begin", "insert into t values (1)", "create temporary table x (i int)", "rollback")
    assert (shop.changes(start), len(shop.read(start))) == ([], 1)


@pytest.mark.parametrize("engine", ["innodb", "myisam"])
def test_a_table_as_select(shop: Shop, engine: str) -> None:
    """The statement stands in the group, before the rows it made."""
    shop.do("insert into t values (1), (2)")
    found = after(
        shop,
        f"create table c engine = {engine} as select * from t",
        f"create or replace table c engine = {engine} as select 3 id",
    )
    assert found == [(1, ["c"]), (1, ["c"])]


def test_a_table_that_is_lost_for_a_failure_is_dropped(shop: Shop) -> None:
    """CREATE OR REPLACE … SELECT that fails has dropped the table, in a group that ends in
    ROLLBACK: it must not pass for nothing."""
    start = shop.head()
    with pytest.raises(pymysql.err.IntegrityError):
        shop.do("create or replace table t (id int primary key) as select 1 id union all select 1")
    (query,) = [query for one in shop.read(start) for query in one.statements]
    assert (query.text.split()[:2], query.replaces_rows) == (["DROP", "TABLE"], True)


def test_a_sequence_is_a_table_of_one_row(shop: Shop) -> None:
    """Its rows stand among those of the table that draws from it, or in a group of theirs."""
    found = after(
        shop,
        "create sequence s cache 1",
        "create table q (id int primary key default nextval(s), v int)",
        "insert into q (v) values (1)",
        "do setval(s, 100)",
        "alter sequence s restart 7",
    )
    assert found == [(1, []), (1, []), (0, ["s", "q"]), (0, ["s"]), (1, [])]


def test_events_that_are_passed_over_are_counted(shop: Shop) -> None:
    """ANNOTATE_ROWS changes nothing, and takes its place in the log. MariaDB 11 leaves the offset
    out of what went through a transaction's cache."""
    start = shop.head()
    shop.do("insert into t values (1)")
    version, events = shop.stand.rows("select version()")[0][0], shop.events(start)
    assert any(event[4] == EventType.MARIADB_ANNOTATE_ROWS for event in events)
    blank = [event for event in events[2:] if HEADER.unpack_from(event)[4] == 0]
    assert bool(blank) == version.startswith("11")
    assert [one.end for one in shop.read(start)] == [shop.head()]


@pytest.mark.parametrize("ring", [1 << 12, 1 << 20])
def test_compressed_rows_are_rows(shop: Shop, ring: int) -> None:
    """log_bin_compress: inserted, updated, deleted, and a long statement."""
    start = shop.head()
    shop.do("create table z (id int primary key, v text)")
    shop.stand.execute("set global log_bin_compress = on")
    try:
        shop.do(
            "insert into z select seq, repeat('a', 1000) from seq_1_to_9",
            "update z set v = repeat('b', 900)",
            "delete from z",
            f"alter table z comment '{'c' * 900}'",
        )
    finally:
        shop.stand.execute("set global log_bin_compress = off")
    found = [(kind, *row) for _, kind, row in shop.changes(start, ring_bytes=ring)]
    a, b, numbers = "a" * 1000, "b" * 900, range(1, 10)
    assert found[:9] == [("insert", n, a) for n in numbers]
    assert found[9:27:2] == [("update_preimage", n, a) for n in numbers]
    assert found[10:27:2] == [("update_postimage", n, b) for n in numbers]
    assert found[27:] == [("delete", n, b) for n in numbers]
    kinds = {event[4] for event in shop.events(start)}
    assert kinds >= {165, 166, 167, 168}
    assert shop.read(start)[-1].statements[0].text.endswith("cc'")


def test_an_alter_in_two_phases_is_one_alter(shop: Shop) -> None:
    """Only its COMMIT changes the table; one that failed changes nothing."""
    start = shop.head()
    shop.do("create table w (id int primary key, v int)", "insert into w values (1, 1), (2, 1)")
    shop.do("set binlog_alter_two_phase = 1", "alter table w add x int")
    with pytest.raises(pymysql.err.IntegrityError):
        shop.do("set binlog_alter_two_phase = 1", "alter table w add unique (v)")
    found = [[query.text.split()[0] for query in one.statements] for one in shop.read(start)]
    assert found == [["create"], [], [], ["alter"], [], []]


@pytest.mark.parametrize(
    "statement",
    [
        "insert into t values (1)",
        "insert into m values (1)",
        "insert into t values (last_insert_id(2))",
        "insert into t values (floor(9 * rand()))",
    ],
)
def test_statement_format_is_told(shop: Shop, statement: str) -> None:
    """Any session may choose it, and its rows are not in the log: the statement is."""
    start = shop.head()
    shop.do("set binlog_format = statement", statement)
    told = [query for one in shop.read(start) for query in one.statements]
    assert [(one.text, one.replaces_rows) for one in told] == [(statement, True)]


def test_a_versioned_table_s_statements_are_told(shop: Shop) -> None:
    """With versions by transaction MariaDB logs statements, whatever the format is."""
    shop.do(
        "create table v (id int primary key, "
        "a bigint unsigned generated always as row start, "
        "b bigint unsigned generated always as row end, "
        "period for system_time (a, b)) with system versioning"
    )
    start = shop.head()
    shop.do("insert into v (id) values (1)")
    (query,) = [query for one in shop.read(start) for query in one.statements]
    assert query.replaces_rows
