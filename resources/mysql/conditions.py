"""Rows that a condition holds for, and rows by their keys, in one consistent read.

Belongs here: the statements, and what a server answers to a condition it does not take. Does not:
what may be sent (`pipeline.snapshot.condition`), literals of keys (`pipeline.snapshot.points`), the
read itself (`reader`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pymysql
from pymysql.cursors import Cursor

from pipeline.errors import ConditionRefused
from pipeline.ports.source import ConditionSnapshot
from pipeline.schema.model import TableSchema
from pipeline.schema.rows import row_structure
from pipeline.server_errors import Meaning, meaning_of, names_of, told
from pipeline.snapshot.condition import HINT, Condition
from pipeline.snapshot.giving_way import PIECE_SECONDS, patience
from pipeline.snapshot.points import point_condition
from pipeline.table import TableName, TableStructure
from resources.mysql.answers import ReadingCursor
from resources.mysql.connection import (
    ConnectionSettings,
    connect,
    number_of,
    text_of,
)
from resources.mysql.reader import explained, reading, take
from resources.mysql.select import quoted_table, select_rows
from resources.mysql.watcher import Watched, watched

_ROWS, _FILTERED = "rows", "filtered"

_ASKED: Final = 1_000
"""Keys in one statement."""


def estimated_where(settings: ConnectionSettings, table: TableName, condition: Condition) -> int:
    """See `pipeline.ports.SourceServer.estimated_where`."""
    with (
        connect(settings) as connection,
        connection.cursor() as cursor,
        explained(settings, table),
    ):
        return _estimated(cursor, table, condition)


@contextmanager
def open_condition(
    settings: ConnectionSettings,
    schema: TableSchema,
    condition: Condition,
    *,
    most_seconds: float = PIECE_SECONDS,
) -> Iterator[ConditionSnapshot]:
    """See `pipeline.ports.SourceServer.rows_where`."""
    rule = patience(whole=True, most_seconds=most_seconds)
    structure = row_structure(schema)
    with (
        reading(settings, patient=True) as cursor,
        watched(settings, cursor, schema.name, rule) as read,
    ):
        with read.excused(), explained(settings, schema.name, structure.names):
            _estimated(cursor, schema.name, condition)
            rows = take(settings, cursor, schema, where=f"({condition.text})")

        def by_keys(asked: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            return _by_keys(settings, cursor, read, schema, structure, asked)

        yield ConditionSnapshot(replace(rows, batches=read.excusing(rows.batches)), by_keys)


def _by_keys(
    settings: ConnectionSettings,
    cursor: ReadingCursor,
    read: Watched,
    schema: TableSchema,
    structure: TableStructure,
    asked: pa.RecordBatch,
) -> Iterator[pa.RecordBatch]:
    names = asked.schema.names
    columns = tuple(column for column in structure.columns if column.name in names)
    keys = replace(structure, columns=columns, primary_key=tuple(names))
    with read.excused(), explained(settings, schema.name, keys.names):
        for at in range(0, asked.num_rows, _ASKED):
            where = point_condition(schema, asked.slice(at, _ASKED))
            yield from select_rows(cursor, keys, where=where)


def _estimated(cursor: Cursor, table: TableName, condition: Condition) -> int:
    try:
        cursor.execute(f"explain select * from {quoted_table(table)} where ({condition.text})")
        names = [str(column[0]).lower() for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    except pymysql.MySQLError as error:
        if meaning_of(number_of(error)) is not Meaning.REFUSED:
            raise
        said = told(number_of(error), text_of(error), names_of(table, ()))
        raise ConditionRefused(
            f"{table} cannot be asked for rows by that condition: {said}", hint=HINT
        ) from error
    return sum(int(float(row.get(_ROWS) or 0) * _share(row.get(_FILTERED))) for row in rows)


def _share(filtered: object) -> float:
    """Of the rows that are looked at, those that the condition leaves; MariaDB says nothing."""
    return 1.0 if filtered is None else float(str(filtered)) / 100
