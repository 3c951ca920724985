"""Answers to a SELECT that are received as they come: their ends, their sizes, whose turn it is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest

from lockstep.pipeline.values.errors import (
    LockstepError,
    SourceUnavailable,
    StructureMoved,
    TableBusy,
    TableError,
)
from lockstep.pipeline.values.table import Column, TableName, TableStructure
from lockstep.resources.mysql.reader import reading_cursor, translate_table_errors
from lockstep.resources.mysql.receiving import ANSWER_STREAM, Receiver
from lockstep.resources.mysql.select import select_rows
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import Sliced
from tests.mysql.reading import rows_read, server, settings

_FILES: Final = Path("/proc/self/fd")


@pytest.fixture(scope="module", params=["mysql", "mariadb"])
def stand(request: pytest.FixtureRequest) -> MySqlStand:
    found: MySqlStand = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def table(stand: MySqlStand) -> Iterator[TableName]:
    """A table of 32,768 rows, with a column whose name a statement must quote well."""
    with stand.own_database() as name:
        stand.execute(
            "create table t (id int primary key auto_increment, `a``%s?` varchar(20) not null)",
            "insert into t (`a``%s?`) values ('it''s')",
            *["insert into t (`a``%s?`) select concat('n', id) from t"] * 15,
            database=name,
        )
        yield TableName(name, "t")


def rows(found: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


def test_a_condition_an_order_and_a_limit(stand: MySqlStand, table: TableName) -> None:
    """With parameters of several types, one answer behind the other in one session; the server
    keeps none of the statements."""
    structure = server(stand).structure(table)
    with reading_cursor(settings(stand)) as cursor:
        first = rows(select_rows(cursor, structure, where="id < %s", parameters=(2,)))
        some = rows(
            select_rows(
                cursor,
                structure,
                where="id > %s and `a``%%s?` <> %s and id <= %s",
                parameters=(1, "it's", 30_000),
                order=["id"],
                limit=3,
            )
        )
        none = rows(select_rows(cursor, structure, where="id < 0"))
        last = rows(select_rows(cursor, structure, limit=1, order=["a`%s?", "id"]))
        cursor.execute("show session status like 'com_stmt_close'")
        [(_, closed)] = cursor.fetchall()
    assert first == [(1, "it's")]
    assert [id for id, _ in some] == [2, 3, 4]
    assert (none, last, int(closed)) == ([], [(1, "it's")], 4)


@pytest.mark.parametrize("tls", ["off", "required"])
def test_all_rows_come_whatever_the_connection(
    stand: MySqlStand, table: TableName, tls: str
) -> None:
    """In the clear and encrypted."""
    source = server(stand, tls=tls)
    try:
        structure = source.structure(table)
    except LockstepError as error:
        pytest.skip(f"the server speaks no TLS: {error}")
    with rows_read(source, structure) as batches:
        sizes, total = [], 0
        for batch in batches:
            sizes.append(batch.num_rows)
            total += sum(batch.column(0).to_pylist())
    assert sizes == [10_000, 10_000, 10_000, 2768]
    [(expected,)] = stand.rows(f"select sum(id) from {table}")
    assert total == expected


def test_a_row_of_many_packets(mysql: MySqlStand, database: str) -> None:
    """Larger than one packet may be, than a buffer and than a batch: whole, and alone."""
    [(limit,)] = mysql.rows("select @@global.max_allowed_packet")
    mysql.execute("set global max_allowed_packet = 1 << 27")
    try:
        size = 40 << 20
        with mysql.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute("create table t (id int primary key, v longblob)")
            cursor.execute("insert into t values (1, 'a'), (3, 'b')")
            cursor.execute(f"insert into t values (2, repeat('xyz', {size // 3}))")
        source = server(mysql)
        with rows_read(source, source.structure(TableName(database, "t"))) as batches:
            found = [
                (row, len(value), value[-3:])
                for batch in batches
                for row, value in zip(*(c.to_pylist() for c in batch.columns), strict=True)
            ]
    finally:
        mysql.execute(f"set global max_allowed_packet = {limit}")
    assert found == [(1, 1, b"a"), (2, size // 3 * 3, b"xyz"), (3, 1, b"b")]


def test_a_query_killed_half_way_is_the_table_s_matter(
    stand: MySqlStand, large_on: Callable[[MySqlStand], Sliced]
) -> None:
    """An error in the middle of the rows, in the server's words; the session goes on."""
    table = large_on(stand).table
    structure = server(stand).structure(table)
    chosen = settings(stand)
    with reading_cursor(chosen) as cursor:
        batches = select_rows(cursor, structure)
        next(batches)
        connection: Any = cursor.connection
        thread = connection.thread_id()
        stand.execute(f"kill query {thread}")
        with pytest.raises(TableBusy, match="interrupted"), translate_table_errors(chosen, table):
            list(batches)
        assert len(rows(select_rows(cursor, structure, limit=2))) == 2


def test_who_stops_leaves_what_comes_next_to_others() -> None:
    """Behind the last packet the connection is its owner's: nothing more is read ahead."""
    near, far = socket.socketpair()
    with near, far:
        near.settimeout(10)
        receiver = Receiver(near, ANSWER_STREAM)
        far.sendall(b"abc")
        piece = next(receiver.pieces())
        assert bytes(piece.data[piece.begin : piece.end]) == b"abc"
        receiver.stop()
        far.sendall(b"d")
        assert near.recv(9) == b"d"
        receiver.stop()


def _open_files() -> set[Path]:
    """What this process holds open; others' may be closed meanwhile, and numbers used again."""
    return {one.readlink() for one in _FILES.iterdir() if one.is_symlink()}


def test_who_leaves_ends_the_thread(stand: MySqlStand, table: TableName) -> None:
    """Before the first row, in the middle, at the end: no thread and no file stays behind."""
    source = server(stand)
    structure = source.structure(table)
    before, files = set(threading.enumerate()), _open_files()
    for wanted in (0, 1, 99):
        with rows_read(source, structure) as batches:
            for _ in zip(range(wanted), batches, strict=False):
                pass
        # What was left early is never taken for the end.
        with pytest.raises(StopIteration if wanted == 99 else ValueError):
            next(batches)
    assert set(threading.enumerate()) == before
    assert _open_files() <= files


def test_a_column_of_another_type_is_told(stand: MySqlStand, table: TableName) -> None:
    """Altered between the structure and the statement: never read as what it was."""
    for column in (Column("id", "bigint"), Column("id", "int", unsigned=True)):
        structure = TableStructure(table, (column,), ("id",))
        with reading_cursor(settings(stand)) as cursor, pytest.raises(StructureMoved, match="id"):
            select_rows(cursor, structure)


def test_a_server_without_room_for_statements_is_asked_again(
    mysql: MySqlStand, database: str
) -> None:
    """max_prepared_stmt_count says how many there may be."""
    mysql.execute("create table t (id int primary key)", database=database)
    structure = server(mysql).structure(TableName(database, "t"))
    [(limit,)] = mysql.rows("select @@global.max_prepared_stmt_count")
    mysql.execute("set global max_prepared_stmt_count = 0")
    try:
        with (
            pytest.raises(SourceUnavailable, match="max_prepared_stmt_count"),
            rows_read(server(mysql), structure) as batches,
        ):
            list(batches)
    finally:
        mysql.execute(f"set global max_prepared_stmt_count = {limit}")


def test_a_refused_statement_is_the_table_s_matter(mysql: MySqlStand, database: str) -> None:
    """Before any row."""
    mysql.execute("create table t (id int primary key)", database=database)
    structure = server(mysql).structure(TableName(database, "t"))
    chosen = settings(mysql)
    with (
        reading_cursor(chosen) as cursor,
        pytest.raises(TableError, match="error 1064"),
        translate_table_errors(chosen, structure.name),
    ):
        select_rows(cursor, structure, where="id <")
    with reading_cursor(chosen) as cursor, pytest.raises(pymysql.MySQLError):
        cursor.ask("nonsense")
