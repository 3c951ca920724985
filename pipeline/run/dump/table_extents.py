"""Partial tables: they existed before the log that was read, so the lake may lack rows
of them.

A partial table becomes whole where it is empty (a statement created, emptied or dropped
it, or it was seen without rows), or when all of its rows are read from the source.
After a RENAME it is partial under its new name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from lockstep.pipeline.model.table_state import Extent
from lockstep.pipeline.ports.ledger import Tables
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.basis import Basis
from lockstep.pipeline.run.reports import VerifyReport
from lockstep.pipeline.schema.effects import Created, Dropped, Effect, Renamed, Truncated
from lockstep.pipeline.schema.history import VersionOrigin
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName, TablePatterns


class PartialTables:
    """The partial tables of one capture, followed from statement to statement.
    `extents`: the partial tables before the capture."""

    def __init__(self, extents: Iterable[Extent] = ()) -> None:
        self._extents_before = {extent.table: extent for extent in extents}
        self._extents = dict(self._extents_before)

    def add(
        self,
        tables: Iterable[TableName],
        at: Coordinates,
        empty_tables: Collection[TableName],
        empty_by: Coordinates,
    ) -> None:
        """Add tables that existed at `at`, where the log that is read begins. Tables in
        `empty_tables` had no row at some place from `at` up to `empty_by`."""
        for table in tables:
            self._extents[table] = Extent(table, at, empty_by if table in empty_tables else None)

    def apply_effects(self, effects: Iterable[Effect]) -> None:
        """Apply the effects of a statement, in their order."""
        for effect in effects:
            match effect:
                case Created(table) | Dropped(table) | Truncated(table):
                    self._extents.pop(table, None)
                case Renamed(table, to):
                    # If the log is read again, the table may be known under its new
                    # name already.
                    extent = self._extents.pop(table, self._extents.get(to))
                    if extent is not None:
                        # `empty_at` is forgotten: the table that was seen empty may
                        # have been another one, which had the old name at that time.
                        self._extents[to] = Extent(to, extent.begins)
                case _:
                    pass

    def remove_read(self, tables: Iterable[TableName]) -> None:
        """Note that all rows of the tables were read from the source."""
        for table in tables:
            self._extents.pop(table, None)

    def changed_extents(self, end: Coordinates) -> tuple[Extent, ...]:
        """Return the extents that a capture up to `end` changed. The extent of a table
        that is whole now has no beginning."""
        lasting_extents = {
            table: extent
            for table, extent in self._extents.items()
            if extent.empty_at is None or end < extent.empty_at
        }
        return tuple(
            lasting_extents.get(table, Extent(table, None))
            for table in sorted({*self._extents_before, *lasting_extents})
            if lasting_extents.get(table) != self._extents_before.get(table)
        )


def partial_tables_at_start(basis: Basis) -> tuple[PartialTables, Basis]:
    """Return the partial tables before the first event is read, and the basis with
    newer facts of the server. These facts are read after the check for empty tables, so
    the tables were empty at some place before the log's end in the facts."""
    ports, source = basis.ports, basis.ports.source
    extents = PartialTables(ports.ledger.partial_tables(source.name))
    new_tables = [
        version.table
        for version in basis.structures.history.versions
        if version.origin is VersionOrigin.BASELINE
    ]
    if not new_tables:
        return extents, basis
    known_tables = {schema.table for schema in ports.ledger.schemas_at(source.name)}
    tables = [table for table in new_tables if table not in known_tables]
    empty_tables = ports.server.empty_tables(
        [table for table in tables if source.patterns.matches(table)], basis.run_start.start.at
    )
    run_start = replace(basis.run_start, facts=ports.server.facts())
    extents.add(tables, run_start.start.at, empty_tables, run_start.facts.head)
    return extents, replace(basis, run_start=run_start)


def note_tables_from_log(extents: PartialTables, basis: Basis) -> None:
    """Add the tables that are known only from the log, because the account could not
    see them when the structures were read. They may have earlier rows."""
    tables = [
        version.table
        for version in basis.structures.history.versions
        if version.origin is VersionOrigin.TABLE_MAP and version.version == 1
    ]
    start = basis.run_start.start.at
    extents.add(tables, start, empty_tables=(), empty_by=start)


def partial_tables(ledger: Tables, source: str, patterns: TablePatterns) -> tuple[Extent, ...]:
    """Return the partial tables that the patterns match, without those that are being
    loaded."""
    loading_tables = {load.table for load in ledger.open_loads(source)}
    return tuple(
        extent
        for extent in ledger.partial_tables(source)
        if extent.table not in loading_tables and patterns.matches(extent.table)
    )


def tables_proven_complete(ports: RunPorts, report: VerifyReport) -> frozenset[TableName]:
    """Return the tables that a comparison with MySQL found equal, and that were partial
    or open after a gap. These are whole."""
    ledger, source = ports.ledger, ports.source.name
    equal_tables = {table.table for table in report.tables if table.equal}
    incomplete_tables = {extent.table for extent in ledger.partial_tables(source)}
    for gap in ledger.gaps(source, report.batch_id):
        incomplete_tables.update(gap.open_among(equal_tables))
    return frozenset(equal_tables & incomplete_tables)


def record_complete(ports: RunPorts, lease: Lease, report: VerifyReport) -> None:
    """Record as whole the tables that a comparison with MySQL found equal."""
    ports.ledger.note_complete(lease, report.batch_id, tables_proven_complete(ports, report))
