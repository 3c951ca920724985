"""An operator's choices, what they leave unread, and the servers a source was read from."""

from __future__ import annotations

from dataclasses import replace

from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease, Override
from lockstep.pipeline.values.position import ServerPeriod
from tests.ledger.made import (
    CONTIGUOUS,
    DECISION,
    GAP,
    OTHER,
    OVERLAP,
    SERVER,
    captured_elsewhere,
    elsewhere,
    first_captured,
    next_captured,
    on,
    position,
)
from tests.ledger.servers import Stand


def choose(ledger: Ledger, lease: Lease, place: str = "latest") -> Override:
    return ledger.choose_start(lease, place=place, reason="the disk was lost", author="ada")


def test_a_choice_is_open_until_a_batch_was_begun_by_it(stand: Stand, source: str) -> None:
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
        stand.ledger.begin_batch(
            lease, position(4), continued_batch=None, start_decision=decided.id
        )
        assert stand.other.open_override(source) is None


def test_a_newer_choice_replaces_an_open_one(ledger: Ledger, lease: Lease) -> None:
    """And when the newer one is carried out, the older one stays replaced."""
    first = first_captured(ledger, lease)
    choose(ledger, lease, "earliest")
    newer = choose(ledger, lease, "binlog.000003:4")
    assert ledger.open_override(lease.source) == newer
    elsewhere(ledger, lease, first, replace(GAP, override=newer.id))
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
