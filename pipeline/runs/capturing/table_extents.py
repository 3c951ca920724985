"""How much of its tables the lake can have: asking the source and the ledger."""

from __future__ import annotations

from dataclasses import replace

from pipeline.changes.extents import Extents
from pipeline.decisions import Lease
from pipeline.ports.ledger import Ledger
from pipeline.runs.capturing.basis import Basis
from pipeline.runs.context import Workplace
from pipeline.runs.reports import VerifyReport
from pipeline.schema.history import VersionOrigin
from pipeline.table import TableName
from pipeline.table_state import Extent
from pipeline.tables import TablePatterns


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
