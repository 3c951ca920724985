"""Foreign keys that servers carry out without a word in the log: who loses rows is quarantined,
captured parents or not.

On MySQL with `innodb_native_foreign_keys=ON`, on MariaDB, and where MySQL logs it all.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from demo.mysql_search import Program
from demo.mysqld import mysql_server
from lockstep.pipeline.ports.ledger import unproven_structures
from lockstep.pipeline.ports.source import CurrentSchemas, SourceServer
from lockstep.pipeline.snapshot.pace import Pace
from lockstep.pipeline.source_plan import SnapshotPlan, TableSettings
from lockstep.pipeline.values.policies import ForeignKeys
from lockstep.pipeline.values.table import TableName, TablePatterns
from tests.fix_mysql import MySqlStand, killed_at_last
from tests.positions.follower import SOURCE
from tests.positions.paused import Shop
from tests.positions.servers import SMALL, make_account
from tests.positions.stories import stories_in, tell

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


class Elsewhere:
    """A server whose address another one answers at, once structures are asked for."""

    def __init__(self, real: SourceServer) -> None:
        self._real = real

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        return replace(self._real.current_schemas(tables), server_uuid="another")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


CAPTURED = ("kept", "beside")


@pytest.mark.parametrize("nameless", ["native", "mariadb"], indirect=True)
def test_stories_of_rows_that_no_log_tells_of(nameless: MySqlStand) -> None:
    """On a server that logs no more than the parent's event; only the children are captured."""
    tell(nameless, stories_in(globals()), (), TABLES, CAPTURED)


def ids(shop: Shop, table: str = "kept") -> list[int]:
    """Those that the changelog has."""
    return [row["id"] for row in shop.images(table)]


def equal(shop: Shop) -> bool:
    found = shop.follower.mirror(f"{shop.name}.kept")
    return found == sorted(shop.rows("kept"), key=lambda row: int(row["id"]))


def a_parent_that_is_not_captured_is_watched(shop: Shop) -> Iterator[None]:
    """Its deleted rows took the child's; other tables, and rows of before, go on. Resumed, the
    child is what the source has."""
    shop.do(
        "insert into kept values (3, 2, 'b')",
        "delete from middle where id = 1",
        "insert into kept values (4, 2, 'b')",
        "insert into beside values (2, 2)",
    )
    yield
    assert [*shop.quarantined()] == ["kept"]
    assert "ON DELETE CASCADE" in shop.quarantined()["kept"].reason
    assert ids(shop) == [1, 2, 3]
    assert [row["id"] for row in shop.follower.mirror(f"{shop.name}.beside")] == [1, 2]
    shop.resume("kept")
    shop.do("insert into kept values (5, 2, 'b')")
    yield
    yield
    assert shop.quarantined() == {}
    assert equal(shop)


def a_large_transaction_loses_all_of_its_rows(shop: Shop) -> Iterator[None]:
    """The rows that a child got in the transaction that cascades are not in its mirror."""
    shop.do(
        "begin",
        "insert into kept values (7, 2, 'b')",
        "delete from middle where id = 1",
        "insert into kept values (8, 2, 'b')",
        "commit",
    )
    yield
    assert [*shop.quarantined()] == ["kept"]
    assert ids(shop) == [1, 2]


def updates_count_where_a_referenced_column_changes(shop: Shop) -> Iterator[None]:
    """By its bytes: no value is decoded. The place is that of the update that did it."""
    shop.do("update middle set note = repeat('y', 300)", "update top set note = null")
    yield
    assert shop.quarantined() == {}
    shop.do("insert into kept values (3, 1, 'a')", "update middle set code = 'c' where id = 1")
    yield
    assert [*shop.quarantined()] == ["kept"]
    assert ids(shop) == [1, 2, 3]


def keys_that_come_later_are_watched_too(shop: Shop) -> Iterator[None]:
    """From the statement on, in one run with rows before and behind."""
    shop.do(
        "update top set note = 'before'",
        "alter table beside drop foreign key beside_ibfk_1, "
        "add foreign key later (top_id) references top (id) on update cascade",
        "insert into top values (3, 'x')",
        "insert into beside values (3, 3)",
        "update top set id = 30 where id = 3",
    )
    yield
    assert [*shop.quarantined()] == ["beside"]


def keys_that_are_dropped_are_not_watched(shop: Shop) -> Iterator[None]:
    """From the statement on."""
    for (key,) in shop.stand.rows(
        "select constraint_name from information_schema.referential_constraints "
        f"where constraint_schema = '{shop.name}' and table_name = 'kept'"
    ):
        shop.do(f"alter table kept drop foreign key {key}")
    shop.do("delete from middle")
    yield
    assert shop.quarantined() == {}
    assert equal(shop)


def sessions_that_check_nothing_change_nothing(shop: Shop) -> Iterator[None]:
    """`foreign_key_checks=0`: what is left behind refers to nothing."""
    shop.do("set foreign_key_checks = 0", "delete from middle")
    yield
    assert shop.quarantined() == {}
    assert equal(shop)


def a_parent_that_was_altered_without_the_log(shop: Shop) -> Iterator[None]:
    """Read by the history's structure, its update would look like one of another column. The child
    is set aside, and the parent's structure is the server's from then on."""
    shop.do(
        "create table pair (id int primary key, a int, b int, unique (a))",
        "insert into pair values (1, 10, 100)",
        "alter table beside add pair_a int, "
        "add foreign key (pair_a) references pair (a) on update cascade",
        "insert into beside values (7, 1, 10)",
    )
    yield
    assert shop.quarantined() == {}
    shop.unlogged("alter table pair modify a int after b")
    shop.do("update pair set a = 11", "insert into kept values (3, 2, 'b')")
    yield
    assert [*shop.quarantined()] == ["beside"]
    assert f"{shop.name}.pair, which its foreign keys lead to: its structure is not the " in (
        shop.quarantined()["beside"].reason
    )
    assert ids(shop) == [1, 2, 3]
    shop.resume("beside")
    yield
    shop.do("update pair set b = 101", "insert into beside values (8, 1, 11)")
    yield
    assert shop.quarantined() == {}
    mirror = shop.follower.mirror(f"{shop.name}.beside")
    assert [row["pair_a"] for row in mirror] == [None, 11, 11]
    shop.do("update pair set a = 12")
    yield
    assert "ON UPDATE CASCADE" in shop.quarantined()["beside"].reason


def however_far_above(shop: Shop) -> Iterator[None]:
    """The grandparent's event is all there is; `resnapshot` reads the grandchild again at once."""
    again = {"foreign_keys": ForeignKeys.RESNAPSHOT}
    settings = TableSettings(TablePatterns((f"{shop.name}.*",)), again)
    shop.follower.settings = [*shop.follower.settings, settings]
    shop.do("delete from beside", "delete from top where id = 1")
    assert len(shop.rows("kept")) == 1
    yield
    assert equal(shop)


# -- of a run as a whole -----------------------------------------------------------------------


@pytest.mark.parametrize("nameless", ["native"], indirect=True)
def test_a_parent_that_could_not_be_compared(nameless: MySqlStand) -> None:
    """The next run that reads the log asks about it, though it has no event of it."""
    tell(nameless, [_could_not_be_compared], (), TABLES, CAPTURED)


def _could_not_be_compared(shop: Shop) -> Iterator[None]:
    real = shop.follower.server
    shop.do("update middle set note = 'y'")
    shop.follower.server = cast("SourceServer", Elsewhere(real))
    yield
    left = unproven_structures(shop.follower.ledger, SOURCE)
    assert left is not None
    assert shop.table("middle") in left.tables
    shop.do("create table nothing (id int)")
    shop.follower.server = real
    yield
    assert shop.quarantined() == {}
    assert unproven_structures(shop.follower.ledger, SOURCE) is None


@pytest.mark.since(*LOGGED_SINCE)
def test_what_a_server_logs_is_followed(mysql: MySqlStand) -> None:
    """MySQL 9.7 as it comes."""
    tell(mysql, [_what_is_logged], (), TABLES, CAPTURED)


def _what_is_logged(shop: Shop) -> Iterator[None]:
    shop.do("delete from beside", "delete from top where id = 1", "update middle set code = 'z'")
    yield
    assert shop.quarantined() == {}
    assert equal(shop)


@pytest.mark.parametrize("nameless", ["mariadb"], indirect=True)
def test_chunks_that_were_read_before_count_no_more(nameless: MySqlStand) -> None:
    """A row of the first of them is gone, and no event says so."""
    tell(nameless, [_chunks_that_were_read_before], (), TABLES, CAPTURED)


def _chunks_that_were_read_before(shop: Shop) -> Iterator[None]:
    shop.do("insert into kept values (3, 2, 'b'), (4, 2, 'b')")
    yield
    follower = shop.follower
    with follower.leased() as lease:
        follower.ledger.order_load(lease, shop.table("kept"), author="ada", reason="because")
    by_rows = Pace(1e-9, least_rows=1, first_rows=1, most_rows=1)
    follower.snapshot = SnapshotPlan(max_seconds=1e-9, connections=1, pace=by_rows)
    yield
    (loading,) = shop.reports[-1].unfinished_loads
    assert loading.rows == 1
    shop.do("delete from middle where id = 1", "insert into kept values (5, 2, 'b')")
    yield
    assert [*shop.quarantined()] == ["kept"]
    shop.resume("kept")
    follower.snapshot = SnapshotPlan()
    yield
    yield
    assert shop.quarantined() == {}
    assert equal(shop)
