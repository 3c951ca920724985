"""Sessions that write to one table at the same time, and what its log says of them.

Belongs here: random transactions over `t (id, v, w)`, and the table's state behind each of
them as the log tells it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from threading import Event, Thread
from typing import Any, Final

import pymysql

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import runs, server
from tests.pipeline.buffered import Decoders

_DEADLOCK: Final = 1213

Rows = Counter[tuple[Any, ...]]
"""How many of each row."""


@dataclass(slots=True)
class Writing:
    """Writers at work; `errors` are theirs."""

    stop: Event = field(default_factory=Event)
    errors: list[pymysql.MySQLError] = field(default_factory=list)


@contextmanager
def writers(stand: MySqlStand, table: TableName, count: int) -> Iterator[Writing]:
    """Each has committed once when the body begins."""
    work = Writing()
    ready = [Event() for _ in range(count)]
    threads = [
        Thread(target=_write, args=(stand, table, number, work, ready[number]))
        for number in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        for one in ready:
            one.wait()
        yield work
    finally:
        work.stop.set()
        for thread in threads:
            thread.join()
    assert work.errors == []


def _write(stand: MySqlStand, table: TableName, number: int, work: Writing, ready: Event) -> None:
    """Transactions over rows of its own, one to five changes each, some rolled back."""
    random = Random(number)
    try:
        with stand.connect(table.database, autocommit=False) as connection:
            while not work.stop.is_set():
                try:
                    with connection.cursor() as cursor:
                        for _ in range(random.randint(1, 5)):
                            cursor.execute(_statement(table, number, random))
                except pymysql.err.OperationalError as error:
                    if error.args[0] != _DEADLOCK:
                        raise
                    connection.rollback()
                    continue
                (connection.rollback if random.random() < 0.1 else connection.commit)()
                ready.set()
                work.stop.wait(0.005)
    except pymysql.MySQLError as error:
        work.errors.append(error)
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
    for buffer, run in runs(server(stand), start, wants=lambda name: name == table):
        for block in run.blocks:
            for decoded in decoders.read(buffer, block):
                events = decoded.images.event.to_numpy()
                at = decoded.part.events[events, columns.TRANSACTION].tolist()
                for which, (kind, row) in zip(at, decoded.rows(), strict=True):
                    rows[tuple(row.values())] += -1 if kind in _GONE else 1
                    found[run.end(which)] = +rows
    return found


_GONE = ("delete", "update_preimage")
