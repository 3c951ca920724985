"""Selects rows of one table, as Arrow batches.

Some columns are selected twice, as text and as they are stored, because the text does
not show everything: the server prints `?` for bytes that are invalid in their character
set, and the same text for different codes of one character.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.binlog.values.charsets import (
    Decoder,
    ambiguous_key,
    canonical_check,
    is_canonical_number,
    is_reversible,
    may_be_ambiguous,
    text_decoder,
)
from lockstep.pipeline.resultset.column_arrays import ResultBatches, mismatched_column
from lockstep.pipeline.resultset.packets import ErrorPacket
from lockstep.pipeline.schema.types import TEXT_TYPES, arrow_schema
from lockstep.pipeline.values.errors import StructureMoved, TableError
from lockstep.pipeline.values.server_errors import (
    MOST_WARNINGS,
    SourceWarning,
    quotable_names,
    require_harmless,
)
from lockstep.pipeline.values.table import Column, TableName, TableStructure, quoted, quoted_table
from lockstep.resources.mysql.receiving import Answer, ReadingCursor

_HIDDEN_COLUMN_NAME: Final = re.compile(r"DB_ROW_HASH_\d+")
"""Names of the hidden columns by which MariaDB indexes long UNIQUE keys."""

BEGIN: Final = "start transaction with consistent snapshot, read only"


def select_rows(
    cursor: ReadingCursor,
    structure: TableStructure,
    key: Collection[str] = (),
    *,
    where: str | None = None,
    index_hint: str = "",
    parameters: Sequence[object] = (),
    order: Sequence[str] = (),
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Return the table's rows in batches, whose columns have the types of
    `schema.types`. `key`: key columns besides the structure's primary key.

    `where`: a condition with a `%s` for each parameter; `index_hint`: SQL, used only
    with a condition; `order`: columns to sort by, ascending; `limit`: largest number of
    rows. The statement runs before this function returns. `cursor` comes from
    `reader.reading_cursor`. Raise TableError for a value that no Arrow type holds, for
    a column that no statement can name, and for a warning of the source that is not
    known to be harmless. Raise StructureMoved if the answer has other columns,
    ValueError if the cursor was closed before the last batch.
    """
    for column in structure.columns:
        if _HIDDEN_COLUMN_NAME.fullmatch(column.name):
            raise TableError(
                f"column {column.name!r} is a hidden column of a UNIQUE key that the server "
                "hashes; it is in the log, but cannot be selected",
                hint="make the key shorter than the engine's limit, or exclude the table",
            )
    arrow_schema(structure)  # called for its errors only
    key_columns = frozenset((*structure.primary_key, *key))
    stored_expressions: dict[Column, str] = {}
    for column in structure.columns:
        expression = stored_expression(
            column, quoted(column.name), in_key=column.name in key_columns
        )
        if expression is not None:
            stored_expressions[column] = expression
    if where is not None and parameters:
        where = cursor.mogrify(where, tuple(parameters))
    answer = cursor.ask(_statement(structure, stored_expressions, where, index_hint, order, limit))
    columns = (*structure.columns, *(stored_column(column) for column in stored_expressions))
    if (mismatch := mismatched_column(columns, answer.definitions)) is not None:
        raise structure_moved(structure.name, f"the definition of {mismatch.name} differs")
    batches = ResultBatches(columns, answer.definitions, answer.pieces(), sequence=answer.sequence)
    return _checked_batches(
        cursor, answer, batches, structure, tuple(stored_expressions), key_columns
    )


def structure_moved(table: TableName, difference: str) -> StructureMoved:
    """Return the error for a table with another structure. `difference`: a phrase for
    the message."""
    return StructureMoved(
        f"{table} no longer has the expected structure: {difference}",
        hint="run again; a run reads the structure first",
    )


def value_expression(column: Column, name: str) -> str:
    """Return the SQL expression for a column's value; `name` is the column's name
    in backticks.

    `ResultBatches` reads a BIT from a number, and a VECTOR from bytes. A column that
    the log calls BINARY may be MariaDB's INET6 or UUID, which SELECT prints as text.
    """
    match column.type:
        case "bit":
            return f"{name} + 0"
        case "vector":
            return f"cast({name} as binary)"
        case "binary":
            return f"cast({name} as binary({column.length}))"
        case _:
            return name


def _statement(
    structure: TableStructure,
    stored_expressions: Mapping[Column, str],
    where: str | None,
    index_hint: str,
    order: Sequence[str],
    limit: int | None,
) -> str:
    columns = [value_expression(column, quoted(column.name)) for column in structure.columns]
    expressions = ", ".join([*columns, *stored_expressions.values()])
    return "".join(
        (
            f"select {expressions} from {quoted_table(structure.name)}",
            "" if where is None else f" {index_hint} where {where}",
            f" order by {', '.join(map(quoted, order))}" if order else "",
            "" if limit is None else f" limit {limit:d}",
        )
    )


def _checked_batches(
    cursor: ReadingCursor,
    answer: Answer,
    batches: ResultBatches,
    structure: TableStructure,
    stored_columns: Sequence[Column],
    key: frozenset[str],
) -> Iterator[pa.RecordBatch]:
    """Yield the batches after checking their values, and check the server's warnings
    after the last. `stored_columns`: columns whose stored values follow the table's
    columns in a batch."""
    width = len(structure.columns)
    try:
        for batch in _batches_until_abandoned(answer, batches, structure.name):
            for index, column in enumerate(stored_columns, start=width):
                printed = batch.column(structure.names.index(column.name))
                require_text(column, printed, batch.column(index), in_key=column.name in key)
            rows = batch.select(range(width)) if stored_columns else batch
            _refuse_null_keys(rows, key)
            yield rows
    except ErrorPacket as error:
        answer.finish()
        raise pymysql.err.OperationalError(error.number, error.text) from None
    answer.finish()
    if batches.warning_count:
        names = quotable_names(structure.name, structure.names)
        warnings = read_warnings(cursor)
        require_harmless(structure.name, batches.warning_count, warnings, names)
    answer.close_statement()


def _batches_until_abandoned(
    answer: Answer, batches: ResultBatches, table: TableName
) -> Iterator[pa.RecordBatch]:
    """Yield the batches. Raise ValueError if the connection was closed before the last."""
    remaining_batches = iter(batches)
    while True:
        if answer.is_abandoned:
            raise ValueError(f"the reading of {table} was closed before its end")
        batch = next(remaining_batches, None)
        if batch is None:
            return
        yield batch


def _refuse_null_keys(batch: pa.RecordBatch, key: frozenset[str]) -> None:
    """Raise TableError if a key column has a NULL. The NULL stands for a zero or
    partial date, which no Arrow type holds; rows with different such dates would have
    the same key."""
    for name in batch.schema.names:
        if name in key and batch.column(name).null_count:
            raise TableError(
                f"key column {name!r} holds a zero or partial date",
                hint="give those rows real dates in the source, or exclude the table",
            )


_READ_ROW = "a row that was read from the source"


def stored_expression(column: Column, name: str, *, in_key: bool) -> str | None:
    """Return the SQL expression for a column's stored value; None if its text is
    enough. `name`: the column's name in backticks; `in_key`: the column is part of a
    key."""
    if column.type in TEXT_TYPES:
        return None if is_reversible(column.charset or "utf8mb4") else f"cast({name} as binary)"
    return f"cast({name} as unsigned)" if in_key and may_be_ambiguous(column) else None


def stored_column(column: Column) -> Column:
    """Return the column that `stored_expression` selects: bytes, or the number of an
    ENUM or SET member."""
    if column.type in TEXT_TYPES:
        return Column(column.name, "blob")
    return Column(column.name, "bigint", unsigned=True)


def require_text(
    column: Column, printed: pa.Array, stored_values: pa.Array, *, in_key: bool
) -> None:
    """Raise TableError if a stored value is not valid text or, in a key, is ambiguous.
    `printed` has the strings; `stored_values` has the stored values, which are bytes,
    or the numbers of ENUM and SET members."""
    if column.type not in TEXT_TYPES:
        numbers = {int(value) for value in stored_values.unique().to_pylist() if value is not None}
        if not all(is_canonical_number(column, number) for number in numbers):
            raise ambiguous_key(column, _READ_ROW)
        return
    charset = column.charset or "utf8mb4"
    decode, canonical = text_decoder(charset), canonical_check(charset)
    for text, stored_bytes in zip(printed.to_pylist(), stored_values.to_pylist(), strict=True):
        if stored_bytes is None:
            continue
        if not _decodes_to(text, stored_bytes, decode):
            raise TableError(
                f"column {column.name!r} holds bytes that are not valid in {charset}",
                hint="correct those rows in the source, or exclude the table",
            )
        if in_key and not canonical(stored_bytes):
            raise ambiguous_key(column, _READ_ROW)


def _decodes_to(text: str | None, stored_bytes: bytes, decode: Decoder) -> bool:
    try:
        return decode(stored_bytes) == text
    except UnicodeDecodeError:
        return False


def keep_warnings(cursor: Cursor) -> None:
    """Let the session keep as many warnings as possible, if the account may (MySQL
    requires SESSION_VARIABLES_ADMIN)."""
    with suppress(pymysql.err.OperationalError):
        cursor.execute(f"set session max_error_count = {MOST_WARNINGS}")


def read_warnings(cursor: Cursor) -> list[SourceWarning]:
    """Return the warnings about the last statement of the cursor's connection."""
    connection: Any = cursor.connection
    with Cursor(connection) as warnings_cursor:
        warnings_cursor.execute("show warnings")
        return [SourceWarning(level, int(number), text) for level, number, text in warnings_cursor]
