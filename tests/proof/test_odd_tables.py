"""Tables of odd shapes, and structures that change while others write: proven, or not proven with
the cure, and never taken for wrong."""

from __future__ import annotations

import time
from dataclasses import replace
from random import Random

import pytest

from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.outside import verify
from tests.positions.follower import Follower
from tests.proof.test_while_writing import made
from tests.proof.writing import spoil, writers

SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 8))]

ALTERED = (
    "alter table hot add column x int default 3",
    "alter table hot drop column x",
    "alter table hot add index by_a (a)",
    "alter table hot drop index by_a",
    "alter table hot modify a varchar(60)",
    "alter table hot modify a varchar(30)",
    "truncate table hot",
    "alter table hot engine = innodb",
)


@pytest.mark.parametrize("seed", SEEDS)
def test_structures_change_while_others_write(mysql: MySqlStand, database: str, seed: int) -> None:
    """Whatever runs and comparisons come between: nothing differs that nobody spoiled, and the
    other table is proven each time."""
    chance = Random(seed)
    hot = made(mysql, database)
    waiting = [ALTERED[n : n + 2] for n in range(0, len(ALTERED), 2)]
    chance.shuffle(waiting)
    proven = 0
    with writers(mysql, database, ["hot", "quiet"], 2):
        for first, second in waiting:
            for statement in (first, second):
                hot.do("set lock_wait_timeout = 60", statement)
                if chance.random() < 0.7:
                    hot.follower.run()
                found = hot.verify()
                assert not found.differs, found
                proven += sum(table.equal for table in found.tables)
                time.sleep(0.05)
        hot.follower.run()
        assert hot.verify().equal
    assert proven >= len(ALTERED)


@pytest.mark.parametrize("wide", [250, pytest.param(1000, marks=pytest.mark.soak)])
def test_a_wide_table(mysql: MySqlStand, database: str, wide: int) -> None:
    """One value of thousands is found, with its column."""
    kinds = ("tinyint", "varchar(3)", "double", "datetime(2)", "decimal(5,2)")
    columns = ", ".join(f"c{n} {kinds[n % 5]}" for n in range(wide))
    values = ", ".join(("7", "'x'", "0.5", "'2024-01-01'", "1.25")[n % 5] for n in range(wide))
    follower = Follower(server(mysql), [f"{database}.*"])
    mysql.execute(f"create table t (id int primary key, {columns})", database=database)
    follower.run()
    rows = ", ".join(f"({n}, {values})" for n in range(20))
    mysql.execute(f"insert into t values {rows}", database=database)
    follower.run()
    mysql.execute(f"update t set c{wide - 1} = 2 where id = 3", database=database)
    assert verify(follower.ports()).equal
    spoil(follower, TableName(database, "t"), lambda rows: rows[15].update(c201="y"))
    (found,) = verify(follower.ports()).tables
    assert [(row.key, row.columns) for row in found.rows] == [("id=15", ("c201",))]


@pytest.mark.soak
def test_a_row_of_sixty_megabytes(mysql: MySqlStand, database: str) -> None:
    """As long as a packet may be, by the log and read from the table; a byte at its end is
    found."""
    follower = Follower(server(mysql), [f"{database}.*"], start="snapshot")
    row = "(%d, repeat('x', 60 << 20), 'short'), (%d, null, repeat('é', 1 << 20))"
    mysql.execute(
        "create table t (id int primary key, b longblob, c longtext)",
        f"insert into t values {row % (1, 2)}",
        database=database,
    )
    follower.run()
    mysql.execute(f"insert into t values {row % (3, 4)}", database=database)
    follower.run()
    mysql.execute("update t set c = 'other' where id = 1", database=database)
    assert verify(follower.ports()).equal
    spoil(follower, TableName(database, "t"), lambda rows: rows[0].update(b=rows[0]["b"][:-1]))
    (found,) = verify(follower.ports()).tables
    assert [(row.key, row.columns) for row in found.rows] == [("id=1", ("b",))]


def test_empty_tables(mysql: MySqlStand, database: str) -> None:
    """With and without a mirror; a row on either side alone is found."""
    follower = Follower(server(mysql), [f"{database}.*"])
    mysql.execute(
        "create table never (id int primary key)",
        "create table emptied (id int primary key)",
        "create table keyless (v int)",
        database=database,
    )
    follower.run()
    mysql.execute(
        "insert into emptied values (1)", "insert into keyless values (null)", database=database
    )
    follower.run()
    mysql.execute("delete from emptied", "delete from keyless", database=database)
    assert verify(follower.ports()).equal
    follower.run()
    assert verify(follower.ports()).equal
    spoil(follower, TableName(database, "emptied"), lambda rows: rows.append({"id": 9}))
    spoil(follower, TableName(database, "keyless"), lambda rows: rows.append({"v": None}))
    mysql.execute("set sql_log_bin = 0", "insert into never values (1)", database=database)
    found = {table.table.name: table for table in verify(follower.ports()).tables}
    assert [(name, one.only_in_source, one.only_in_lake) for name, one in found.items()] == [
        ("emptied", 0, 1),
        ("keyless", 0, 1),
        ("never", 1, 0),
    ]


def test_rows_that_differ_come_in_the_order_of_their_keys(mysql: MySqlStand, database: str) -> None:
    """By value where a column of the key is a number: 9 before 10, and -1 before both."""
    start = str(head(mysql))
    keys = [(-1, "b"), (2, "a"), (9, "b"), (10, "a"), (10, "b"), (100, "a")]
    mysql.execute(
        "create table t (id bigint, s varchar(5), n decimal(5,1), primary key (id, s))",
        "create table bare (n decimal(5,1))",
        *(f"insert into t values ({number}, '{text}', 1)" for number, text in keys),
        "insert into bare values (null), (9.5), (10), (-2)",
        database=database,
    )
    follower = Follower(server(mysql), [f"{database}.*"], start)
    follower.run()
    for commits in follower.lake.tables.values():
        commits[-1] = replace(commits[-1], rows=commits[-1].rows.slice(0, 0))
    bare, table = verify(follower.ports(), show_values=True).tables
    assert [row.key for row in table.rows] == [f"id={number}, s='{text}'" for number, text in keys]
    assert [row.key for row in bare.rows] == ["n=None", "n=-2.0", "n=9.5", "n=10.0"]
