"""Foreign keys: their names, what they point at, and how they follow renames.

Belongs here: whatever of a foreign key is decided by more than its own text. Which keys
one brings along is `keys`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pipeline.schema.context import StatementContext
from pipeline.schema.model import ColumnSchema, ForeignKey, KeyPart, ServerSchema, TableSchema
from pipeline.schema.statements.written import WrittenKey, WrittenReference
from pipeline.table import TableName

_ENGINES: Final = frozenset({"innodb", "ndbcluster"})
_INLINE_SINCE: Final = 90000
"""MySQL ignored REFERENCES in a column's definition before 9.0; MariaDB before 10.5."""

_INLINE_SINCE_MARIADB: Final = 100500


def kept_by(engine: str) -> bool:
    """Whether an engine has foreign keys; the others drop them without a word."""
    return engine.lower() in _ENGINES


def inline_references(context: StatementContext) -> bool:
    since = _INLINE_SINCE_MARIADB if context.facts.mariadb else _INLINE_SINCE
    return context.facts.version >= since


def key_for(reference: WrittenReference) -> WrittenKey:
    """The key a foreign key needs."""
    parts = tuple(KeyPart(name) for name in reference.columns)
    return WrittenKey("index", parts, reference.name or reference.index, generated=True)


def resolve_references(
    written: Iterable[WrittenReference],
    table: TableName,
    before: Sequence[ForeignKey],
    columns: Sequence[ColumnSchema],
    schema: ServerSchema,
    context: StatementContext,
) -> tuple[ForeignKey, ...]:
    """The foreign keys that a statement adds to those `before`."""
    number = max((_number(key.name, table.name) for key in before), default=0)
    names = {column.name.lower(): column.name for column in columns}
    usual = "NO ACTION" if context.facts.mysql_8 else "RESTRICT"
    found = []
    for reference in written:
        name = reference.name
        if name is None:
            number += 1
            name = f"{table.name}_ibfk_{number}"
        target = _target(reference.references, table, context)
        parent = schema.table(target)
        found.append(
            ForeignKey(
                name,
                tuple(names.get(column.lower(), column) for column in reference.columns),
                target,
                _referenced(reference, parent),
                reference.on_delete or usual,
                reference.on_update or usual,
            )
        )
    return tuple(found)


def _target(named: TableName, table: TableName, context: StatementContext) -> TableName:
    """A parent that was named without a database is in the child's."""
    found = TableName(named.database or table.database, named.name)
    if context.facts.lower_case_table_names != 1:
        return found
    return TableName(found.database.lower(), found.name.lower())


def _referenced(reference: WrittenReference, parent: TableSchema | None) -> tuple[str, ...]:
    if not reference.referenced:
        return parent.primary_key if parent is not None else ()
    if parent is None:
        return reference.referenced
    names = {column.name.lower(): column.name for column in parent.columns}
    return tuple(names.get(name.lower(), name) for name in reference.referenced)


def _number(name: str, table: str) -> int:
    match = re.fullmatch(re.escape(table) + r"_ibfk_(\d+)", name, re.IGNORECASE)
    return int(match[1]) if match else 0


def renamed_names(
    keys: Iterable[ForeignKey], old: TableName, new: TableName
) -> tuple[ForeignKey, ...]:
    """Names that the server chose follow the table's own name."""
    found = []
    for key in keys:
        if _number(key.name, old.name):
            key = replace(key, name=f"{new.name}_ibfk_{_number(key.name, old.name)}")
        found.append(key)
    return tuple(found)


def pointing_elsewhere(schema: ServerSchema, old: TableName, new: TableName) -> ServerSchema:
    """After `old` became `new`: foreign keys that pointed at it still do."""
    gone = schema.fold(old)
    tables = dict(schema.tables)
    for name, table in schema.tables.items():
        if any(schema.fold(key.references) == gone for key in table.foreign_keys):
            tables[name] = replace(
                table,
                foreign_keys=tuple(
                    replace(key, references=new) if schema.fold(key.references) == gone else key
                    for key in table.foreign_keys
                ),
            )
    return replace(schema, tables=tables)


def with_renamed_parents(
    schema: ServerSchema, parent: TableName, renamed: Mapping[str, str]
) -> ServerSchema:
    """Columns of `parent` have new names (old ones in lower case): its children follow."""
    folded = schema.fold(parent)
    tables = dict(schema.tables)
    for name, table in schema.tables.items():
        if any(schema.fold(key.references) == folded for key in table.foreign_keys):
            keys = tuple(
                replace(key, referenced=tuple(renamed.get(c.lower(), c) for c in key.referenced))
                if schema.fold(key.references) == folded
                else key
                for key in table.foreign_keys
            )
            tables[name] = replace(table, foreign_keys=keys)
    return replace(schema, tables=tables)
