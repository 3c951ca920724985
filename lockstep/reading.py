"""What the lake has, in Python: all tables of a source as of one place (`lockstep.read_at`), and a
table's whole changelog, all its generations read as one relation (`lockstep.read_changelog`).

Does not belong here: changes that are given once and in order (`consuming`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockstep.consuming import CONFIG, open_site
from lockstep.grammar import table_name
from pipeline.changes.generations import SharedColumn, together
from pipeline.errors import ConfigurationError, NothingMatches, VersionSetUnknown
from pipeline.places import parse_place
from pipeline.ports.ledger import Ledger
from pipeline.position import Position
from pipeline.runs.inspecting.version_sets import MissingVersion, ShownVersions, version_set_at
from pipeline.table import TableName
from resources.lake.frame import (
    PublishedGeneration,
    generations_frame,
    published_generations,
    read_generations,
)
from resources.lake.paths import LakePath
from resources.lake.versions import MirrorVersion, opened, version_frame, version_rows


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A mirror at a Delta version. Each way to read it first requires that the folder holds the
    table that was written, by its `table_id` where that is known, that the version shows no batch
    behind `batch`, and that its log and files are there: `VersionGone` where not."""

    table: str
    path: LakePath
    version: int
    table_id: str | None
    batch: int

    def arrow(self) -> pa.Table:
        """All its rows in memory, in no particular order. `ConfigurationError` for a mirror
        with widened columns and rows marked as deleted: only Spark reads both."""
        return version_rows(self._opens)

    def to_delta(self) -> Any:
        """As delta-rs opens it: a `deltalake.DeltaTable`."""
        return opened(self._opens)

    def spark(self, session: Any) -> Any:
        """As a DataFrame of the SparkSession `session`, which knows Delta. Switches the session's
        refusal of old commits off."""
        return version_frame(session, self._opens)

    @property
    def _opens(self) -> MirrorVersion:
        return MirrorVersion(self.path, self.version, self.table_id, self.batch)


class VersionSet(Mapping[str, TableVersion]):
    """Tables by `database.table`, all of them as of `position`.

    `batch`: whose end they show, as in the changelogs' column `_batch`; `position`: that place in
    the log, with the GTIDs executed up to it and the commit time. `missing` has the tables of the
    source that cannot be read so, each with its reason and cure; to ask for one is
    `VersionSetUnknown`, for any other name a KeyError.
    """

    def __init__(self, shown: ShownVersions, lake: LakePath) -> None:
        self.source = shown.source
        self.batch = shown.batch.id
        self.position: Position = shown.position
        self._tables = {
            str(entry.table): TableVersion(
                str(entry.table),
                lake / entry.mirror,
                entry.delta_version,
                entry.table_id,
                shown.batch.id,
            )
            for entry in shown.entries
        }
        self.missing: dict[str, MissingVersion] = {str(gap.table): gap for gap in shown.missing}

    def __getitem__(self, table: str) -> TableVersion:
        if table in self.missing:
            lacks = self.missing[table]
            raise VersionSetUnknown(
                f"{table} cannot be read as of {self.position}: {lacks.reason}", hint=lacks.hint
            )
        return self._tables[table]

    def __contains__(self, table: object) -> bool:
        return table in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def read_at(source: str, at: str | None = None, *, config: str | Path = CONFIG) -> VersionSet:
    """The versions that show a source as of a place, written as `lockstep versions --at` takes
    it; without one, as of the newest acknowledged batch. `VersionSetUnknown` where none do."""
    try:
        place = None if at is None else parse_place(at, as_start=False)
    except ValueError as error:
        raise ConfigurationError(f"{error}", hint="`lockstep versions --help`") from None
    with open_site(source, config) as (adapters, lake):
        return VersionSet(version_set_at(adapters.ledger(), source, place), lake)


# -- a table's whole changelog -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WholeChangelog:
    """A table's changelog as it was when it was opened: what comes later is not seen.

    A column that changed its type has the newest one; values of a generation that do not fit
    it stand in `name@generation`. NULL where a generation has no such column.
    """

    table: TableName
    generations: tuple[PublishedGeneration, ...]
    columns: tuple[SharedColumn, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(column.name, column.type) for column in self.columns])

    def arrow(self) -> pa.Table:
        """All changes in the order of `_sequence`, in memory."""
        return read_generations(self.generations, self.columns)

    def spark(self, spark: Any) -> Any:
        """The same as a DataFrame of the SparkSession `spark`, which knows Delta, in no
        particular order."""
        return generations_frame(spark, self.generations, self.columns)


def read_changelog(source: str, table: str, *, config: str | Path = CONFIG) -> WholeChangelog:
    """What the lake has of a table's changes, those among them that are captured and not yet
    acknowledged. `NothingMatches` before the first.

    To have each change once, be a consumer (`lockstep.consume`).
    """
    with open_site(source, config) as (adapters, lake):
        return whole_changelog(adapters.ledger(), lake, source, table_name(table))


def whole_changelog(
    ledger: Ledger, lake: LakePath, source: str, table: TableName
) -> WholeChangelog:
    """As `read_changelog`; `lake` is absolute."""
    versions = ledger.schema_versions(source, table)
    newest = max((version.generation for version in versions), default=0)
    generations = published_generations(lake, source, table, newest)
    if not generations:
        raise NothingMatches(
            f"No change of a table {table} of {source!r} is in the lake yet.",
            hint="`lockstep tables` lists what is captured, `lockstep run` captures",
        )
    schemas = [generation.schema for generation in generations]
    columns = together(schemas, [generation.number for generation in generations])
    return WholeChangelog(table, generations, columns)
