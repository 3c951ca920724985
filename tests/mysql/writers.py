"""Sessions that write to one table `t (id, v, w)` at the same time, and the state of the table
after each transaction, as its log tells it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from random import Random
from threading import Event, Thread
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import runs, server
from tests.pipeline.buffered import Decoders

_DEADLOCK: Final = 1213

Rows = Counter[tuple[Any, ...]]
"""How many of each row."""


@contextmanager
def beside(
    stand: MySqlStand, database: str, work: Callable[[Cursor, Event], None]
) -> Iterator[None]:
    """Another session does `work` while the body runs; the event is set when the body has ended.
    An error of that session is an error of the test."""
    stop, errors = Event(), list[pymysql.MySQLError]()

    def run() -> None:
        try:
            with stand.connect(database) as session, session.cursor() as cursor:
                work(cursor, stop)
        except pymysql.MySQLError as error:
            errors.append(error)

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert errors == []


@contextmanager
def writers(stand: MySqlStand, table: TableName, count: int) -> Iterator[None]:
    """Each has committed once when the body begins."""
    ready = [Event() for _ in range(count)]
    with ExitStack() as stack:
        for number, one in enumerate(ready):
            work = partial(_write, table, number, one)
            stack.enter_context(beside(stand, table.database, work))
        for one in ready:
            one.wait()
        yield


def _write(table: TableName, number: int, ready: Event, cursor: Cursor, stop: Event) -> None:
    """Transactions over rows of its own, one to five changes each, some rolled back."""
    random = Random(number)
    try:
        while not stop.is_set():
            cursor.execute("begin")
            try:
                for _ in range(random.randint(1, 5)):
                    cursor.execute(_statement(table, number, random))
            except pymysql.err.OperationalError as error:
                if error.args[0] != _DEADLOCK:
                    raise
                cursor.execute("rollback")
                continue
            cursor.execute("rollback" if random.random() < 0.1 else "commit")
            ready.set()
            stop.wait(0.005)
    finally:
        ready.set()


def _statement(table: TableName, number: int, random: Random) -> str:
    key = number * 1000 + random.randint(0, 30)
    match random.randint(0, 3):
        case 0:
            return f"delete from {table.name} where id = {key}"
        case 1:
            return f"update {table.name} set v = v + 1, w = uuid() where id = {key}"
        case _:
            value = random.randint(0, 9)
            return (
                f"insert into {table.name} select {key}, {value}, 'new' from (select 1) one "
                f"where not exists (select 1 from {table.name} where id = {key} for update)"
            )


def states(stand: MySqlStand, start: Coordinates, table: TableName) -> dict[Coordinates, Rows]:
    """The rows behind each transaction that changed them, by its end, from an empty table."""
    rows: Rows = Counter()
    found: dict[Coordinates, Rows] = {start: Counter()}
    decoders = Decoders()
    for buffer, run in runs(server(stand), start, is_captured=lambda name: name == table):
        for block in run.blocks:
            for decoded in decoders.read(buffer, block):
                events = decoded.images.event.to_numpy()
                at = decoded.part.events[events, columns.TRANSACTION].tolist()
                for which, (kind, row) in zip(at, decoded.rows(), strict=True):
                    rows[tuple(row.values())] += -1 if kind in _GONE else 1
                    found[run.end(which)] = +rows
    return found


_GONE = ("delete", "update_preimage")
