"""Steps out of order: each is refused by name and changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.decisions import Lease
from pipeline.ports.ledger import Ledger
from pipeline.position import Position
from pipeline.schema.history import History
from pipeline.table_state import Quarantine
from tests.ledger.made import (
    DECISION,
    ORDERS,
    STOCK,
    begun,
    first_captured,
    following,
    intended,
    merged,
    newest,
    next_captured,
    position,
    record,
    segment,
    version,
)
from tests.ledger.refusals import refused

QUARANTINED = Quarantine(ORDERS, "a type is not supported", "exclude it", "binlog.000001:100")


def test_a_second_capturing_batch(ledger: Ledger, lease: Lease) -> None:
    """One batch is captured at a time."""
    first_captured(ledger, lease)
    following(ledger, lease)
    with refused(ledger, lease, "batches_(one_capturing|one_successor)"):
        following(ledger, lease)


def test_a_batch_after_one_that_is_not_captured(ledger: Ledger, lease: Lease) -> None:
    """Its predecessor has no end yet."""
    batch = begun(ledger, lease)
    with refused(ledger, lease, "batches_predecessor_captured"):
        ledger.begin_batch(lease, position(104), predecessor=batch.id, start_decision=None)


@pytest.mark.parametrize("both", [True, False])
def test_a_batch_of_two_origins_or_none(ledger: Ledger, lease: Lease, both: bool) -> None:
    """A start is explained exactly once."""
    first = first_captured(ledger, lease)
    decided = ledger.decide(lease, DECISION)
    with refused(ledger, lease, "batches_one_origin"):
        ledger.begin_batch(
            lease,
            position(104),
            predecessor=first.id if both else None,
            start_decision=decided.id if both else None,
        )


@pytest.mark.parametrize(
    "start",
    [
        position(105),
        position(103),
        position(104, number=2),
        replace(position(104), server_uuid="another"),
        replace(position(104), gtid_set=position(105).gtid_set),
    ],
)
def test_a_gap_or_an_overlap(ledger: Ledger, lease: Lease, start: Position) -> None:
    """A batch starts where its predecessor ends, in every respect."""
    first = first_captured(ledger, lease)
    with refused(ledger, lease, "batches_start_at_predecessors_end"):
        ledger.begin_batch(lease, start, predecessor=first.id, start_decision=None)


def test_a_fork(ledger: Ledger, lease: Lease) -> None:
    """Two batches do not follow the same one."""
    first = first_captured(ledger, lease)
    next_captured(ledger, lease)
    assert first.end is not None
    with refused(ledger, lease, "batches_one_successor"):
        ledger.begin_batch(lease, first.end, predecessor=first.id, start_decision=None)


def test_a_second_chain(ledger: Ledger, lease: Lease) -> None:
    """A source that was read goes on; it does not begin again beside."""
    first_captured(ledger, lease)
    decided = ledger.decide(lease, DECISION)
    with refused(ledger, lease, "batches_one_chain"):
        ledger.begin_batch(lease, position(4), predecessor=None, start_decision=decided.id)


def test_a_decision_of_another_source(ledger: Ledger, lease: Lease) -> None:
    """A decision justifies batches of its own source."""
    with ledger.lock(f"{lease.source} beside", "beside", None) as beside:
        decided = ledger.decide(beside, DECISION)
    with refused(ledger, lease, "batches_start_decision"):
        ledger.begin_batch(lease, position(4), predecessor=None, start_decision=decided.id)


def test_a_batch_of_another_source(ledger: Ledger, lease: Lease) -> None:
    """Steps are for the lease's source only."""
    batch = begun(ledger, lease)
    with ledger.lock(f"{lease.source} beside", "beside", None) as beside:
        with refused(ledger, lease, "batches_known"):
            ledger.record_capture(beside, batch.id, record(batch))
        with refused(ledger, lease, "batches_known"):
            ledger.abandon(beside, batch.id, "not ours")
        with refused(ledger, lease, "batches_known"):
            ledger.acknowledge(beside, batch.id)


def test_a_capture_recorded_twice(ledger: Ledger, lease: Lease) -> None:
    """A captured batch keeps its segments and its end."""
    batch = first_captured(ledger, lease, ORDERS)
    with refused(ledger, lease, "batches_(end_stays|move_forward)"):
        ledger.record_capture(lease, batch.id, record(batch))
    with refused(ledger, lease, "segments_while_capturing"):
        ledger.record_capture(lease, batch.id, record(batch, ORDERS))


def test_a_batch_that_ends_before_its_start(ledger: Ledger, lease: Lease) -> None:
    """The log goes on."""
    batch = begun(ledger, lease)
    with refused(ledger, lease, "batches_end_not_before_start"):
        ledger.record_capture(lease, batch.id, record(batch, end=position(3)))


@pytest.mark.parametrize(("first", "last"), [(0, 9), (2, 11)])
def test_sequences_outside_the_batch(ledger: Ledger, lease: Lease, first: int, last: int) -> None:
    """No two batches share a sequence."""
    batch = begun(ledger, lease)
    outside = replace(record(batch, ORDERS, first=True), segments=(segment(ORDERS, first, last),))
    with refused(ledger, lease, "batches_sequences_within"):
        ledger.record_capture(lease, batch.id, outside)


def test_a_segment_of_an_unknown_table_or_version(ledger: Ledger, lease: Lease) -> None:
    """Both are recorded with it at the latest."""
    batch = begun(ledger, lease)
    with refused(ledger, lease, "segments_table"):
        ledger.record_capture(lease, batch.id, record(batch, ORDERS))
    with refused(ledger, lease, "segments_version"):
        ledger.record_capture(
            lease, batch.id, replace(record(batch, ORDERS, first=True), history=History())
        )


@pytest.mark.parametrize(("number", "rule"), [(1, "pk"), (3, "no_gap")])
def test_versions_out_of_turn(ledger: Ledger, lease: Lease, number: int, rule: str) -> None:
    """A table's versions are 1, 2, 3 …, each recorded once."""
    first_captured(ledger, lease, ORDERS)
    batch = following(ledger, lease)
    wrong = replace(record(batch), history=History(versions=(version(ORDERS, number),)))
    with refused(ledger, lease, f"table_versions_{rule}"):
        ledger.record_capture(lease, batch.id, wrong)


def test_setting_an_unknown_table_aside(ledger: Ledger, lease: Lease) -> None:
    """Its state is recorded first."""
    with refused(ledger, lease, "table_states_known"):
        ledger.quarantine(lease, QUARANTINED)


def test_acknowledging_what_is_not_merged(ledger: Ledger, lease: Lease) -> None:
    """Capturing, captured and abandoned batches are not acknowledged."""
    batch = begun(ledger, lease)
    with refused(ledger, lease, "batches_(move_forward|end_recorded)"):
        ledger.acknowledge(lease, batch.id)
    ledger.record_capture(lease, batch.id, record(batch))
    with refused(ledger, lease, "batches_move_forward"):
        ledger.acknowledge(lease, batch.id)
    ledger.abandon(lease, batch.id, "damaged")
    with refused(ledger, lease, "batches_move_forward"):
        ledger.acknowledge(lease, batch.id)


def test_acknowledging_twice_and_out_of_order(ledger: Ledger, lease: Lease) -> None:
    """The predecessor comes first, and each once."""
    first = first_captured(ledger, lease)
    second = next_captured(ledger, lease)
    ledger.mark_merged(lease)
    with refused(ledger, lease, "batches_acknowledged_in_order"):
        ledger.acknowledge(lease, second.id)
    ledger.acknowledge(lease, first.id)
    with refused(ledger, lease, "batches_move_forward"):
        ledger.acknowledge(lease, first.id)


def test_abandoning_below_a_later_batch(ledger: Ledger, lease: Lease) -> None:
    """The newest goes first."""
    first = first_captured(ledger, lease)
    following(ledger, lease)
    with refused(ledger, lease, "batches_abandoned_newest_first"):
        ledger.abandon(lease, first.id, "damaged")


@pytest.mark.parametrize("settled", [True, False])
def test_abandoning_what_a_write_covers(ledger: Ledger, lease: Lease, settled: bool) -> None:
    """An open write may be in the lake already, a settled one is."""
    batch = first_captured(ledger, lease, ORDERS, STOCK)
    intent = intended(ledger, lease, ORDERS, batch.id, batch.id)
    if settled:
        ledger.settle(lease, intent, 1)
    with refused(ledger, lease, "batches_abandoned_unmerged"):
        ledger.abandon(lease, batch.id, "damaged")


def test_abandoning_what_is_merged(ledger: Ledger, lease: Lease) -> None:
    """Merged batches stay."""
    batch = first_captured(ledger, lease)
    ledger.mark_merged(lease)
    with refused(ledger, lease, "batches_move_forward"):
        ledger.abandon(lease, batch.id, "damaged")


def test_a_second_open_intent(ledger: Ledger, lease: Lease) -> None:
    """A table has one open write; another table may have its own."""
    batch = first_captured(ledger, lease, ORDERS, STOCK)
    intended(ledger, lease, ORDERS, batch.id, batch.id)
    intended(ledger, lease, STOCK, batch.id, batch.id)
    with refused(ledger, lease, "writes_one_open"):
        intended(ledger, lease, ORDERS, batch.id, batch.id)


def test_merging_a_batch_twice(ledger: Ledger, lease: Lease) -> None:
    """A settled write's batches are not part of another one."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    merged(ledger, lease, ORDERS, first.id, first.id, 0)
    second = next_captured(ledger, lease, ORDERS)
    with refused(ledger, lease, "writes_never_overlap"):
        intended(ledger, lease, ORDERS, first.id, second.id)


def test_intents_that_have_nothing_to_merge(ledger: Ledger, lease: Lease) -> None:
    """The table is known and active, the batches captured and ascending."""
    first = first_captured(ledger, lease, ORDERS)
    second = next_captured(ledger, lease, ORDERS)
    with refused(ledger, lease, "writes_table"):
        intended(ledger, lease, STOCK, first.id, first.id)
    with refused(ledger, lease, "writes_batches_ascend"):
        intended(ledger, lease, ORDERS, second.id, first.id)
    capturing = following(ledger, lease)
    with refused(ledger, lease, "writes_of_captured_batches"):
        intended(ledger, lease, ORDERS, first.id, capturing.id)


def test_an_intent_for_a_table_quarantined(ledger: Ledger, lease: Lease) -> None:
    """It is not written any more."""
    batch = first_captured(ledger, lease, ORDERS)
    ledger.quarantine(lease, QUARANTINED)
    with refused(ledger, lease, "writes_of_active_tables"):
        intended(ledger, lease, ORDERS, batch.id, batch.id)


def test_settling_otherwise(ledger: Ledger, lease: Lease) -> None:
    """A settled write keeps its version, and versions only go up."""
    first = first_captured(ledger, lease, ORDERS)
    intent = merged(ledger, lease, ORDERS, first.id, first.id, 5)
    with refused(ledger, lease, "writes_settled_once"):
        ledger.settle(lease, intent, 6)
    with refused(ledger, lease, "writes_known"):
        ledger.settle(lease, replace(intent, txn_version=0), 7)
    second = next_captured(ledger, lease, ORDERS)
    later = intended(ledger, lease, ORDERS, second.id, second.id)
    with refused(ledger, lease, "writes_delta_version_ascends"):
        ledger.settle(lease, later, 4)
    assert newest(ledger, lease) == second
