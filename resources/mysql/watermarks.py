"""Watermarks of a read: a place in the log before it (low) and one after it (high),
which is the log's end (`read_log_end`). Its rows are the table's rows at some place
between the two.

MySQL writes a transaction to the log before the engine commits it and others can read
it. So the log's end, queried before a read, is a low mark only once all transactions
before it are committed: every GTID that was owned then is executed, and no anonymous
transaction is in progress (MySQL manual, "gtid_owned",
"Ongoing_anonymous_transaction_count"). If that takes too long, the low mark is the
beginning of the file: MySQL begins a file only when all transactions of the previous
one are committed. MariaDB tells the place up to which a new snapshot shows everything.
A prepared XA transaction is in the log, but is read only after its commit: XA RECOVER
lists such transactions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.binlog.stream.framing import FIRST_OFFSET
from lockstep.pipeline.model.batch import Xid
from lockstep.pipeline.values.errors import ServerSettings
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.retries import COMMITTED, Retry
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.connection import Dialect, number_of, read_value
from lockstep.resources.mysql.select import BEGIN

_OWNING_THREAD: Final = re.compile(r"#\d+")
"""The thread that owns a GTID, which gtid_owned appends to it."""


@dataclass(frozen=True, slots=True)
class LowMark:
    """A place in the log before which every change could be read, and a set of GTIDs
    that were executed before the place was queried; "" without GTIDs."""

    at: Coordinates
    executed_set: str


_SNAPSHOT_ENGINES: Final = frozenset({"innodb", "rocksdb", "tokudb"})
"""Engines whose reads see the transaction's snapshot; reads of others see the rows that
are current when the statement runs."""


def has_snapshots(cursor: Cursor, table: TableName) -> bool | None:
    """Return whether a table's engine has snapshots; None if the table does not exist,
    or the account cannot see it."""
    cursor.execute(
        "select coalesce(engine, 'InnoDB') from information_schema.tables"
        " where table_schema = %s and table_name = %s",
        (table.database, table.name),
    )
    row = cursor.fetchone()
    return None if row is None else str(row[0]).lower() in _SNAPSHOT_ENGINES


def read_log_end(cursor: Cursor) -> Coordinates:
    """Return the log's end. Raise `ServerSettings` if the server has no binary log."""
    try:
        cursor.execute("show binary log status")
    except pymysql.err.ProgrammingError:
        cursor.execute("show master status")  # before MySQL 8.2
    row = cursor.fetchone()
    if row is None:
        raise ServerSettings(
            "the server writes no binary log", hint="set log_bin in its configuration"
        )
    return Coordinates(LogFile.parse(row[0]), int(row[1]))


def mark_at_end(cursor: Cursor, dialect: Dialect) -> LowMark:
    """Return the log's end, which is a low mark while nobody can write to the table."""
    executed_set = _executed_set(cursor, dialect)
    return LowMark(read_log_end(cursor), executed_set)


def low_mark(cursor: Cursor, dialect: Dialect, *, retry: Retry = COMMITTED) -> LowMark:
    """Return a mark before which every change can be read now. Any transaction of the
    cursor's session ends."""
    mark = mark_at_end(cursor, dialect)
    if dialect.is_mariadb:
        return replace(mark, at=_committed_place(cursor, mark.at, retry))
    if _wait_for_commits(cursor, retry):
        return mark
    return replace(mark, at=Coordinates(mark.at.file, FIRST_OFFSET))


def _committed_place(cursor: Cursor, end: Coordinates, retry: Retry) -> Coordinates:
    """Return `end` once MariaDB has committed everything before it; if the tries end
    before, return the place up to which it has."""
    place: Coordinates | None = None
    for _ in retry.tries():
        cursor.execute(BEGIN)
        place = snapshot_place(cursor)
        cursor.execute("rollback")
        if place is None or place >= end:
            return end
    return place or end


def commits_in_order(cursor: Cursor, dialect: Dialect) -> bool:
    """Return whether the server commits transactions in the order of its log."""
    return dialect.is_mariadb or read_value(cursor, "select @@global.binlog_order_commits") == "1"


def snapshot_place(cursor: Cursor) -> Coordinates | None:
    """Return the place in the log of this session's consistent snapshot of InnoDB's
    rows; None if the server does not report it.

    MariaDB documentation, "START TRANSACTION", `binlog_snapshot_position`.
    """
    cursor.execute("show status like 'binlog_snapshot_%'")
    status = {name.lower(): value for name, value in cursor.fetchall()}
    file, offset = status.get("binlog_snapshot_file"), status.get("binlog_snapshot_position")
    return Coordinates(LogFile.parse(file), int(offset)) if file and offset else None


def _executed_set(cursor: Cursor, dialect: Dialect) -> str:
    if dialect.is_mariadb:
        return read_value(cursor, "select @@global.gtid_binlog_state")
    if read_value(cursor, "select @@global.gtid_mode") != "ON":
        return ""
    return read_value(cursor, "select @@global.gtid_executed")


def _wait_for_commits(cursor: Cursor, retry: Retry) -> bool:
    """Wait until all transactions in the log are committed, which mostly takes
    milliseconds; return False if the tries end before."""
    owned = _OWNING_THREAD.sub("", read_value(cursor, "select @@global.gtid_owned"))
    return any(
        _are_executed(cursor, owned) and _has_no_anonymous_transaction(cursor)
        for _ in retry.tries()
    )


def _are_executed(cursor: Cursor, owned: str) -> bool:
    if not owned:
        return True
    cursor.execute("select gtid_subset(%s, @@global.gtid_executed)", (owned,))
    return cursor.fetchone() in ((1,), ("1",))


def _has_no_anonymous_transaction(cursor: Cursor) -> bool:
    cursor.execute("show global status like 'ongoing_anonymous_transaction_count'")
    row = cursor.fetchone()
    return row is not None and row[1] == "0"


_XA_DENIED = 1401
"""ER_XAER_RMERR: the account lacks XA_RECOVER_ADMIN on MySQL."""


def prepared_transactions(cursor: Cursor) -> frozenset[Xid] | None:
    """Return the prepared transactions; None if the account is not allowed to list
    them. The checks before the first run report that."""
    try:
        cursor.execute("xa recover convert xid")
    except pymysql.err.ProgrammingError:
        cursor.execute("xa recover format='sql'")  # MariaDB
        return frozenset(_xid_from_text(int(row[0]), str(row[3])) for row in cursor.fetchall())
    except pymysql.MySQLError as error:
        if number_of(error) != _XA_DENIED:
            raise
        return None
    return frozenset(
        _xid_from_hex(int(format_id), int(gtrid_length), int(bqual_length), str(data))
        for format_id, gtrid_length, bqual_length, data in cursor.fetchall()
    )


def xa_commit_count(cursor: Cursor) -> int | None:
    """Return the number of XA COMMITs since the server started; None if the server does
    not count them."""
    cursor.execute("show global status like 'com_xa_commit'")
    row = cursor.fetchone()
    return None if row is None else int(row[1])


def _xid_from_hex(format_id: int, gtrid_length: int, bqual_length: int, data: str) -> Xid:
    """Return the XID for `data`, which is 0x and the bytes of gtrid and bqual."""
    content = bytes.fromhex(data.removeprefix("0x"))
    return Xid(
        format_id, content[:gtrid_length], content[gtrid_length : gtrid_length + bqual_length]
    )


def _xid_from_text(format_id: int, text: str) -> Xid:
    """Return the XID for `X'6774',X'6271',7`; parts of letters and digits alone
    are quoted as text. MariaDB prints all other parts as bytes."""
    gtrid, *rest = [_part_bytes(part) for part in text.split(",")]
    return Xid(format_id, gtrid, rest[0] if rest else b"")


def _part_bytes(text: str) -> bytes:
    stripped = text.strip()
    if stripped[:2].upper() == "X'":
        return bytes.fromhex(stripped[2:-1])
    return stripped.strip("'").encode()
