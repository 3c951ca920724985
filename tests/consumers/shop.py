"""A source whose batches are recorded here: real files, changelogs and ledger, no MySQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import lockstep
from lockstep.pipeline.mirror.generations import ChangelogGenerations
from lockstep.pipeline.mirror.layout import (
    application_id,
    changelog_path,
    changelog_schema,
    new_table,
)
from lockstep.pipeline.model.batch import Batch, CaptureRecord
from lockstep.pipeline.model.table_state import StoppedTable
from lockstep.pipeline.ports.ledger import Ledger, batch_content
from lockstep.pipeline.schema.history import BatchHistory, Knowledge, SchemaVersion, VersionOrigin
from lockstep.pipeline.schema.rows import schema_of
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.segment import RowCounts, Segment
from lockstep.pipeline.values.table import Column, TableName, TableStructure
from lockstep.reading import ChangelogConsumer, ChangelogDelivery
from lockstep.resources.lake.changelog.changelog import DeltaChangelog
from lockstep.resources.lake.changelog.segments import ParquetSegments
from tests.ledger.made import ANCHOR, begun, following, merged, place, position

ORDERS = TableName("shop", "orders")
NOTES = TableName("shop", "täble=1")

Images = Sequence[tuple[str, Mapping[str, Any]]]
"""(change type, values) of each row image."""

TOML = """\
[lake]
path = "lake"
[ledger]
dsn = "env:LOCKSTEP_TEST_LEDGER"
[[sources]]
name = "{source}"
host = "127.0.0.1"
port = 1
user = "lockstep"
password = "env:NOBODY_NEEDS_IT"
tables = ["shop.*"]
start = "earliest"
"""


def structure(table: TableName, *more: Column) -> TableStructure:
    columns = (
        Column("id", "int", nullable=False),
        Column("name", "varchar", length=9, charset="utf8mb4"),
        Column("at", "datetime", length=0),
        Column("seen", "timestamp", length=0),
        *more,
    )
    return TableStructure(table, columns, ("id",))


@dataclass
class Shop:
    """`folder` has lockstep.toml and the lake; every table is at its `versions`' last one."""

    folder: Path
    source: str
    ledger: Ledger
    lease: Lease
    versions: dict[TableName, list[TableStructure]] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self.folder / "lockstep.toml"

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    def consume(self, name: str = "billing") -> AbstractContextManager[ChangelogConsumer]:
        return lockstep.consume(self.source, name, config=self.config)

    @contextmanager
    def delivered(self, name: str = "billing") -> Iterator[ChangelogDelivery]:
        """The next delivery of a consumer, within a session of its own."""
        with self.consume(name) as consumer:
            yield next_delivery(consumer)

    def changelog(self, table: TableName) -> Path:
        return self.lake / new_table(self.source, table).changelog

    def history(self, table: TableName) -> list[SchemaVersion]:
        """The table's versions as a ledger has them."""
        found: list[SchemaVersion] = []
        for number, one in enumerate(self.versions[table], 1):
            schema = schema_of(one)
            generation = ChangelogGenerations(found).choose(schema)
            told = (place(4), Knowledge.KNOWN, VersionOrigin.TABLE_MAP, schema)
            found.append(SchemaVersion(table, number, *told, generation=generation))
        return found

    def _folder(self, table: TableName, version: int) -> str:
        generation = self.history(table)[version - 1].generation
        return changelog_path(self.source, table, generation)

    def batch(
        self, changed: Mapping[TableName, Images], *quarantined: TableName, publish: bool = True
    ) -> int:
        """Capture, publish, merge and acknowledge a batch; its id."""
        first = not self.ledger.batches(self.source)
        batch = (begun if first else following)(self.ledger, self.lease)
        self.ledger.record_capture(self.lease, batch.id, self._record(batch, changed, quarantined))
        for segment in batch_content(self.ledger, batch.source, batch.id).segments:
            if publish:
                self._publish(batch, segment)
            if segment.table not in quarantined:
                merged(self.ledger, self.lease, segment.table, batch.id, batch.id, batch.id)
        self.ledger.mark_merged(self.lease)
        self.ledger.acknowledge(self.lease, batch.id)
        return batch.id

    def _record(
        self, batch: Batch, changed: Mapping[TableName, Images], quarantined: Sequence[TableName]
    ) -> CaptureRecord:
        known = {schema.table: schema for schema in self.ledger.schemas_at(self.source)}
        versions, segments = [], []
        base = batch.sequence_before
        tables = tuple(dict.fromkeys((*changed, *quarantined)))
        for table in tables:
            self.versions.setdefault(table, [structure(table)])
            recorded = known[table].version if table in known else 0
            versions += self.history(table)[recorded:]
        for table, images in changed.items():
            number = len(self.versions[table])
            segments.append(self._segment(batch, table, number, base, images))
            base += len(images)
        return CaptureRecord(
            end=position(batch.start.at.offset + 100),
            anchor=ANCHOR,
            changes=base - batch.sequence_before,
            transactions=1,
            log_bytes=100,
            segments=tuple(segments),
            history=BatchHistory(versions=tuple(versions)),
            tables=tuple(new_table(self.source, table) for table in tables if table not in known),
            stopped_tables=tuple(
                StoppedTable(table, "a type is not supported", "exclude it", "binlog.000001:100")
                for table in quarantined
            ),
        )

    def _segment(
        self, batch: Batch, table: TableName, version: int, base: int, images: Images
    ) -> Segment:
        schema = changelog_schema(self.versions[table][-1])
        folder = self._folder(table, version)
        marked = [
            {
                "_change_type": kind,
                "_sequence": base + number,
                "_batch": batch.id,
                "_schema_version": version,
                "_derived": False,
                **values,
            }
            for number, (kind, values) in enumerate(images, 1)
        ]
        writer = ParquetSegments(self.lake).open(
            folder, batch=batch.id, schema_version=version, schema=schema
        )
        writer.write(pa.Table.from_pylist(marked, schema=schema))
        counts = RowCounts(inserted=len(images))
        return Segment(table, version, writer.close(), counts, base + 1, base + len(images))

    def _publish(self, batch: Batch, segment: Segment) -> None:
        state = new_table(self.source, segment.table)
        version = self.history(segment.table)[segment.schema_version - 1]
        DeltaChangelog(self.lake).publish(
            self._folder(segment.table, segment.schema_version),
            app_id=application_id(self.source, state, "changelog", version.generation),
            batch=batch.id,
            schema=changelog_schema(version.structure),
            files=segment.files,
            user_metadata=f"batch {batch.id}",
        )


@contextmanager
def opened_shop(folder: Path, source: str, ledger: Ledger) -> Iterator[Shop]:
    (folder / "lockstep.toml").write_text(TOML.format(source=source))
    with ledger.lock(source, "a test", None) as lease:
        yield Shop(folder, source, ledger, lease)


def with_columns(shop: Shop, table: TableName, *columns: Column) -> None:
    """From now on the table has these columns besides, or in place of those of their names."""
    last = shop.versions[table][-1]
    new = {column.name: column for column in columns}
    kept = [new.pop(column.name, column) for column in last.columns]
    shop.versions[table].append(replace(last, columns=(*kept, *new.values())))


def next_delivery(consumer: ChangelogConsumer, max_batches: int | None = None) -> ChangelogDelivery:
    """Return the next delivery, which must not be None."""
    delivery = consumer.get(max_batches=max_batches)
    assert delivery is not None
    return delivery


def inserts(*ids: int) -> Images:
    return [("insert", {"id": number, "name": f"n{number}"}) for number in ids]
