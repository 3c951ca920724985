"""What mysql-replication 1.0.17 leaves out, reads twice or reads wrong of a log.

Each test shows one fault; where the engine answers otherwise, it says so too. One that
fails tells that a version mended it.
"""

from __future__ import annotations

import logging
from typing import Any

import pymysql
import pytest
from pymysqlreplication.event import GtidEvent
from pymysqlreplication.gtid import GtidSet
from pymysqlreplication.json_binary import JsonDiff
from pymysqlreplication.row_event import WriteRowsEvent

from pipeline.errors import LockstepError, TableError
from pipeline.position import Coordinates
from pipeline.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.oracle import heard, images_of, stream
from tests.mysql.reading import changes, server, transactions

_CHECKSUM_BYTES = 4
_WRITE_ROWS = 30


@pytest.fixture
def table(mysql: MySqlStand, database: str) -> TableName:
    """A table `(id int primary key, v json)`; nothing in it."""
    mysql.execute("create table t (id int primary key, v json)", database=database)
    return TableName(database, "t")


def _keys(mysql: MySqlStand, start: Coordinates, **options: Any) -> list[int]:
    """The `id` of every row image it gives."""
    return [image["id"] for _, _, image in heard(mysql, start, **options)]


def _ours(mysql: MySqlStand, start: Coordinates, table: TableName) -> list[int]:
    return [row["id"] for _, _, row in changes(server(mysql), start, table)]


def _insert(mysql: MySqlStand, table: TableName, *keys: int, session: str = "do 1") -> None:
    """A transaction for each key, by one session with this setting."""
    with mysql.connect(table.database) as connection, connection.cursor() as cursor:
        cursor.execute(session)
        for key in keys:
            cursor.execute(f"insert into {table.name} (id) values ({key})")


@pytest.mark.since(8, 0, 20)
def test_compressed_transactions_vanish(mysql: MySqlStand, table: TableName) -> None:
    """Without an error: a session may compress whenever it likes."""
    start = head(mysql)
    _insert(mysql, table, 1, session="set binlog_transaction_compression = on")
    _insert(mysql, table, 2)
    assert (_keys(mysql, start), _ours(mysql, start, table)) == ([2], [1, 2])


def test_rows_behind_their_table_map_are_skipped(mysql: MySqlStand, table: TableName) -> None:
    """A start between the two: no rows, no error. The engine stops."""
    before = head(mysql)
    _insert(mysql, table, 1)
    (start,) = [
        Coordinates(before.file, offset)
        for _, offset, kind, *_ in mysql.rows(
            f"show binlog events in '{before.file}' from {before.offset}"
        )
        if kind == "Write_rows"
    ]
    assert _keys(mysql, start) == []
    with pytest.raises(LockstepError):
        _ours(mysql, start, table)


def test_an_end_in_a_later_file_is_passed_at_once(mysql: MySqlStand, table: TableName) -> None:
    """Of `end_log_pos` only the number is compared: nothing is read, without an error."""
    _insert(mysql, table, 1)
    start = head(mysql)
    _insert(mysql, table, 2)
    mysql.execute("flush binary logs")
    assert _keys(mysql, start) == [2]
    assert _keys(mysql, start, end_log_pos=head(mysql).offset) == []


def test_a_wrong_checksum_is_only_logged(
    mysql: MySqlStand,
    database: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With `verify_checksum` the damaged row comes out all the same."""
    mysql.execute("create table c (id int primary key, v tinyint)", database=database)
    start = head(mysql)
    mysql.execute("insert into c values (1, 2)", database=database)
    read: Any = pymysql.Connection.__dict__["_read_packet"]
    monkeypatch.setattr(
        pymysql.Connection, "_read_packet", lambda self, *types: _damaged(read(self, *types))
    )
    with caplog.at_level(logging.ERROR):
        found = list(heard(mysql, start, verify_checksum=True))
    monkeypatch.undo()
    assert [image for _, _, image in found] == [{"id": 1, "v": 3}]
    assert "An CRC32 has failed for the event type 30" in caplog.text


def _damaged(packet: Any) -> Any:
    """If it has WRITE_ROWS, one bit of the last row is another."""
    data = bytearray(packet.get_all_data())
    if len(data) > 5 and data[0] == 0 and data[5] == _WRITE_ROWS:
        data[-_CHECKSUM_BYTES - 1] ^= 1
        packet._data = bytes(data)
    return packet


@pytest.mark.since(8, 3)
def test_tagged_transactions_have_no_gtid(mysql: MySqlStand, table: TableName) -> None:
    """The event that has it is left out, and a set with a tag is refused."""
    start = head(mysql)
    _insert(mysql, table, 1, session="set gtid_next = 'automatic:blue'")
    kinds = [GtidEvent, WriteRowsEvent]
    events = stream(mysql, start, only_events=kinds)
    try:
        assert [type(event) for event in events] == [WriteRowsEvent]
    finally:
        events.close()
    (gtid,) = [transaction.gtid for transaction in transactions(server(mysql), start)]
    assert gtid.split(":")[1] == "blue"
    with pytest.raises(ValueError, match="GTID format is incorrect"):
        GtidSet(gtid)


def test_a_partial_document_stands_for_the_whole(mysql: MySqlStand, table: TableName) -> None:
    """With PARTIAL_JSON an after image has a difference in it; the engine quarantines the table."""
    document = '\'{"a": "%s", "b": 1}\'' % ("x" * 100)
    mysql.execute(f"insert into t values (1, {document})", database=table.database)
    start = head(mysql)
    with mysql.connect(table.database) as connection, connection.cursor() as cursor:
        cursor.execute("set binlog_row_value_options = 'PARTIAL_JSON'")
        cursor.execute("update t set v = json_set(v, '$.b', 2)")
    *_, (_, _, after) = heard(mysql, start)
    assert isinstance(after["v"], JsonDiff)
    with pytest.raises(TableError, match="PARTIAL_JSON"):
        _ours(mysql, start, table)


def test_a_lost_connection_begins_again(mysql: MySqlStand, table: TableName) -> None:
    """With `auto_position` it connects again by itself, to where it first began."""
    # It reads no tags, which others commit with.
    old = mysql.version < (8, 2)
    mysql.execute("reset master" if old else "reset binary logs and gtids")
    _insert(mysql, table, 0)
    executed = mysql.rows("select @@global.gtid_executed")[0][0]
    _insert(mysql, table, 1, 2)
    options = {"blocking": True, "auto_position": executed, "only_schemas": [table.database]}
    events = stream(mysql, head(mysql), **options)
    try:
        before = [_next_key(events) for _ in range(2)]
        for process, *_ in mysql.rows(
            "select id from information_schema.processlist where command like 'Binlog Dump%'"
        ):
            mysql.execute(f"kill {process}")
        after = [_next_key(events) for _ in range(2)]
    finally:
        events.close()
    assert (before, after) == ([1, 2], [1, 2])


def _next_key(events: Any) -> int:
    ((_, _, image),) = images_of(events.fetchone())
    return int(image["id"])


def test_a_table_s_name_is_taken_without_its_database(mysql: MySqlStand, table: TableName) -> None:
    """`only_tables` lets the tables of that name in every other database through."""
    other = mysql.fresh_name()
    mysql.execute(f"create database {other}", f"create table {other}.t (id int primary key)")
    start = head(mysql)
    mysql.execute(f"insert into {other}.t values (1)")
    names = {table, TableName(other, "t")}
    _insert(mysql, table, 2)
    found = {name for name, _, _ in heard(mysql, start, only_tables=["t"])}
    mysql.execute(f"drop database {other}")
    assert found == names
