"""Pauses, reloads, statements, XA transactions, lost logs and kills in any order: no change is lost
or twice, and each run does what the plan before it said."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pymysql
import pytest

from lockstep.pipeline.model.table_state import Supplier
from lockstep.pipeline.values.errors import LedgerRefused, PastRefused, StoppedBy
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.positions.follower import SOURCE
from tests.positions.foreseen import run_as_planned
from tests.positions.interrupted import Crash, mortal
from tests.positions.paused import Shop, open_shop

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
UNKNOWN_XID = 1397


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    shop = open_shop(mysql, database, TABLES)
    shop.follower.tables = [f"{database}.{table}" for table in TABLES]
    shop.make([LATE])
    return shop


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
        xid = f"'x{self.number}'"
        self.do(
            f"xa start {xid}",
            f"insert into {table} (id, v) values ({self.number}, 0)",
            f"xa end {xid}",
            f"xa prepare {xid}",
        )
        self.prepared[xid] = table

    def end(self, _: str) -> None:
        if self.prepared:
            xid = self.random.choice(sorted(self.prepared))
            self.finish(xid, self.random.choice(("commit", "commit", "rollback")))

    def finish(self, xid: str, word: str) -> None:
        """In another session, once the server has let go of the one that prepared."""
        del self.prepared[xid]
        for _ in range(1000):
            try:
                return self.shop.do(f"xa {word} {xid}")
            except pymysql.err.OperationalError as error:
                if error.args[0] != UNKNOWN_XID:
                    raise
        raise AssertionError(f"{xid} is not there")

    def rotate(self, _: str) -> None:
        self.do("flush binary logs")

    def do(self, *statements: str) -> None:
        """A row that a prepared transaction holds is not waited for."""
        with suppress(pymysql.err.OperationalError):
            self.shop.do("set innodb_lock_wait_timeout = 1, lock_wait_timeout = 1", *statements)


@pytest.mark.parametrize(
    ("seed", "actions"),
    [(100, 25), *(pytest.param(seed, ACTIONS, marks=pytest.mark.soak) for seed in range(12))],
)
def test_whatever_happens_nothing_is_lost(shop: Shop, seed: int, actions: int) -> None:
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
