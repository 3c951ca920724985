"""One table's rows by SELECT as Arrow: the statement and its batches.

Belongs here: the settings such a session needs, the statement, rows into columns. Does
not: how one value is asked for and read (`values`), places in the log (`reader`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa
import pymysql
from pymysql.cursors import Cursor

from pipeline.errors import TableError
from pipeline.schema.types import arrow_schema
from pipeline.server_errors import names_of
from pipeline.source_warnings import require_harmless
from pipeline.table import Column, TableName, TableStructure
from resources.mysql.stored import require_text, stored
from resources.mysql.values import Converter, converter, selected
from resources.mysql.warnings import KEEP_ALL, read_warnings, warning_count

_ROWS_PER_BATCH: Final = 10_000
_BYTES_PER_BATCH: Final = 32 << 20
_ROWS_AT_ONCE: Final = 100
_NARROW: Final = 3_000
"""Bytes of the widest row of a table whose rows need no counting."""

_WIDE: Final = frozenset({"text", "blob", "json", "geometry", "vector"})

LOCK_SECONDS: Final = 20
"""A reader that waits for a lock keeps writers waiting behind it."""

_SESSION: Final = (
    # PAD_CHAR_TO_FULL_LENGTH would pad every CHAR, which no row image does.
    "set session sql_mode = ''",
    "set session sql_select_limit = 18446744073709551615",
    "set session net_write_timeout = 3600",
    "set session transaction isolation level repeatable read",
)
_LIMITS: Final = (
    KEEP_ALL,  # MySQL wants SESSION_VARIABLES_ADMIN
    "set session max_execution_time = 0",  # MySQL
    "set session max_statement_time = 0",  # MariaDB
)
"""A server may end what takes long, and each knows one of those two."""

_HASH: Final = re.compile(r"DB_ROW_HASH_\d+")
"""Columns that MariaDB hides."""

BEGIN: Final = "start transaction with consistent snapshot, read only"


def prepare_session(cursor: Cursor) -> None:
    """Settings of a session that reads whole tables, however long it takes."""
    for statement in _SESSION:
        cursor.execute(statement)
    # What waits for a table's lock gets an answer before the connection is given up.
    cursor.execute(f"set session lock_wait_timeout = {LOCK_SECONDS}")
    for statement in _LIMITS:
        with suppress(pymysql.err.OperationalError):
            cursor.execute(statement)


def select_rows(
    cursor: Cursor,
    structure: TableStructure,
    key: Collection[str] = (),
    *,
    where: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Every row, columns as `schema.types` types them, in no particular order. `key`: columns
    that rows may be told by, besides those that the structure names. `where`: a condition in
    complete SQL, for those rows only.

    The statement runs before the first batch is asked for. `cursor` is an unbuffered one
    of a connection with `conv={}`, in a prepared session. TableError for a value no Arrow
    type holds, for a column that no statement can name, and where the source warned of
    something that is not known to be harmless.
    """
    for column in structure.columns:
        if _HASH.fullmatch(column.name):
            raise TableError(
                f"the server keeps {column.name!r} for a UNIQUE key that it hashes; it is in the "
                "log, and cannot be selected",
                hint="make the key shorter than the engine's limit, or exclude the table",
            )
    keys = frozenset((*structure.primary_key, *key))
    beside = {
        column: asked
        for column in structure.columns
        if (asked := stored(column, quoted(column.name), keyed=column.name in keys)) is not None
    }
    cursor.execute(_statement(structure, beside, where))
    return _batches(cursor, structure, tuple(beside), keys)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def quoted_table(name: TableName) -> str:
    return f"{quoted(name.database)}.{quoted(name.name)}"


def _statement(structure: TableStructure, beside: Mapping[Column, str], where: str | None) -> str:
    columns = [selected(column, quoted(column.name)) for column in structure.columns]
    listed = ", ".join([*columns, *beside.values()])
    every = f"select {listed} from {quoted_table(structure.name)}"
    return every if where is None else f"{every} where {where}"


Row = Sequence[str | bytes | None]


def _batches(
    cursor: Cursor, structure: TableStructure, beside: Sequence[Column], key: frozenset[str]
) -> Iterator[pa.RecordBatch]:
    """`beside`: columns whose stored values stand behind all that is printed."""
    schema = arrow_schema(structure)
    converters = [converter(column) for column in structure.columns]
    for rows in _chunks(cursor, structure):
        values = list(zip(*rows, strict=True))
        printed = dict(zip(structure.columns, values, strict=False))
        for column, twice in zip(beside, values[len(structure.columns) :], strict=True):
            require_text(column, printed[column], twice, keyed=column.name in key)
        columns = zip(structure.columns, converters, schema, printed.values(), strict=True)
        batch = pa.RecordBatch.from_arrays([_array(*parts) for parts in columns], schema=schema)
        _refuse_softened(batch, key)
        yield batch
    if count := warning_count(cursor):
        names = names_of(structure.name, structure.names)
        require_harmless(structure.name, count, read_warnings(cursor), names)


def _chunks(cursor: Cursor, structure: TableStructure) -> Iterator[Sequence[Row]]:
    """Rows for a batch: so many of them, or as many as make so many bytes."""
    if _is_narrow(structure):
        while rows := cursor.fetchmany(_ROWS_PER_BATCH):
            yield rows
        return
    waiting: list[Row] = []
    size = 0
    while rows := cursor.fetchmany(_rows_at_once(waiting, size)):
        waiting += rows
        size += sum(len(value) for row in rows for value in row if value is not None)
        if size >= _BYTES_PER_BATCH or len(waiting) >= _ROWS_PER_BATCH:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def _rows_at_once(waiting: Sequence[Row], size: int) -> int:
    """Few where rows are long; the first of a batch one by one."""
    if not waiting:
        return 1
    return max(1, min(_ROWS_AT_ONCE, (_BYTES_PER_BATCH - size) * len(waiting) // (4 * size + 1)))


def _is_narrow(structure: TableStructure) -> bool:
    columns = structure.columns
    if any(column.type in _WIDE for column in columns):
        return False
    return sum(column.length or 0 for column in columns) <= _NARROW


def _array(
    column: Column, convert: Converter, field: pa.Field, values: Iterable[str | bytes | None]
) -> pa.Array:
    try:
        return pa.array([None if v is None else convert(v) for v in values], field.type)
    except ValueError as error:
        raise TableError(
            f"column {column.name!r} holds a value that is no {column.type}",
            hint="correct those rows in the source, or exclude the table",
        ) from error


def _refuse_softened(batch: pa.RecordBatch, key: frozenset[str]) -> None:
    """A key is never NULL: what became NULL would stand for other rows too."""
    for name in batch.schema.names:
        if name in key and batch.column(name).null_count:
            raise TableError(
                f"key column {name!r} holds a zero or partial date",
                hint="give those rows real dates in the source, or exclude the table",
            )
