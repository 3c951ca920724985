"""Pauses, reloads, statements, XA transactions, lost logs and kills in any order: no change is lost
or twice, each run does what the plan before it said, and a ledger that has the source's lock
answers as one that is asked for the first time."""

from __future__ import annotations

from contextlib import suppress
from inspect import signature
from random import Random
from typing import Any, Final

import pymysql
import pytest

from lockstep.pipeline.mirror.layout import application_id
from lockstep.pipeline.model.table_state import Supplier
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import LedgerRefused, PastRefused, StoppedBy
from tests.fix_ledger import LedgerOfTest
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.positions.follower import SOURCE
from tests.positions.foreseen import run_as_planned
from tests.positions.interrupted import Crash, mortal
from tests.positions.paused import Shop, open_shop
from tests.positions.servers import end_xa, prepare_xa

TABLES = ("a", "b", "c")
LATE = "d"
"""A table that is followed when chance says so, with its past."""
STEPS = (
    "decide",
    "begin_batch",
    "record_capture",
    "order_table",
    "order_load",
    "begin_load",
    "record_chunk",
    "intend",
    "settle",
)
ACTIONS = 40


KEPT: Final = (
    "cursors",
    "batches",
    "unfinished_batches",
    "open_prepared",
    "capture_scopes",
    "open_override",
    "gaps",
    "table_states",
    "partial_tables",
    "open_orders",
    "open_loads",
    "pending_batches",
    "open_intents",
    "revisions",
    "examined_versions",
)
"""Questions whose answers are kept until something is written; others, with values of their own,
besides."""

WRITES: Final = frozenset(
    name
    for name in dir(Ledger)
    if not name.startswith("_") and "lease" in signature(getattr(Ledger, name)).parameters
)


def answers(ledger: LedgerOfTest, source: str) -> dict[str, Any]:
    states = ledger.table_states(source)
    applications = [application_id(source, state, "mirror") for state in states.values()]
    return {
        **{name: getattr(ledger, name)(source) for name in KEPT},
        "newest_writes": ledger.newest_writes(source, applications),
        "overlaps": ledger.live_batches(source, continuity=Continuity.OVERLAP),
        "schema_versions": ledger.schema_versions(source, *states),
        "contents": [
            ledger.contents(source, batch.id, batch.id) for batch in ledger.batches(source)
        ],
    }


class Compared(LedgerOfTest):
    """Whatever it is asked to write, it knows all answers before, and gives the ones of a ledger
    without a lock behind it."""

    def __init__(self, other: LedgerOfTest) -> None:
        super().__init__(other.database)
        self.other = other
        self.written = set[str]()

    def __getattribute__(self, name: str) -> Any:
        member = super().__getattribute__(name)
        # Tables are merged side by side: one asks whether the source is held while another writes.
        if name not in WRITES or name == "require_held":
            return member

        def write(lease: Any, *args: Any, **values: Any) -> Any:
            answers(self, lease.source)
            result = member(lease, *args, **values)
            assert answers(self, lease.source) == answers(self.other, lease.source), name
            self.written.add(name)
            return result

        return write


class Chance:
    """What happens next; `prepared`: XA transactions that are open, and their tables."""

    def __init__(self, shop: Shop, random: Random) -> None:
        self.shop, self.random = shop, random
        self.prepared: dict[str, str] = {}
        self.number = 10

    def act(self) -> None:
        table = self.random.choice(TABLES)
        acts = (
            *(self.write,) * 6,
            *(self.change,) * 2,
            *(self.pause,) * 3,
            *(self.resume,) * 3,
            *(self.reload,) * 2,
            *(self.run,) * 4,
            *(self.killed,) * 2,
            self.until,
            self.purge,
            self.prepare,
            self.end,
            self.rotate,
            *(self.late,) * 2,
        )
        waiting = self.waiting()
        act = self.random.choice(acts)
        act(table)
        assert act in (self.resume, self.reload) or waiting <= self.waiting()

    def waiting(self) -> set[str]:
        """Tables that stay stopped until a person orders them back."""
        ordered = {order.table.name for order in self.shop.orders()}
        found = {table: self.shop.state(table).stopped_by for table in TABLES}
        waiting = {t for t, by in found.items() if by not in (None, StoppedBy.RUN)}
        return waiting - ordered

    def write(self, table: str) -> None:
        self.number += 1
        key = self.random.randrange(self.number)
        self.do(
            f"insert into {table} (id, v) values ({self.number}, {key})",
            f"update {table} set v = v + 1 where id > {key}",
            f"delete from {table} where id = {key}",
        )

    def change(self, table: str) -> None:
        if table in self.prepared.values():
            return  # its lock would be waited for
        self.number += 1
        self.do(
            self.random.choice(
                (
                    f"alter table {table} add column c{self.number} int default {self.number}",
                    f"alter table {table} add column u{self.number} varchar(40) default (uuid())",
                    f"alter table {table} modify v bigint",
                    f"alter table {table} modify v decimal(12, 2)",
                    f"truncate table {table}",
                )
            )
        )

    def pause(self, table: str) -> None:
        self.shop.pause(table)

    def resume(self, table: str) -> None:
        with suppress(LedgerRefused):
            self.shop.resume(table)

    def reload(self, table: str) -> None:
        """From wherever its rows may come, or from where a person says."""
        supplier = self.random.choice([None, *Supplier])
        with suppress(PastRefused, LedgerRefused):
            self.shop.follower.reload(self.shop.table(table), supplier)

    def late(self, _: str) -> None:
        """One more table is followed from now on, with what the log has of it; until then it is
        written to."""
        follower, table = self.shop.follower, self.shop.table(LATE)
        self.write(LATE)
        if self.random.random() < 0.3:
            self.change(LATE)
        before = follower.tables
        if str(table) not in before:
            follower.tables = [*before, str(table)]
            try:
                follower.reload(table, Supplier.LOG)
            except PastRefused:
                follower.tables = before  # it is tried again

    def purge(self, _: str) -> None:
        """The log that stopped tables lack is lost; what runs have to read is not."""
        self.do("flush binary logs")
        newest = self.shop.follower.ledger.cursors(SOURCE).captured
        if newest is not None and not self.prepared:
            self.do(f"purge binary logs to '{newest.position.at.file}'")

    def run(self, _: str) -> None:
        """What the plan before it says."""
        run_as_planned(self.shop.follower)

    def until(self, _: str) -> None:
        """A run whose end is fixed leaves what it would have to read to the next one."""
        self.shop.follower.run(str(head(self.shop.stand)))

    def killed(self, _: str) -> None:
        step, after = self.random.choice(STEPS), self.random.random() < 0.5
        with mortal(self.shop.follower, step, after=after), suppress(Crash):
            self.shop.run()

    def prepare(self, table: str) -> None:
        self.number += 1
        xid, name = f"x{self.number}", self.shop.name
        with suppress(pymysql.err.OperationalError):
            insert = f"insert into {name}.{table} (id, v) values ({self.number}, 0)"
            prepare_xa(self.shop.stand, xid, insert)
        self.prepared[xid] = table

    def end(self, _: str) -> None:
        if self.prepared:
            xid = self.random.choice(sorted(self.prepared))
            self.finish(xid, self.random.choice(("commit", "commit", "rollback")))

    def finish(self, xid: str, word: str) -> None:
        del self.prepared[xid]
        end_xa(self.shop.stand, xid, word)

    def rotate(self, _: str) -> None:
        self.do("flush binary logs")

    def do(self, *statements: str) -> None:
        """A row that a prepared transaction holds is not waited for."""
        with suppress(pymysql.err.OperationalError):
            self.shop.do("set innodb_lock_wait_timeout = 1, lock_wait_timeout = 1", *statements)


@pytest.mark.parametrize(
    ("seed", "actions"),
    [(100, 18), *(pytest.param(seed, ACTIONS, marks=pytest.mark.soak) for seed in range(12))],
)
def test_whatever_happens_nothing_is_lost(
    mysql: MySqlStand, database: str, seed: int, actions: int
) -> None:
    shop = open_shop(mysql, database, TABLES)
    shop.follower.tables = [f"{database}.{table}" for table in TABLES]
    shop.make([LATE])
    ledger = shop.follower.ledger = Compared(shop.follower.ledger)
    chance = Chance(shop, Random(seed))
    if seed % 2:
        chance.rotate("")
        shop.run()
        chance.purge("")  # of the late table, the CREATE TABLE
    for _ in range(actions):
        chance.act()
    for xid in list(chance.prepared):
        chance.finish(xid, "commit")
    for _ in range(3):  # a table may stop again
        for table in (*TABLES, LATE):
            if shop.table(table) in shop.follower.states():
                chance.resume(table)
        shop.run()
    assert shop.follower.ledger.open_orders(SOURCE) == []
    followed = shop.follower.states().keys() & {shop.table(LATE)}
    for table in (*TABLES, *(table.name for table in followed)):
        assert shop.state(table).is_complete
        shop.require_same(table)
    shop.require_history()
    assert ledger.written >= {"begin_batch", "record_capture", "intend", "settle", "mark_merged"}
