"""One table's rows by SELECT as Arrow: the statement and its batches.

Some columns are asked for twice, as they are stored and as they are printed: the server prints `?`
for bytes that mean nothing in their character set, and one text for codes that mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pymysql

from pipeline.binlog.text.charsets import Decoder, text_decoder
from pipeline.binlog.text.twins import astray, comes_back, is_own_number, is_whole, may_stray
from pipeline.errors import StructureMoved, TableError
from pipeline.resultset.column_arrays import ResultBatches, unlike
from pipeline.resultset.packets import ErrorPacket
from pipeline.schema.types import TEXT_TYPES, arrow_schema
from pipeline.server_errors import names_of, require_harmless
from pipeline.table import Column, TableName, TableStructure
from resources.mysql.answers import Answer, ReadingCursor
from resources.mysql.warnings import read_warnings

_HASH: Final = re.compile(r"DB_ROW_HASH_\d+")
"""Columns that MariaDB hides."""

BEGIN: Final = "start transaction with consistent snapshot, read only"


def select_rows(
    cursor: ReadingCursor,
    structure: TableStructure,
    key: Collection[str] = (),
    *,
    where: str | None = None,
    along: str = "",
    parameters: Sequence[object] = (),
    order: Sequence[str] = (),
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The table's rows, columns as `schema.types` types them, at most so many in a batch as
    `pipeline.ports.source` says. `key`: columns that rows may be told by, besides those that
    the structure names.

    `where`: a condition with a `%s` for each parameter; `along`: which index is used, as the
    statement says it (nothing: as the server likes), with a condition only; `order`: columns to
    sort by, upwards, no order if there is none; `limit`: rows at most. The statement runs before
    the first batch is asked for. `cursor` is one of `reader.reading`. TableError for a value no
    Arrow type holds, for a column that no statement can name, and where the source warned of
    something that is not known to be harmless; StructureMoved where the answer has other columns;
    ValueError where the cursor was left before the end.
    """
    for column in structure.columns:
        if _HASH.fullmatch(column.name):
            raise TableError(
                f"the server keeps {column.name!r} for a UNIQUE key that it hashes; it is in the "
                "log, and cannot be selected",
                hint="make the key shorter than the engine's limit, or exclude the table",
            )
    arrow_schema(structure)
    keys = frozenset((*structure.primary_key, *key))
    beside = {
        column: asked
        for column in structure.columns
        if (asked := stored(column, quoted(column.name), keyed=column.name in keys)) is not None
    }
    if where is not None:
        where = cursor.mogrify(where, tuple(parameters)) if parameters else where
    answer = cursor.ask(_statement(structure, beside, where, along, order, limit))
    columns = (*structure.columns, *(stored_as(column) for column in beside))
    if (other := unlike(columns, answer.definitions)) is not None:
        raise StructureMoved(
            f"{structure.name} does not have the structure it should be read with: another "
            f"definition of {other.name}",
            hint="run again: its structure is read again",
        )
    batches = ResultBatches(columns, answer.definitions, answer.pieces(), sequence=answer.sequence)
    return _checked(cursor, answer, batches, structure, tuple(beside), keys)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def quoted_table(name: TableName) -> str:
    return f"{quoted(name.database)}.{quoted(name.name)}"


def selected(column: Column, quoted: str) -> str:
    """The SQL expression whose answer is the column's value; `quoted` is the column's name.

    BIT and VECTOR would come as bytes that say nothing of their length. What is BINARY to the log
    may be MariaDB's INET6 or UUID.
    """
    match column.type:
        case "bit":
            return f"{quoted} + 0"
        case "vector":
            return f"cast({quoted} as binary)"
        case "binary":
            return f"cast({quoted} as binary({column.length}))"
        case _:
            return quoted


def _statement(
    structure: TableStructure,
    beside: Mapping[Column, str],
    where: str | None,
    along: str,
    order: Sequence[str],
    limit: int | None,
) -> str:
    columns = [selected(column, quoted(column.name)) for column in structure.columns]
    listed = ", ".join([*columns, *beside.values()])
    return "".join(
        (
            f"select {listed} from {quoted_table(structure.name)}",
            "" if where is None else f" {along} where {where}",
            f" order by {', '.join(map(quoted, order))}" if order else "",
            "" if limit is None else f" limit {limit:d}",
        )
    )


def _checked(
    cursor: ReadingCursor,
    answer: Answer,
    batches: ResultBatches,
    structure: TableStructure,
    beside: Sequence[Column],
    key: frozenset[str],
) -> Iterator[pa.RecordBatch]:
    """`beside`: columns whose stored values stand behind all that is shown."""
    width = len(structure.columns)
    try:
        for batch in _until_left(answer, batches, structure.name):
            for place, column in enumerate(beside, start=width):
                shown = batch.column(structure.names.index(column.name))
                require_text(column, shown, batch.column(place), keyed=column.name in key)
            rows = batch.select(range(width)) if beside else batch
            _refuse_softened(rows, key)
            yield rows
    except ErrorPacket as error:
        answer.finish()
        raise pymysql.err.OperationalError(error.number, error.text) from None
    answer.finish()
    if batches.ending is not None and batches.ending.warnings:
        names = names_of(structure.name, structure.names)
        warnings = read_warnings(cursor)
        require_harmless(structure.name, batches.ending.warnings, warnings, names)
    answer.forget()


def _until_left(
    answer: Answer, batches: ResultBatches, table: TableName
) -> Iterator[pa.RecordBatch]:
    coming = iter(batches)
    while True:
        if answer.left:
            raise ValueError(f"the reading of {table} is closed, and did not come to its end")
        batch = next(coming, None)
        if batch is None:
            return
        yield batch


def _refuse_softened(batch: pa.RecordBatch, key: frozenset[str]) -> None:
    """A key is never NULL: what became NULL would stand for other rows too."""
    for name in batch.schema.names:
        if name in key and batch.column(name).null_count:
            raise TableError(
                f"key column {name!r} holds a zero or partial date",
                hint="give those rows real dates in the source, or exclude the table",
            )


_WHERE = "a row that was read from the source"


def stored(column: Column, quoted: str, *, keyed: bool) -> str | None:
    """The SQL expression for what is stored; None where what is printed says it. `quoted` is
    the column's name, `keyed`: rows may be told by it."""
    if column.type in TEXT_TYPES:
        return None if is_whole(column.charset or "utf8mb4") else f"cast({quoted} as binary)"
    return f"cast({quoted} as unsigned)" if keyed and may_stray(column) else None


def stored_as(column: Column) -> Column:
    """What `stored` asks for, as a column: bytes, or a member's number."""
    if column.type in TEXT_TYPES:
        return Column(column.name, "blob")
    return Column(column.name, "bigint", unsigned=True)


def require_text(column: Column, printed: pa.Array, values: pa.Array, *, keyed: bool) -> None:
    """TableError where a stored value is no text, or, in a key, does not come back. `printed` is
    string; `values`, row by row what is stored, binary, or decimal for a member's number."""
    if column.type not in TEXT_TYPES:
        numbers = {int(value) for value in values.unique().to_pylist() if value is not None}
        if not all(is_own_number(column, number) for number in numbers):
            raise astray(column, _WHERE)
        return
    charset = column.charset or "utf8mb4"
    read, back = text_decoder(charset), comes_back(charset)
    for text, raw in zip(printed.to_pylist(), values.to_pylist(), strict=True):
        if raw is None:
            continue
        if not _is(text, raw, read):
            raise TableError(
                f"column {column.name!r} holds bytes that are no {charset} text",
                hint="correct those rows in the source, or exclude the table",
            )
        if keyed and not back(raw):
            raise astray(column, _WHERE)


def _is(text: str | None, raw: bytes, read: Decoder) -> bool:
    try:
        return read(raw) == text
    except UnicodeDecodeError:
        return False
