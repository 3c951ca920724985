"""By which columns a table is cut into chunks, and how their values are asked for and written.

Belongs here: the types whose values a server orders as it compares them, and the choice of the
columns. Does not: conditions made of the values (`bounds`), how many rows a chunk has (`pace`).

A type that is not listed ends the run of columns. ENUM and SET are ordered by number and compared
as text. JSON, TEXT and BLOB are in a key by a prefix, which orders only what it holds. Every type
that is listed is proven on each server with its extremes, in a session with sql_mode '' in UTC.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import takewhile
from typing import Final

from pipeline.schema.model import ColumnSchema, KeyPart, KeySchema, TableSchema
from pipeline.schema.row_keys import merge_index


class Form(StrEnum):
    """How a value is asked for, and how a statement writes it again."""

    EXACT = "exact"
    """Digits, and a point in a DECIMAL."""
    FLOATING = "floating"
    """All digits of the double that it is: a FLOAT prints six of them."""
    BITS = "bits"
    """The number that they are."""
    YEAR = "year"
    """Four digits."""
    DATE = "date"
    MOMENT = "moment"
    TIME = "time"
    TEXT = "text"
    """The bytes in the column's own character set, so that the column's collation compares."""
    BYTES = "bytes"
    NAMED = "named"
    """Text that the server converts: addresses and UUIDs of MariaDB."""


FORMS: Final = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), Form.EXACT),
    "decimal": Form.EXACT,
    **dict.fromkeys(("float", "double"), Form.FLOATING),
    "bit": Form.BITS,
    "year": Form.YEAR,
    "date": Form.DATE,
    **dict.fromkeys(("datetime", "timestamp"), Form.MOMENT),
    "time": Form.TIME,
    **dict.fromkeys(("char", "varchar"), Form.TEXT),
    **dict.fromkeys(("binary", "varbinary"), Form.BYTES),
    **dict.fromkeys(("inet4", "inet6", "uuid"), Form.NAMED),
}
"""Types by their name in the schema."""

ENGINES: Final = frozenset({"innodb", "myisam", "aria"})
"""Engines whose keys are trees; MEMORY's are hashes."""


def chunk_key(schema: TableSchema) -> tuple[str, ...]:
    """The longest leading run of the columns of `chunk_index` that the table may be cut by, in
    their own spelling; empty: it is read in one piece.

    Several rows may have the same values where the run is shorter than the key: they come in
    one chunk then, however many there are.
    """
    index = chunk_index(schema)
    return () if index is None else tuple(column.name for column in _run(schema, index))


def chunk_index(schema: TableSchema) -> KeySchema | None:
    """The key that the rows of the mirror are told by, and no other: a row whose values in it
    change while the table is read is another row then, which the log tells of. None where no
    statement can be made to follow it."""
    if schema.engine.lower() not in ENGINES or schema.system_versioned:
        return None
    index = merge_index(schema)
    return None if index is None or index.invisible or index.hashed else index


def _run(schema: TableSchema, key: KeySchema) -> list[ColumnSchema]:
    """Its columns from the first on; all ascending or all descending, which is read backwards."""
    same = takewhile(lambda part: part.descending == key.parts[0].descending, key.parts)
    columns = (_whole(schema, part) for part in same)
    return [column for column in takewhile(lambda column: column is not None, columns) if column]


def _whole(schema: TableSchema, part: KeyPart) -> ColumnSchema | None:
    column = None if part.column is None else schema.column(part.column)
    if column is None or part.prefix is not None or column.type not in FORMS:
        return None
    return None if _padded_otherwise(column) else column


def _padded_otherwise(column: ColumnSchema) -> bool:
    """A CHAR of MariaDB whose collation heeds spaces at the end: an index orders it with the
    spaces that fill it, a comparison without."""
    return column.type == "char" and "_nopad_" in f"{column.collation}_"


def only_on_mysql(schema: TableSchema) -> bool:
    """Whether the table's server has to be MySQL to be cut by its chunk key: MariaDB since 11.4
    knows MySQL's collations of 0900, and pads a CHAR of them as above."""
    columns = map(schema.column, chunk_key(schema))
    return any(c and c.type == "char" and "_0900_" in f"{c.collation}_" for c in columns)
