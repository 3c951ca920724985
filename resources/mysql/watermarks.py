"""Where the log was before and after a read: marks that a read can be held against.

A transaction stands in MySQL's log, and the log's end is behind it, before the engine has
committed it and anybody can read it. So an end that was read *before* something else is a
low mark only once all before it is committed: every GTID that was owned then is executed,
or no anonymous transaction is under way (MySQL manual, "gtid_owned",
"Ongoing_anonymous_transaction_count"). Where that does not come in time the beginning of
the file is: MySQL begins a file only when all of the one before is committed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.errors import ServerSettings
from pipeline.position import Coordinates, LogFile
from pipeline.retries import COMMITTED, Retry
from pipeline.table import TableName
from resources.mysql.dialect import Dialect

_OWNER: Final = re.compile(r"#\d+")


@dataclass(frozen=True, slots=True)
class Watermark:
    """The log's end and the GTIDs executed, each as read; the set before the end."""

    at: Coordinates
    executed: str


_SNAPSHOTS: Final = frozenset({"innodb", "rocksdb", "tokudb"})
"""Engines that show their rows as of the snapshot; the others as of the statement."""


def has_snapshots(cursor: Cursor, table: TableName) -> bool | None:
    """Return whether a table's rows are those of the snapshot, by its engine; None if it is not
    there, or the account may not see it."""
    cursor.execute(
        "select coalesce(engine, 'InnoDB') from information_schema.tables"
        " where table_schema = %s and table_name = %s",
        (table.database, table.name),
    )
    row = cursor.fetchone()
    return None if row is None else str(row[0]).lower() in _SNAPSHOTS


def read_value(cursor: Cursor, question: str) -> str:
    """The one value that a question has, without white space at its ends or in sets."""
    cursor.execute(question)
    row = cursor.fetchone()
    return "" if row is None or row[0] is None else "".join(str(row[0]).split("\n")).strip()


def read_head(cursor: Cursor) -> Coordinates:
    """The log's end; `ServerSettings` where there is no log."""
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


def high_mark(cursor: Cursor, dialect: Dialect) -> Watermark:
    """Nothing that can be read now stands behind it."""
    executed = _executed(cursor, dialect)
    return Watermark(read_head(cursor), executed)


def low_mark(cursor: Cursor, dialect: Dialect, *, patience: Retry = COMMITTED) -> Watermark:
    """Whatever stands before it can be read now.

    MariaDB keeps who looks at a table's structure waiting until the statement that changes
    it is logged and done; rows have a place of their own there (`snapshot_place`).
    """
    mark = high_mark(cursor, dialect)
    if dialect.mariadb or _settled(cursor, patience):
        return mark
    return Watermark(Coordinates(mark.at.file, FIRST_OFFSET), mark.executed)


def snapshot_place(cursor: Cursor) -> Coordinates | None:
    """The very place of the consistent snapshot that this session has open, of InnoDB's
    rows; None where the server does not tell.

    MariaDB documentation, "START TRANSACTION", `binlog_snapshot_position`.
    """
    cursor.execute("show status like 'binlog_snapshot_%'")
    found = {name.lower(): value for name, value in cursor.fetchall()}
    file, offset = found.get("binlog_snapshot_file"), found.get("binlog_snapshot_position")
    return Coordinates(LogFile.parse(file), int(offset)) if file and offset else None


def _executed(cursor: Cursor, dialect: Dialect) -> str:
    if dialect.mariadb:
        return read_value(cursor, "select @@global.gtid_binlog_state")
    if read_value(cursor, "select @@global.gtid_mode") != "ON":
        return ""
    return read_value(cursor, "select @@global.gtid_executed")


def _settled(cursor: Cursor, patience: Retry) -> bool:
    """Whether all that is in the log now was seen committed in time; mostly it is, or in
    milliseconds."""
    owned = _OWNER.sub("", read_value(cursor, "select @@global.gtid_owned"))
    return any(_is_executed(cursor, owned) and _none_anonymous(cursor) for _ in patience.tries())


def _is_executed(cursor: Cursor, owned: str) -> bool:
    if not owned:
        return True
    cursor.execute("select gtid_subset(%s, @@global.gtid_executed)", (owned,))
    return cursor.fetchone() in ((1,), ("1",))


def _none_anonymous(cursor: Cursor) -> bool:
    cursor.execute("show global status like 'ongoing_anonymous_transaction_count'")
    row = cursor.fetchone()
    return row is not None and row[1] == "0"
