"""Tables of a real server that stop and come back, and their follower in memory.

Belongs here: orders, and what the changelog, the mirror and the books show. Does not: what
must be true of them (the tests).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pymysql.cursors import DictCursor

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.table_state import (
    OrderKind,
    StoppedTable,
    TableEventKind,
    TableOrder,
    TableState,
)
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.run.orders import OrderRequest, give_order
from lockstep.pipeline.run.proof.verify_schema import verify_schema
from lockstep.pipeline.run.reports import CaptureReport
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower


@dataclass
class Shop:
    """A database of a real server, its tables made by `tables`, and its follower."""

    stand: MySqlStand
    name: str
    follower: Follower
    reports: list[CaptureReport] = field(default_factory=list)

    def do(self, *statements: str) -> None:
        self.stand.execute(*statements, database=self.name)

    def unlogged(self, *statements: str) -> None:
        """Without a word in the log."""
        self.do("set sql_log_bin = 0", *statements)

    def make(self, tables: Sequence[str] = ("a", "b"), more: Sequence[str] = ()) -> None:
        """Tables of an id and a value with a row each, and what more is done."""
        self.do(
            *(f"create table {table} (id int primary key, v int)" for table in tables),
            *(f"insert into {table} values (1, 1)" for table in tables),
            *more,
        )

    def run(self) -> CaptureReport:
        self.reports.append(self.follower.run())
        return self.reports[-1]

    def order(self, kind: OrderKind, table: str, schema: str | None = None, **renames: str) -> str:
        """What `lockstep pause` and `resume` record; what they tell of it."""
        follower = self.follower
        with follower.leased() as lease:
            asked = OrderRequest(self.table(table), "ann", "", schema, tuple(renames.items()))
            return give_order(follower.ports(), lease, kind, asked).sentence

    def pause(self, *tables: str) -> None:
        for table in tables:
            self.order(OrderKind.PAUSE, table)

    def resume(self, table: str, schema: str | None = None, **renames: str) -> str:
        return self.order(OrderKind.RESUME, table, schema, **renames)

    def table(self, name: str) -> TableName:
        return TableName(self.name, name)

    def state(self, table: str) -> TableState:
        return self.follower.ledger.table_states(SOURCE)[self.table(table)]

    def batches(self) -> list[Batch]:
        """Those that are live, oldest first."""
        return self.follower.ledger.live_batches(SOURCE, 1, 1_000)

    def caught_up(self) -> list[Batch]:
        """Those that brought back tables of this database, with changes of them."""
        return [
            batch
            for batch in self.batches()
            if batch.catches_up
            and any(
                segment.table.database == self.name
                for segment in batch_content(self.follower.ledger, SOURCE, batch.id).segments
            )
        ]

    def quarantined(self) -> dict[str, StoppedTable]:
        """The tables of this database that the last run set aside."""
        found = self.reports[-1].quarantined
        return {one.table.name: one for one in found if one.table.database == self.name}

    def orders(self) -> list[TableOrder]:
        """Those about tables of this database that no run has carried out."""
        found = self.follower.ledger.open_orders(SOURCE)
        return [order for order in found if order.table.database == self.name]

    def images(self, table: str) -> list[dict[str, Any]]:
        """A changelog's rows, all generations, as they are published."""
        found: list[dict[str, Any]] = []
        folder = f"{SOURCE}/_changes/{self.name}/{table}"
        for path, commits in sorted(self.follower.lake.tables.items()):
            if path == folder or path.startswith(f"{folder}@"):
                found += commits[-1].rows.to_pylist()
        return found

    def kinds(self, table: str) -> list[tuple[str, Any]]:
        """Each image's kind and first column, by its number."""
        images = sorted(self.images(table), key=lambda row: row["_sequence"])
        return [(row["_change_type"], row["id"]) for row in images]

    def events(self, table: str) -> list[TableEventKind]:
        ledger = self.follower.ledger
        return [
            event.kind
            for batch in self.batches()
            for event in batch_content(ledger, SOURCE, batch.id).events
            if event.table == self.table(table)
        ]

    def require_whole(self, table: str, *, rereads: int = 0) -> None:
        """The mirror is the table, no change stands twice in the changelog, its numbers
        ascend with the log, and nothing was read from the source but so many times."""
        changes = self.require_same(table)
        assert len(self.images(table)) - len(changes) == rereads
        places = [(row["_file"], row["_offset"]) for row in changes]
        if not rereads:
            assert places == sorted(places)

    def require_same(self, table: str) -> list[dict[str, Any]]:
        """The mirror is the table, and no change stands twice in the changelog, which has them in
        ascending order; the changes."""
        rows = self.rows(table)
        mirror = self.follower.mirror(f"{self.name}.{table}")
        assert sorted(map(str, mirror)) == sorted(map(str, rows))
        images = sorted(self.images(table), key=lambda row: row["_sequence"])
        numbers = [row["_sequence"] for row in images]
        assert numbers == sorted(set(numbers))
        changes = [row for row in images if row["_change_type"] != "resnapshot"]
        places = {
            (row["_file"], row["_offset"], row["_row"], row["_change_type"]) for row in changes
        }
        assert len(places) == len(changes)
        return changes

    def require_history(self) -> None:
        """The history folds to what is recorded, and to what the server has of this database."""
        found = verify_schema(self.follower.ports())
        assert found.history_disagreements == ()
        assert [
            one for one in found.server_disagreements if f"{self.name}." in str(one.table)
        ] == []

    def rows(self, table: str) -> list[dict[str, Any]]:
        with self.stand.connect(self.name) as session, session.cursor(DictCursor) as cursor:
            cursor.execute(f"select * from {table}")
            return list(cursor.fetchall())


def open_shop(stand: MySqlStand, name: str, tables: Sequence[str] = ("a", "b"), *more: str) -> Shop:
    """Tables of an id and a value with a row each, and what more was done: a first run brought it
    into the lake, from the log."""
    shop = Shop(stand, name, Follower(server(stand), [f"{name}.*"], str(head(stand))))
    shop.make(tables, more)
    shop.run()
    return shop
