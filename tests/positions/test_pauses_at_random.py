"""Pauses, statements, XA transactions and kills in any order: no change is lost or twice."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pymysql
import pytest

from pipeline.errors import LedgerRefused
from pipeline.table_state import TableCondition
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.positions.interrupted import Crash, mortal
from tests.positions.paused import Shop, open_shop

TABLES = ("a", "b", "c")
STEPS = ("decide", "begin_batch", "record_capture", "order_table", "intend", "settle")
ACTIONS = 40
UNKNOWN_XID = 1397


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return open_shop(mysql, database, TABLES)


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
            *(self.run,) * 4,
            *(self.killed,) * 2,
            self.prepare,
            self.end,
            self.rotate,
        )
        self.random.choice(acts)(table)

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
                    f"alter table {table} modify v bigint",
                    f"truncate table {table}",
                )
            )
        )

    def pause(self, table: str) -> None:
        if self.shop.state(table).condition is TableCondition.ACTIVE:
            self.shop.pause(table)

    def resume(self, table: str) -> None:
        with suppress(LedgerRefused):
            self.shop.resume(table)

    def run(self, _: str) -> None:
        self.shop.run()

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


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_nothing_is_lost(shop: Shop, seed: int) -> None:
    chance = Chance(shop, Random(seed))
    for _ in range(ACTIONS):
        chance.act()
    for xid in list(chance.prepared):
        chance.finish(xid, "commit")
    for table in TABLES:
        chance.resume(table)
    shop.run()
    shop.run()
    assert shop.follower.ledger.open_orders(SOURCE) == []
    for table in TABLES:
        assert shop.state(table).condition is TableCondition.ACTIVE
        shop.require_whole(table)
    shop.require_history()
