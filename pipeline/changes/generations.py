"""The generations of a changelog: when the next one begins, and how all are read together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline.changes.layout import captured_schema, changelog_schema, logged_field
from pipeline.changes.mapping import cast_column
from pipeline.changes.widening import TypeChange, type_change
from pipeline.errors import TableError
from pipeline.schema.column_names import folded
from pipeline.schema.history import SchemaVersion, ShownAs
from pipeline.schema.model import TableSchema
from pipeline.schema.rows import row_structure
from pipeline.schema.treatments import Fate, Hash, Treatment
from pipeline.table import TableStructure


def fits(changelog: pa.Schema, version: SchemaVersion) -> bool:
    """Whether images of a version can be added to a changelog with these columns."""
    return joins(changelog, changelog_schema(version.shown_structure))


def joins(changelog: pa.Schema, brought: pa.Schema) -> bool:
    """Whether a table with these columns can take files with those."""
    have = {folded(field.name): field for field in changelog}
    return all(
        (there := have.get(folded(field.name))) is None
        or (there.name == field.name and there.type == field.type)
        for field in brought
    )


def next_generation(
    before: Sequence[SchemaVersion],
    schema: TableSchema | None,
    shown_as: ShownAs | None = None,
    source: TableSchema | None = None,
) -> int:
    """The generation that rows of a new structure go to, by all versions there were: the
    newest one, while its columns can take them and it shows the same of the table. A structure
    that no changelog can hold begins none. Of a version that is not known, nothing is in its
    generation yet. `schema`: what the lake shows of the structure `source`, as `shown_as` says."""
    known = [version for version in before if version.schema is not None]
    newest = max((version.generation for version in before), default=1)
    if schema is None:
        return newest
    try:
        brought = _with_ours(row_structure(schema))
        together = [
            _with_ours(version.shown_structure) for version in known if version.generation == newest
        ]
    except TableError:
        return newest
    if source is not None and known and known[-1].generation == newest:
        before_now, now = _shows(known[-1].schema, known[-1].shown_as), _shows(source, shown_as)
        if any(before_now[name] != now[name] for name in before_now.keys() & now.keys()):
            return newest + 1
    return newest if all(joins(one, brought) for one in together) else newest + 1


def _shows(schema: TableSchema | None, shown_as: ShownAs | None) -> dict[str, object]:
    """What is shown of each column of a structure, by its name, and under no name which rows."""
    columns = () if schema is None else schema.columns
    treatments: Sequence[Treatment] = [Fate.SHOWN] * len(columns)
    if shown_as is not None:
        treatments = shown_as.treatments
    shows: dict[str, object] = {
        column.name.lower(): (treatment, shown_as.key)
        if shown_as is not None and isinstance(treatment, Hash)
        else treatment
        for column, treatment in zip(columns, treatments, strict=True)
    }
    return shows | {"": None if shown_as is None else shown_as.rows}


def _with_ours(structure: TableStructure) -> pa.Schema:
    """All that images of a structure may bring: a column of the table may be called as ours."""
    names = [column.name for column in structure.columns]
    return captured_schema(structure, updated=True).append(logged_field(names))


@dataclass(frozen=True, slots=True)
class SharedColumn:
    """A column of all generations read together: per generation the name it has there,
    None where it is not there."""

    name: str
    type: pa.DataType
    sources: tuple[str | None, ...]


def together(schemas: Sequence[pa.Schema], numbers: Sequence[int] = ()) -> tuple[SharedColumn, ...]:
    """The select list of generations, oldest first, read as one table.

    A name has its newest type. A generation whose type is not cast to it without loss gives
    a column of its own, `name@generation`, with a `_` in front as often as it takes where a
    column of the table is called that. Names are compared without case. `numbers`: the
    generations' own, if some are left out.
    """
    columns: dict[str, SharedColumn] = {}
    taken = {folded(name) for schema in schemas for name in schema.names}
    count = len(schemas)
    for number in range(count, 0, -1):
        for field in schemas[number - 1]:
            shared = columns.get(folded(field.name))
            if shared is not None and type_change(field.type, shared.type) is not TypeChange.REREAD:
                name = shared.name
            elif shared is None:
                name = field.name
            else:
                name = f"{field.name}@{numbers[number - 1] if numbers else number}"
                while folded(name) in taken:
                    name = f"_{name}"
            known = columns.get(folded(name), SharedColumn(name, field.type, (None,) * count))
            sources = tuple(
                field.name if at == number else source
                for at, source in enumerate(known.sources, start=1)
            )
            columns[folded(name)] = SharedColumn(known.name, known.type, sources)
    return tuple(columns.values())


def gathered(tables: Sequence[pa.Table], columns: Sequence[SharedColumn]) -> pa.Table:
    """The generations' rows under the shared columns, one generation after the other."""
    parts = [
        pa.table(
            {
                column.name: pa.nulls(table.num_rows, column.type)
                if (source := column.sources[at]) is None
                else cast_column(table.column(source), column.type)
                for column in columns
            }
        )
        for at, table in enumerate(tables)
    ]
    return pa.concat_tables(parts)


def in_order(changes: pa.Table) -> pa.Table:
    """Changes in the order of `_sequence`."""
    numbers = changes.column("_sequence").to_numpy()
    if bool(np.all(numbers[1:] > numbers[:-1])):
        return changes
    return changes.take(pa.array(np.argsort(numbers, kind="stable")))


def all_columns(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """The columns of all structures of one generation, each once: a name has one type there."""
    fields: dict[str, pa.Field] = {}
    for schema in schemas:
        fields.update({field.name: field for field in schema if field.name not in fields})
    return pa.schema(fields.values())
