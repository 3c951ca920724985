"""Rows of XA transactions, when what is captured changes between a prepare and its commit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import Follower
from tests.positions.paused import Shop
from tests.positions.servers import prepare_xa
from tests.positions.test_parts import require_equal


@pytest.fixture(params=("mysql", "mysql57", "mariadb11"))
def stand(request: pytest.FixtureRequest) -> Iterator[MySqlStand]:
    """Each server in turn."""
    stand: MySqlStand = request.getfixturevalue(request.param)
    stand.begin_file()
    yield stand


def opened(stand: MySqlStand, name: str, *tables: str) -> Shop:
    """Tables `a` and `t` with rows; of them `tables` are captured."""
    shop = Shop(stand, name, Follower(server(stand), [f"{name}.{table}" for table in tables]))
    shop.do(
        "create table t (id int primary key, v int)",
        "insert into t values (1, 1), (3, 3), (4, 4)",
    )
    shop.follower.start = str(head(stand))
    shop.do("create table a (id int primary key, v int)", "insert into a values (1, 1)")
    shop.run()
    return shop


def prepare(shop: Shop, xid: str = "x") -> None:
    """One that inserts, updates and deletes rows of both tables."""
    prepare_xa(
        shop.stand,
        xid,
        f"insert into {shop.name}.t values (2, 2)",
        f"update {shop.name}.t set v = 9 where id = 1",
        f"delete from {shop.name}.t where id = 3",
        f"insert into {shop.name}.a values (2, 2)",
    )


@pytest.mark.thin
@pytest.mark.parametrize("word", ["commit", "rollback"])
def test_a_table_joins_between_a_prepare_and_its_end(stand: MySqlStand, word: str) -> None:
    """However the runs lie between the three, and whether the rows were wanted at the prepare or
    not: its mirror has what the server has."""
    for number, runs in enumerate(product((False, True), repeat=3)):
        with stand.own_database() as name:
            shop, xid = opened(stand, name, "a"), f"{word}{number}"
            prepare(shop, xid)
            if runs[0]:
                shop.run()
            shop.follower.tables = [f"{name}.*"]
            shop.follower.start = "snapshot"
            if runs[1]:
                shop.run()
            shop.do("insert into t values (5, 5)", "update t set v = 7 where id = 4")
            if runs[2]:
                shop.run()
            shop.stand.execute(f"xa {word} '{xid}'")
            shop.do("insert into t values (6, 6)")
            shop.run()
            shop.run()
            require_equal(shop, "a")
            require_equal(shop, "t")


@pytest.mark.parametrize("stand", ["mariadb"], indirect=True)
def test_a_prepared_parent_takes_rows_of_a_child_that_joins(stand: MySqlStand) -> None:
    """MariaDB does not log what ON DELETE CASCADE takes: the parent's rows are looked at where
    they are committed, though nobody watched the parent when they were prepared."""
    with stand.own_database() as name:
        shop = opened(stand, name, "a")
        shop.do(
            "create table p (id int primary key)",
            "create table c (id int primary key, foreign key (id) references p (id) "
            "on delete cascade)",
            "insert into p values (1), (2)",
            "insert into c values (1), (2)",
        )
        prepare_xa(stand, name, f"delete from {name}.p where id = 1")
        shop.run()
        shop.follower.tables = [f"{name}.a", f"{name}.c"]
        shop.follower.start = "snapshot"
        shop.run()
        stand.execute(f"xa commit '{name}'")
        [lost] = shop.run().quarantined
        assert lost.table == shop.table("c")


# DROP DATABASE is not among them: 5.7.22 corrupts its own memory when such a transaction is
# committed, and dies in whichever session comes next.
MOVES = {
    "truncate": ("truncate table t",),
    "drop and create": ("drop table t", "create table t (id int primary key, v int)"),
    "rename": ("rename table t to tu",),
    "rename into what is captured": ("rename table other to tu",),
    "rename and back": ("rename table t to tu", "rename table tu to t"),
}


@pytest.mark.thin
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("runs", [(False, False), (True, False), (True, True)])
def test_a_statement_on_a_prepared_table(
    mysql57: MySqlStand, move: str, runs: tuple[bool, bool]
) -> None:
    """MySQL 5.7 lets go of a table when the session that prepared is gone: what the commit brings
    then only the source knows."""
    with mysql57.own_database() as name:
        shop = opened(mysql57, name, "a", "t*")
        shop.follower.start = "snapshot"
        shop.do("create table other (id int primary key, v int)", "insert into other values (1, 1)")
        shop.run()
        prepare(shop, name)
        prepare_xa(
            mysql57,
            name + "-other",
            f"insert into {name}.other values (2, 2)",
            f"update {name}.other set v = 9 where id = 1",
        )
        if runs[0]:
            shop.run()
        shop.do("do sleep(0.1)", *MOVES[move])
        shop.run()
        if runs[1]:
            shop.run()
        shop.do(f"xa commit '{name}'", f"xa commit '{name}-other'", "insert into a values (7, 7)")
        shop.run()
        shop.run()
        for table in ("a", "t", "tu"):
            if shop.stand.rows(f"show tables in {name} like '{table}'"):
                require_equal(shop, table)
