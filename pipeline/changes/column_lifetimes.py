"""One table's columns told apart over its versions.

Belongs here: following `columns_from` from version to version. What a mirror makes of it is
`lineage`. Two columns are one if the statements between say so, never because they share a
name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pipeline.changes.layout import mirror_columns
from pipeline.changes.widening import TypeChange, type_change
from pipeline.schema.fills import StatementMoment, fill_of
from pipeline.schema.history import SchemaVersion, VersionOrigin
from pipeline.schema.model import TableSchema
from pipeline.schema.row_keys import key_candidates
from pipeline.schema.rows import row_structure

_FOUND: Final = (VersionOrigin.CARRIED, VersionOrigin.BASELINE)
"""Recorded where a start goes back, or on elsewhere: the table is what it was before unless
its rows are built in another way. A table that is made anew says so by an event."""


@dataclass(slots=True, eq=False)
class Life:
    """A column as it goes through the versions: its name and lake type in each. `added`:
    it came after the first version, with `fill` for the rows there were, None where only
    the server can tell. `followed`: no change of its type needs the source."""

    names: dict[int, str] = field(default_factory=dict)
    types: dict[int, pa.DataType] = field(default_factory=dict)
    added: bool = False
    fill: pa.Scalar | None = None
    followed: bool = True

    @property
    def begin(self) -> int:
        return next(iter(self.names))

    @property
    def end(self) -> int:
        """The last version that has it."""
        return next(reversed(self.names))

    @property
    def name(self) -> str:
        return self.names[self.end]

    @property
    def type(self) -> pa.DataType:
        return self.types[self.end]


class Trail:
    """The lives of all columns that consecutive, KNOWN versions of one table have.
    `broken`: a sentence for each version that does not go on with the rows of before."""

    def __init__(
        self, versions: Sequence[SchemaVersion], moments: Mapping[int, StatementMoment]
    ) -> None:
        self.schemas = {version.version: _known(version) for version in versions}
        if list(self.schemas) != sorted(self.schemas) or len(self.schemas) != len(versions):
            raise ValueError(f"versions {[version.version for version in versions]}")
        self.lives: list[Life] = []
        self.broken: list[str] = []
        now: dict[str, Life] = {}
        for before, version in zip([None, *versions], versions, strict=False):
            columns_from = self._columns_from(version, before)
            now = self._enter(version, columns_from, now, moments.get(version.version))

    @property
    def first(self) -> int:
        return next(iter(self.schemas))

    @property
    def last(self) -> int:
        return next(reversed(self.schemas))

    def of(self, version: int) -> list[Life]:
        """A version's columns in their order."""
        by_name = {life.names[version]: life for life in self.lives if version in life.names}
        return [by_name[column.name] for column in self.schemas[version].columns]

    def keys(self, version: int) -> Iterator[tuple[Life, ...]]:
        """What a version's rows can be told by, the best first."""
        by_name = {life.names[version]: life for life in self.of(version)}
        for key in key_candidates(self.schemas[version]):
            yield tuple(by_name[name] for name in key)

    def _columns_from(
        self, version: SchemaVersion, before: SchemaVersion | None
    ) -> Sequence[str | None]:
        schema = self.schemas[version.version]
        if before is None:
            return [None] * len(schema.columns)
        if version.columns_from is not None:
            return version.columns_from
        old = self.schemas[before.version]
        if version.origin in _FOUND and row_structure(old) == row_structure(schema):
            return [column.name for column in schema.columns]
        self.broken.append(f"version {version.version} does not go on with the rows of before")
        return [None] * len(schema.columns)

    def _enter(
        self,
        version: SchemaVersion,
        columns_from: Sequence[str | None],
        before: Mapping[str, Life],
        moment: StatementMoment | None,
    ) -> dict[str, Life]:
        schema, number = self.schemas[version.version], version.version
        kinds = mirror_columns(schema).types
        now = {}
        for column, kind, source in zip(schema.columns, kinds, columns_from, strict=True):
            life = None if source is None else before[source.lower()]
            if life is None:
                added = number != self.first
                life = Life(added=added, fill=fill_of(column, kind, moment) if added else None)
                self.lives.append(life)
            elif type_change(life.type, kind) is TypeChange.REREAD:
                life.followed = False
            life.names[number] = column.name
            life.types[number] = kind
            now[column.name.lower()] = life
        return now


def _known(version: SchemaVersion) -> TableSchema:
    if version.schema is None:
        raise ValueError(f"{version.table}: version {version.version} is {version.knowledge}")
    return version.schema
