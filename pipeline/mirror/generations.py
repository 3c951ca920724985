"""The generations of a changelog (a table's row images in Delta): when the next
generation begins, and how all of them are read as one table. Each generation is a Delta
table of its own, because a new structure of the source table may not fit the columns of
the previous one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lockstep.pipeline.mirror.layout import captured_schema, logged_field
from lockstep.pipeline.mirror.mapping import cast_column
from lockstep.pipeline.mirror.type_changes import TypeChange, type_change
from lockstep.pipeline.schema.history import SchemaVersion, ShownAs
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.treatments import Hash, Treatment, Visibility
from lockstep.pipeline.schema.types import comparable_name
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableStructure


def can_take(changelog: pa.Schema, new_columns: pa.Schema) -> bool:
    """Return whether a changelog with these columns can take files with the columns
    `new_columns`."""
    present = {comparable_name(field.name): field for field in changelog}
    return all(
        (own := present.get(comparable_name(field.name))) is None
        or (own.name == field.name and own.type == field.type)
        for field in new_columns
    )


class ChangelogGenerations:
    """The generations of one table's changelog, with the table's versions so far in
    their order. Versions whose structure is unknown are ignored, because no rows were
    captured under them."""

    def __init__(self, versions: Iterable[SchemaVersion]) -> None:
        self._newest = 1
        self._last_known: SchemaVersion | None = None
        # The columns of the newest generation: those of each version are computed once,
        # by the first `choose` after it was added, since a table may have thousands.
        self._columns: dict[str, set[tuple[str, pa.DataType]]] = {}
        self._unread: list[SchemaVersion] = []
        for version in versions:
            self.add(version)

    def add(self, version: SchemaVersion) -> None:
        """Add the table's next version."""
        if version.generation > self._newest:
            self._newest = version.generation
            self._columns, self._unread = {}, []
        if version.schema is not None:
            self._last_known = version
            if version.generation == self._newest:
                self._unread.append(version)

    def choose(self, source_schema: TableSchema | None, shown_as: ShownAs | None = None) -> int:
        """Return the number of the generation for the rows of a new structure.

        If the newest generation has columns that can take the rows, and the settings
        still show the same columns and rows of the table, it is that generation.
        Otherwise it is the next number. A structure that no changelog can hold begins no
        generation.
        """
        newest = self._newest
        if source_schema is None:
            return newest
        shown_schema = source_schema if shown_as is None else shown_as.schema
        try:
            new_columns = _changelog_columns_of(row_structure(shown_schema))
            self._read_columns()
        except TableError:
            return newest
        last = self._last_known
        if last is not None and last.generation == newest:
            earlier_condition = last.shown_as and last.shown_as.row_condition
            if earlier_condition != (shown_as and shown_as.row_condition):
                return newest + 1
            earlier = _treatments(last.schema, last.shown_as)
            present = _treatments(source_schema, shown_as)
            if any(earlier[name] != present[name] for name in earlier.keys() & present.keys()):
                return newest + 1
        return newest if self._can_take(new_columns) else newest + 1

    def _read_columns(self) -> None:
        """Add the columns of versions that were added since the last call. Raise
        TableError if no changelog can hold one of them."""
        while self._unread:
            for field in _changelog_columns_of(self._unread[-1].shown_structure):
                kinds = self._columns.setdefault(comparable_name(field.name), set())
                kinds.add((field.name, field.type))
            self._unread.pop()

    def _can_take(self, new_columns: pa.Schema) -> bool:
        return all(
            self._columns.get(comparable_name(field.name), set()) <= {(field.name, field.type)}
            for field in new_columns
        )


def _treatments(
    schema: TableSchema | None, shown_as: ShownAs | None
) -> dict[str, tuple[Treatment, str | None]]:
    """Return for each column of a structure, in lower case, its treatment and, if that
    is a hash, the fingerprint of the key."""
    names = () if schema is None else schema.names
    if shown_as is None:
        return {name.lower(): (Visibility.SHOWN, None) for name in names}
    return {
        name.lower(): (treatment, shown_as.key_fingerprint if isinstance(treatment, Hash) else None)
        for name, treatment in zip(names, shown_as.treatments, strict=True)
    }


def _changelog_columns_of(structure: TableStructure) -> pa.Schema:
    """Return all columns that images of a structure can have in a changelog. Lockstep's
    columns are included, since a column of the table may have the name of one."""
    return captured_schema(structure, updated=True).append(logged_field(structure.names))


@dataclass(frozen=True, slots=True)
class SharedColumn:
    """A column of all generations read as one table. `sources` has the column's name in
    each generation, None in those that lack it."""

    name: str
    type: pa.DataType
    sources: tuple[str | None, ...]


def shared_columns(
    schemas: Sequence[pa.Schema], numbers: Sequence[int] = ()
) -> tuple[SharedColumn, ...]:
    """Return the columns under which generations are read as one table. `schemas`: the
    columns of each generation, oldest first. `numbers`: the numbers of the generations,
    by default 1, 2, ….

    Columns with the same name, compared case-insensitively, become one column with the
    newest type. If an older type cannot be cast to the newest without loss, that
    generation's values get a column of their own, `name@generation`, prefixed with `_`
    until no other column has that name.
    """
    columns: dict[str, SharedColumn] = {}
    taken = {comparable_name(name) for schema in schemas for name in schema.names}
    count = len(schemas)
    # From the newest generation back, so that a name gets its newest type.
    for index in reversed(range(count)):
        for field in schemas[index]:
            shared = columns.get(comparable_name(field.name))
            if shared is not None and type_change(field.type, shared.type) is not TypeChange.REREAD:
                name = shared.name
            elif shared is None:
                name = field.name
            else:
                name = f"{field.name}@{numbers[index] if numbers else index + 1}"
                while comparable_name(name) in taken:
                    name = f"_{name}"
            column = columns.get(
                comparable_name(name), SharedColumn(name, field.type, (None,) * count)
            )
            sources = (*column.sources[:index], field.name, *column.sources[index + 1 :])
            columns[comparable_name(name)] = replace(column, sources=sources)
    return tuple(columns.values())


def one_table(tables: Sequence[pa.Table], columns: Sequence[SharedColumn]) -> pa.Table:
    """Return the generations' rows under the shared columns, one generation after the
    other."""
    parts = [
        pa.table(
            {
                column.name: pa.nulls(table.num_rows, column.type)
                if (source := column.sources[index]) is None
                else cast_column(table.column(source), column.type)
                for column in columns
            }
        )
        for index, table in enumerate(tables)
    ]
    return pa.concat_tables(parts)


def sorted_by_sequence(changes: pa.Table) -> pa.Table:
    """Return changes in the order of `_sequence`."""
    numbers = changes.column("_sequence").to_numpy()
    if bool(np.all(numbers[1:] > numbers[:-1])):
        return changes
    return changes.take(pa.array(np.argsort(numbers, kind="stable")))


def all_columns(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return all columns of the structures of one generation; a column has the same
    type in each structure that has it."""
    fields: dict[str, pa.Field] = {}
    for schema in schemas:
        fields.update({field.name: field for field in schema if field.name not in fields})
    return pa.schema(fields.values())
