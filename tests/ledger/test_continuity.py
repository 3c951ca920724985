"""A chain of batches that goes on elsewhere: what its decision tells, and its order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Decision, Lease
from lockstep.pipeline.values.position import SetAnchor
from lockstep.pipeline.values.table import TablePatterns
from tests.ledger.made import (
    CONTIGUOUS,
    GAP,
    ORDERS,
    OVERLAP,
    begun,
    captured_elsewhere,
    elsewhere,
    first_captured,
    following,
    record,
)
from tests.ledger.refusals import refused


@pytest.mark.parametrize("decision", [GAP, OVERLAP, CONTIGUOUS])
def test_a_batch_follows_by_decision(ledger: Ledger, lease: Lease, decision: Decision) -> None:
    """Its base goes on; it continues none, and tells what lies between."""
    first = first_captured(ledger, lease, ORDERS)
    batch = elsewhere(ledger, lease, first, decision)
    assert (batch.continued_batch, batch.previous_batch, batch.sequence_before) == (
        None,
        first.id,
        10,
    )
    assert batch.continuity is decision.continuity
    assert ledger.batches(lease.source) == [batch, first]
    assert ledger.decisions(lease.source, limit=1)[0].decision == replace(
        decision, previous_batch=first.id
    )


def test_acknowledged_in_order_over_a_gap(ledger: Ledger, lease: Lease) -> None:
    """What is followed comes first."""
    first = first_captured(ledger, lease)
    second = captured_elsewhere(ledger, lease, elsewhere(ledger, lease, first))
    ledger.mark_merged(lease)
    with refused(ledger, lease, "batches_acknowledged_in_order"):
        ledger.acknowledge(lease, second.id)
    ledger.acknowledge(lease, first.id)
    ledger.acknowledge(lease, second.id)
    cursor = ledger.cursors(lease.source).acknowledged
    assert cursor is not None
    assert (cursor.batch, cursor.position) == (second.id, second.end)


def test_the_newest_anchor_of_each_source_is_given_back(ledger: Ledger, lease: Lease) -> None:
    """Up to a batch, of live batches, that of the last transaction first."""
    kept = [
        (SetAnchor("b:7", 9), SetAnchor("a:tag:3", 8)),
        (SetAnchor("0-1-5", 0, "00000001"),),
        (SetAnchor("b:9", 12),),
    ]
    batch = begun(ledger, lease)
    for those in kept:
        ledger.record_capture(lease, batch.id, replace(record(batch), set_anchors=those))
        batch = following(ledger, lease)
    first, second, third = [one.id for one in ledger.batches(lease.source)][:0:-1]
    (last, tagged), (maria,), (newer,) = kept
    assert ledger.set_anchors(lease.source, third) == [newer, maria, tagged]
    assert ledger.set_anchors(lease.source, second) == [maria, last, tagged]
    assert ledger.set_anchors(lease.source, first - 1) == []


def test_patterns_are_kept_where_they_change(ledger: Ledger, lease: Lease) -> None:
    """From the batch on that was captured with them."""
    shop, without = TablePatterns(("shop.*",)), TablePatterns(("shop.*",), ("shop.log",))
    batch, ids = begun(ledger, lease), []
    for scope in (shop, shop, None, without, shop):
        ledger.record_capture(lease, batch.id, replace(record(batch), scope=scope))
        ids.append(batch.id)
        batch = following(ledger, lease)

    scopes = ledger.capture_scopes(lease.source)
    assert [(one.batch, one.start, one.patterns) for one in scopes] == [
        (ids[0], "binlog.000001:4", shop),
        (ids[3], "binlog.000001:304", without),
        (ids[4], "binlog.000001:404", shop),
    ]
