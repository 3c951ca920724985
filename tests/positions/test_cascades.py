"""Foreign keys that servers carry out without a word in the log: who loses rows is quarantined,
captured parents or not.

On MySQL with `innodb_native_foreign_keys=ON`, on MariaDB, and where MySQL logs it all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from demo.mysql_search import Program
from demo.mysqld import mysql_server
from pipeline.policies import ForeignKeys, LakePolicies
from pipeline.ports.source import CurrentSchemas, SourceServer
from pipeline.snapshot.pace import Pace
from pipeline.source_plan import SnapshotPlan
from pipeline.table import TableName
from pipeline.table_state import OrderKind, Quarantine
from tests.fix_mysql import MySqlStand, killed_at_last
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import SMALL, make_account

LOGGED_SINCE = (9, 6)

TABLES = (
    "create table top (id int primary key, note text)",
    "create table middle (id int primary key, top_id int, code varchar(10) collate utf8mb4_bin, "
    "note text, unique (code), foreign key (top_id) references top (id) on delete cascade)",
    "create table kept (id int primary key, middle_id int, code varchar(10) collate utf8mb4_bin, "
    "foreign key (middle_id) references middle (id) on delete cascade, "
    "foreign key (code) references middle (code) on update cascade on delete cascade)",
    "create table beside (id int primary key, top_id int, "
    "foreign key (top_id) references top (id))",
    "insert into top values (1, 'x'), (2, 'x')",
    "insert into middle values (1, 1, 'a', 'x'), (2, 2, 'b', 'x')",
    "insert into kept values (1, 1, 'a'), (2, 2, 'b')",
    "insert into beside values (1, 1)",
)


@pytest.fixture(scope="module")
def native(
    mysql: MySqlStand, mysql_program: Program, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MySqlStand]:
    """A MySQL whose engine carries out foreign keys, as each does before 9.6."""
    if mysql.version < LOGGED_SINCE:
        yield mysql
        return
    options = (*SMALL, "--innodb-native-foreign-keys=ON", "--binlog-row-metadata=MINIMAL")
    folder = tmp_path_factory.mktemp("native")
    made = mysql_server(mysql_program, folder, os.environ, options=options)
    with killed_at_last(made) as running:
        stand = MySqlStand(running)
        make_account(stand)
        yield stand


@pytest.fixture(params=["native", "mariadb"])
def unlogged(request: pytest.FixtureRequest) -> MySqlStand:
    """A server that logs no more than the parent's event."""
    stand: MySqlStand = request.getfixturevalue(request.param)
    return stand


class Elsewhere:
    """A server whose address another one answers at, once structures are asked for."""

    def __init__(self, real: SourceServer) -> None:
        self._real = real

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        return replace(self._real.current_schemas(tables), server_uuid="another")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class Shop:
    """Four tables, of which only `kept` and `beside` are captured."""

    def __init__(self, stand: MySqlStand, **policies: Any) -> None:
        self.stand, self.name = stand, stand.fresh_name()
        stand.execute(f"create database {self.name} character set utf8mb4")
        tables = [f"{self.name}.kept", f"{self.name}.beside"]
        start, lake = str(head(stand)), LakePolicies(**policies)
        self.put(*TABLES)
        self.follower = Follower(server(stand), tables, start, lake_policies=lake)
        self.follower.run()

    def put(self, *statements: str) -> None:
        self.stand.execute(*statements, database=self.name)

    def quarantined(self) -> dict[str, Quarantine]:
        """What the next run quarantines."""
        return {one.table.name: one for one in self.follower.run().quarantined}

    def equal(self) -> bool:
        found = self.follower.mirror(f"{self.name}.kept")
        return [tuple(row.values()) for row in found] == self.rows()

    def captured(self) -> list[int]:
        """The ids that the changelog of `kept` has."""
        rows = self.follower.lake.tables[f"{SOURCE}/_changes/{self.name}/kept"][-1].rows
        return [row["id"] for row in rows.to_pylist()]

    def rows(self) -> list[tuple[Any, ...]]:
        return self.stand.rows("select * from kept order by id", self.name)


Opens = Callable[..., Shop]


@pytest.fixture
def open_shop() -> Iterator[Opens]:
    """Shops whose databases are dropped afterwards."""
    made: list[Shop] = []

    def opened(stand: MySqlStand, **policies: ForeignKeys) -> Shop:
        made.append(Shop(stand, **policies))
        return made[-1]

    yield opened
    for shop in made:
        shop.stand.execute(f"drop database {shop.name}")


def test_a_parent_that_is_not_captured_is_watched(open_shop: Opens, unlogged: MySqlStand) -> None:
    """Its deleted rows took the child's; other tables, and rows of before, go on."""
    shop = open_shop(unlogged)
    shop.put(
        "insert into kept values (3, 2, 'b')",
        "delete from middle where id = 1",
        "insert into kept values (4, 2, 'b')",
        "insert into beside values (2, 2)",
    )
    quarantined = shop.quarantined()
    assert list(quarantined) == ["kept"]
    assert "ON DELETE CASCADE" in quarantined["kept"].reason
    assert shop.captured() == [1, 2, 3]
    assert [row["id"] for row in shop.follower.mirror(f"{shop.name}.beside")] == [1, 2]


def test_however_far_above(open_shop: Opens, unlogged: MySqlStand) -> None:
    """The grandparent's event is all there is; `resnapshot` reads the grandchild again at
    once."""
    shop = open_shop(unlogged, foreign_keys=ForeignKeys.RESNAPSHOT)
    shop.put("delete from beside", "delete from top where id = 1")
    assert len(shop.rows()) == 1
    shop.follower.run()
    assert shop.equal()


def test_updates_count_where_a_referenced_column_changes(
    open_shop: Opens, unlogged: MySqlStand
) -> None:
    """By its bytes: no value is decoded. The place is that of the update that did it."""
    shop = open_shop(unlogged)
    shop.put("update middle set note = repeat('y', 300)", "update top set note = null")
    assert shop.quarantined() == {}
    shop.put("insert into kept values (3, 1, 'a')", "update middle set code = 'c' where id = 1")
    assert list(shop.quarantined()) == ["kept"]
    assert shop.captured() == [1, 2, 3]


def test_keys_that_come_later_are_watched_too(open_shop: Opens, unlogged: MySqlStand) -> None:
    """From the statement on, in one run with rows before and behind; dropped ones are not."""
    shop = open_shop(unlogged)
    shop.put(
        "update top set note = 'before'",
        "alter table beside drop foreign key beside_ibfk_1, "
        "add foreign key later (top_id) references top (id) on update cascade",
        "insert into top values (3, 'x')",
        "insert into beside values (3, 3)",
        "update top set id = 30 where id = 3",
    )
    assert list(shop.quarantined()) == ["beside"]
    other = open_shop(unlogged)
    for key in other.stand.rows(
        "select constraint_name from information_schema.referential_constraints "
        f"where constraint_schema = '{other.name}' and table_name = 'kept'"
    ):
        other.put(f"alter table kept drop foreign key {key[0]}")
    other.put("delete from middle")
    assert other.quarantined() == {}
    assert other.equal()


def test_sessions_that_check_nothing_change_nothing(open_shop: Opens, unlogged: MySqlStand) -> None:
    """`foreign_key_checks=0`: what is left behind refers to nothing."""
    shop = open_shop(unlogged)
    with unlogged.connect(shop.name) as connection, connection.cursor() as cursor:
        cursor.execute("set foreign_key_checks = 0")
        cursor.execute("delete from middle")
    assert shop.quarantined() == {}
    assert shop.equal()


@pytest.fixture
def nameless(unlogged: MySqlStand) -> Iterator[MySqlStand]:
    """Such a server, whose log does not name columns."""
    flavour = unlogged.rows("select version()")[0][0]
    with unlogged.metadata("NO_LOG" if "MariaDB" in flavour else "MINIMAL"):
        yield unlogged


def test_a_parent_that_was_altered_without_the_log(open_shop: Opens, nameless: MySqlStand) -> None:
    """Read by the history's structure, its update would look like one of another column. The child
    is set aside, and the parent's structure is the server's from then on."""
    shop = open_shop(nameless)
    shop.put(
        "create table pair (id int primary key, a int, b int, unique (a))",
        "insert into pair values (1, 10, 100)",
        "alter table beside add pair_a int, "
        "add foreign key (pair_a) references pair (a) on update cascade",
        "insert into beside values (7, 1, 10)",
    )
    assert shop.quarantined() == {}
    shop.put(
        "set sql_log_bin = 0",
        "alter table pair modify a int after b",
        "set sql_log_bin = 1",
        "update pair set a = 11",
        "insert into kept values (3, 2, 'b')",
    )
    quarantined = shop.quarantined()
    assert list(quarantined) == ["beside"]
    assert f"{shop.name}.pair, which its foreign keys lead to: its structure is not the " in (
        quarantined["beside"].reason
    )
    assert shop.captured() == [1, 2, 3]
    ledger, table = shop.follower.ledger, TableName(shop.name, "beside")
    with ledger.lock(SOURCE, "test", None) as lease:
        ledger.order_table(lease, table, OrderKind.RELEASE, author="ada", reason="read again")
    shop.follower.run()
    shop.put("update pair set b = 101", "insert into beside values (8, 1, 11)")
    assert shop.quarantined() == {}
    mirror = shop.follower.mirror(f"{shop.name}.beside")
    assert [row["pair_a"] for row in mirror] == [None, 11, 11]
    shop.put("update pair set a = 12")
    assert "ON UPDATE CASCADE" in shop.quarantined()["beside"].reason


def test_a_parent_that_could_not_be_compared(open_shop: Opens, unlogged: MySqlStand) -> None:
    """The next run that reads the log asks about it, though it has no event of it."""
    shop = open_shop(unlogged)
    real = shop.follower.server
    shop.put("update middle set note = 'y'")
    shop.follower.server = cast("SourceServer", Elsewhere(real))
    shop.follower.run()
    left = shop.follower.ledger.unproven(SOURCE)
    assert left is not None
    assert TableName(shop.name, "middle") in left.tables
    shop.put("create table nothing (id int)")
    shop.follower.server = real
    assert shop.quarantined() == {}
    assert shop.follower.ledger.unproven(SOURCE) is None


def test_a_large_transaction_loses_all_of_its_rows(open_shop: Opens, native: MySqlStand) -> None:
    """The rows that a child got in the transaction that cascades are not in its mirror."""
    shop = open_shop(native)
    with native.connect(shop.name) as connection, connection.cursor() as cursor:
        cursor.execute("begin")
        cursor.execute("insert into kept values (7, 2, 'b')")
        cursor.execute("delete from middle where id = 1")
        cursor.execute("insert into kept values (8, 2, 'b')")
        cursor.execute("commit")
    assert list(shop.quarantined()) == ["kept"]
    assert shop.captured() == [1, 2]


@pytest.mark.since(*LOGGED_SINCE)
def test_what_a_server_logs_is_followed(open_shop: Opens, mysql: MySqlStand) -> None:
    """MySQL 9.7 as it comes."""
    shop = open_shop(mysql)
    shop.put("delete from beside", "delete from top where id = 1", "update middle set code = 'z'")
    assert shop.quarantined() == {}
    assert shop.equal()


def test_chunks_that_were_read_before_count_no_more(open_shop: Opens, unlogged: MySqlStand) -> None:
    """A row of the first of them is gone, and no event says so."""
    shop = open_shop(unlogged)
    shop.put("insert into kept values (3, 2, 'b'), (4, 2, 'b')")
    shop.follower.run()
    ledger, table = shop.follower.ledger, TableName(shop.name, "kept")
    with ledger.lock(SOURCE, "test", None) as lease:
        ledger.order_load(lease, table, author="ada", reason="because")
    by_rows = Pace(1e-9, least=1, first=1, most=1)
    shop.follower.snapshot = SnapshotPlan(seconds=1e-9, connections=1, pace=by_rows)
    (loading,) = shop.follower.run().loading
    assert loading.rows == 1
    shop.put("delete from middle where id = 1", "insert into kept values (5, 2, 'b')")
    assert list(shop.quarantined()) == ["kept"]
    with ledger.lock(SOURCE, "test", None) as lease:
        ledger.order_table(
            lease, table, OrderKind.RELEASE, author="ada", reason="it lost what it had to lose"
        )
    shop.follower.snapshot = SnapshotPlan()
    shop.follower.run()
    assert shop.quarantined() == {}
    assert shop.equal()


def test_released_it_is_read_and_goes_on(open_shop: Opens, native: MySqlStand) -> None:
    """One word, and the child is what the source has."""
    shop = open_shop(native)
    shop.put("delete from middle where id = 1")
    assert list(shop.quarantined()) == ["kept"]
    ledger, table = shop.follower.ledger, TableName(shop.name, "kept")
    with ledger.lock(SOURCE, "test", None) as lease:
        ledger.order_table(
            lease, table, OrderKind.RELEASE, author="ada", reason="it lost what it had to lose"
        )
    shop.put("insert into kept values (5, 2, 'b')")
    shop.follower.run()
    assert shop.quarantined() == {}
    assert shop.equal()
