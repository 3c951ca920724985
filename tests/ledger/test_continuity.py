"""A chain of batches that goes on elsewhere: what its decision tells, and its order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Continuity, Decision, Lease
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
    next_captured,
    position,
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


def test_a_batch_follows_its_predecessor(ledger: Ledger, lease: Lease) -> None:
    """Where it starts at its end nothing has to be told; a first batch follows nothing."""
    first = first_captured(ledger, lease)
    second = next_captured(ledger, lease)
    told = [(one.previous_batch, one.continued_batch, one.continuity) for one in (first, second)]
    assert told == [(None, None, None), (first.id, first.id, None)]


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


def test_abandoned_newest_first_over_a_gap(ledger: Ledger, lease: Lease) -> None:
    """And then what was followed may be followed again, at its end or elsewhere."""
    first = first_captured(ledger, lease)
    second = elsewhere(ledger, lease, first)
    with refused(ledger, lease, "batches_abandoned_newest_first"):
        ledger.abandon(lease, first.id, "damaged")
    ledger.abandon(lease, second.id, "found unfinished")
    third = elsewhere(ledger, lease, first, OVERLAP)
    ledger.abandon(lease, third.id, "found unfinished")
    assert following(ledger, lease).previous_batch == first.id


def test_overlaps_are_told(ledger: Ledger, lease: Lease) -> None:
    """Live ones; neither gaps nor what goes on behind them."""
    first = first_captured(ledger, lease, ORDERS)
    second = elsewhere(ledger, lease, first)
    assert ledger.live_batches(lease.source, continuity=Continuity.OVERLAP) == []
    ledger.abandon(lease, second.id, "found unfinished")
    third = elsewhere(ledger, lease, first, OVERLAP)
    assert ledger.live_batches(lease.source, continuity=Continuity.OVERLAP) == [third]
    ledger.abandon(lease, third.id, "found unfinished")
    assert ledger.live_batches(lease.source, continuity=Continuity.OVERLAP) == []


def test_a_chain_goes_on_behind_a_gap(ledger: Ledger, lease: Lease) -> None:
    """The next batch starts at the end of the one that followed by decision."""
    first = first_captured(ledger, lease, ORDERS)
    second = elsewhere(ledger, lease, first)
    ledger.record_capture(lease, second.id, record(second, ORDERS, end=position(600, number=3)))
    third = following(ledger, lease)
    assert (third.continued_batch, third.previous_batch, third.sequence_before) == (
        second.id,
        second.id,
        20,
    )


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
    ledger.abandon(lease, batch.id, "x")
    ledger.abandon(lease, third, "x")
    assert ledger.set_anchors(lease.source, third) == [maria, last, tagged]


def test_patterns_are_kept_where_they_change(ledger: Ledger, lease: Lease) -> None:
    """From the batch on that was captured with them; what was abandoned never was."""
    shop, without = TablePatterns(("shop.*",)), TablePatterns(("shop.*",), ("shop.log",))
    batch, ids = begun(ledger, lease), []
    for scope in (shop, shop, None, without, shop):
        ledger.record_capture(lease, batch.id, replace(record(batch), scope=scope))
        ids.append(batch.id)
        batch = following(ledger, lease)

    def kept() -> list[tuple[int, str, TablePatterns]]:
        scopes = ledger.capture_scopes(lease.source)
        return [(one.batch, one.start, one.patterns) for one in scopes]

    first = (ids[0], "binlog.000001:4", shop)
    fourth, fifth = (ids[3], "binlog.000001:304", without), (ids[4], "binlog.000001:404", shop)
    assert kept() == [first, fourth, fifth]
    for number in (batch.id, *reversed(ids[3:])):
        ledger.abandon(lease, number, "damaged")
    assert kept() == [first]
    again = following(ledger, lease)
    ledger.record_capture(lease, again.id, replace(record(again), scope=shop))
    assert kept() == [first]
