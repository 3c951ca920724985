"""What the ledger is asked: one function a question, given a cursor of a transaction.

Does not belong here: connections, anything that writes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from psycopg2.extras import RealDictCursor

from pipeline.batch import Batch, BatchState, Cursor, Prepared
from pipeline.coverage import CaptureScope
from pipeline.decisions import LeaseView, Override, RecordedDecision
from pipeline.gaps import CLOSING, Gap, with_closed
from pipeline.intent import Intent, SettledWrite, VersionSetEntry
from pipeline.position import Lineage, Reign, SetWitness
from pipeline.segment import Segment, SourcePart, SourceTable
from pipeline.table import TableName
from pipeline.table_state import Extent, TableState
from resources.postgres import rows
from resources.postgres.migrate import LOCK_NAMESPACE
from resources.postgres.queries import query


def _all(cursor: RealDictCursor, name: str, /, **values: Any) -> list[rows.Row]:
    cursor.execute(query(name), values)
    return list(cursor.fetchall())


def lease(cursor: RealDictCursor, source: str) -> LeaseView | None:
    found = _all(cursor, "lease", source=source, namespace=LOCK_NAMESPACE)
    return rows.lease_view(found[0]) if found else None


def newest(cursor: RealDictCursor, source: str, *states: BatchState) -> Cursor | None:
    """The end of the newest batch in one of these states."""
    found = _all(cursor, "cursor_at", source=source, states=[str(state) for state in states])
    return rows.cursor(found[0]) if found else None


def batches(cursor: RealDictCursor, source: str, limit: int) -> list[Batch]:
    return [rows.batch(row) for row in _all(cursor, "batches", source=source, limit=limit)]


def unfinished(cursor: RealDictCursor, source: str) -> list[Batch]:
    return [rows.batch(row) for row in _all(cursor, "unfinished", source=source)]


def live_batches(cursor: RealDictCursor, source: str, first: int, last: int) -> list[Batch]:
    found = _all(cursor, "live_batches", source=source, first=first, last=last)
    return [rows.batch(row) for row in found]


def batches_of(cursor: RealDictCursor, source: str, table: TableName) -> list[Batch]:
    found = _all(cursor, "batches_of", source=source, **rows.of_table(table))
    return [rows.batch(row) for row in found]


def segments(cursor: RealDictCursor, batch: int) -> list[Segment]:
    return [rows.segment(row) for row in _all(cursor, "segments", batch=batch)]


def source_parts(cursor: RealDictCursor, batch: int) -> list[SourcePart]:
    return [
        SourcePart(SourceTable(row["name"]), rows.files(row))
        for row in _all(cursor, "source_parts", batch=batch)
    ]


def table_states(cursor: RealDictCursor, source: str) -> dict[TableName, TableState]:
    found = [rows.table_state(row) for row in _all(cursor, "table_states", source=source)]
    return {state.table: state for state in found}


def partial(cursor: RealDictCursor, source: str) -> list[Extent]:
    return [rows.extent(row) for row in _all(cursor, "partial", source=source)]


def open_prepared(cursor: RealDictCursor, source: str) -> list[Prepared]:
    return [rows.prepared(row) for row in _all(cursor, "open_prepared", source=source)]


def ended_prepared(cursor: RealDictCursor, batch: int) -> list[Prepared]:
    return [rows.prepared(row) for row in _all(cursor, "ended_prepared", batch=batch)]


def decisions(cursor: RealDictCursor, source: str, limit: int) -> list[RecordedDecision]:
    return [rows.decision(row) for row in _all(cursor, "decisions", source=source, limit=limit)]


def open_override(cursor: RealDictCursor, source: str) -> Override | None:
    found = _all(cursor, "open_override", source=source)
    return rows.override(found[0]) if found else None


def gaps(cursor: RealDictCursor, source: str) -> list[Gap]:
    found = _all(cursor, "gaps", source=source)
    if not found:
        return []
    since, kinds = min(row["batch"] for row in found), [kind.value for kind in CLOSING]
    told = _all(cursor, "happened_to_tables", source=source, since=since, kinds=kinds)
    happened = [rows.happened(row) for row in told]
    return [with_closed(rows.gap(row), happened) for row in found]


def overlaps(cursor: RealDictCursor, source: str) -> list[Batch]:
    return [rows.batch(row) for row in _all(cursor, "overlaps", source=source)]


def lineage(cursor: RealDictCursor, source: str) -> Lineage:
    found = _all(cursor, "reigns", source=source)
    return Lineage(tuple(Reign(row["server_uuid"], row["since"]) for row in found))


def set_witnesses(cursor: RealDictCursor, source: str, batch: int) -> list[SetWitness]:
    found = _all(cursor, "set_witnesses", source=source, batch=batch)
    return [SetWitness(row["gtid"], row["committed_at"], row["digest"]) for row in found]


def capture_scopes(cursor: RealDictCursor, source: str) -> list[CaptureScope]:
    return [rows.capture_scope(row) for row in _all(cursor, "capture_scopes", source=source)]


def captured_by(cursor: RealDictCursor, source: str, dagster_run: str) -> Batch | None:
    found = _all(cursor, "captured_by", source=source, dagster_run=dagster_run)
    return rows.batch(found[0]) if found else None


def reaching(
    cursor: RealDictCursor, source: str, server_uuid: str, moment: datetime
) -> Batch | None:
    found = _all(cursor, "reaching", source=source, server_uuid=server_uuid, moment=moment)
    return rows.batch(found[0]) if found else None


def pending(cursor: RealDictCursor, source: str) -> dict[TableName, list[int]]:
    found = _all(cursor, "pending", source=source)
    return {rows.table(row): list(row["batches"]) for row in found}


def open_intents(cursor: RealDictCursor, source: str) -> list[Intent]:
    return [rows.intent(row) for row in _all(cursor, "open_intents", source=source)]


def settled(cursor: RealDictCursor, source: str, batch: int) -> list[SettledWrite]:
    found = _all(cursor, "settled", source=source, batch=batch)
    return [rows.settled_write(row) for row in found]


def last_settled(cursor: RealDictCursor, source: str, app_id: str) -> SettledWrite | None:
    found = _all(cursor, "last_settled", source=source, app_id=app_id)
    return rows.settled_write(found[0]) if found else None


def version_set(cursor: RealDictCursor, source: str, batch: int) -> list[VersionSetEntry]:
    found = _all(cursor, "version_set", source=source, batch=batch)
    return [rows.version_set_entry(row) for row in found]
