"""A chain of batches that goes on elsewhere: what its decision tells, by which choice of an
operator's, what is left unread, from which server; and mirrors that go to other tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.table_state import (
    Handover,
    TableCondition,
    TableEvent,
    TableEventKind,
    TableState,
)
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.values.decisions import Decision, Lease, Override
from lockstep.pipeline.values.position import ServerPeriod, SetAnchor
from lockstep.pipeline.values.table import TablePatterns
from tests.ledger.made import (
    CONTIGUOUS,
    DECISION,
    GAP,
    ORDERS,
    OTHER,
    OVERLAP,
    SERVER,
    STOCK,
    begun,
    begun_write,
    captured_elsewhere,
    elsewhere,
    first_captured,
    following,
    merged,
    next_captured,
    on,
    place,
    position,
    record,
    version,
)
from tests.ledger.servers import Stand


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


# -- an operator's choices, gaps, and servers --------------------------------------------


def choose(ledger: Ledger, lease: Lease, place: str = "latest") -> Override:
    return ledger.choose_start(lease, place=place, reason="the disk was lost", author="ada")


def test_a_choice_is_open_until_a_batch_that_began_there_is_captured(
    stand: Stand, source: str
) -> None:
    """One shot; others see it at once."""
    with stand.ledger.lock(source, "a test", None) as lease:
        choice = choose(stand.ledger, lease)
        assert (choice.place, choice.reason, choice.author) == (
            "latest",
            "the disk was lost",
            "ada",
        )
        assert stand.other.open_override(source) == choice
        stand.ledger.decide(lease, replace(DECISION, override=choice.id))
        assert stand.other.open_override(source) == choice
        decided = stand.ledger.decide(lease, replace(DECISION, override=choice.id))
        batch = stand.ledger.begin_batch(
            lease, position(4), continued_batch=None, start_decision=decided.id
        )
        assert stand.other.open_override(source) == choice
        assert stand.ledger.open_override(source) == choice
        stand.ledger.record_capture(lease, batch.id, record(batch, first=True))
        assert stand.other.open_override(source) is None
        assert stand.ledger.open_override(source) is None


def test_a_newer_choice_replaces_an_open_one(ledger: Ledger, lease: Lease) -> None:
    """And when the newer one is carried out, the older one stays replaced."""
    first = first_captured(ledger, lease)
    choose(ledger, lease, "earliest")
    newer = choose(ledger, lease, "binlog.000003:4")
    assert ledger.open_override(lease.source) == newer
    captured_elsewhere(
        ledger, lease, elsewhere(ledger, lease, first, replace(GAP, override=newer.id))
    )
    assert ledger.open_override(lease.source) is None


def test_gaps_name_place_tables_and_author(ledger: Ledger, lease: Lease) -> None:
    """From the end of the batch before to the start of the one that went on, oldest first;
    overlaps and contiguous starts are none."""
    first = first_captured(ledger, lease)
    second = captured_elsewhere(ledger, lease, elsewhere(ledger, lease, first))
    third = captured_elsewhere(
        ledger, lease, elsewhere(ledger, lease, second, OVERLAP), position(600, number=3)
    )
    later = replace(GAP, reason="again", gap_tables=("shop.orders",))
    fourth = elsewhere(ledger, lease, third, later, position(4, number=9))
    recorded = [
        decision for decision in ledger.decisions(lease.source) if decision.decision.gap_tables
    ]
    expected = [
        ("the disk was lost", second, "binlog.000001:104", "binlog.000003:4", GAP.gap_tables),
        ("again", fourth, "binlog.000003:600", "binlog.000009:4", ("shop.orders",)),
    ]
    assert ledger.gaps(lease.source) == [
        Gap(made.id, batch.id, made.decided_at, "ada", reason, tables, begin, end)
        for made, (reason, batch, begin, end, tables) in zip(
            reversed(recorded), expected, strict=True
        )
    ]


def test_the_lineage_names_each_server_in_its_turn(ledger: Ledger, lease: Lease) -> None:
    """From A to B and back; batches that stay on a server add nothing."""
    first = first_captured(ledger, lease)
    second = next_captured(ledger, lease)
    again = elsewhere(ledger, lease, second, CONTIGUOUS, on(OTHER, position(4)))
    there = captured_elsewhere(ledger, lease, again, on(OTHER, position(300)))
    back = elsewhere(ledger, lease, there, CONTIGUOUS, position(4, number=5))
    assert ledger.server_periods(lease.source) == (
        ServerPeriod(SERVER, first.id),
        ServerPeriod(OTHER, there.id),
        ServerPeriod(SERVER, back.id),
    )


# -- mirrors, and parts of a gap, that go to other tables --------------------------------


def settle(ledger: Ledger, lease: Lease) -> None:
    """Orders and stock, merged at 6 and 7 and acknowledged; each mirror shows version 1."""
    batch = first_captured(ledger, lease, ORDERS, STOCK)
    for table, delta_version in ((ORDERS, 6), (STOCK, 7)):
        app_id = f"{lease.source}/{table}/1"
        intent = begun_write(ledger, lease, table, app_id, batch.id, batch.id)
        ledger.settle(lease, intent, delta_version, schema_version=1)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, batch.id)


def _handed(before: TableState, mirror: str, at: int, shows: int) -> Handover:
    return Handover(before.table, before.generation + 1, mirror, at, shows, before)


def _states(*handed: Handover) -> tuple[TableState, ...]:
    return tuple(
        replace(
            one.state_before,
            generation=one.generation,
            mirror=one.mirror,
            condition=TableCondition.FOLLOWING,
        )
        for one in handed
    )


def swap(ledger: Ledger, lease: Lease, batch: Batch) -> None:
    """Orders and stock, with new versions of both."""
    states = ledger.table_states(lease.source)
    handed = (
        _handed(states[ORDERS], states[STOCK].mirror, 7, 2),
        _handed(states[STOCK], states[ORDERS].mirror, 6, 2),
    )
    history = BatchHistory(versions=(version(ORDERS, 2, 150), version(STOCK, 2, 150)))
    made = replace(record(batch), history=history, handovers=handed, tables=_states(*handed))
    ledger.record_capture(lease, batch.id, made)


def test_tables_go_on_with_mirrors_of_before(ledger: Ledger, lease: Lease) -> None:
    """Each in its next generation, from the Delta version and the version that it shows."""
    settle(ledger, lease)
    before = ledger.table_states(lease.source)
    swap(ledger, lease, following(ledger, lease))
    states = ledger.table_states(lease.source)
    assert states[ORDERS] == replace(
        before[ORDERS],
        generation=2,
        mirror=before[STOCK].mirror,
        mirror_schema_version=2,
        adopted_version=7,
    )
    assert states[STOCK] == replace(
        before[STOCK],
        generation=2,
        mirror=before[ORDERS].mirror,
        mirror_schema_version=2,
        adopted_version=6,
    )


def test_a_gaps_parts_go_with_the_rows_and_close_by_events(ledger: Ledger, lease: Lease) -> None:
    """Orders and stock exchange their names behind a gap; what is emptied then is the part of the
    other. Only an acknowledged batch closes anything."""
    settle(ledger, lease)
    (first,) = ledger.batches(lease.source)
    swapping = elsewhere(ledger, lease, first, start=position(104))
    history = BatchHistory(versions=(version(ORDERS, 2, 150), version(STOCK, 2, 150)))
    copied, at = TableEventKind.COPIED, place(150)
    events = (
        TableEvent(ORDERS, copied, swapping.sequence_before, 2, at, "it was called stock", STOCK),
        TableEvent(STOCK, copied, swapping.sequence_before, 2, at, "it was called orders", ORDERS),
    )
    made = replace(record(swapping), history=history, events=events)
    ledger.record_capture(lease, swapping.id, made)
    last = following(ledger, lease)
    emptied = TableEvent(ORDERS, TableEventKind.TRUNCATED, last.sequence_before, 2, place(210))
    ledger.record_capture(lease, last.id, replace(record(last), events=(emptied,)))
    for table in (ORDERS, STOCK):
        merged(ledger, lease, table, swapping.id, swapping.id, 8)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, last.id - 1)
    (gap,) = ledger.gaps(lease.source)
    assert gap.closed == {}
    merged(ledger, lease, ORDERS, last.id, last.id, 9)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, last.id)
    (gap,) = ledger.gaps(lease.source)
    (done, *_) = ledger.batches(lease.source)
    assert done.acknowledged_at is not None
    [(part, event)] = gap.closed.items()
    assert (part, event.kind, event.table) == (str(STOCK), TableEventKind.TRUNCATED, str(ORDERS))
    assert (event.batch, event.at) == (last.id, done.acknowledged_at)
    assert gap.open_tables == (str(ORDERS),)


def test_a_gaps_part_is_closed_by_a_comparison(ledger: Ledger, lease: Lease) -> None:
    """Once its batch is acknowledged, and as of its end; one that was not equal stays open, and a
    comparison of before the gap tells nothing."""
    first = first_captured(ledger, lease)
    last = captured_elsewhere(ledger, lease, elsewhere(ledger, lease, first))
    ledger.note_complete(lease, first.id, {STOCK})
    ledger.note_complete(lease, last.id, {ORDERS})
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, first.id)
    (gap,) = ledger.gaps(lease.source)
    assert gap.closed == {}
    ledger.acknowledge(lease, last.id)
    (gap,) = ledger.gaps(lease.source, last.id)
    assert ledger.gaps(lease.source, first.id) == []
    assert (gap.closed[str(ORDERS)].kind, gap.closed[str(ORDERS)].batch) == (None, last.id)
    assert gap.open_tables == (str(STOCK),)
