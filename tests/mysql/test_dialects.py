"""MySQL's ways of logging a transaction, each read from a real server's log."""

from __future__ import annotations

import pytest

from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server, transactions
from tests.mysql.sessions import after, changes_after, changes_since, inserted

T = "create table t (id int primary key, v int)"


@pytest.fixture
def t(mysql: MySqlStand, database: str) -> str:
    """A database with the table `t`."""
    mysql.execute(T, database=database)
    return database


@pytest.mark.parametrize("compression", ["off", "on"])
@pytest.mark.since(8, 0, 20)
def test_a_statement_on_several_tables(mysql: MySqlStand, t: str, compression: str) -> None:
    """All its table maps come first, then the rows of each."""
    mysql.execute("create table u like t", database=t)
    (first, second, update, delete) = after(
        mysql,
        t,
        f"set binlog_transaction_compression = {compression}",
        "insert into t values (1, 1), (2, 2)",
        "insert into u values (1, 1), (2, 2)",
        "update t, u set t.v = 9, u.v = 8 where t.id = u.id",
        "delete t, u from t join u using (id) where id = 1",
    )
    names = [[name.name for name in one.tables] for one in (first, second, update, delete)]
    assert names == [["t"], ["u"], ["t", "u"], ["t", "u"]]


@pytest.mark.since(9, 7)
def test_triggers_and_cascades_are_logged_as_rows(mysql: MySqlStand, t: str) -> None:
    """A trigger's rows may stand before those that fired it; since MySQL 9.6 so may those of
    a foreign key, which an older server leaves out of its log."""
    mysql.execute(
        "create table child (id int primary key, p int)",
        "create trigger b before insert on t for each row insert into child values (new.id, 0)",
        "create table kin (id int primary key, p int, foreign key (p) references t (id) "
        "on update cascade)",
        database=t,
    )
    found = after(
        mysql,
        t,
        "insert into t values (1, 1)",
        "insert into kin values (5, 1)",
        "update t set id = 2",
    )
    names = [[name.name for name in one.tables] for one in found]
    assert names == [["child", "t"], ["kin"], ["kin", "t"]]


@pytest.mark.since(8, 0, 21)
def test_a_table_as_select(mysql: MySqlStand, t: str) -> None:
    """The statement and its rows are one transaction."""
    mysql.execute("insert into t values (1, 1), (2, 2)", database=t)
    start = head(mysql)
    (one,) = after(mysql, t, "create table c (primary key (id)) as select * from t")
    assert (len(one.statements), [name.name for name in one.tables]) == (1, ["c"])
    assert one.statements[0].text.startswith("CREATE TABLE `c`")
    assert inserted(changes_since(mysql, start), "c") == [1, 2]


def test_the_statement_beside_its_rows_changes_nothing(mysql: MySqlStand, t: str) -> None:
    """ROWS_QUERY is for people: `_transactions` has its text."""
    (one,) = after(mysql, t, "set binlog_rows_query_log_events = on", "insert into t values (1, 1)")
    assert (one.statements, [name.name for name in one.tables]) == ((), ["t"])


@pytest.mark.since(8, 0, 23)
def test_generated_and_invisible_columns_are_there(mysql: MySqlStand, database: str) -> None:
    """With the values that a SELECT by name gives."""
    found = changes_after(
        mysql,
        database,
        "create table t (id int primary key, a int, v int as (a + 1) virtual, "
        "s int as (a + 2) stored, i int invisible default 5)",
        "insert into t (id, a) values (1, 1)",
        "update t set a = 2",
    )
    assert found[-1] == ("t", "update_postimage", (1, 2, 3, 4, 5))
    assert mysql.rows("select id, a, v, s, i from t", database) == [found[-1][2]]


@pytest.mark.parametrize(
    "statement",
    [
        "insert into t values (1, 1)",
        "insert into auto values ()",
        "insert into t values (2, rand())",
        "insert into t values (3, @a)",
    ],
)
def test_statement_format_is_told(mysql: MySqlStand, t: str, statement: str) -> None:
    """Any session may choose it, and its rows are not in the log: the statement is, and whatever
    value it used that its text does not tell."""
    mysql.execute("create table auto (id int auto_increment primary key)", database=t)
    found = after(mysql, t, "set binlog_format = statement", "set @a = 1", statement)
    told = [query for one in found for query in one.statements]
    assert [(one.text, one.replaces_rows) for one in told] == [(statement, True)]


def test_files_with_and_without_checksums_are_one_stream(mysql: MySqlStand, t: str) -> None:
    """Each file says by itself whether its events carry CRC32."""
    start = head(mysql)
    try:
        mysql.execute(
            "insert into t values (1, 1)",
            "set global binlog_checksum = none",
            "insert into t values (2, 2)",
            "flush binary logs",
            "insert into t values (3, 3)",
            "set global binlog_checksum = crc32",
            "insert into t values (4, 4)",
            database=t,
        )
    finally:
        mysql.execute("set global binlog_checksum = crc32")
    found = transactions(server(mysql), start)
    files = [one.end.file.number - start.file.number for one in found]
    assert files == [0, 1, 2, 3]
    assert inserted(changes_since(mysql, start)) == [1, 2, 3, 4]
