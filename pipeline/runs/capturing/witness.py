"""The log's own account of a table beside its rows, held against the history's.

Belongs here: a TABLE_MAP and a version of the table → what they disagree about, in
sentences. Does not: reading either.

With `binlog_row_metadata=MINIMAL`, MySQL's default, a table map tells types, widths, what
may be NULL, signs and character sets; with FULL names, the key and members besides; on
MariaDB by default nothing but types, widths and NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pipeline.binlog.rows.metadata import OptionalField
from pipeline.binlog.rows.table_map import Outline
from pipeline.table import Column, TableStructure

_AS_LOGGED: Final = {
    "binary": "char",
    "varbinary": "varchar",
    "blob": "text",
}
"""What the log tells apart by character sets alone."""

_STRINGS: Final = frozenset({"char", "varchar", "text", "binary", "varbinary", "blob"})
_TEMPORAL: Final = frozenset({"time", "datetime", "timestamp"})
_MEMBERS: Final = frozenset({"enum", "set"})
_SIGNED: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "decimal"}
)


def disagreements(outline: Outline, structure: TableStructure) -> tuple[str, ...]:
    """What the log says otherwise than the structure, each as "what: log, history"."""
    return tuple(_disagreements(outline, structure))


def agrees(logged: Column, known: Column, said: frozenset[OptionalField]) -> bool:
    """Return whether a column of the log may be that one, as far as the log says."""
    return all(one == other for _, one, other in _parts(logged, known, said))


def _disagreements(outline: Outline, structure: TableStructure) -> Iterator[str]:
    theirs, ours = outline.columns, structure.columns
    if len(theirs) != len(ours):
        yield f"columns: {len(theirs)}, {len(ours)} ({', '.join(c.name for c in ours)})"
        return
    for number, (logged, known) in enumerate(zip(theirs, ours, strict=True), start=1):
        for what, one, other in _parts(logged, known, outline.said):
            if one != other:
                yield f"column {number} ({known.name}) {what}: {one}, {other}"
    if OptionalField.NAMES in outline.said and outline.primary_key != structure.primary_key:
        keys = (", ".join(key) or "none" for key in (outline.primary_key, structure.primary_key))
        yield f"primary key: {', '.join(keys)}"


def _parts(
    logged: Column, known: Column, said: frozenset[OptionalField]
) -> Iterator[tuple[str, object, object]]:
    charsets = OptionalField.CHARSETS in said
    if OptionalField.NAMES in said:
        yield "name", logged.name, known.name
    yield "type", _type(logged, bare=not charsets), _type(known, bare=not charsets)
    yield "width", _width(logged), _width(known)
    yield "nullable", logged.nullable, known.nullable
    if OptionalField.SIGNS in said and known.type in _SIGNED:
        yield "unsigned", logged.unsigned, known.unsigned
    if charsets and known.type in _STRINGS:
        yield "character set", logged.charset, known.charset
    if OptionalField.MEMBER_CHARSETS in said and known.type in _MEMBERS:
        yield "character set", logged.charset, known.charset
    if OptionalField.MEMBERS in said and known.type in _MEMBERS:
        yield "members", logged.members, known.members


def _type(column: Column, *, bare: bool) -> str:
    return _AS_LOGGED.get(column.type, column.type) if bare else column.type


def _width(column: Column) -> object:
    length = column.length
    if column.type in _TEMPORAL:
        # Columns that are older than MySQL 5.6 have a type code of their own, without a width.
        length = length or 0
    return length, column.precision, column.scale
