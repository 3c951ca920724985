"""Files of a source's own tables, recorded with the batch that wrote them."""

from __future__ import annotations

from dataclasses import replace

from lockstep.pipeline.ports.ledger import Ledger, content_of
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.segment import SegmentFile, SourcePart, SourceTable
from tests.ledger.made import ORDERS, first_captured, following, record

FILES = (
    SegmentFile("0.parquet", 5, 1000, "0" * 64),
    SegmentFile("1.parquet", 7, 2000, "f" * 64),
)
DDL = SourcePart(SourceTable.DDL, FILES[:1])
TRANSACTIONS = SourcePart(SourceTable.TRANSACTIONS, FILES)


def test_parts_are_given_back_by_name(ledger: Ledger, lease: Lease) -> None:
    """Each with its files in order; a batch without has none."""
    first = first_captured(ledger, lease, ORDERS)
    batch = following(ledger, lease)
    made = replace(record(batch), source_parts=(TRANSACTIONS, DDL))
    ledger.record_capture(lease, batch.id, made)
    assert list(content_of(ledger, lease.source, batch.id).source_parts) == [DDL, TRANSACTIONS]
    assert content_of(ledger, lease.source, first.id).source_parts == ()
