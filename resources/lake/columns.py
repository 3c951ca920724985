"""A Delta table's columns by the names that they have at the source, and whether it has those that
a write brings: asked before, because Spark would convert a value of another type without a word,
and delta-rs would not look at all.

A mirror that is made for every reader has no column mapping: there the names are `escaped`. In any
other those are `hidden` that Spark takes for its own. A changelog's are what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import pyarrow as pa
from deltalake import DeltaTable, Schema

from pipeline.errors import TableError
from pipeline.schema.column_names import escaped, hidden, shown, unescaped
from resources.lake.paths import LakePath
from resources.lake.storage import delta_table, lake_errors

VECTORS = "delta.enableDeletionVectors"
"""The property that every mirror has, and no changelog: it is "false" where a mirror was made for
every reader."""

PHYSICAL_NAME = "delta.columnMapping.physicalName"
"""In a column's metadata: what files call it."""

Spelling: TypeAlias = Callable[[str], str]

_SPELLINGS: Mapping[str | None, tuple[Spelling, Spelling]] = MappingProxyType(
    {"true": (hidden, shown), "false": (escaped, unescaped)}
)
"""From a name at the source to the table's, and back."""

_AS_IT_STANDS: tuple[Spelling, Spelling] = (str, str)

_CURE = "the table's structure changed: compare it at the source and in the lake"


def spelling(configuration: Mapping[str, str | None]) -> Spelling:
    """How a table with these properties spells the name of a column of the source."""
    return _SPELLINGS.get(configuration.get(VECTORS), _AS_IT_STANDS)[0]


def column_names(table: DeltaTable) -> dict[str, str]:
    """Names of the source's columns → those that the table has."""
    _, told = _SPELLINGS.get(table.metadata().configuration.get(VECTORS), _AS_IT_STANDS)
    return {told(field.name): field.name for field in table.schema().fields}


def mirror_schema(path: LakePath, version: int) -> pa.Schema:
    """The columns at a version, in the types of `pipeline.schema.types`."""
    with lake_errors(path):
        return schema_of(delta_table(path, version))


def schema_of(table: DeltaTable) -> pa.Schema:
    """The same of a table that is open."""
    fields = pa.schema(table.schema().to_arrow())
    names = {own: name for name, own in column_names(table).items()}
    return pa.schema([(names[field.name], _plain_type(field.type)) for field in fields])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return pa.list_(_plain_type(kind.value_type)) if pa.types.is_list(kind) else kind


def refuse_other_columns(table: DeltaTable, brought: pa.Schema, *, all_of_them: bool) -> None:
    """`TableError` for a column of `brought` that is not in the table with that type; with
    `all_of_them`, also for one of the table's that is not in `brought`."""
    kinds = {field.name: field.type for field in table.schema().fields}
    have = {name: kinds[own] for name, own in column_names(table).items()}
    for field in Schema.from_arrow(brought).fields:
        if field.name not in have:
            raise TableError(f"column {field.name!r} is not in the lake's table", hint=_CURE)
        if have[field.name] != field.type:
            raise TableError(
                f"column {field.name!r} has another type in the lake's table", hint=_CURE
            )
    lacking = have.keys() - set(brought.names)
    if all_of_them and lacking:
        raise TableError(
            f"column {min(lacking)!r} of the lake's table is gone at the source", hint=_CURE
        )
