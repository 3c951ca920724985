"""The steps that change the columns of a mirror (the Delta table with a table's present
rows) to those of a lineage (the origin of each column). Each step is one Delta commit.

Columns are dropped first, so that their names are free. Then columns are renamed; if
columns exchange their names, one of them gets a temporary name. Then types are widened,
columns are added, and one fill writes the values of all added columns. One commit
rewrites the mirror instead if a new type requires it, or if every reader must be able
to read the mirror: renaming, dropping and widening would enable Delta features that not
every reader supports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.mirror.lineage import ColumnLineage
from lockstep.pipeline.mirror.type_changes import TypeChange, type_change
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    ColumnOrigin,
    DropColumns,
    Fill,
    MirrorStep,
    RenameColumn,
    Rewrite,
    SetProperties,
    WidenColumn,
)
from lockstep.pipeline.schema.types import comparable_name, is_refused
from lockstep.pipeline.values.policies import Readers

MAPPING_PROPERTY: Final = ("delta.columnMapping.mode", "name")
WIDENING_PROPERTY: Final = ("delta.enableTypeWidening", "true")
"""Properties with which Delta renames and drops columns, and widens types, without a
rewrite."""

NTZ_TYPE: Final = pa.timestamp("us")
NTZ_FEATURE: Final = "timestampNtz"
NTZ_PROPERTY: Final = (f"delta.feature.{NTZ_FEATURE}", "supported")
"""A DATETIME is a timestamp without time zone in Delta, which needs this table feature.
An older mirror gets the feature by the property."""


def evolution_steps(lineage: ColumnLineage) -> tuple[MirrorStep, ...]:
    """Return the steps to commit before changes of the lineage's versions are merged;
    none if the mirror does not exist, or has these columns already.

    A second try must get the same steps as the first try, which may have committed some
    of them. So the caller builds `lineage` from the mirror's columns at the Delta
    version that the ledger recorded last. Raise `ValueError` if the mirror can only be
    replaced.
    """
    if lineage.reasons_to_reread:
        raise ValueError(f"the mirror can only be replaced: {lineage.reasons_to_reread[0]}")
    if not lineage.mirror_origins:
        return ()
    renamed = {
        column.source: name
        for name, column in zip(lineage.schema.names, lineage.mirror_origins, strict=True)
        if column.source is not None and column.source != name
    }
    widened = tuple(
        WidenColumn(field.name, field.type) for field in _changed(lineage, TypeChange.WIDEN)
    )
    # These changes need column mapping or type widening.
    needs_features = bool(renamed or widened or lineage.dropped_columns)
    is_for_every_reader = lineage.policies.readers == Readers.ANY
    new_names = {*renamed.values(), *(name for name, _, _ in _added(lineage))}
    # Delta refuses some names in a table without column mapping.
    needs_mapping = not is_for_every_reader and any(map(is_refused, new_names))
    steps: Iterable[MirrorStep]
    if any(_changed(lineage, TypeChange.REWRITE)) or (needs_features and is_for_every_reader):
        needs_widening, steps = False, [_rewrite(lineage)]
    else:
        needs_mapping = needs_mapping or bool(renamed or lineage.dropped_columns)
        needs_widening, steps = bool(widened), _in_place(lineage, renamed, widened)
    needs = {
        MAPPING_PROPERTY: needs_mapping,
        WIDENING_PROPERTY: needs_widening,
        NTZ_PROPERTY: _needs_ntz(lineage),
    }
    properties = tuple(name_and_value for name_and_value, needed in needs.items() if needed)
    return (*([SetProperties(properties)] if properties else []), *steps)


def _needs_ntz(lineage: ColumnLineage) -> bool:
    types_before = [column.type for column in lineage.mirror_origins if column.source is not None]
    return NTZ_TYPE in lineage.schema.types and NTZ_TYPE not in types_before


def _in_place(
    lineage: ColumnLineage, renamed: Mapping[str, str], widened: Sequence[WidenColumn]
) -> Iterator[MirrorStep]:
    if lineage.dropped_columns:
        yield DropColumns(lineage.dropped_columns)
    yield from _renames(renamed, _names_in_use(lineage))
    yield from widened
    added = _added(lineage)
    fields = [pa.field(name, kind) for name, kind, _ in added]
    if lineage.policies.marks_deleted and not lineage.has_deleted_at:
        fields.append(DELETED_AT)
    if fields:
        yield AddColumns(pa.schema(fields))
    values = tuple((name, value) for name, _, value in added if value.is_valid)
    if values:
        yield Fill(values)


def _names_in_use(lineage: ColumnLineage) -> set[str]:
    present = {
        comparable_name(column.source)
        for column in lineage.mirror_origins
        if column.source is not None
    }
    return present | {comparable_name(name) for name in lineage.schema.names}


def _renames(renamed: Mapping[str, str], names: set[str]) -> Iterator[RenameColumn]:
    """Yield renames in an order in which each new name is free. Delta compares names
    without regard to case."""
    waiting = dict(renamed)
    number = 0  # of the next temporary name
    while waiting:
        old_names = {comparable_name(name) for name in waiting}
        free = next(
            (name for name, new in waiting.items() if comparable_name(new) not in old_names), None
        )
        if free is not None:
            yield RenameColumn(free, waiting.pop(free))
            continue
        while (temporary_name := f"_lockstep_{number}") in names:
            number += 1
        number += 1
        name = next(iter(waiting))
        yield RenameColumn(name, temporary_name)
        waiting[temporary_name] = waiting.pop(name)


def _changed(lineage: ColumnLineage, change: TypeChange) -> Iterator[pa.Field]:
    """Yield the columns whose type changes in this way, with their new types."""
    for field, column in zip(lineage.schema, lineage.mirror_origins, strict=True):
        if column.source is not None and type_change(column.type, field.type) is change:
            yield field


def _added(lineage: ColumnLineage) -> list[tuple[str, pa.DataType, pa.Scalar]]:
    return [
        (field.name, field.type, column.value)
        for field, column in zip(lineage.schema, lineage.mirror_origins, strict=True)
        if column.value is not None
    ]


def _rewrite(lineage: ColumnLineage) -> Rewrite:
    fields, columns = list(lineage.schema), list(lineage.mirror_origins)
    if lineage.has_deleted_at or lineage.policies.marks_deleted:
        fields.append(DELETED_AT)
        null = pa.scalar(None, DELETED_AT.type)
        copied = ColumnOrigin(DELETED_AT.name, DELETED_AT.type)
        columns.append(copied if lineage.has_deleted_at else ColumnOrigin(value=null))
    return Rewrite(pa.schema(fields), tuple(columns))
