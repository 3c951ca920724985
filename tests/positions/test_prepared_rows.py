"""Rows of XA transactions, when what is captured changes between a prepare and its commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product

import pytest

from lockstep.pipeline.values.errors import SourceUnavailable
from tests.chance import by_chance
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import Follower
from tests.positions.paused import Shop
from tests.positions.servers import is_mariadb, prepare_xa
from tests.positions.stories import tell
from tests.positions.test_parts import require_equal


@pytest.fixture(
    params=("mysql", "mysql57", "mariadb", pytest.param("mariadb11", marks=pytest.mark.soak))
)
def stand(request: pytest.FixtureRequest) -> Iterator[MySqlStand]:
    """Each server in turn."""
    stand: MySqlStand = request.getfixturevalue(request.param)
    stand.begin_file()
    yield stand


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


ENDS = [*product(("commit", "rollback"), product((False, True), repeat=3))]
"""How the transaction ends, and whether a run comes behind its prepare, behind the table's name in
the patterns, and behind what others write then."""


@pytest.mark.thin
def test_a_table_joins_between_a_prepare_and_its_end(stand: MySqlStand) -> None:
    """However the runs lie between the three, and whether the rows were wanted at the prepare or
    not: its mirror has what the server has. All on a MySQL of today, and some on others."""
    rows = ("insert into t values (3, 3), (4, 4)",)
    ends = ENDS
    if stand.version < (9,) or is_mariadb(stand):
        ends = by_chance().sample(ENDS, 5)
    tell(stand, [partial(_joins, *end) for end in ends], ("t", "a"), rows, ["a"])


def _joins(word: str, runs: Sequence[bool], shop: Shop) -> Iterator[None]:
    prepare(shop, shop.name)
    if runs[0]:
        yield
    shop.follower.tables = [*shop.follower.tables, f"{shop.name}.t"]
    shop.follower.start = "snapshot"
    if runs[1]:
        yield
    shop.do("insert into t values (5, 5)", "update t set v = 7 where id = 4")
    if runs[2]:
        yield
    shop.stand.execute(f"xa {word} '{shop.name}'")
    shop.do("insert into t values (6, 6)")
    yield
    yield
    require_equal(shop, "a")
    require_equal(shop, "t")


@pytest.mark.parametrize("stand", ["mariadb"], indirect=True)
def test_a_prepared_parent_takes_rows_of_a_child_that_joins(stand: MySqlStand) -> None:
    """MariaDB does not log what ON DELETE CASCADE takes: the parent's rows are looked at where
    they are committed, though nobody watched the parent when they were prepared."""
    family = (
        "create table p (id int primary key)",
        "create table c (id int primary key, foreign key (id) references p (id) on delete cascade)",
        "insert into p values (1), (2)",
        "insert into c values (1), (2)",
    )
    tell(stand, [_a_child_joins], ("a",), family, ["a"])


def _a_child_joins(shop: Shop) -> Iterator[None]:
    prepare_xa(shop.stand, shop.name, f"delete from {shop.name}.p where id = 1")
    yield
    shop.follower.tables = [f"{shop.name}.a", f"{shop.name}.c"]
    shop.follower.start = "snapshot"
    yield
    shop.do(f"xa commit '{shop.name}'")
    yield
    assert [*shop.quarantined()] == ["c"]


# DROP DATABASE is not among them: 5.7.22 corrupts its own memory when such a transaction is
# committed, and dies in whichever session comes next.
MOVES = {
    "truncate": ("truncate table t",),
    "drop and create": ("drop table t", "create table t (id int primary key, v int)"),
    "rename": ("rename table t to tu",),
    "rename into what is captured": ("rename table other to tu",),
    "rename and back": ("rename table t to tu", "rename table tu to t"),
}
BETWEEN = [(False, False), (True, True), pytest.param((True, False), marks=pytest.mark.soak)]
"""Whether a run comes behind the prepare, and a second one behind the statement."""


def run(follower: Follower, stand: MySqlStand) -> None:
    """A run, and another where the server fell over meanwhile (`MySqlStand.crashes`)."""
    try:
        follower.run()
    except SourceUnavailable:
        stand.connect().close()
        follower.run()


@pytest.mark.parametrize("runs", BETWEEN, ids=str)
def test_statements_on_prepared_tables(mysql57: MySqlStand, runs: tuple[bool, bool]) -> None:
    """MySQL 5.7 lets go of a table when the session that prepared is gone: what the commit brings
    then only the source knows."""
    with ExitStack() as stack:
        names = [stack.enter_context(mysql57.own_database()) for _ in MOVES]
        follower = Follower(server(mysql57), (), str(head(mysql57)))
        follower.tables = [f"{name}.{table}" for name in names for table in ("a", "t*")]
        shops = [Shop(mysql57, name, follower) for name in names]
        for shop in shops:
            shop.make(("a", "t", "other"))
            shop.do("insert into t values (3, 3), (4, 4)")
        run(follower, mysql57)
        follower.start = "snapshot"
        for shop in shops:
            prepare(shop, shop.name)
            prepare_xa(
                mysql57,
                f"{shop.name}-other",
                f"insert into {shop.name}.other values (2, 2)",
                f"update {shop.name}.other set v = 9 where id = 1",
            )
        if runs[0]:
            run(follower, mysql57)
        for shop, move in zip(shops, MOVES.values(), strict=True):
            shop.do("do sleep(0.1)", *move)
        run(follower, mysql57)
        if runs[1]:
            run(follower, mysql57)
        for shop in shops:
            ends = (f"xa commit '{xid}'" for xid in (shop.name, f"{shop.name}-other"))
            shop.do(*ends, "insert into a values (7, 7)")
        run(follower, mysql57)
        run(follower, mysql57)
        for shop in shops:
            for table in ("a", "t", "tu"):
                if mysql57.rows(f"show tables in {shop.name} like '{table}'"):
                    require_equal(shop, table)
