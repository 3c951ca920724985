"""What the ledger is told: one function a step, given a cursor of a fenced transaction.

Does not belong here: connections, and the rules of order, which the schema holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from psycopg2.extras import RealDictCursor, execute_values

from pipeline.batch import Batch, BatchKind, CaptureRecord
from pipeline.decisions import Decision, Lease, Override, RecordedDecision
from pipeline.errors import LeaseLost
from pipeline.intent import Intent
from pipeline.position import Position
from pipeline.segment import Segment, SourcePart
from pipeline.table import TableName
from pipeline.table_state import Extent, SetAside, TableState
from resources.ledger_rules import as_told, refusal
from resources.postgres import history, rows
from resources.postgres.orders import carry_out
from resources.postgres.queries import query

_PAGE: Final = 1000
"""Rows that one statement inserts."""


def _one(cursor: RealDictCursor, name: str, /, **values: Any) -> rows.Row | None:
    cursor.execute(query(name), values)
    return cursor.fetchone()


def _made(cursor: RealDictCursor, name: str, /, **values: Any) -> rows.Row:
    cursor.execute(query(name), values)
    (row,) = cursor.fetchall()
    return row


def _changed(cursor: RealDictCursor, name: str, rule: str, /, **values: Any) -> None:
    """Run an update that must find its row, or refuse by `rule`."""
    cursor.execute(query(name), values)
    if cursor.rowcount == 0:
        raise refusal(rule)


def fence(cursor: RealDictCursor, lease: Lease) -> None:
    """Keep others from taking the source over until this transaction ends, or
    `LeaseLost` when somebody has."""
    row = _one(cursor, "fence", source=lease.source)
    if row is None or row["token"] != lease.token:
        raise LeaseLost(
            f"Another run took over the source {lease.source!r}; "
            "nothing of this one was recorded after that.",
            hint="Let the other run finish; `lockstep status` shows it.",
        )


def decide(cursor: RealDictCursor, lease: Lease, decision: Decision) -> RecordedDecision:
    values = rows.of_decision(decision)
    return rows.decision(_made(cursor, "decide", source=lease.source, token=lease.token, **values))


def note_gtids_off(cursor: RealDictCursor, lease: Lease) -> None:
    cursor.execute(query("note_gtids_off"), {"source": lease.source})


def choose_start(
    cursor: RealDictCursor, lease: Lease, *, place: str, reason: str, author: str
) -> Override:
    values = {"place": place, "reason": reason, "author": author}
    row = _made(cursor, "choose_start", source=lease.source, token=lease.token, **values)
    return rows.override(row)


def begin_batch(
    cursor: RealDictCursor,
    lease: Lease,
    start: Position,
    predecessor: int | None,
    start_decision: int | None,
    kind: BatchKind,
) -> Batch:
    row = _made(
        cursor,
        "begin_batch",
        source=lease.source,
        token=lease.token,
        predecessor=predecessor,
        start_decision=start_decision,
        kind=kind.value,
        **rows.of_position(start),
    )
    return rows.batch(row)


def record_capture(cursor: RealDictCursor, lease: Lease, batch: int, record: CaptureRecord) -> None:
    for order in record.orders_done:
        carry_out(cursor, lease, batch, order)
    for state in record.tables:
        told = rows.of_state(as_told(state, batch, record.end.at))
        cursor.execute(query("record_state"), {"source": lease.source, **told})
    history.record_history(cursor, lease.source, batch, record)
    for segment in record.segments:
        _record_segment(cursor, lease, batch, segment)
    for part in record.source_parts:
        _record_source_part(cursor, lease, batch, part)
    for handover in record.handovers:
        values = {"source": lease.source, "batch": batch, **rows.of_handover(handover)}
        cursor.execute(query("record_handover"), values)
    history.record_events(cursor, lease.source, batch, record)
    record_extents(cursor, lease, batch, record.extents)
    for aside in record.set_aside:
        set_aside(cursor, lease, aside, batch)
    _record_prepared(cursor, lease, batch, record)
    if record.scope is not None:
        values = {"source": lease.source, "batch": batch, **rows.of_scope(record.scope)}
        cursor.execute(query("record_scope"), values)
    for ordinal, one in enumerate(record.set_witnesses):
        values = {"source": lease.source, "batch": batch, "ordinal": ordinal}
        cursor.execute(query("record_set_witness"), {**values, **rows.of_set_witness(one)})
    values = rows.of_capture(record)
    _changed(cursor, "batch_captured", "batches_known", source=lease.source, batch=batch, **values)


def record_extents(
    cursor: RealDictCursor, lease: Lease, batch: int, extents: Sequence[Extent]
) -> None:
    values = [(lease.source, batch, *rows.of_extent(one)) for one in extents]
    execute_values(cursor, query("record_extents"), values, page_size=_PAGE)


def _record_segment(cursor: RealDictCursor, lease: Lease, batch: int, segment: Segment) -> None:
    values = rows.of_segment(segment)
    row = _made(cursor, "record_segment", source=lease.source, batch=batch, **values)
    for ordinal, file in enumerate(segment.files):
        values = {"segment": row["id"], "ordinal": ordinal, **rows.of_file(file)}
        cursor.execute(query("record_file"), values)


def _record_source_part(cursor: RealDictCursor, lease: Lease, batch: int, part: SourcePart) -> None:
    of = {"source": lease.source, "batch": batch, "name": part.table.value}
    for ordinal, file in enumerate(part.files):
        values = {**of, "ordinal": ordinal, **rows.of_file(file)}
        cursor.execute(query("record_source_file"), values)


def _record_prepared(
    cursor: RealDictCursor, lease: Lease, batch: int, record: CaptureRecord
) -> None:
    """Ends come first: an XID that one of them frees may be prepared again."""
    for ended in record.ended:
        _changed(
            cursor,
            "record_end",
            "prepared_known",
            source=lease.source,
            ended_by=batch,
            committed=ended.committed,
            **rows.of_prepared(ended.prepared),
        )
    for prepared in record.prepared:
        values = {"source": lease.source, **rows.of_prepared(prepared)}
        cursor.execute(query("record_prepared"), values)


def abandon(cursor: RealDictCursor, lease: Lease, batch: int, reason: str) -> None:
    _changed(cursor, "abandon", "batches_known", source=lease.source, batch=batch, reason=reason)


def set_aside(
    cursor: RealDictCursor, lease: Lease, aside: SetAside, batch: int | None = None
) -> None:
    """In the capture of that batch, or outside of one. Repeating it changes nothing."""
    values = {"source": lease.source, **rows.of_set_aside(aside)}
    cursor.execute(query("set_aside"), {**values, "batch": batch})
    if cursor.rowcount == 0:
        _changed(cursor, "table_exists", "table_states_known", **values)
    if batch is None:
        cursor.execute(query("give_up"), values)


def open_intent(
    cursor: RealDictCursor,
    lease: Lease,
    table: TableName,
    *,
    app_id: str,
    first_batch: int,
    last_batch: int,
    step: str,
) -> Intent:
    row = _made(
        cursor,
        "open_intent",
        source=lease.source,
        token=lease.token,
        app_id=app_id,
        first_batch=first_batch,
        last_batch=last_batch,
        step=step,
        **rows.of_table(table),
    )
    return rows.intent(row)


def settle(
    cursor: RealDictCursor, lease: Lease, intent: Intent, delta_version: int, shows: int | None
) -> None:
    """Settling again at the same version changes nothing."""
    values = {
        "source": lease.source,
        "id": intent.id,
        "app_id": intent.app_id,
        "txn_version": intent.txn_version,
    }
    cursor.execute(query("settle"), {**values, "delta_version": delta_version})
    if cursor.rowcount == 0:
        _changed(cursor, "intent_exists", "writes_known", **values)
    elif shows is not None:
        values = {"source": lease.source, **rows.of_table(intent.table), "version": shows}
        cursor.execute(query("shows"), values)


def mark_merged(cursor: RealDictCursor, lease: Lease) -> list[int]:
    cursor.execute(query("mark_merged"), {"source": lease.source})
    return sorted(row["id"] for row in cursor.fetchall())


def acknowledge(cursor: RealDictCursor, lease: Lease, batch: int) -> None:
    _changed(cursor, "acknowledge", "batches_known", source=lease.source, batch=batch)
    cursor.execute(query("record_version_set"), {"source": lease.source, "batch": batch})


def renew_mirror(cursor: RealDictCursor, lease: Lease, table: TableName, mirror: str) -> TableState:
    values = {"source": lease.source, **rows.of_table(table), "mirror": mirror}
    row = _one(cursor, "renew_mirror", **values)
    if row is None:
        raise refusal("table_states_known")
    return rows.table_state(row)


def give_up(cursor: RealDictCursor, lease: Lease, table: TableName) -> None:
    cursor.execute(query("give_up"), {"source": lease.source, **rows.of_table(table)})


def end_mirror(cursor: RealDictCursor, lease: Lease, table: TableName) -> None:
    """Once done, doing it again changes nothing."""
    values = {"source": lease.source, **rows.of_table(table)}
    cursor.execute(query("end_mirror"), values)
    if cursor.rowcount == 0:
        _changed(cursor, "mirror_ended", "table_states_dropped", **values)
