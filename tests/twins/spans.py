"""What many batches have, in memory: `pipeline.ports.spans`, batch by batch."""

from __future__ import annotations

from pipeline.batch import Batch, BatchTimes, CapturedRows
from pipeline.intent import SettledWrite
from pipeline.ports.spans import Elsewhere, TableContent
from pipeline.segment import RowCounts
from pipeline.table import TableName
from pipeline.table_state import TableEvent, TableEventKind
from tests.twins.books import ENDED, MemorySubject


class MemorySpans(MemorySubject):
    def batch_times(self, source: str) -> list[BatchTimes]:
        pruned = self.books.pruned_through(source)
        return [
            BatchTimes.of(one) for one in self.books.of_source(source, *ENDED) if one.id >= pruned
        ]

    def first_batches(self, source: str) -> dict[TableName, int]:
        found: dict[TableName, int] = {}
        for batch in self.books.of_source(source, *ENDED):
            for table in self.books.touched(batch.id):
                found.setdefault(table, batch.id)
        return found

    def tables_within(self, source: str, first: int, last: int) -> frozenset[TableName]:
        return frozenset(
            table
            for batch in self._captured(source, first, last)
            for table in self.books.touched(batch.id)
        )

    def contents(self, source: str, table: TableName, first: int, last: int) -> list[TableContent]:
        found = [
            TableContent(
                batch.id,
                tuple(o for o in self.books.segments.get(batch.id, ()) if o.table == table),
                tuple(o for o in self.books.events.get(batch.id, ()) if o.table == table),
                next((o for o in self.books.snapshots.get(batch.id, ()) if o.table == table), None),
            )
            for batch in self._captured(source, first, last)
        ]
        return [one for one in found if one.segments or one.events]

    def told_elsewhere(self, source: str, first: int, last: int) -> dict[int, Elsewhere]:
        books, found = self.books, {}
        for batch in self._captured(source, first, last):
            events = books.events.get(batch.id, ())
            ended = [of for (of, _), by in books.ended_by.items() if by == batch.id]
            if books.snapshots.get(batch.id) or any(
                event.kind in (TableEventKind.REREAD, TableEventKind.REFRESHED) for event in events
            ):
                found[batch.id] = Elsewhere.SOURCE
            elif any(of < batch.id for of in ended):
                found[batch.id] = Elsewhere.PREPARED
        return found

    def learnt_within(self, source: str, first: int, last: int) -> frozenset[int]:
        versions = [
            version.batch
            for (of, _), some in self.books.versions.items()
            if of == source
            for version in some
        ]
        versions += [one.batch for of, one in self.books.databases if of == source]
        return frozenset(
            one.id for one in self.books.live(source) if first <= one.id <= last
        ) & frozenset(versions)

    def revision_counts(self, source: str, first: int, last: int) -> dict[int, int]:
        found: dict[int, int] = {}
        for entry in self.books.revisions.values():
            if entry.source == source and entry.state == "settled":
                for batch in {part.batch for part in entry.revision.segments}:
                    if first <= batch <= last:
                        found[batch] = found.get(batch, 0) + 1
        return found

    def rows_within(self, source: str, first: int, last: int) -> list[CapturedRows]:
        return [
            rows
            for batch in self._captured(source, first, last)
            for table in sorted(self._tables(batch.id))
            if (rows := self._rows(batch.id, table)).images + rows.read
        ]

    def events_within(self, source: str, first: int, last: int) -> list[TableEvent]:
        return [
            event
            for batch in self._captured(source, first, last)
            for event in sorted(
                self.books.events.get(batch.id, ()),
                key=lambda one: (one.sequence, one.place.file.number, one.place.offset, one.table),
            )
        ]

    def writes_within(self, source: str, first: int, last: int) -> list[SettledWrite]:
        return [
            write
            for number, write in sorted(self.books.settled.items())
            if self.books.intents[number][0] == source
            and write.intent.first_batch <= last
            and write.intent.last_batch >= first
        ]

    def _tables(self, batch: int) -> set[TableName]:
        parts = self.books.snapshots.get(batch, ())
        segments = self.books.segments.get(batch, ())
        return {one.table for one in segments} | {one.table for one in parts}

    def _rows(self, batch: int, table: TableName) -> CapturedRows:
        segments = [one for one in self.books.segments.get(batch, ()) if one.table == table]
        parts = [one for one in self.books.snapshots.get(batch, ()) if one.table == table]
        written = [file for one in segments for file in one.files]
        read = [file for one in parts for file in one.files]
        return CapturedRows(
            batch,
            table,
            sum((one.counts for one in segments), RowCounts()),
            images=sum(file.images for file in written),
            size=sum(file.size for file in (*written, *read)),
            read=sum(file.images for file in read),
        )

    def _captured(self, source: str, first: int, last: int) -> list[Batch]:
        return [one for one in self.books.of_source(source, *ENDED) if first <= one.id <= last]
