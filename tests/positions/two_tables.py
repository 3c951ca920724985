"""Two tables on a real server and their follower: what tests of batches write to.

Belongs here: writing to both, what the lake and the books show, and holders that are
overtaken while they sleep. Does not: what must be true of them (the tests).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LockstepError
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower

TABLES = ("a", "b")


@dataclass
class Shop:
    """Two tables on a real server, whose first changes a run has merged and acknowledged."""

    stand: MySqlStand
    name: str
    follower: Follower
    number: int = 0

    def write(self) -> None:
        """Each kind of change in both tables, in one transaction."""
        self.number += 1
        n = self.number
        with self.stand.connect(self.name) as connection, connection.cursor() as cursor:
            cursor.execute("begin")
            for table in TABLES:
                cursor.execute(f"insert into {table} values ({n}, {n})")
                cursor.execute(f"update {table} set v = v + 100 where id >= {n - 1}")
                cursor.execute(f"delete from {table} where id = {n - 3}")
            cursor.execute("commit")

    def write_to_b(self) -> None:
        """One row of the second table."""
        self.stand.execute("insert into b values (1000, 0)", database=self.name)

    def require_same(self) -> None:
        """The mirrors are the tables, and no change stands twice in a changelog."""
        shown = self.stand.rows(
            " union all ".join(f"select '{table}', id, v from {table}" for table in TABLES),
            self.name,
        )
        for table in TABLES:
            rows = sorted((id_, v) for name, id_, v in shown if name == table)
            mirror = self.follower.mirror(f"{self.name}.{table}")
            assert mirror == [{"id": id_, "v": v} for id_, v in rows]
            images = self.changelog(table)
            assert len(images) == len(set(images))

    def changelog(self, table: str) -> list[tuple[Any, ...]]:
        commits = self.follower.lake.tables[f"{SOURCE}/_changes/{self.name}/{table}"]
        marks = ("_gtid", "_row", "_change_type", "id")
        return [tuple(row[mark] for mark in marks) for row in commits[-1].rows.to_pylist()]

    def commits(self, table: str) -> list[tuple[int, int]]:
        """First and last batch of each commit of a mirror."""
        commits = self.follower.lake.tables[f"{SOURCE}/{self.name}/{table}"]
        told = [json.loads(commit.user_metadata)["lockstep"]["batches"] for commit in commits]
        return [(first, last) for first, last in told]

    def versions(self, table: str) -> list[int]:
        commits = self.follower.lake.tables[f"{SOURCE}/{self.name}/{table}"]
        return [commit.txn_version for commit in commits]

    def states(self) -> list[BatchState]:
        """Oldest first."""
        return [batch.state for batch in self.follower.ledger.batches(SOURCE, limit=100)[::-1]]


def open_shop(mysql: MySqlStand, database: str) -> Shop:
    """After a first run, which read in the log how the tables were made and changed."""
    start = str(head(mysql))
    mysql.execute(
        *(f"create table {table} (id int primary key, v int)" for table in TABLES),
        database=database,
    )
    made = Shop(mysql, database, Follower(server(mysql), [f"{database}.*"], start))
    made.write()
    made.follower.run()
    return made


@dataclass
class Asleep:
    """Where a holder sleeps: `sleeping` once it does, `woken` to go on."""

    sleeping: Event = field(default_factory=Event)
    woken: Event = field(default_factory=Event)

    def __call__(self) -> None:
        self.sleeping.set()
        assert self.woken.wait(60)


def overtaken(
    shop: Shop, asleep: Asleep, step: Callable[[RunPorts, Lease], object], ports: RunPorts
) -> Callable[[Callable[[], None]], LockstepError]:
    """A step by a holder that falls asleep, and whose lock goes with its connection; what
    `meanwhile` does happens then, and the error that it wakes up to is given back."""

    def sleeper() -> None:
        with shop.follower.ledger.lock(SOURCE, "sleeper", None) as lease:
            step(ports, lease)

    def during(meanwhile: Callable[[], None]) -> LockstepError:
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(sleeper)
            try:
                assert asleep.sleeping.wait(60)
                shop.follower.ledger.lose_lock(SOURCE)
                meanwhile()
            finally:
                asleep.woken.set()
            error = run.exception()
        assert isinstance(error, LockstepError), error
        return error

    return during


def books(shop: Shop) -> list[Any]:
    ledger, batches = shop.follower.ledger, shop.follower.ledger.batches(SOURCE, limit=100)
    return [
        batches,
        [ledger.writes_within(SOURCE, batch.id, batch.id) for batch in batches],
        [ledger.version_set(SOURCE, batch.id).entries for batch in batches],
        ledger.open_intents(SOURCE),
        ledger.decisions(SOURCE, limit=100),
    ]
