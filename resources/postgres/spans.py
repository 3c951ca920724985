"""What many batches have, on Postgres: `pipeline.ports.spans`."""

from __future__ import annotations

from pipeline.batch import BatchTimes, CapturedRows
from pipeline.intent import SettledWrite
from pipeline.ports.spans import Elsewhere, TableContent
from pipeline.segment import RowCounts, Segment
from pipeline.table import TableName
from pipeline.table_state import SnapshotPart, TableEvent
from resources.postgres.captures import segment_of, snapshot_of, table_event
from resources.postgres.rows import Row, of_table, table
from resources.postgres.session import Books
from resources.postgres.writes import settled_write


class PostgresSpans(Books):
    def batch_times(self, source: str) -> list[BatchTimes]:
        return [
            BatchTimes(
                row["id"],
                row["server_uuid"],
                row["acknowledged"],
                row["catches_up"],
                row["transactions"],
                row["start_committed_at"],
                row["end_committed_at"],
            )
            for row in self._all("batch_times", source=source)
        ]

    def first_batches(self, source: str) -> dict[TableName, int]:
        return {table(row): row["batch"] for row in self._all("first_batches", source=source)}

    def tables_within(self, source: str, first: int, last: int) -> frozenset[TableName]:
        return frozenset(
            map(table, self._all("tables_within", source=source, first=first, last=last))
        )

    def contents(self, source: str, table: TableName, first: int, last: int) -> list[TableContent]:
        of = {"source": source, "first": first, "last": last, **of_table(table)}
        segments: dict[int, list[Segment]] = {}
        for row in self._all("segments_of", **of):
            segments.setdefault(row["batch"], []).append(segment_of(row))
        events: dict[int, list[TableEvent]] = {}
        for row in self._all("events_of", **of):
            events.setdefault(row["batch"], []).append(table_event(row))
        snapshots: dict[int, SnapshotPart] = {
            row["batch"]: snapshot_of(row) for row in self._all("snapshots_of", **of)
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

    def rows_within(self, source: str, first: int, last: int) -> list[CapturedRows]:
        rows = self._all("rows_within", source=source, first=first, last=last)
        return [_captured_rows(row) for row in rows]

    def events_within(self, source: str, first: int, last: int) -> list[TableEvent]:
        rows = self._all("events_within", source=source, first=first, last=last)
        return [table_event(row) for row in rows]

    def writes_within(self, source: str, first: int, last: int) -> list[SettledWrite]:
        rows = self._all("writes_within", source=source, first=first, last=last)
        return [settled_write(row) for row in rows]


def _captured_rows(row: Row) -> CapturedRows:
    counts = RowCounts(int(row["inserted"]), int(row["updated"]), int(row["deleted"]))
    return CapturedRows(
        row["batch"], table(row), counts, int(row["images"]), int(row["size"]), int(row["read"])
    )
