"""Tables read in chunks while they are written to, also by XA transactions, and while others wait
to alter them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from threading import Event, Thread, Timer
from typing import Any

import pytest
from pymysql.cursors import Cursor

from demo.mysqld import ProgramMySql
from lockstep.pipeline.model.batch import Xid
from lockstep.pipeline.snapshot import pace
from lockstep.pipeline.snapshot.chunks import Range
from lockstep.pipeline.snapshot.condition import read_condition
from lockstep.pipeline.values.errors import SourceUnavailable, StructureMoved, TableBusy
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql import chunks
from lockstep.resources.mysql.connection import translate_errors
from lockstep.resources.mysql.reader import reading_cursor
from lockstep.resources.mysql.row_hashes import ComparedRead
from lockstep.resources.mysql.server import MySqlServer
from lockstep.resources.mysql.watcher import (
    has_waiting_session,
    is_waited_for,
    wants_whole_table,
    watch,
)
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import Sliced, rows_of, until
from tests.mysql.logged import head
from tests.mysql.reading import changes, settings
from tests.mysql.writers import beside

COLUMNS = "id int not null, v int not null, w varchar(300) not null"


# -- writers ------------------------------------------------------------------------------


@contextmanager
def writing(place: Sliced, seed: int) -> Iterator[list[int]]:
    """One session inserts, deletes, updates and moves rows to other keys, in transactions of a
    few; yields how many it has committed."""
    committed = [0]

    def write(cursor: Cursor, stop: Event) -> None:
        chance = Random(seed)
        while not stop.is_set():
            cursor.execute("begin")
            for _ in range(chance.randint(1, 4)):
                cursor.execute(_change(chance))
            cursor.execute("commit")
            committed[0] += 1
            stop.wait(0.001)

    with beside(place.stand, place.table.database, write):
        yield committed


def _change(chance: Random) -> str:
    old, new = chance.randint(0, 2_000), chance.randint(0, 2_000)
    match chance.randint(0, 3):
        case 0:
            return f"insert ignore into t values ({new}, 0, 'new')"
        case 1:
            return f"delete from t where id = {old}"
        case 2:
            return f"update t set v = v + 1 where id between {old} and {old + 5}"
        case _:
            return f"update ignore t set id = {new} where id = {old}"


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in (2, 3))])
def test_chunks_and_the_log_behind_them_are_the_table(place: Sliced, seed: int) -> None:
    """Read beside a writer that moves rows from chunk to chunk, forwards and back: all chunks,
    and over them every change behind the lowest low mark, key by key."""
    place.do(
        f"create table t ({COLUMNS}, primary key (id))",
        *(f"insert into t values ({number * 4}, 1, 'old')" for number in range(500)),
    )
    schema = place.schema()
    found, lows = dict[int, Any](), list[Coordinates]()
    with writing(place, seed) as committed:
        for one in place.ranges(60, schema):
            with place.source.chunk(schema, one) as snapshot:
                lows.append(snapshot.low)
                for batch in snapshot.batches:
                    found.update((row["id"], row) for row in batch.to_pylist())
        assert committed[0] > len(lows)
    moved = 0
    for _, kind, row in changes(place.source, min(lows), place.table):
        moved += 1
        if kind in ("delete", "update_preimage"):
            found.pop(row["id"], None)
        else:
            found[row["id"]] = row
    assert len(lows) > 5
    assert moved > 20
    rows = place.stand.rows("select id, v, w from t", place.table.database)
    assert sorted(tuple(row.values()) for row in found.values()) == sorted(rows)


# -- giving way ---------------------------------------------------------------------------


@contextmanager
def altering(place: Sliced, change: str = "add x int") -> Iterator[None]:
    """Somebody alters the table; it is an error if he is kept waiting for long."""

    def alter(cursor: Cursor, _: Event) -> None:
        cursor.execute("set session lock_wait_timeout = 30")
        cursor.execute(f"/* online */ alter table t {change}")

    with beside(place.stand, place.table.database, alter):
        yield


def test_a_table_read_in_one_piece_gives_way(place: Sliced, large: Sliced) -> None:
    """Whoever alters it goes on while it is open still."""
    _gives_way(large, place.account("process, select on *.*"))


def test_who_waits_is_seen_among_the_locks(
    odd: MySqlStand, large_on: Callable[[MySqlStand], Sliced]
) -> None:
    """Where the account sees no other's sessions, and may read the table of locks."""
    place = large_on(odd)
    _gives_way(place, place.account("select on *.*"))


def _gives_way(place: Sliced, source: MySqlServer) -> None:
    for whole, change in ((False, "add x int"), (True, "drop x")):
        schema = place.schema(source)
        with source.snapshot(schema) if whole else source.chunk(schema, Range()) as snapshot:
            assert next(snapshot.batches).num_rows == 10_000
            with altering(place, change):
                pass
            with pytest.raises(TableBusy, match="gave way to ALTER") as raised:
                list(snapshot.batches)
        assert raised.value.hint == "the next run reads it again"


def test_a_comparison_gives_way(place: Sliced, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever alters the table waits neither for the sum of its rows nor for their hashes."""
    place.do(f"create table t ({COLUMNS}, primary key (id))", "insert into t values (1, 1, 'a')")
    source = place.account("process, select on *.*")
    require = ComparedRead.require_structure

    def altered(read: ComparedRead) -> None:
        with altering(place):
            pass
        require(read)

    structure = source.structure(place.table)
    monkeypatch.setattr(ComparedRead, "require_structure", altered)
    with pytest.raises(StructureMoved):
        source.row_sum(structure)
    place.do("alter table t drop x")
    with pytest.raises(StructureMoved), source.row_hashes(structure):
        pass


def test_a_server_may_be_silent_as_long_as_it_is_there(mysql: MySqlStand, database: str) -> None:
    """While it adds up rows, or looks for some without an index: longer than any other question
    may take. Here it waits for a lock, and then it is frozen."""
    place = Sliced(mysql, TableName(database, "t"))
    place.do(f"create table t ({COLUMNS}, primary key (id))", "insert into t values (1, 1, 'a')")
    source = MySqlServer(replace(settings(mysql), read_timeout=1.0))
    structure, condition = source.structure(place.table), read_condition("v + sleep(1.5) = 1")
    with source.rows_where(place.schema(), condition) as found:
        assert sum(rows_of(found.rows).values()) == 1
    with mysql.connect(database) as session, session.cursor() as cursor:
        cursor.execute("lock tables t write")
        [(before,)] = mysql.rows("select @@global.wait_timeout")
        mysql.execute("set global wait_timeout = 1")
        then(1.5, cursor.execute, "unlock tables")
        try:
            assert source.row_sum(structure).sum.row_count == 1
        finally:
            mysql.execute(f"set global wait_timeout = {before}")
        if not isinstance(mysql.server, ProgramMySql) or mysql.server.pid is None:
            return
        cursor.execute("lock tables t write")
        frozen = then(1.0, os.kill, mysql.server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(SourceUnavailable):
                source.row_sum(structure)
        finally:
            frozen.join()
            os.kill(mysql.server.pid, signal.SIGCONT)


def test_nobody_elses_session_is_ended(mysql: MySqlStand, mariadb: MySqlStand) -> None:
    """Behind one name there may be several servers: the number that a session has at one of them is
    another's session at the next. The read is left all the same."""

    def ended(stand: MySqlStand) -> int:
        [(_, count)] = stand.rows("show global status like 'Com_kill'")
        return int(count)

    ours, rule = settings(mysql), pace.Patience(0.0, 0.5)
    for answers, kills in ((mariadb, 0), (mysql, 1)):
        before = ended(answers)
        with (
            reading_cursor(ours) as cursor,
            watch(settings(answers), cursor, TableName("d", "t"), rule) as read,
            pytest.raises(TableBusy, match=r"longer than 0.5 s"),
            read.raising_busy(),
            translate_errors(ours),
        ):
            cursor.execute("select sleep(3)")
            cursor.fetchall()
        assert ended(answers) - before == kills


def then(seconds: float, call: Callable[..., object], *arguments: object) -> Timer:
    timer = Timer(seconds, call, arguments)
    timer.start()
    return timer


def test_a_chunk_that_lasts_gives_way(
    place: Sliced, large: Sliced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at once: its end is near, mostly."""
    monkeypatch.setattr(chunks, "CHUNK_PATIENCE", pace.Patience(1.0))
    source, schema = place.account("process, select on *.*"), large.schema()
    rows = Range(after=source.next_bound(schema, None, 5))
    with source.chunk(schema, rows) as snapshot:
        next(snapshot.batches)
        with altering(large):
            pass
        with pytest.raises(TableBusy, match="gave way to ALTER"):
            list(snapshot.batches)


def test_a_piece_that_takes_too_long_is_left(large: Sliced) -> None:
    """Though nobody waits."""
    with large.source.chunk(large.schema(), Range(), most_seconds=1.0) as snapshot:
        next(snapshot.batches)
        with altering(large):
            pass
        with pytest.raises(TableBusy, match="longer than 1 s") as raised:
            list(snapshot.batches)
    assert "PRIMARY KEY" in raised.value.hint


def test_nobody_waits_for_a_table_that_is_only_read(place: Sliced) -> None:
    """Or for another one, or to write."""
    place.do(f"create table t ({COLUMNS})", "create table other (a int)")
    other = TableName(place.table.database, "other")
    with (
        place.stand.connect(place.table.database) as session,
        session.cursor() as cursor,
        place.stand.connect(place.table.database, autocommit=False) as reading,
        reading.cursor() as reader,
    ):
        reader.execute("select * from t")
        assert not is_waited_for(cursor, place.table)
        with altering(place):
            until(lambda: is_waited_for(cursor, place.table))
            assert not is_waited_for(cursor, other)
            reading.commit()
        assert not is_waited_for(cursor, place.table)


def test_who_only_writes_is_not_waited_for(place: Sliced) -> None:
    """A session that waits behind another's lock to write is not kept by readers."""
    place.do(f"create table t ({COLUMNS})")
    with (
        place.stand.connect(place.table.database) as holder,
        holder.cursor() as holding,
        place.stand.connect() as session,
        session.cursor() as cursor,
    ):
        holding.execute("lock tables t read")
        thread = Thread(
            target=place.stand.execute,
            args=("insert into t values (1, 1, 'a')",),
            kwargs={"database": place.table.database},
        )
        thread.start()
        waits = (
            "select count(*) from information_schema.processlist where state like 'Waiting%lock'"
        )
        while place.stand.rows(waits) == [(0,)]:
            pass
        assert not is_waited_for(cursor, place.table)
        holding.execute("unlock tables")
        thread.join()


@pytest.mark.thin
@pytest.mark.parametrize(("lock", "counts"), [("read", False), ("write", True)])
def test_who_locks_to_read_is_not_waited_for(place: Sliced, lock: str, counts: bool) -> None:
    """By the list of sessions alone, which has our own sessions too: a read whose rows have to be
    those of one moment locks its table against writers, and waits for them."""
    place.do(f"create table t ({COLUMNS})", f"create table other ({COLUMNS})")
    other = TableName(place.table.database, "other")
    with (
        place.stand.connect(place.table.database, autocommit=False) as writing,
        writing.cursor() as writer,
        place.stand.connect(place.table.database) as locking,
        locking.cursor() as locker,
        place.stand.connect() as session,
        session.cursor() as cursor,
    ):
        writer.execute("insert into t values (1, 1, 'a')")
        statement = f"lock tables other write, t {lock}"
        thread = Thread(target=locker.execute, args=(statement,))
        thread.start()
        until(lambda: has_waiting_session(cursor, other))
        assert has_waiting_session(cursor, place.table) == counts
        assert is_waited_for(cursor, place.table) == counts
        writing.commit()
        thread.join()


@pytest.mark.parametrize(
    ("statement", "counts"),
    [
        ("/* a tool's */ alter table shop.t add column w int", True),
        ("LOCK TABLE `shop`.`t` READ LOCAL, u WRITE", False),
        ("lock tables u read, shop.t as x low_priority write ", True),
        ("lock tables other.t write", False),
        ("optimize table shop.tt", False),
        ("insert into shop.t values (1)", False),
    ],
)
def test_which_statements_need_a_table_for_themselves(statement: str, counts: bool) -> None:
    assert (
        wants_whole_table(TableName("shop", "t"), database="other", statement=statement) == counts
    )


def _prepare(cursor: Cursor, number: int) -> None:
    cursor.execute(f"xa start '{number}'")
    cursor.execute(f"insert into t values ({number})")
    cursor.execute(f"xa end '{number}'")
    cursor.execute(f"xa prepare '{number}'")


@contextmanager
def preparing(place: Sliced) -> Iterator[dict[int, Coordinates]]:
    """One session after the other prepares a transaction and commits it; yields where in the log
    each was prepared, as far as they have come."""
    places: dict[int, Coordinates] = {}

    def write(cursor: Cursor, stop: Event) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            _prepare(cursor, number)
            places[number] = head(place.stand)
            stop.wait(0.02)
            cursor.execute(f"xa commit '{number}'")

    with beside(place.stand, place.table.database, write):
        yield places


def test_what_is_before_the_low_mark_is_read_or_named(place: Sliced) -> None:
    """Every transaction that was prepared before it: its rows are in the chunk, or it is among
    the prepared ones, or nobody can say."""
    place.do("create table t (id int primary key)")
    source, schema = place.account("all privileges on *.*"), place.schema()
    taken = []
    with preparing(place) as places:
        for _ in range(20):
            with source.chunk(schema, Range()) as snapshot:
                taken.append((snapshot.low, snapshot.prepared_transactions, rows_of(snapshot)))
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
    source, schema = place.account("all privileges on *.*"), place.schema()
    with place.stand.connect(place.table.database) as session, session.cursor() as cursor:
        _prepare(cursor, 7)
        try:
            for open_read in (source.chunk(schema, Range()), source.snapshot(schema)):
                with open_read as snapshot:
                    assert rows_of(snapshot) == {}
                    assert snapshot.prepared_transactions == frozenset({Xid(1, b"7", b"")})
        finally:
            cursor.execute("xa commit '7'")
    assert place.chunks(5) == [{(7,): 1}]


def test_who_may_not_ask_does_not_know_what_is_prepared(mysql: MySqlStand, database: str) -> None:
    """Which is something else than nothing."""
    place = Sliced(mysql, TableName(database, "t"))
    place.do("create table t (id int primary key)")
    with place.source.chunk(place.schema(), Range()) as snapshot:
        assert snapshot.prepared_transactions is None
