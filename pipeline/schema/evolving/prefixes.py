"""How much of a column a key holds, where the statement asks for more than one can.

Belongs here: the servers' ways out: a shorter beginning, or on MariaDB for a UNIQUE a hash of
the whole. Rules: `mysql_prepare_create_table` in `sql/sql_table.cc` of MySQL and MariaDB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pipeline.schema.collations import widest
from pipeline.schema.evolving.effects import CannotFollow
from pipeline.schema.model import ColumnSchema, KeyPart, KeySchema, TableSchema

TEXTS: Final = {
    **dict.fromkeys(("tinytext", "tinyblob"), (1 << 8) - 1),
    **dict.fromkeys(("text", "blob"), (1 << 16) - 1),
    **dict.fromkeys(("mediumtext", "mediumblob"), (1 << 24) - 1),
    **dict.fromkeys(("longtext", "longblob"), (1 << 32) - 1),
}
"""Bytes that a value may have."""

_STRINGS: Final = frozenset({"char", "varchar", "binary", "varbinary"})
WITH_PREFIX: Final = _STRINGS | frozenset(TEXTS)
"""Types of which a key can hold a beginning."""

GEOMETRIES: Final = frozenset(
    {"geometry", "point", "linestring", "polygon", "geomcollection", "geometrycollection"}
    | {"multipoint", "multilinestring", "multipolygon"}
)
SHAPES: Final = "how much of a shape a key holds is not known"
"""Why a key of MariaDB over shapes is not followed."""

_LIMITS: Final = {"InnoDB": 3072, "MyISAM": 1000, "Aria": 2300}
"""Bytes that a key of an engine holds, and a part of it; InnoDB's with pages of 16 KiB."""

_OLD_FORMATS, _OLD_LIMIT = frozenset({"compact", "redundant"}), 767
"""InnoDB's row formats of before MySQL 5.7, and how many bytes a part of a key holds in them."""

_WIDTHS: Final = {"tinyint": 1, "year": 1, "smallint": 2, "mediumint": 3, "date": 3}
_WIDTH: Final = 8


_BYTES: Final = {
    **dict.fromkeys(("tinyint", "year"), 1),
    **dict.fromkeys(("smallint",), 2),
    **dict.fromkeys(("mediumint", "date"), 3),
    **dict.fromkeys(("int", "float", "inet4"), 4),
    **dict.fromkeys(("bigint", "double"), 8),
    **dict.fromkeys(("inet6", "uuid"), 16),
}
_MOMENTS: Final = {"time": 3, "timestamp": 4, "datetime": 5}
_DIGITS: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes of so many decimal digits (MySQL manual, "Precision Math")."""


def in_key(part: KeyPart, column: ColumnSchema) -> int | None:
    """How much of its column the part holds, counted as a prefix is; 0 where that comes to
    nothing, None where it is not known. Another column under that name is held so far."""
    if part.prefix is not None:
        return part.prefix
    if column.type in _STRINGS:
        return column.length
    if column.type in TEXTS:
        return 0  # FULLTEXT, or MariaDB's hash of the whole
    if column.type == "enum":
        return (1 if len(column.members) < 256 else 2) // widest(column.charset or "binary")
    if column.type == "decimal":
        whole, scale = (column.precision or 0) - (column.scale or 0), column.scale or 0
        return sum(count // 9 * 4 + _DIGITS[count % 9] for count in (whole, scale))
    if column.type in _MOMENTS:
        return _MOMENTS[column.type] + ((column.length or 0) + 1) // 2
    return _BYTES.get(column.type)


def fitted_key(
    key: KeySchema, columns: Mapping[str, ColumnSchema], engine: str, *, hashed: bool
) -> KeySchema:
    """A key as MariaDB makes it of what was asked for; columns by lower-case names.

    InnoDB's old row formats shorten none: MariaDB refuses a part of more than 767 bytes (1709).
    It hashes a UNIQUE over a TEXT there, too.
    """
    if _over_shapes(key, columns):
        raise CannotFollow(SHAPES)
    limit = _LIMITS.get(engine)
    if key.kind not in ("unique", "index") or limit is None:
        return key
    sizes = [_size(part, columns) for part in key.parts]
    whole = any(part.prefix is None and _type(part, columns) in TEXTS for part in key.parts)
    too_long = whole or max(sizes) > limit or sum(sizes) > limit
    if key.kind == "unique" and (hashed or too_long):
        plain = tuple(replace(part, descending=False) for part in key.parts)
        return replace(key, parts=plain, hashed=True)
    return replace(key, parts=tuple(_part(part, columns, limit) for part in key.parts))


def shortened_key(
    key: KeySchema, columns: Mapping[str, ColumnSchema], engine: str, row_format: str | None
) -> KeySchema:
    """A key as MySQL makes it of what was asked for; columns by lower-case names. A session
    without strict mode shortens each part that is too long; others are refused."""
    limit = {**_LIMITS, "MEMORY": 3072}.get(engine)
    if engine == "InnoDB" and row_format in _OLD_FORMATS:
        limit = _OLD_LIMIT
    if key.kind != "index" or limit is None:
        return key
    parts = (part if part.column is None else _part(part, columns, limit) for part in key.parts)
    return replace(key, parts=tuple(parts))


def holds_shapes(table: TableSchema) -> bool:
    """Whether a key that is not SPATIAL is over shapes."""
    columns = {column.name.lower(): column for column in table.columns}
    return any(_over_shapes(key, columns) for key in table.keys)


def _over_shapes(key: KeySchema, columns: Mapping[str, ColumnSchema]) -> bool:
    if key.kind in ("fulltext", "spatial"):
        return False
    return any(_type(part, columns) in GEOMETRIES for part in key.parts if part.column)


def _type(part: KeyPart, columns: Mapping[str, ColumnSchema]) -> str:
    return columns[(part.column or "").lower()].type


def _size(part: KeyPart, columns: Mapping[str, ColumnSchema]) -> int:
    """Bytes of the part, as if a key could hold it."""
    column = columns[(part.column or "").lower()]
    if column.type not in WITH_PREFIX:
        return _WIDTHS.get(column.type, _WIDTH)
    if part.prefix is None and column.type in TEXTS:
        return TEXTS[column.type]
    return (part.prefix or column.length or 0) * character_bytes(column)


def character_bytes(column: ColumnSchema) -> int:
    """Bytes of the longest character of a column; 1 if it has no character set."""
    return widest(column.charset) if column.charset else 1


def _part(part: KeyPart, columns: Mapping[str, ColumnSchema], limit: int) -> KeyPart:
    column = columns[(part.column or "").lower()]
    if column.type not in WITH_PREFIX:
        return part
    most = limit // character_bytes(column)
    if part.prefix is None and column.type in TEXTS:
        return replace(part, prefix=min(most, TEXTS[column.type]))
    asked = part.prefix or column.length or 0
    return replace(part, prefix=most) if asked > most else part
