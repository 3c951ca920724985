"""Tables that lack only values of new columns, which the source tells by key.

What else changed comes from the log, so such a table catches up through it first. Anything
that leaves a doubt is answered by reading all of the table.
"""

from __future__ import annotations

from pipeline.changes.layout import application_id
from pipeline.changes.lineage import ColumnsRead
from pipeline.changes.merging import SETTLES
from pipeline.errors import Remedy, TableError
from pipeline.runs.context import Workplace
from pipeline.runs.merging.job import lineage_over, versions_between
from pipeline.runs.rejoining.rejoin import remedy_of
from pipeline.runs.rejoining.resnapshot import Wanted
from pipeline.schema.history import SchemaVersion
from pipeline.schema.model import TableSchema
from pipeline.schema.rows import row_structure
from pipeline.table import TableName
from pipeline.table_state import TableOrder, TableState

MOST = 2
"""All of a table is read where more than one of so many of its columns would be."""


def goes_on(work: Workplace, state: TableState) -> bool:
    """Whether the mirror's rows are those that the table had: it was written, and nothing
    since settles anew what the table holds."""
    source = work.source.name
    settled = work.ledger.newest_writes(source, application_id(source, state, "mirror")).settled
    cursor = work.ledger.captured_cursor(source)
    if settled is None or cursor is None or state.mirror_version is None:
        return False
    return not any(
        event.table == state.table and event.kind in SETTLES
        for batch in work.ledger.live_batches(source, settled.intent.last_batch + 1, cursor.batch)
        for event in work.ledger.table_events(source, batch.id)
    )


def enough(work: Workplace, order: TableOrder, schema: TableSchema) -> Wanted | None:
    """The columns that the mirror lacks of a table that is built like that now, and the version
    of the log's end; None where all of the table is to be read."""
    state = work.ledger.table_states(work.source.name)[order.table]
    newest = _newest(work, order.table)
    structure = row_structure(schema)
    if newest is None or newest.schema is None or row_structure(newest.schema) != structure:
        return None
    if state.mirror_version is None or not structure.primary_key or not goes_on(work, state):
        return None
    if remedy_of(state) is not Remedy.BACKFILL:
        return None  # it was quarantined once more, for something else
    try:
        versions = versions_between(work, order.table, state.mirror_version, newest.version)
        line = lineage_over(work, versions, read=ColumnsRead(newest.version))
    except TableError:
        return None
    others = len(structure.columns) - len(structure.primary_key)
    if line.reread or not line.asked or line.key_of(line.versions) != structure.primary_key:
        return None
    return None if MOST * len(line.asked) > others else (newest.version, line.asked)


def _newest(work: Workplace, table: TableName) -> SchemaVersion | None:
    """What the history says of the table where the batches end."""
    source = work.source.name
    cursor = work.ledger.captured_cursor(source)
    if cursor is None:
        return None
    return work.ledger.schema_at(source, table, batch=cursor.batch, place=cursor.position.at)
