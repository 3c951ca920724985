"""Reading the lake in Python: all tables of a source as of one place (`lockstep.read_at`), and a
table's whole changelog with all its generations as one relation (`lockstep.read_changelog`).

Consumers, which receive each change once and in order, are in `consuming`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockstep.consuming import CONFIG, open_site
from lockstep.grammar import table_name
from lockstep.pipeline.mirror.generations import SharedColumn, shared_columns
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.status.version_sets import MissingVersion, ShownVersions, version_set_at
from lockstep.pipeline.values.errors import ConfigurationError, NothingMatches, VersionSetUnknown
from lockstep.pipeline.values.places import parse_place
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.table import TableName
from lockstep.resources.lake.changelog.frame import (
    PublishedGeneration,
    generations_frame,
    published_generations,
    read_generations,
)
from lockstep.resources.lake.delta.versions import (
    MirrorVersion,
    open_version,
    version_frame,
    version_rows,
)
from lockstep.resources.lake.store.paths import LakePath


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A mirror at a Delta version. Each way to read it first checks that the folder has the Delta
    table with `table_id` (unless that is None), that the version shows no batch after `batch`, and
    that its log and files exist; otherwise it raises `VersionGone`."""

    table: str
    path: LakePath
    version: int
    table_id: str | None
    batch: int

    def arrow(self) -> pa.Table:
        """Return all rows, in no particular order. Raise `ConfigurationError` for a mirror with
        both widened columns and deletion vectors, which only Spark can read."""
        return version_rows(self._mirror_version)

    def to_delta(self) -> Any:
        """Return the version as a `deltalake.DeltaTable`."""
        return open_version(self._mirror_version)

    def spark(self, session: Any) -> Any:
        """Return the version as a DataFrame of a SparkSession with Delta, in which the check that
        refuses old commits is switched off."""
        return version_frame(session, self._mirror_version)

    @property
    def _mirror_version(self) -> MirrorVersion:
        return MirrorVersion(self.path, self.version, self.table_id, self.batch)


class VersionSet(Mapping[str, TableVersion]):
    """The tables of a source by `database.table`, all of them as of `position`.

    `batch`: the number of the batch whose end they show, as in the changelogs' column `_batch`;
    `position`: the place in the log where that batch ends, with its executed GTIDs and commit time;
    `missing`: the tables that cannot be read as of that place, each with its reason and a hint.
    Access to a missing table raises `VersionSetUnknown`; access to an unknown name, KeyError.
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
            missing = self.missing[table]
            raise VersionSetUnknown(
                f"{table} cannot be read as of {self.position}: {missing.reason}", hint=missing.hint
            )
        return self._tables[table]

    def __contains__(self, table: object) -> bool:
        return table in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def read_at(source: str, at: str | None = None, *, config: str | Path = CONFIG) -> VersionSet:
    """Return the versions that show a source as of a place, or without `at`, as of the newest
    acknowledged batch. Raise `VersionSetUnknown` if there are none.

    `at`: a place in a form that `lockstep versions --at` accepts. `config`: the path of
    lockstep.toml.
    """
    try:
        place = None if at is None else parse_place(at, as_start=False)
    except ValueError as error:
        raise ConfigurationError(f"{error}", hint="`lockstep versions --help`") from None
    with open_site(source, config) as (adapters, lake):
        return VersionSet(version_set_at(adapters.ledger(), source, place), lake)


# -- a table's whole changelog -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WholeChangelog:
    """A table's changelog as it was when it was opened; later changes are not included.

    A column whose type changed has its newest type; values of an older generation that do not fit
    it are in `name@generation`. A column that a generation does not have is NULL in its rows.
    """

    table: TableName
    generations: tuple[PublishedGeneration, ...]
    columns: tuple[SharedColumn, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(column.name, column.type) for column in self.columns])

    def arrow(self) -> pa.Table:
        """Return all changes in the order of `_sequence`."""
        return read_generations(self.generations, self.columns)

    def spark(self, spark: Any) -> Any:
        """Return all changes as a DataFrame of a SparkSession with Delta, in no particular
        order."""
        return generations_frame(spark, self.generations, self.columns)


def read_changelog(source: str, table: str, *, config: str | Path = CONFIG) -> WholeChangelog:
    """Return a table's changes in the lake, including those that are not acknowledged yet. Raise
    `NothingMatches` if there are none.

    `table`: `database.table`. `config`: the path of lockstep.toml. A program that needs each change
    exactly once uses a consumer (`lockstep.consume`) instead.
    """
    with open_site(source, config) as (adapters, lake):
        return whole_changelog(adapters.ledger(), lake, source, table_name(table))


def whole_changelog(
    ledger: Ledger, lake: LakePath, source: str, table: TableName
) -> WholeChangelog:
    """Do the work of `read_changelog`; `lake` is an absolute path."""
    versions = ledger.schema_versions(source, table)
    newest = max((version.generation for version in versions), default=0)
    generations = published_generations(lake, source, table, newest)
    if not generations:
        raise NothingMatches(
            f"No change of a table {table} of {source!r} is in the lake yet.",
            hint="`lockstep tables` lists what is captured, `lockstep run` captures",
        )
    schemas = [generation.schema for generation in generations]
    columns = shared_columns(schemas, [generation.number for generation in generations])
    return WholeChangelog(table, generations, columns)
