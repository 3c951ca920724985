"""What several batches have, in memory: `pipeline.ports.spans`."""

from __future__ import annotations

from pipeline.batch import Batch, CapturedRows
from pipeline.intent import SettledWrite
from pipeline.segment import RowCounts
from pipeline.table import TableName
from pipeline.table_state import TableEvent
from tests.twins.books import ENDED, MemorySubject


class MemorySpans(MemorySubject):
    def rows_between(self, source: str, first: int, last: int) -> list[CapturedRows]:
        return [
            rows
            for batch in self._between(source, first, last)
            for table in sorted(self._tables(batch.id))
            if (rows := self._rows(batch.id, table)).images + rows.read
        ]

    def events_between(self, source: str, first: int, last: int) -> list[TableEvent]:
        return [
            event
            for batch in self._between(source, first, last)
            for event in sorted(
                self.books.events.get(batch.id, ()),
                key=lambda one: (one.sequence, one.place.file.number, one.place.offset, one.table),
            )
        ]

    def writes_between(self, source: str, first: int, last: int) -> list[SettledWrite]:
        return [
            write
            for number, write in sorted(self.books.settled.items())
            if self.books.intents[number][0] == source
            and write.intent.first_batch <= last
            and write.intent.last_batch >= first
        ]

    def _between(self, source: str, first: int, last: int) -> list[Batch]:
        return [one for one in self.books.of_source(source, *ENDED) if first <= one.id <= last]

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
