"""Keys as a statement wrote them → keys as the server makes them.

Belongs here: names the server chooses, keys that a foreign key needs, what a key does to
its columns. How much of a column a key holds is `prefixes`. Rules:
`mysql_prepare_create_table` and `foreign_key_prefix` in MySQL's `sql/sql_table.cc` and
`sql/sql_class.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pipeline.schema.collations import widest
from pipeline.schema.context import ServerDialect
from pipeline.schema.evolving.effects import CannotFollow
from pipeline.schema.evolving.prefixes import (
    GEOMETRIES,
    TEXTS,
    WITH_PREFIX,
    fitted_key,
    shortened_key,
)
from pipeline.schema.model import ColumnSchema, KeyPart, KeySchema
from pipeline.schema.statements.written import WrittenKey, WrittenPeriod

_WITHOUT_PARTS: Final = frozenset({"fulltext", "spatial"})
_POINT: Final = 25
"""Bytes of a POINT: SRID, byte order, kind and two doubles."""


def resolve_keys(
    pending: Sequence[WrittenKey],
    columns: Sequence[ColumnSchema],
    engine: str,
    facts: ServerDialect,
    row_format: str | None = None,
) -> tuple[KeySchema, ...]:
    """All keys of a table, those it had before first, then a statement's in its order."""
    by_name = {column.name.lower(): column for column in columns}
    made: list[KeySchema] = []
    if facts.mariadb and any(key.generated and _over_texts(key, by_name) for key in pending):
        raise CannotFollow("which key a foreign key over a TEXT or BLOB has is not known")
    whole = [replace(key, parts=_without_prefixes(key, by_name)) for key in pending]
    if not (facts.mariadb or facts.mysql_8):
        whole = [replace(key, parts=_ascending(key)) for key in whole]
    needed = _needed(whole, facts)
    named = {key.name for key in needed if key.name is not None}
    for key in needed:
        parts = tuple(_part(part, key, by_name, facts) for part in key.parts)
        name = key.name or _free_name(parts, {one.name for one in made}, named)
        found = KeySchema(name, key.kind, parts, key.invisible, key.generated)
        if facts.mariadb:
            found = _with_row_end(fitted_key(found, by_name, engine, hashed=key.hash), columns)
        elif facts.mysql_8 and _is_spatial(found, by_name):
            found = replace(found, kind="spatial")
        else:
            found = shortened_key(found, by_name, engine, row_format)
        made.append(found)
    return tuple(made)


def _without_prefixes(key: WrittenKey, columns: Mapping[str, ColumnSchema]) -> tuple[KeyPart, ...]:
    """Parts of types that a key always holds as a whole have no prefix, even if written."""
    found = []
    for part in key.parts:
        column = columns.get((part.column or "").lower())
        plain = column is not None and column.type not in WITH_PREFIX | GEOMETRIES
        found.append(replace(part, prefix=None) if plain else part)
    return tuple(found)


def _ascending(key: WrittenKey) -> tuple[KeyPart, ...]:
    """MySQL 5.7 reads DESC, and makes an index that ascends."""
    return tuple(replace(part, descending=False) for part in key.parts)


def _over_texts(key: WrittenKey, columns: Mapping[str, ColumnSchema]) -> bool:
    found = [columns.get((part.column or "").lower()) for part in key.parts]
    return any(column is not None and column.type in TEXTS for column in found)


def _is_spatial(key: KeySchema, columns: Mapping[str, ColumnSchema]) -> bool:
    """MySQL 8.0 makes a key over a shape a SPATIAL one."""
    first = columns.get((key.parts[0].column or "").lower())
    return key.kind == "index" and first is not None and first.type in GEOMETRIES


def pending_key(key: KeySchema) -> WrittenKey:
    """A key that is there, as one to be made again."""
    return WrittenKey(key.kind, key.parts, key.name, key.invisible, generated=key.generated)


def _needed(pending: Sequence[WrittenKey], facts: ServerDialect) -> list[WrittenKey]:
    """Without the keys made for foreign keys that another can stand in for."""
    ignored: set[int] = set()
    for at, key in enumerate(pending):
        for before, other in enumerate(pending[:at]):
            if before in ignored or not _redundant(key, other, facts):
                continue
            if not other.generated or (key.generated and len(key.parts) < len(other.parts)):
                ignored.add(at)
            else:
                ignored.add(before)
            break
    return [key for at, key in enumerate(pending) if at not in ignored]


def _redundant(key: WrittenKey, other: WrittenKey, facts: ServerDialect) -> bool:
    """Whether one of the two is generated and begins the other. MySQL needs it ascending."""
    if key.generated:
        both = other.generated and len(key.parts) > len(other.parts)
        generated, kept = (other, key) if both else (key, other)
    elif other.generated:
        generated, kept = other, key
    else:
        return False
    if len(generated.parts) > len(kept.parts) or kept.kind in _WITHOUT_PARTS:
        return False
    return all(
        ours.column is not None
        and theirs.column is not None
        and ours.column.lower() == theirs.column.lower()
        and theirs.prefix is None
        and (facts.mariadb or not theirs.descending)
        for ours, theirs in zip(generated.parts, kept.parts, strict=False)
    )


def _part(
    part: KeyPart, key: WrittenKey, columns: dict[str, ColumnSchema], facts: ServerDialect
) -> KeyPart:
    if part.column is None:
        return part
    column = columns.get(part.column.lower())
    if column is None:
        raise CannotFollow(f"a key names the column {part.column}, which is not there")
    part = replace(part, column=column.name)
    if column.type == "point" and key.kind not in _WITHOUT_PARTS and _keeps_points(facts):
        return replace(part, prefix=part.prefix or _POINT)
    if key.kind in _WITHOUT_PARTS or column.type not in WITH_PREFIX:
        return replace(part, prefix=None)
    if part.prefix is not None and column.length is not None and part.prefix >= column.length:
        return replace(part, prefix=None)
    if part.prefix is not None and column.type in TEXTS:
        # MariaDB takes as many characters as the column has bytes.
        width = 1 if facts.mariadb or column.charset is None else widest(column.charset)
        return replace(part, prefix=min(part.prefix, TEXTS[column.type] // width))
    return part


def _keeps_points(facts: ServerDialect) -> bool:
    """Return whether an ordinary key over a POINT is possible, as in MySQL 5.7."""
    return not (facts.mariadb or facts.mysql_8)


def _free_name(parts: Sequence[KeyPart], made: set[str], named: set[str]) -> str:
    """The first column's name, with a number where a key before has it. A key with an expression
    is called otherwise, and makes way for later ones that are `named` too."""
    first = parts[0].column or ""
    if any(part.column is None for part in parts):
        first, made = "functional_index", made | named
    taken = {name.lower() for name in made}
    if first.lower() not in taken and first.lower() != "primary":
        return first
    numbers = (f"{first}_{number}" for number in range(2, 100))
    free = next((name for name in numbers if name.lower() not in taken), None)
    if free is None:
        raise CannotFollow(f"no name is free for a key on {first}")
    return free


def with_key_columns(
    columns: Iterable[ColumnSchema], keys: Iterable[KeySchema], periods: Iterable[WrittenPeriod]
) -> tuple[ColumnSchema, ...]:
    """A primary key's and a period's columns are NOT NULL, whatever was written."""
    fixed = {name.lower() for key in keys if key.kind == "primary" for name in key.columns}
    fixed |= {name.lower() for period in periods for name in period.columns}
    return tuple(
        replace(column, nullable=False) if column.name.lower() in fixed else column
        for column in columns
    )


def _with_row_end(key: KeySchema, columns: Sequence[ColumnSchema]) -> KeySchema:
    """Of a versioned table's rows only one at a time is the present one: MariaDB puts the
    end of their time into every key that tells rows apart."""
    end = next((column.name for column in columns if column.system_period == "end"), None)
    unique = key.kind in ("primary", "unique")
    if end is None or not unique or end in key.columns:
        return key
    return replace(key, parts=(*key.parts, KeyPart(end)))
