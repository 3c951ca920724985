"""What a column stores, read beside what SELECT prints of it.

Belongs here: which columns are asked for twice, and what is wrong with a value whose two answers
do not fit: the server prints `?` for bytes that mean nothing in their character set, and one text
for codes that mean the same. Does not: what is printed (`values`), the statement (`select`).
"""

from __future__ import annotations

import pyarrow as pa

from pipeline.binlog.text.charsets import Decoder, text_decoder
from pipeline.binlog.text.twins import astray, comes_back, is_own_number, is_whole, may_stray
from pipeline.errors import TableError
from pipeline.schema.types import TEXT_TYPES
from pipeline.table import Column

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
