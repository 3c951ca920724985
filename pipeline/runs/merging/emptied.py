"""When rows went that a statement or a re-read took, all at once.

A TRUNCATE and a re-read have a row of their own in the changelog, which says when; for DROP, CREATE
and the old name of a RENAME the history has the statement. So the moments are the same however the
batches are merged, and whenever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.batch import Batch
from pipeline.changes.layout import changelog_path
from pipeline.changes.merging import Emptied, MergePlan
from pipeline.policies import Deletes
from pipeline.runs.context import Workplace
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.table import TableName
from pipeline.table_state import TableEventKind

_MARKED = (TableEventKind.TRUNCATED, TableEventKind.REREAD)
"""What leaves a row in the changelog."""


def emptied_at(
    work: Workplace, table: TableName, plan: MergePlan, batches: Sequence[Batch]
) -> tuple[tuple[int, datetime], ...]:
    """Return behind which changes no row of the table was there any more, and when that was;
    nothing if deleted rows are not kept. Where nothing says when, it is the end of the batches."""
    if work.source.lake.deletes != Deletes.SOFT or not plan.emptied:
        return ()
    ends = [batch.end.committed_at for batch in batches if batch.end is not None]
    otherwise = next((end for end in reversed(ends) if end is not None), None) or work.clock()
    versions = {
        version.version: version for version in work.ledger.schema_versions(work.source.name, table)
    }
    emptied = (*_dropped_before(work, table, plan, batches), *plan.emptied)
    marks = _marks(work, plan, versions, {one.sequence for one in emptied})
    found = []
    for one in emptied:
        kind, version = one.event.kind, versions[one.event.version]
        marked = kind in _MARKED
        moment = marks.get(one.sequence) if marked else _statement_moment(work, version, kind)
        found.append((one.sequence, moment or otherwise))
    return tuple(found)


def _dropped_before(
    work: Workplace, table: TableName, plan: MergePlan, batches: Sequence[Batch]
) -> Sequence[Emptied]:
    """The DROP of an earlier batch, where the table comes back in these: its rows went then."""
    first = plan.emptied[0].event
    if first.kind is TableEventKind.DROPPED or not batches:
        return ()
    before = work.ledger.contents(work.source.name, table, 1, batches[0].id - 1)
    events = [event for part in before for event in part.events]
    if not events or events[-1].kind is not TableEventKind.DROPPED:
        return ()
    return (Emptied(events[-1].sequence, events[-1]),)


def _statement_moment(
    work: Workplace, version: SchemaVersion, kind: TableEventKind
) -> datetime | None:
    """When the statement was committed that made the version; None where none did."""
    ends = version.knowledge is Knowledge.DROPPED
    if version.statement is None or ends is not (kind is TableEventKind.DROPPED):
        return None
    return work.ledger.statement(work.source.name, version.statement).committed_at


def _marks(
    work: Workplace,
    plan: MergePlan,
    versions: Mapping[int, SchemaVersion],
    numbers: set[int],
) -> dict[int, datetime]:
    """When the changes of these numbers were committed, those that are among the segments."""
    found: dict[int, datetime] = {}
    for segment in dict.fromkeys((*plan.gone, *plan.segments)):
        if not any(segment.first_sequence <= n <= segment.last_sequence for n in numbers):
            continue
        version = versions[segment.schema_version]
        folder = changelog_path(work.source.name, version.table, version.generation)
        wanted = pa.array(sorted(numbers), pa.int64())
        for piece in work.segments.pieces(folder, segment.files, ["_sequence", "_committed_at"]):
            some = piece.filter(pc.is_in(piece.column("_sequence"), wanted))
            pairs = zip(
                some["_sequence"].to_pylist(), some["_committed_at"].to_pylist(), strict=True
            )
            found.update((number, at) for number, at in pairs if at is not None)
    return found
