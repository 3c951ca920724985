"""Which tables the lake can have but a part of, followed through one capture.

A table that was there before the log that is read begins may have rows that no log tells of:
its mirror is a part of it. It is whole once it was empty at a place that was read: made,
emptied or dropped by a statement there, or seen without a row; or once all of it was read from
the source. A table that takes another's name is what it was under the old one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pipeline.position import Coordinates
from pipeline.schema.evolving.effects import Created, Dropped, Effect, Renamed, Truncated
from pipeline.table import TableName
from pipeline.table_state import Extent


class Extents:
    """`known`: the partial tables before the capture."""

    def __init__(self, known: Iterable[Extent] = ()) -> None:
        self._before = {extent.table: extent for extent in known}
        self._now = dict(self._before)

    def begin(
        self,
        tables: Iterable[TableName],
        at: Coordinates,
        empty: Collection[TableName],
        by: Coordinates,
    ) -> None:
        """These tables were there at `at`, where what is read of them begins; those of `empty`
        had no row at `by`, or before."""
        for table in tables:
            self._now[table] = Extent(table, at, by if table in empty else None)

    def followed(self, effects: Iterable[Effect]) -> None:
        """A statement did this, in order."""
        for effect in effects:
            match effect:
                case Created(table) | Dropped(table) | Truncated(table):
                    self._now.pop(table, None)
                case Renamed(table, to):
                    # Where a log is read again, the new name may have been taken long ago.
                    was = self._now.pop(table, self._now.get(to))
                    if was is not None:
                        # Which table was seen empty under the old name nobody knows now.
                        self._now[to] = Extent(to, was.begins)
                case _:
                    pass

    def read(self, tables: Iterable[TableName]) -> None:
        """All rows of these were read from the source."""
        for table in tables:
            self._now.pop(table, None)

    def changed(self, end: Coordinates) -> tuple[Extent, ...]:
        """What is another than before, for a capture that ends there."""
        now = {
            table: extent
            for table, extent in self._now.items()
            if extent.empty is None or end < extent.empty
        }
        return tuple(
            now.get(table, Extent(table, None))
            for table in sorted({*self._before, *now})
            if now.get(table) != self._before.get(table)
        )
