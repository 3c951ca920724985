"""What several batches have at once is what each of them has."""

from __future__ import annotations

from dataclasses import replace

from lockstep.pipeline.model.table_state import SnapshotPart, TableEvent, TableEventKind
from lockstep.pipeline.ports.ledger import Ledger, content_of
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.segment import RowCounts, SegmentFile
from tests.ledger.made import (
    ORDERS,
    STOCK,
    first_captured,
    following,
    merged,
    next_captured,
    place,
    record,
)


def test_a_span_has_what_its_batches_have(ledger: Ledger, lease: Lease) -> None:
    """Rows by batch and table, events, writes; nothing of batches outside of it, or abandoned."""
    source = lease.source
    first = first_captured(ledger, lease, STOCK, ORDERS)
    second = following(ledger, lease)
    truncated = TableEvent(ORDERS, TableEventKind.TRUNCATED, second.base, 1, place(150))
    read = SegmentFile("rows.parquet", 40, 4000, "a" * 64)
    reread = TableEvent(STOCK, TableEventKind.REREAD, second.base, 1, place(160), "it was asked")
    ledger.record_capture(
        lease,
        second.id,
        replace(
            record(second, ORDERS),
            events=(truncated, reread),
            snapshots=(SnapshotPart(STOCK, 1, second.base, (read,)),),
        ),
    )
    lost = next_captured(ledger, lease, STOCK)
    ledger.abandon(lease, lost.id, "damaged")
    assert [
        (rows.batch, rows.table, rows.counts, rows.images, rows.size, rows.read)
        for content in ledger.contents(source, first.id, lost.id)
        for rows in content.rows()
    ] == [
        (first.id, ORDERS, RowCounts(1, 2, 3), 10, 3000, 0),
        (first.id, STOCK, RowCounts(1, 2, 3), 10, 3000, 0),
        (second.id, ORDERS, RowCounts(1, 2, 3), 10, 3000, 0),
        (second.id, STOCK, RowCounts(), 0, 4000, 40),
    ]
    assert content_of(ledger, source, first.id).events == ()
    contents = ledger.contents(source, first.id, lost.id)
    assert [one for content in contents for one in content.events] == [truncated, reread]
    merged(ledger, lease, ORDERS, first.id, second.id, 5)
    merged(ledger, lease, STOCK, first.id, first.id, 6)
    for batch, versions in ((first.id, [5, 6]), (second.id, [5]), (lost.id, [])):
        writes = ledger.writes_within(source, batch, batch)
        assert [write.delta_version for write in writes] == versions
        assert writes == ledger.writes_within(source, batch, batch)
        assert all(write.intended_at <= write.settled_at for write in writes)
    assert ledger.contents(source, second.id + 1, lost.id) == []
