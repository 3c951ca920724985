"""The versions of tables along one reading of the log: what was known, what holds, what is new.

Belongs here: a version's number, generation and knowledge; which one holds at this place.
Does not: what a statement does to the structures (`tracker`), where those known before are
kept (`pipeline.runs.capturing.initial_schemas`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from pipeline.position import Coordinates
from pipeline.schema.history import (
    DatabaseVersion,
    Knowledge,
    SchemaVersion,
    VersionOrigin,
)
from pipeline.schema.model import TableSchema
from pipeline.table import TableName

ColumnsFrom = tuple[str | None, ...]
"""For each column the name it had before, None for a new one."""


class KnownStructures(Protocol):
    """What was known where the reading begins."""

    def one(self, table: TableName) -> SchemaVersion | None: ...

    def all(self) -> Sequence[SchemaVersion]:
        """Every table's, those that are dropped left out."""

    def versions(self, table: TableName) -> Sequence[SchemaVersion]:
        """All versions it ever had, in the order of their places."""

    def referring(self) -> Sequence[SchemaVersion]:
        """Those of `all` that have foreign keys."""

    def databases(self) -> Sequence[DatabaseVersion]: ...

    def last_number(self, table: TableName) -> int:
        """The highest number that any version of the table ever had; 0 for none."""


Generation = Callable[[Sequence[SchemaVersion], TableSchema | None], int]
"""Which of a changelog's generations the rows of a new version go to, by the versions there
were."""


Recorded = Callable[
    [TableName, Coordinates, TableSchema | None, str | None, ColumnsFrom | None],
    SchemaVersion | None,
]
"""The version that an earlier reading of the same place recorded of a table, if it says the
same: this schema, or for None that it is dropped, or unknown for this reason. Columns of before
are given where a person said which they are."""


class Versions:
    """`known`: at the beginning; `recorded`: what is known already of places further on, and
    stays as it is. `made`: the new ones, in their order."""

    def __init__(
        self, known: KnownStructures, generation: Generation | None, recorded: Recorded | None
    ) -> None:
        self._known = known
        self._generation = generation
        self._recorded = recorded
        self._current: dict[TableName, SchemaVersion | None] = {}
        self._numbers: dict[TableName, int] = {}
        self._made: dict[TableName, list[SchemaVersion]] = {}
        self._before: dict[TableName, TableSchema] = {}
        self.made: list[SchemaVersion] = []

    def current(self, table: TableName) -> SchemaVersion | None:
        """The one that holds here; None where nothing was ever known of the table."""
        if table not in self._current:
            self._current[table] = self._known.one(table)
        return self._current[table]

    def hold(self, version: SchemaVersion) -> None:
        """It holds from here on, and is recorded already."""
        self._current[version.table] = version

    def with_current(self, known: Iterable[SchemaVersion]) -> Mapping[TableName, SchemaVersion]:
        """What was known of some tables at the beginning, as it is here, and every table that
        was asked for since."""
        versions = {version.table: version for version in known}
        versions.update(
            {name: version for name, version in self._current.items() if version is not None}
        )
        return versions

    def all_current(self) -> Mapping[TableName, SchemaVersion]:
        """Every table's, asked for once."""
        versions = self.with_current(self._known.all())
        self._current.update(versions)
        return versions

    def ever(self, table: TableName) -> list[SchemaVersion]:
        """All it ever had, up to here."""
        return [*self._known.versions(table), *self._made.get(table, ())]

    def last_known(self, table: TableName) -> TableSchema | None:
        """The structure at this place, or before it, where it is not known here."""
        version = self.current(table)
        if version is not None and version.schema is not None:
            return version.schema
        return self._before.get(table)

    def last_known_at_beginning(self, table: TableName) -> TableSchema | None:
        """The last structure that was known of it when the reading began."""
        if not self._known.last_number(table):
            return None
        known = (version.schema for version in reversed(self._known.versions(table)))
        return next((schema for schema in known if schema is not None), None)

    def record(
        self,
        table: TableName,
        schema: TableSchema | None,
        since: Coordinates,
        origin: VersionOrigin,
        *,
        columns_from: ColumnsFrom | None = None,
        statement: int | None = None,
        reason: str | None = None,
    ) -> SchemaVersion:
        """From here on the table is known so, or for None dropped, or unknown for a reason."""
        old = self._current.get(table)
        if old is not None and old.schema is not None:
            self._before[table] = old.schema
        word = columns_from if origin is VersionOrigin.PERSON else None
        told = self._recorded and self._recorded(table, since, schema, reason, word)
        if told:
            self._current[table] = told
            return told
        knowledge = Knowledge.KNOWN if schema is not None else Knowledge.DROPPED
        if reason is not None:
            knowledge = Knowledge.UNKNOWN
        number = self._numbers.get(table) or self._known.last_number(table)
        self._numbers[table] = number + 1
        generation = 1
        if number and self._generation is not None:
            generation = self._generation(self.ever(table), schema)
        version = SchemaVersion(
            table,
            number + 1,
            since,
            knowledge,
            origin,
            schema=schema,
            columns_from=columns_from,
            statement=statement,
            reason=reason,
            generation=generation,
        )
        self.made.append(version)
        self._made.setdefault(table, []).append(version)
        self._current[table] = version
        return version


def told_by_log(versions: Iterable[SchemaVersion]) -> bool:
    """Whether what is known of a table, all its versions given, comes from the log's own
    account of it, which tells no defaults."""
    told = False
    for version in versions:
        if version.origin is VersionOrigin.TABLE_MAP:
            told = True
        elif version.origin in (VersionOrigin.BASELINE, VersionOrigin.PERSON) or (
            version.origin is VersionOrigin.STATEMENT and version.columns_from is None
        ):
            told = False
    return told


def same_names(before: TableSchema | None, after: TableSchema) -> ColumnsFrom | None:
    """Which column is which where only the names tell; None where there was none before."""
    if before is None:
        return None
    columns = (before.column(column.name) for column in after.columns)
    return tuple(None if column is None else column.name for column in columns)
