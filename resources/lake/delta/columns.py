"""A Delta table's columns by their names at the source, and a check of the columns of a
write.

Columns are checked before each write, because Spark would convert a value of another
type silently, and delta-rs would not check types at all.

A mirror (a table's current rows) that is made for every reader has no column mapping,
so characters that Delta refuses in names are escaped. Other mirrors change only names
that Spark reserves (`schema.types.mirror_name`). In a changelog (a table's changes),
names stay as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import pyarrow as pa
from deltalake import DeltaTable, Schema

from lockstep.pipeline.schema.types import escape_name, mirror_name, source_name, unescape_name
from lockstep.pipeline.values.errors import TableError
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.lake.store.storage import delta_table, lake_errors

VECTORS_PROPERTY = "delta.enableDeletionVectors"
"""A table property that every mirror has and no changelog has. It is "false" if the
mirror was made for every reader."""

PHYSICAL_NAME = "delta.columnMapping.physicalName"
"""The key, in a column's metadata, of its name in files."""

Spelling: TypeAlias = Callable[[str], str]

_SPELLINGS: Mapping[str | None, tuple[Spelling, Spelling]] = MappingProxyType(
    {"true": (mirror_name, source_name), "false": (escape_name, unescape_name)}
)
"""For each value of the property `VECTORS_PROPERTY`: the functions from a column's name
at the source to its name in the table, and back."""

_UNCHANGED: tuple[Spelling, Spelling] = (str, str)

_CURE = "the table's structure changed: compare it at the source and in the lake"


def spelling(configuration: Mapping[str, str | None]) -> Spelling:
    """Return the function from a column's name at the source to its name in a table
    with these properties."""
    return _SPELLINGS.get(configuration.get(VECTORS_PROPERTY), _UNCHANGED)[0]


def table_spelling(table: DeltaTable) -> dict[str, str]:
    """Return the columns' names at the source → their names in the table."""
    _, unspell = _SPELLINGS.get(table.metadata().configuration.get(VECTORS_PROPERTY), _UNCHANGED)
    return {unspell(field.name): field.name for field in table.schema().fields}


def mirror_schema(path: LakePath, version: int) -> pa.Schema:
    """Return a mirror's columns at a version, by their names at the source, in the
    types of `pipeline.schema.types`."""
    with lake_errors(path):
        return schema_of(delta_table(path, version))


def schema_of(table: DeltaTable) -> pa.Schema:
    """Return the columns of an open table, by their names at the source, in the types
    of `pipeline.schema.types`."""
    fields = pa.schema(table.schema().to_arrow())
    source_names = {spelled: name for name, spelled in table_spelling(table).items()}
    return pa.schema([(source_names[field.name], _plain_type(field.type)) for field in fields])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return pa.list_(_plain_type(kind.value_type)) if pa.types.is_list(kind) else kind


def refuse_other_columns(
    table: DeltaTable, written_schema: pa.Schema, *, refuse_missing: bool
) -> None:
    """Raise `TableError` for a column of `written_schema` that the table does not have
    with that type; with `refuse_missing`, also for a column of the table that
    `written_schema` does not have."""
    types = {field.name: field.type for field in table.schema().fields}
    types_by_source_name = {name: types[spelled] for name, spelled in table_spelling(table).items()}
    for field in Schema.from_arrow(written_schema).fields:
        if field.name not in types_by_source_name:
            raise TableError(f"column {field.name!r} is not in the lake's table", hint=_CURE)
        if types_by_source_name[field.name] != field.type:
            raise TableError(
                f"column {field.name!r} has another type in the lake's table", hint=_CURE
            )
    missing_names = types_by_source_name.keys() - set(written_schema.names)
    if refuse_missing and missing_names:
        raise TableError(
            f"column {min(missing_names)!r} of the lake's table is missing at the source",
            hint=_CURE,
        )
