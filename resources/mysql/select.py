"""One table's rows by SELECT, in one consistent read, as Arrow.

Belongs here: the session such a read needs and its statement. Does not: how one value is
asked for and read (`values`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pymysql.cursors import Cursor

from pipeline.errors import TableError
from pipeline.schema.types import arrow_schema
from pipeline.table import Column, TableStructure
from resources.mysql.values import Converter, converter, selected

_ROWS_PER_BATCH = 10_000

_SESSION = (
    # PAD_CHAR_TO_FULL_LENGTH would pad every CHAR, which no row image does.
    "set session sql_mode = ''",
    "set session transaction isolation level repeatable read",
    "start transaction with consistent snapshot, read only",
)


def select_rows(cursor: Cursor, structure: TableStructure) -> Iterator[pa.RecordBatch]:
    """Every row, columns as `schema.types` types them, in no particular order.

    The statement runs before the first batch is asked for. `cursor` is an unbuffered one
    of a connection with `conv={}`. TableError for a value no Arrow type holds.
    """
    for statement in _SESSION:
        cursor.execute(statement)
    cursor.execute(_statement(structure))
    return _batches(cursor, structure)


def _statement(structure: TableStructure) -> str:
    columns = ", ".join(selected(column, _quoted(column.name)) for column in structure.columns)
    name = structure.name
    return f"select {columns} from {_quoted(name.database)}.{_quoted(name.name)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _batches(cursor: Cursor, structure: TableStructure) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(structure)
    converters = [converter(column) for column in structure.columns]
    while rows := cursor.fetchmany(_ROWS_PER_BATCH):
        columns = zip(structure.columns, converters, schema, zip(*rows, strict=True), strict=True)
        batch = pa.RecordBatch.from_arrays([_array(*parts) for parts in columns], schema=schema)
        _refuse_softened(batch, structure)
        yield batch


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


def _refuse_softened(batch: pa.RecordBatch, structure: TableStructure) -> None:
    """A key is never NULL: what became NULL would stand for other rows too."""
    for name in structure.primary_key:
        if batch.column(name).null_count:
            raise TableError(
                f"key column {name!r} holds a zero or partial date",
                hint="give those rows real dates in the source, or exclude the table",
            )
