"""The parts of a table's structure that give its rows their meaning, in the history and at the
server.

Belongs here: which differences make the log's rows, or the key of a mirror, mean something else.
Does not: asking the server, and whether a statement in the log explains a difference
(`pipeline.runs.capturing.structure_proof`); everything else that may differ (`comparable`).

Indexes, comments, collations, visibility and the like may differ: rows are read the same way. Each
server prints a generated column's expression in its own form, so only whether there is one is
compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipeline.schema.comparable import comparable
from pipeline.schema.compare import aligned, differences
from pipeline.schema.model import ColumnSchema, TableSchema
from pipeline.schema.row_keys import key_candidates, merge_key
from pipeline.schema.rows import row_structure, schema_of


def changed_meaning(
    history: TableSchema,
    server: TableSchema,
    *,
    told_by_log: bool = False,
    defaults: bool = False,
) -> tuple[str, ...]:
    """Return the differences that make rows mean something else, each as "what: history, server".

    `told_by_log`: the history knows only what a TABLE_MAP says of the table. `defaults`: row images
    left columns out, which were filled with the history's defaults.
    """
    return tuple(_changed(history, server, told_by_log, defaults))


def _changed(
    history: TableSchema, server: TableSchema, told_by_log: bool, defaults: bool
) -> Iterator[str]:
    ours, theirs = comparable(history), aligned(comparable(server), history)
    if told_by_log:
        ours, theirs = (schema_of(row_structure(table)) for table in (ours, theirs))
    yield from differences(*(_of_rows(table, defaults) for table in (ours, theirs)))
    hashed = [sum(key.hashed for key in table.keys) for table in (ours, theirs)]
    if hashed[0] != hashed[1]:
        yield f"UNIQUE keys that are hashed: {hashed[0]}, {hashed[1]}"
    yield from _changed_key(history, [*key_candidates(server), *key_candidates(theirs)])


def _of_rows(table: TableSchema, defaults: bool) -> TableSchema:
    columns = tuple(_of_row(column, defaults) for column in table.columns)
    return TableSchema(table.name, columns, system_versioned=table.system_versioned)


def _of_row(column: ColumnSchema, defaults: bool) -> ColumnSchema:
    return replace(
        column,
        # information_schema does not show this column.
        nullable=column.nullable or column.name.startswith("DB_ROW_HASH_"),
        zerofill=False,
        collation=None,
        default=column.default if defaults else None,
        on_update=False,
        auto_increment=False,
        stored=False,
        invisible=False,
        srid=None,
    )


def _changed_key(history: TableSchema, candidates: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield a difference if the server no longer has the key that identifies a mirror's rows."""
    key = merge_key(history)
    if key and {*key} not in [{*candidate} for candidate in candidates]:
        theirs = " or ".join(f"({', '.join(other)})" for other in dict.fromkeys(candidates))
        yield f"key: ({', '.join(key)}), {theirs or 'none'}"
