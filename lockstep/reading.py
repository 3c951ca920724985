"""The Python functions that read the lake.

`lockstep.read_at` returns all tables of a source as of one place in MySQL's log.
`lockstep.read_changelog` returns all changes of a table. A changelog may consist of
several Delta tables, its generations, because a new one begins when a column's type
changes. `lockstep.consume` gives a consumer each change once and in order.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockstep.arguments import parse_table_name
from lockstep.pipeline.mirror.delivered import (
    DeliveredTable,
    Generation,
    delivered_segments,
    delivered_table,
    read_changes,
    require_files,
)
from lockstep.pipeline.mirror.generations import SharedColumn, shared_columns
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.status.version_sets import MissingVersion, ShownVersions, version_set_at
from lockstep.pipeline.values.consumers import Consumer, ConsumerStart, Delivery, DeliveryBounds
from lockstep.pipeline.values.errors import ConfigurationError, NothingMatches, VersionSetUnknown
from lockstep.pipeline.values.places import AfterGtids, Earliest, Latest, Place, parse_place
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.segment import Segment
from lockstep.pipeline.values.table import TableName
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import Settings, load_settings
from lockstep.resources.holders import account_name
from lockstep.resources.lake.changelog.frame import (
    PublishedGeneration,
    changes_frame,
    generations_frame,
    published_generations,
    read_generations,
)
from lockstep.resources.lake.delta.versions import (
    DeltaVersion,
    open_version,
    version_frame,
    version_rows,
)
from lockstep.resources.lake.store.paths import LakePath

CONFIG = "lockstep.toml"


@contextmanager
def _open_lake_of(source: str, config: str | Path) -> Iterator[tuple[Adapters, LakePath]]:
    """Yield the adapters of the configuration, and the lake's absolute path. Raise
    `ConfigurationError` if the configuration has no such source."""
    settings = _settings(config)
    settings.source(source)
    with Adapters(settings, on_warning=_warn) as adapters:
        yield adapters, settings.lake_path().absolute()


def _settings(config: str | Path) -> Settings:
    return load_settings(Path(config).absolute())


def _warn(sentence: str) -> None:
    warnings.warn(sentence, RuntimeWarning, stacklevel=2)


# -- all tables as of one place --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A mirror (the Delta table with a table's current rows) at a Delta version.

    `table_id`: the Delta table's id, or None if it is not known. Each method that reads
    the version raises `VersionGone` if the version's log or files are gone, if the
    folder has a Delta table with another id, or if the version has changes after
    `batch`.
    """

    table: str
    path: LakePath
    delta_version: int
    table_id: str | None
    batch: int

    def arrow(self) -> pa.Table:
        """Return all rows, in no particular order. Raise `ConfigurationError` if only
        Spark can read the version, because it has both widened columns and deletion
        vectors."""
        return version_rows(self._version)

    def to_delta(self) -> Any:
        """Return the version as a `deltalake.DeltaTable`."""
        return open_version(self._version)

    def spark(self, session: Any) -> Any:
        """Return the version as a DataFrame. `session`: a SparkSession with Delta;
        Delta's check that refuses old commits is switched off in it."""
        return version_frame(session, self._version)

    @property
    def _version(self) -> DeltaVersion:
        return DeltaVersion(self.path, self.delta_version, self.table_id, self.batch)


class VersionSet(Mapping[str, TableVersion]):
    """The tables of a source by `database.table`, all of them as of `position`.

    `batch`: the number of the batch whose end they show, as in the changelogs' column
    `_batch`. `position`: the place in the log where that batch ends, with the GTIDs
    executed up to there and its commit time. `missing`: the tables that cannot be read
    as of that place, each with its reason and a hint. `gaps`: parts of the log that
    were never read, whose changes some of these tables may lack. Access to a missing
    table raises `VersionSetUnknown`; access to an unknown name raises KeyError.
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
        self.missing: dict[str, MissingVersion] = {
            str(missing.table): missing for missing in shown.missing
        }
        self.gaps = shown.gaps

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
    """Return the versions that show a source as of a place; without `at`, as of the end
    of the newest batch that a run has acknowledged (recorded as merged into all
    mirrors). Raise `VersionSetUnknown` if there are none.

    `at`: a place in a form that `lockstep versions --at` accepts. `config`: the path of
    lockstep.toml.
    """
    place = None if at is None else _parse_place(at)
    with _open_lake_of(source, config) as (adapters, lake):
        return VersionSet(version_set_at(adapters.ledger(), source, place), lake)


def _parse_place(text: str) -> Place:
    try:
        return parse_place(text)
    except ValueError as error:
        raise ConfigurationError(f"{error}", hint="`lockstep versions --help`") from None


# -- a table's whole changelog ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WholeChangelog:
    """A table's changelog as it was when `read_changelog` was called; later changes are
    not included.

    A column whose type changed has its newest type; values of an older generation that
    do not fit it are in `name@generation`. A column that a generation does not have is
    NULL in its rows.
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

    def spark(self, session: Any) -> Any:
        """Return all changes as a DataFrame, in no particular order. `session`: a
        SparkSession with Delta; Delta's check that refuses old commits is switched off
        in it."""
        return generations_frame(session, self.generations, self.columns)


def read_changelog(source: str, table: str, *, config: str | Path = CONFIG) -> WholeChangelog:
    """Return a table's changes in the lake, including those of a batch that no run has
    acknowledged yet. Raise `NothingMatches` if there are none.

    `table`: `database.table`. `config`: the path of lockstep.toml. A program that needs
    each change exactly once uses a consumer (`lockstep.consume`) instead.
    """
    with _open_lake_of(source, config) as (adapters, lake):
        return whole_changelog(adapters.ledger(), lake, source, parse_table_name(table))


def whole_changelog(
    ledger: Ledger, lake: LakePath, source: str, table: TableName
) -> WholeChangelog:
    """Return a table's changelog as `read_changelog` does. `lake`: an absolute path."""
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


# -- consumers, whose cursors the ledger keeps -----------------------------------------

MAX_CHANGES = 1_000_000
"""Default limit of row images in a delivery: a few hundred MiB of Arrow at most."""


@contextmanager
def consume(
    source: str, consumer: str, *, config: str | Path = CONFIG
) -> Iterator[ChangelogConsumer]:
    """Yield a consumer of a source's changelog. Deliveries that were neither
    acknowledged nor rolled back stay open when the context ends. Raise
    `ConsumerUnknown` if `make_consumer` has not created it."""
    with _open_lake_of(source, config) as (adapters, lake):
        # This raises ConsumerUnknown now instead of at the first `get`.
        adapters.consumers().open_deliveries(source, consumer)
        yield ChangelogConsumer(adapters, source, consumer, lake)


def make_consumer(
    source: str, consumer: str, *, start: ConsumerStart | str, config: str | Path = CONFIG
) -> Consumer:
    """Create a consumer. From now on, upkeep keeps the files that the consumer needs.

    `start`: "earliest" (all changes that are kept), "latest" (changes from now on), a
    batch's id (changes after that batch), or a place (changes after the newest batch
    that ends there or earlier). Raise `VersionSetUnknown` if no batch ends at the place
    or earlier, or if no run has reached the place yet.
    """
    with _open_lake_of(source, config) as (adapters, _):
        start = _consumer_start(adapters.ledger(), source, start)
        return adapters.consumers().make_consumer(source, consumer, start)


def _consumer_start(ledger: Ledger, source: str, start: ConsumerStart | str) -> ConsumerStart:
    """Return the start of a consumer; for a place, the id of the newest batch that ends
    there or earlier."""
    if isinstance(start, int):
        return start
    place = _parse_place(start)
    if isinstance(place, Earliest | Latest):
        return "earliest" if isinstance(place, Earliest) else "latest"
    if isinstance(place, AfterGtids):
        raise ConfigurationError(
            f"{place} may lie inside a batch, and a consumer begins after whole ones",
            hint="give a moment or a place of the log; `lockstep versions --list` shows the ends "
            "of batches",
        )
    return version_set_at(ledger, source, place).batch.id


def drop_consumer(
    source: str,
    consumer: str,
    *,
    reason: str,
    author: str | None = None,
    config: str | Path = CONFIG,
) -> None:
    """Delete a consumer and its cursor. `author` defaults to the name of this account.
    The source may be one that lockstep.toml no longer has."""
    with Adapters(_settings(config), on_warning=_warn) as adapters:
        author = author or account_name()
        adapters.consumers().drop_consumer(source, consumer, author=author, reason=reason)


def list_consumers(source: str, *, config: str | Path = CONFIG) -> list[Consumer]:
    """Return a source's consumers in the order of their names, with cursor and backlog.
    The source may be one that lockstep.toml no longer has."""
    with Adapters(_settings(config), on_warning=_warn) as adapters:
        return adapters.consumers().consumers(source)


class ChangelogConsumer:
    """A consumer that `consume` opened. It must not be used by several threads at once."""

    def __init__(self, adapters: Adapters, source: str, name: str, lake: LakePath) -> None:
        self._adapters = adapters
        self._lake = lake
        self.source = source
        self.name = name

    def get(
        self, *, max_batches: int | None = None, max_changes: int | None = MAX_CHANGES
    ) -> ChangelogDelivery | None:
        """Return the next delivery: the changes after all earlier ones, in whole
        batches and thus whole transactions. It has at most `max_batches` batches and
        `max_changes` row images, but at least one batch. Return None if there is
        nothing new."""
        bounds = DeliveryBounds(max_batches, max_changes)
        delivery = self._adapters.consumers().deliver(self.source, self.name, bounds)
        if delivery is None:
            return None
        return ChangelogDelivery(self, self._adapters, delivery, self._lake)

    def out(self) -> list[ChangelogDelivery]:
        """Return the deliveries that are neither acknowledged nor rolled back, oldest
        first."""
        deliveries = self._adapters.consumers().open_deliveries(self.source, self.name)
        return [
            ChangelogDelivery(self, self._adapters, delivery, self._lake) for delivery in deliveries
        ]

    def ack(self, delivery: int) -> None:
        """Acknowledge the oldest open delivery, which moves the cursor to its end.

        Raise `ConsumerRefused`, and change nothing, if the delivery is not the oldest,
        or was acknowledged or rolled back before.
        """
        self._adapters.consumers().ack_delivery(self.source, self.name, delivery)

    def rollback(self, delivery: int | None = None) -> list[int]:
        """Take back all open deliveries, or one and those after it, so that `get`
        returns their changes again. Return their ids."""
        return self._adapters.consumers().roll_back(self.source, self.name, delivery)


class ChangelogDelivery:
    """A range of whole batches. A batch has the same rows in every delivery, so a
    consumer that stores `last_batch` in its own transaction applies each change exactly
    once.

    `batches`: ascending, as in the column `_batch`; `start`, `end`: the places in the
    log before the first and after the last of them; `tables`: those with changes;
    `changes`: number of row images in all of them.
    """

    def __init__(
        self, consumer: ChangelogConsumer, adapters: Adapters, delivery: Delivery, lake: LakePath
    ) -> None:
        self._consumer = consumer
        self._adapters = adapters
        self._delivery = delivery
        self._lake = lake
        self.id = delivery.id
        self.batches = delivery.batches
        self.first_batch, self.last_batch = delivery.first_batch, delivery.last_batch
        self.start, self.end = delivery.start, delivery.end
        self.changes = delivery.changes
        self.tables = tuple(str(table) for table in delivery.tables)

    @property
    def gaps(self) -> list[Gap]:
        """Parts of the log before these batches that were never read, because a person
        chose a later start."""
        gaps = self._adapters.ledger().gaps(self._delivery.source)
        return [gap for gap in gaps if gap.batch in self.batches]

    def generations(self, table: str, *, incomplete: bool = False) -> tuple[Generation, ...]:
        """Return the changelog's generations in this delivery, oldest first, each with
        its columns. There are several if a column's type changed. `arrow` and `spark`
        return the rows of all of them. `incomplete` and errors: as for `arrow`, but
        missing files are not noticed."""
        return self._delivered_table(table, incomplete).generations

    def arrow(self, table: str, *, incomplete: bool = False) -> pa.Table:
        """Return the table's changes in the order of `_sequence`, with the changelog's
        columns; no rows if `tables` does not have it. A column whose type changed
        within the delivery has its newest type; values of an older generation that do
        not fit it are in `name@generation`.

        Raise `NothingMatches` if the table was never captured, and `SegmentsLost` if
        files are missing. Raise `TableQuarantined` if changes can be missing because
        the table was stopped; with `incomplete` the caller accepts that.
        """
        return read_changes(
            self._adapters.lake().segments, self._delivered_table(table, incomplete)
        )

    def spark(self, table: str, session: Any, *, incomplete: bool = False) -> Any:
        """Return the table's changes as a DataFrame, in no particular order. `session`:
        a SparkSession. Raise the errors of `arrow`.

        Spark reads the files when the DataFrame is used, so acknowledge only after
        that.
        """
        delivered_table = self._delivered_table(table, incomplete)
        require_files(self._adapters.lake().segments, delivered_table)
        return changes_frame(session, self._lake, delivered_table)

    def ack(self) -> None:
        """Acknowledge this delivery, as `ChangelogConsumer.ack` does."""
        self._consumer.ack(self.id)

    def rollback(self) -> list[int]:
        """Take back this delivery and those after it, as `ChangelogConsumer.rollback`
        does."""
        return self._consumer.rollback(self.id)

    @cached_property
    def _segments(self) -> tuple[Segment, ...]:
        return delivered_segments(self._adapters.ledger(), self._delivery)

    def _delivered_table(self, table: str, incomplete: bool) -> DeliveredTable:
        return delivered_table(
            self._adapters.ledger(),
            self._delivery,
            self._segments,
            parse_table_name(table),
            incomplete=incomplete,
        )
