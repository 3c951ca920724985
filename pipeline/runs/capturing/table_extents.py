"""Which tables the lake can have but a part of: asked of the source and the ledger, and followed
through one capture.

A table that was there before the log that is read begins may have rows that no log tells of:
its mirror is a part of it. It is whole once it was empty at a place that was read: made,
emptied or dropped by a statement there, or seen without a row; or once all of it was read from
the source. A table that takes another's name is what it was under the old one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from pipeline.decisions import Lease
from pipeline.ports.ledger import Ledger
from pipeline.position import Coordinates
from pipeline.runs.capturing.basis import Basis
from pipeline.runs.context import Workplace
from pipeline.runs.reports import VerifyReport
from pipeline.schema.evolving.effects import Created, Dropped, Effect, Renamed, Truncated
from pipeline.schema.history import VersionOrigin
from pipeline.table import TableName
from pipeline.table_state import Extent
from pipeline.tables import TablePatterns


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


def extents_of(basis: Basis) -> tuple[Extents, Basis]:
    """How much is known before the first event is read; and the same basis, with the server's
    facts of after the moment in which tables were seen empty."""
    work, source = basis.work, basis.work.source
    extents = Extents(work.ledger.partial(source.name))
    read = [
        version.table
        for version in basis.structures.history.versions
        if version.origin is VersionOrigin.BASELINE
    ]
    if not read:
        return extents, basis
    before = {schema.table for schema in work.ledger.schemas_at(source.name)}
    tables = [table for table in read if table not in before]
    empty = work.server.empty([table for table in tables if source.patterns.matches(table)])
    run_start = replace(basis.run_start, facts=work.server.facts())
    extents.begin(tables, run_start.start.at, empty, run_start.facts.head)
    return extents, replace(basis, run_start=run_start)


def met_in_log(extents: Extents, basis: Basis) -> None:
    """Tables that nothing but the log itself told of: the account did not see them when structures
    were read, and they may have rows from before."""
    met = [
        version.table
        for version in basis.structures.history.versions
        if version.origin is VersionOrigin.TABLE_MAP and version.version == 1
    ]
    start = basis.run_start.start.at
    extents.begin(met, start, empty=(), by=start)


def partial_tables(ledger: Ledger, source: str, patterns: TablePatterns) -> tuple[Extent, ...]:
    """Tables of the source that the lake can have but a part of, and whose rows nobody is reading
    from the source."""
    reading = {load.table for load in ledger.open_loads(source)}
    partial = (extent for extent in ledger.partial(source) if extent.table not in reading)
    return tuple(extent for extent in partial if patterns.matches(extent.table))


def proven(work: Workplace, report: VerifyReport) -> frozenset[TableName]:
    """Partial tables that were found equal: they are whole, whatever the log tells of them."""
    partial = {extent.table for extent in work.ledger.partial(work.source.name)}
    return frozenset(
        table.table for table in report.tables if table.equal and table.table in partial
    )


def note_equal(work: Workplace, lease: Lease, report: VerifyReport) -> None:
    """… and nobody needs to look again."""
    work.ledger.note_whole(lease, report.batch, proven(work, report))
