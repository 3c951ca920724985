"""Changes that are kept no longer: what the ledger notes, and refuses while somebody needs them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lockstep.pipeline.model.batch import Batch, CaptureRecord
from lockstep.pipeline.ports.ledger import Consumers, Ledger, batch_content
from lockstep.pipeline.upkeep.changes import DeletionStep, PrunableRows, PruneResult
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import ConsumerRefused, LedgerRefused
from lockstep.pipeline.values.position import SetAnchor
from lockstep.pipeline.values.segment import SegmentFile, SystemTable, SystemTableSegment
from tests.ledger.consuming import ALL, NAME, given
from tests.ledger.made import ORDERS, begun, following, merged, record


def made(ledger: Ledger, lease: Lease, *, first: bool = False, **more: Any) -> int:
    """A batch with a file of `_transactions`, acknowledged."""
    batch = (begun if first else following)(ledger, lease)
    captured = replace(with_transactions(batch, first=first), **more)
    ledger.record_capture(lease, batch.id, captured)
    merged(ledger, lease, ORDERS, batch.id, batch.id, batch.id)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, batch.id)
    return batch.id


def with_transactions(batch: Batch, *, first: bool = False) -> CaptureRecord:
    file = SegmentFile(f"batch-{batch.id:012d}-v1-00000.parquet", 1, 1, "0" * 64)
    part = SystemTableSegment(SystemTable.TRANSACTIONS, (file,))
    return replace(record(batch, ORDERS, first=first), system_segments=(part,))


def test_an_abandoned_batch_is_none_of_the_eight(ledger: Ledger, source: str, lease: Lease) -> None:
    """A new ledger does not continue there, so eight others stay."""
    batches = [made(ledger, lease, first=number == 0) for number in range(10)]
    for _ in range(2):
        batch = following(ledger, lease)
        ledger.record_capture(lease, batch.id, with_transactions(batch))
        ledger.abandon(lease, batch.id, "a test")
    holders = ledger.deletable_changes(source, ledger.clock()).holders
    assert [(one.kind, one.last_unneeded_batch) for one in holders] == [
        ("recovery", batches[2] - 1)
    ]


def test_an_anchor_of_an_abandoned_batch_takes_no_place(
    ledger: Ledger, source: str, lease: Lease
) -> None:
    """The one before it is still the newest of its origin once the ledger is pruned."""
    anchors = (SetAnchor("b:7", 7), SetAnchor("b:8", 8))
    made(ledger, lease, first=True, set_anchors=anchors[:1])
    batch = following(ledger, lease)
    ledger.record_capture(lease, batch.id, replace(record(batch), set_anchors=anchors[1:]))
    ledger.abandon(lease, batch.id, "a test")
    through, *_ = [made(ledger, lease) for _ in range(9)]
    ledger.begin_deletion(lease, through)
    for step in (DeletionStep.UNLISTED, DeletionStep.DELETED):
        ledger.note_deletion_step(lease, step, through)
    ledger.prune(lease, PrunableRows.CONTENTS, 0, through, 1000)
    assert ledger.set_anchors(source, through) == [anchors[0]]


def test_changes_go_once_nobody_needs_them(
    ledger: Ledger, consumers: Consumers, source: str, lease: Lease
) -> None:
    """Eight batches stay for a new ledger, and all that a consumer has not acknowledged or a batch
    that is not acknowledged may fold; consumers begin where changes are kept; a note is followed by
    the next once its files are listed no more."""
    batches = [made(ledger, lease, first=number == 0) for number in range(12)]
    consumers.make_consumer(source, NAME, batches[1])
    later = ledger.clock() + timedelta(seconds=1)
    forgettable = ledger.deletable_changes(source, later)
    assert forgettable.last_old_batch == batches[-1]
    assert ledger.deletable_changes(source, later - timedelta(days=1)).last_old_batch == 0
    holders = {one.kind: one.last_unneeded_batch for one in forgettable.holders}
    assert holders == {"consumer": batches[1], "recovery": batches[4] - 1}
    with pytest.raises(LedgerRefused, match="forgotten_unneeded"):
        ledger.begin_deletion(lease, batches[2])
    assert ledger.deletion_notes(source).last_batch == 0

    ledger.begin_deletion(lease, batches[1])
    gone = ledger.deletion_notes(source).newest
    assert gone is not None
    assert (gone.after_batch, gone.last_batch, gone.unlisted_at, gone.is_deleted) == (
        0,
        batches[1],
        None,
        False,
    )
    files = ledger.change_files(source, gone.after_batch, gone.last_batch)
    assert {one.table for one in files} == {ORDERS, SystemTable.TRANSACTIONS}
    assert ledger.change_files(source, batches[-1], batches[-1]) == []
    delivery = given(consumers, source, ALL)
    assert delivery.first_batch == batches[2]
    consumers.ack_delivery(source, NAME, delivery.id)
    for again in (batches[2], batches[1]):
        with pytest.raises(LedgerRefused, match="forgotten_goes_on"):
            ledger.begin_deletion(lease, again)
    for _ in range(2):
        ledger.note_deletion_step(lease, DeletionStep.UNLISTED, batches[1])
    ledger.begin_deletion(lease, batches[3])
    with pytest.raises(LedgerRefused, match="forgotten_unneeded"):
        ledger.note_deletion_step(lease, DeletionStep.UNLISTED, batches[3])
        ledger.begin_deletion(lease, batches[4])
    assert [
        (one.after_batch, one.last_batch) for one in ledger.deletion_notes(source).unfinished
    ] == [
        (0, batches[1]),
        (batches[1], batches[3]),
    ]
    for _ in range(2):
        ledger.note_deletion_step(lease, DeletionStep.DELETED, batches[1])
    with pytest.raises(LedgerRefused, match="pruned_deleted"):
        ledger.prune(lease, PrunableRows.CONTENTS, batches[1], batches[3], 1000)
    later_rows = {one: batch_content(ledger, source, one).segments for one in batches[2:]}
    mirror = [f"lockstep/{source}/shop.orders/mirror/1"]
    newest = ledger.newest_writes(source, mirror)
    pruned = ledger.prune(lease, PrunableRows.CONTENTS, 0, batches[1], batches[1])
    assert pruned.deleted_rows > 0
    assert (pruned.last_id, pruned.is_complete) == (batches[1], True)
    assert ledger.prune(lease, PrunableRows.CONTENTS, 0, batches[1], 1) == PruneResult(
        0, 1, is_complete=False
    )
    ledger.note_deletion_step(lease, DeletionStep.PRUNED, batches[1])
    assert ledger.newest_writes(source, mirror) == newest
    assert {one: batch_content(ledger, source, one).segments for one in batches[2:]} == later_rows
    assert batch_content(ledger, source, batches[0]).segments == ()
    assert [one.files for one in batch_content(ledger, source, batches[1]).segments] == [()]
    assert (ledger.version_set(source, batches[0]).entries, ledger.pruned_through(source)) == (
        [],
        batches[1],
    )
    assert len(ledger.version_set(source, batches[1]).entries) == 1
    assert batch_content(ledger, source, batches[0]).system_segments == ()
    assert [one.last_batch for one in ledger.deletion_notes(source).unfinished] == [batches[3]]

    assert consumers.make_consumer(source, "early", "earliest").cursor == batches[3]
    assert consumers.make_consumer(source, "right", batches[3]).cursor == batches[3]
    with pytest.raises(ConsumerRefused) as refused:
        consumers.make_consumer(source, "late", batches[2])
    assert refused.value.rule == "consumers_start_kept"
    following(ledger, lease)
    holding = ledger.deletable_changes(source, ledger.clock()).holders
    assert ("batch", 0) in {(one.kind, one.last_unneeded_batch) for one in holding}
