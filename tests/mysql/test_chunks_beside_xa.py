"""Chunks read while XA transactions are prepared and committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.model.batch import Xid
from lockstep.pipeline.snapshot.bounds import Range
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import Sliced, rows_of
from tests.mysql.logged import head
from tests.mysql.reading import settings


def _asking(place: Sliced) -> MySqlServer:
    """An account that may ask what is prepared."""
    name = f"u_{place.table.database}"
    place.stand.execute(
        f"create user {name} identified by 'x'", f"grant all privileges on *.* to {name}"
    )
    return MySqlServer(settings(place.stand, user=name, password="x"))


def _prepare(cursor: Cursor, number: int) -> None:
    cursor.execute(f"xa start '{number}'")
    cursor.execute(f"insert into t values ({number})")
    cursor.execute(f"xa end '{number}'")
    cursor.execute(f"xa prepare '{number}'")


@contextmanager
def preparing(place: Sliced) -> Iterator[dict[int, Coordinates]]:
    """One session after the other prepares a transaction and commits it; yields where in the log
    each was prepared, as far as they have come."""
    stop, places, errors = Event(), dict[int, Coordinates](), list[pymysql.MySQLError]()

    def write() -> None:
        try:
            with place.stand.connect(place.table.database) as session, session.cursor() as cursor:
                number = 0
                while not stop.is_set():
                    number += 1
                    _prepare(cursor, number)
                    places[number] = head(place.stand)
                    stop.wait(0.02)
                    cursor.execute(f"xa commit '{number}'")
        except pymysql.MySQLError as error:
            errors.append(error)

    thread = Thread(target=write)
    thread.start()
    try:
        yield places
    finally:
        stop.set()
        thread.join()
    assert errors == []


def test_what_is_before_the_low_mark_is_read_or_named(place: Sliced) -> None:
    """Every transaction that was prepared before it: its rows are in the chunk, or it is among
    the prepared ones, or nobody can say."""
    place.do("create table t (id int primary key)")
    source, schema = _asking(place), place.schema()
    taken = []
    with preparing(place) as places:
        for _ in range(20):
            with source.chunk(schema, Range()) as snapshot:
                taken.append((snapshot.low, snapshot.prepared, rows_of(snapshot)))
    named = 0
    for low, prepared, rows in taken:
        before = [number for number, at in places.items() if at <= low]
        unseen = {Xid(1, str(number).encode(), b"") for number in before if (number,) not in rows}
        assert prepared is None or unseen <= prepared
        named += bool(unseen)
    assert sum(prepared is not None for _, prepared, _ in taken) > 0
    assert named > 0


def test_what_is_prepared_at_a_chunk_s_low_mark_is_named(place: Sliced) -> None:
    """Its rows are in the log before it, and in no chunk."""
    place.do("create table t (id int primary key)")
    source, schema = _asking(place), place.schema()
    with place.stand.connect(place.table.database) as session, session.cursor() as cursor:
        _prepare(cursor, 7)
        try:
            for open_read in (source.chunk(schema, Range()), source.snapshot(schema)):
                with open_read as snapshot:
                    assert rows_of(snapshot) == {}
                    assert snapshot.prepared == frozenset({Xid(1, b"7", b"")})
        finally:
            cursor.execute("xa commit '7'")
    assert place.chunks(5) == [{(7,): 1}]


def test_who_may_not_ask_does_not_know_what_is_prepared(mysql: MySqlStand, database: str) -> None:
    """Which is something else than nothing."""
    place = Sliced(mysql, TableName(database, "t"))
    place.do("create table t (id int primary key)")
    with place.source.chunk(place.schema(), Range()) as snapshot:
        assert snapshot.prepared is None
