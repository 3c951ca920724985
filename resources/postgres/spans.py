"""What many batches have, on Postgres: `pipeline.ports.spans`."""

from __future__ import annotations

from datetime import datetime

from pipeline.batch import Batch
from pipeline.ports.spans import Elsewhere, TableContent
from pipeline.segment import Segment
from pipeline.table import TableName
from pipeline.table_state import SnapshotPart, TableEvent
from resources.postgres.batches import batch_of
from resources.postgres.captures import event_of, segment_of, snapshot_of
from resources.postgres.rows import of_table, table
from resources.postgres.session import Books


class PostgresSpans(Books):
    def committed_within(
        self, source: str, since: datetime | None, until: datetime | None
    ) -> list[Batch]:
        rows = self._all("committed_within", source=source, since=since, until=until)
        return [batch_of(row) for row in rows]

    def first_batches(self, source: str) -> dict[TableName, int]:
        return {table(row): row["batch"] for row in self._all("first_batches", source=source)}

    def tables_within(self, source: str, first: int, last: int) -> frozenset[TableName]:
        return frozenset(
            map(table, self._all("tables_within", source=source, first=first, last=last))
        )

    def contents(self, source: str, table: TableName, first: int, last: int) -> list[TableContent]:
        of = {"source": source, "first": first, "last": last, **of_table(table)}
        segments: dict[int, list[Segment]] = {}
        for row in self._all("segments_within", **of):
            segments.setdefault(row["batch"], []).append(segment_of(row))
        events: dict[int, list[TableEvent]] = {}
        for row in self._all("events_within", **of):
            events.setdefault(row["batch"], []).append(event_of(row))
        snapshots: dict[int, SnapshotPart] = {
            row["batch"]: snapshot_of(row) for row in self._all("snapshots_within", **of)
        }
        return [
            TableContent(
                batch,
                tuple(segments.get(batch, ())),
                tuple(events.get(batch, ())),
                snapshots.get(batch),
            )
            for batch in sorted(segments.keys() | events.keys())
        ]

    def told_elsewhere(self, source: str, first: int, last: int) -> dict[int, Elsewhere]:
        rows = self._all("told_elsewhere", source=source, first=first, last=last)
        return {row["batch"]: Elsewhere(row["kind"]) for row in rows}

    def learnt_within(self, source: str, first: int, last: int) -> frozenset[int]:
        rows = self._all("learnt_within", source=source, first=first, last=last)
        return frozenset(row["batch"] for row in rows)

    def revision_counts(self, source: str, first: int, last: int) -> dict[int, int]:
        rows = self._all("revision_counts", source=source, first=first, last=last)
        return {row["batch"]: row["revisions"] for row in rows}
