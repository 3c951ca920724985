"""Finds the stamps of rows that no change of the log brought, and of the moments at
which a table lost all its rows.

However batches are grouped into merges, the mirror shows the same: the stamps of its
rows (commit time, number and GTID of the last change), and the times at which the table
lost its rows, are those of the log. The changelog has a row with the time of each
TRUNCATE and each re-read. The schema history has the statement of each DROP, of each
CREATE, and of each RENAME, after which the old name has no rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.layout import changelog_path
from lockstep.pipeline.mirror.merging import MergePlan, RowsLost
from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.table_state import TableEventKind
from lockstep.pipeline.ports.ledger import table_contents
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion
from lockstep.pipeline.values.stamps import Stamp
from lockstep.pipeline.values.table import TableName

_LOSSES_IN_CHANGELOG: Final = (TableEventKind.TRUNCATED, TableEventKind.REREAD)
"""Kinds of events that remove all rows and leave a row with their time in the
changelog."""


def find_read_stamp(
    ports: RunPorts,
    table: TableName,
    plan: MergePlan,
    batches: Sequence[Batch],
    *,
    has_stamps: bool,
) -> Stamp | None:
    """Return the stamp of the rows that were read from the source or copied from
    another name; None if there are no such rows. A re-read or a RENAME leaves a row
    with its time in the changelog. This row is looked up only if rows have stamps
    (`has_stamps`)."""
    if plan.copy_event is not None:
        # The row of the RENAME is the first change in these files, because none of them
        # also has changes of the former name.
        sequence = min((segment.first_sequence for segment in plan.segments), default=plan.above)
    elif plan.snapshot is not None:
        sequence = plan.snapshot.low_sequence
    else:
        return None
    stamps: dict[int, Stamp] = {}
    if has_stamps:
        versions = _versions_by_number(ports, table)
        stamps = _stamps_by_sequence(ports, plan, versions, {sequence})
    return stamps.get(sequence) or Stamp(sequence, _end_time(ports, batches))


def find_emptying_stamps(
    ports: RunPorts, table: TableName, plan: MergePlan, batches: Sequence[Batch]
) -> tuple[Stamp, ...]:
    """Return the stamps of the changes after which the table had no row; none unless
    the mirror keeps deleted rows. A change whose time is unknown gets the end of the
    batches as its time."""
    if not ports.source.policies_of(table).keeps_rows or not plan.losses:
        return ()
    versions = _versions_by_number(ports, table)
    emptyings = (*_earlier_drop(ports, table, plan, batches), *plan.losses)
    stamps_by_sequence = _stamps_by_sequence(
        ports, plan, versions, {emptying.sequence for emptying in emptyings}
    )
    stamps = []
    for emptying in emptyings:
        if emptying.event.kind in _LOSSES_IN_CHANGELOG:
            stamp = stamps_by_sequence.get(emptying.sequence)
        else:
            stamp = _statement_stamp(ports, versions[emptying.event.version], emptying)
        stamps.append(stamp or Stamp(emptying.sequence, _end_time(ports, batches)))
    return tuple(stamps)


def _versions_by_number(ports: RunPorts, table: TableName) -> dict[int, SchemaVersion]:
    history = ports.ledger.schema_versions(ports.source.name, table)
    return {version.version: version for version in history}


def _end_time(ports: RunPorts, batches: Sequence[Batch]) -> datetime:
    ends = [batch.end.committed_at for batch in batches if batch.end is not None]
    return next((end for end in reversed(ends) if end is not None), None) or ports.clock()


def _earlier_drop(
    ports: RunPorts, table: TableName, plan: MergePlan, batches: Sequence[Batch]
) -> Sequence[RowsLost]:
    """Return the DROP of an earlier batch if these batches create the table again: that
    DROP removed its rows."""
    first_event = plan.losses[0].event
    if first_event.kind is TableEventKind.DROPPED or not batches:
        return ()
    earlier_contents = table_contents(ports.ledger, ports.source.name, table, 1, batches[0].id - 1)
    events = [event for content in earlier_contents for event in content.events]
    if not events or events[-1].kind is not TableEventKind.DROPPED:
        return ()
    return (RowsLost(events[-1].sequence, events[-1]),)


def _statement_stamp(ports: RunPorts, version: SchemaVersion, emptying: RowsLost) -> Stamp | None:
    """Return the stamp of the statement that made the version. Return None if no
    statement made it, or if the statement's commit time is unknown."""
    is_drop = emptying.event.kind is TableEventKind.DROPPED
    has_dropped = version.knowledge is Knowledge.DROPPED
    if version.statement_number is None or is_drop != has_dropped:
        return None
    statement_number = version.statement_number
    statement = ports.ledger.statements(ports.source.name, [statement_number])[statement_number]
    if statement.committed_at is None:
        return None
    return Stamp(emptying.sequence, statement.committed_at, statement.gtid or None)


def _stamps_by_sequence(
    ports: RunPorts,
    plan: MergePlan,
    versions: Mapping[int, SchemaVersion],
    sequences: set[int],
) -> dict[int, Stamp]:
    """Return, by sequence number, the stamps of the changes in the segments that have
    one of these numbers and a commit time."""
    stamps: dict[int, Stamp] = {}
    for segment in dict.fromkeys((*plan.segments_of_lost_rows, *plan.segments)):
        if not any(
            segment.first_sequence <= number <= segment.last_sequence for number in sequences
        ):
            continue
        version = versions[segment.schema_version]
        folder = changelog_path(ports.source.name, version.table, version.generation)
        sequence_array = pa.array(sorted(sequences), pa.int64())
        columns = ["_sequence", "_committed_at", "_gtid"]
        for piece in ports.segments.pieces(folder, segment.files, columns):
            rows = piece.filter(pc.is_in(piece.column("_sequence"), sequence_array))
            changes = zip(*(rows[name].to_pylist() for name in columns), strict=True)
            stamps.update(
                (sequence, Stamp(sequence, at, gtid)) for sequence, at, gtid in changes if at
            )
    return stamps
