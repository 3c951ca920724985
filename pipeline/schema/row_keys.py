"""By what a table's rows are told apart in the lake.

Belongs here: the choice among a structure's keys. Values are compared as text or bytes of the
lake, which is sound: what is unique under a collation is unique in its bytes, and a key's bytes
come back from its text (`binlog.text.twins`) or the table is quarantined.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.schema.model import KeySchema, TableSchema


def merge_key(schema: TableSchema) -> tuple[str, ...]:
    """The primary key's columns; else those of a UNIQUE index over whole NOT NULL columns,
    the first by name (the order of a structure's keys means nothing); else none."""
    return next(key_candidates(schema), ())


def key_candidates(schema: TableSchema) -> Iterator[tuple[str, ...]]:
    """Every key a row can be told by, the best first, in the columns' own spelling."""
    for key in _telling(schema):
        yield tuple(_spelled(schema, name) for name in key.columns)


def merge_index(schema: TableSchema) -> KeySchema | None:
    """The key that `merge_key` has the columns of."""
    return next(_telling(schema), None)


def key_columns(schema: TableSchema) -> frozenset[str]:
    """The columns of every key that rows are told by, now or once another key is gone."""
    return frozenset(name for key in key_candidates(schema) for name in key)


def _telling(schema: TableSchema) -> Iterator[KeySchema]:
    unique = sorted(
        (key for key in schema.keys if key.kind == "unique"), key=lambda key: key.name.lower()
    )
    yield from (key for key in schema.keys if key.kind == "primary")
    yield from (key for key in unique if _whole_and_not_null(schema, key))


def _whole_and_not_null(schema: TableSchema, key: KeySchema) -> bool:
    for part in key.parts:
        column = None if part.column is None else schema.column(part.column)
        if column is None or column.nullable or part.prefix is not None:
            return False
    return True


def _spelled(schema: TableSchema, name: str) -> str:
    column = schema.column(name)
    return name if column is None else column.name
