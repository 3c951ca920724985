"""What several batches have, on Postgres: `pipeline.ports.spans`."""

from __future__ import annotations

from pipeline.batch import CapturedRows
from pipeline.intent import SettledWrite
from pipeline.segment import RowCounts
from pipeline.table_state import TableEvent
from resources.postgres.captures import table_event
from resources.postgres.rows import Row, table
from resources.postgres.session import Books
from resources.postgres.writes import settled_write


class PostgresSpans(Books):
    def rows_between(self, source: str, first: int, last: int) -> list[CapturedRows]:
        rows = self._all("rows_between", source=source, first=first, last=last)
        return [_captured_rows(row) for row in rows]

    def events_between(self, source: str, first: int, last: int) -> list[TableEvent]:
        rows = self._all("events_between", source=source, first=first, last=last)
        return [table_event(row) for row in rows]

    def writes_between(self, source: str, first: int, last: int) -> list[SettledWrite]:
        rows = self._all("writes_between", source=source, first=first, last=last)
        return [settled_write(row) for row in rows]


def _captured_rows(row: Row) -> CapturedRows:
    counts = RowCounts(int(row["inserted"]), int(row["updated"]), int(row["deleted"]))
    return CapturedRows(
        row["batch"], table(row), counts, int(row["images"]), int(row["size"]), int(row["read"])
    )
