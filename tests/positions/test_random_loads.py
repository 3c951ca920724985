"""Tables of every type, read while others write to them and alter them: once it is quiet each
mirror is equal to its table, and no table stays behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Final

import pymysql
import pytest
from pymysql.constants import CLIENT
from pymysql.cursors import Cursor

from lockstep.pipeline.run.proof.verify_rows import verify
from lockstep.pipeline.snapshot.pace import Pace
from lockstep.pipeline.source_plan import SnapshotPlan
from tests.chance import by_chance
from tests.fix_mysql import MySqlStand
from tests.mysql.random_tables import RandomTable, random_tables
from tests.mysql.random_writes import RandomWrites
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower

TABLES: Final = 4
WRITERS: Final = 3
BUSY: Final = 4
"""Runs while they write."""

MOST: Final = 120
"""Transactions of a writer, and a tenth as many statements of who alters: a slow machine is not
busy with them alone."""

RUNS: Final = 6
"""As many more may read what is left."""

CASES: Final = [
    (None, 1),
    *(
        pytest.param(flavour, seed, marks=pytest.mark.soak)
        for flavour in ("mysql", "mariadb", "mariadb11")
        for seed in range(4, 24)
    ),
]
ALTERS: Final = (
    "alter table {0} add column extra int not null default 7",
    "alter table {0} drop column extra",
    "alter table {0} add column later varchar(9) first",
    "alter table {0} drop column later",
    "alter table {0} engine = innodb",
    "truncate table {0}",
    "rename table {0} to away; rename table away to {0}",
    "drop table if exists gone, made; create table made like {0};"
    " rename table {0} to gone, made to {0}",
)


@dataclass
class Shop:
    """Tables of a server with rows that no log has, and who writes to them."""

    stand: MySqlStand
    database: str
    chance: Random
    tables: list[RandomTable] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def fill(self) -> None:
        """Of what chance makes, the tables that this server can have."""
        made = (table for table in random_tables(self.chance, 200) if self._created(table))
        self.tables = list(islice(made, TABLES))
        with self.session() as session, session.cursor() as cursor:
            cursor.execute("flush binary logs")

    def _created(self, table: RandomTable) -> bool:
        names = ", ".join(table.written)
        with self.session() as session, session.cursor() as cursor:
            cursor.execute(f"drop table if exists {table.name}")
            try:
                cursor.execute(table.create())
                for _ in range(3):
                    rows = ", ".join(table.row(self.chance) for _ in range(40))
                    cursor.execute(f"insert ignore into {table.name} ({names}) values {rows}")
            except pymysql.err.MySQLError:
                cursor.execute(f"drop table if exists {table.name}")
                return False
        return True

    @contextmanager
    def session(self) -> Iterator[pymysql.Connection[Cursor]]:
        with self.stand.connect(
            self.database,
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
            init_command="set time_zone = '+00:00', sql_mode = ''",
        ) as session:
            yield session

    @contextmanager
    def busy(self) -> Iterator[None]:
        tasks = (*[self._write] * WRITERS, self._alter)
        threads = [
            threading.Thread(target=task, args=(Random(self.chance.random()),)) for task in tasks
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()

    def _write(self, chance: Random) -> None:
        """What others, or an ALTER, make impossible is left."""
        writes = RandomWrites(chance, self.tables)
        left = iter(range(MOST))
        while not self.stop.is_set() and next(left, None) is not None:
            with suppress(pymysql.err.MySQLError), self.session() as session:
                while not self.stop.wait(0.03) and next(left, None) is not None:
                    _send(session, writes.transaction())

    def _alter(self, chance: Random) -> None:
        names = [table.name for table in self.tables]
        for _ in range(MOST // 10):
            if self.stop.wait(chance.uniform(0.1, 0.8)):
                return
            with suppress(pymysql.err.MySQLError), self.session() as session:
                _send(session, ["set lock_wait_timeout = 1"])
                _send(session, [chance.choice(ALTERS).format(chance.choice(names))])


def _send(session: pymysql.Connection[Cursor], statements: Sequence[str]) -> None:
    """Not what is prepared: it outlives a session that fails half-way, with its locks."""
    kept = [statement for statement in statements if "compression" not in statement]
    if any(one.startswith("xa prepare") for one in kept):
        return
    with session.cursor() as cursor:
        cursor.execute("; ".join(kept))
        while cursor.nextset():
            pass


@pytest.mark.parametrize(("flavour", "seed"), CASES)
def test_mirrors_are_the_tables(
    flavour: str | None, seed: int, request: pytest.FixtureRequest
) -> None:
    """Chunks of twenty rows, three at a time, over several runs; nothing waits for a person. The
    server is drawn where none is named."""
    drawn = flavour or by_chance().choice(["mysql", "mariadb"])
    stand: MySqlStand = request.getfixturevalue(drawn)
    shop = Shop(stand, stand.fresh_name(), Random(seed))
    stand.execute(f"create database {shop.database} character set utf8mb4")
    shop.fill()
    follower = Follower(server(stand), [f"{shop.database}.t*"], start="snapshot")
    pace = Pace(seconds=1e-9, least_rows=20, first_rows=20, most_rows=20)
    follower.snapshot = SnapshotPlan(max_seconds=0.2, connections=3, pace=pace)
    with shop.busy():
        for _ in range(BUSY):
            follower.run()
    follower.snapshot = SnapshotPlan(max_seconds=1e9, connections=3, pace=pace)
    for _ in range(RUNS):
        follower.run()
        if not unread(follower):
            break
    told = verify(follower.ports())
    assert {str(one.table): one.equal for one in told.tables} == {
        f"{shop.database}.{table.name}": True for table in shop.tables
    }, [(str(one.table), one.reason, one.position) for one in told.quarantined]
    stand.execute(f"drop database {shop.database}")


def unread(follower: Follower) -> bool:
    """Whether a table waits for a run to read it."""
    states = follower.ledger.table_states(SOURCE).values()
    return not any(state.is_complete for state in states)
