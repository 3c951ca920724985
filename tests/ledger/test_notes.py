"""What the ledger keeps of tables and of attempts: how much of a table the lake can have, how
comparisons and attempts ended, and entries in catalogs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.catalog import EntryName, RecordedEntry
from lockstep.pipeline.model.table_state import Extent, TableCondition
from lockstep.pipeline.ports.ledger import Ledger, attempts_of, unproven_structures
from lockstep.pipeline.proof.proven import ComparisonResult, EqualityProof, ProofKind
from lockstep.pipeline.values.decisions import (
    STRUCTURES_KIND,
    Attempt,
    AttemptOutcome,
    Decision,
    Lease,
    UnprovenStructures,
)
from lockstep.pipeline.values.errors import Recovery
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from tests.ledger.made import (
    DECISION,
    ORDERS,
    STOCK,
    first_captured,
    following,
    place,
    record,
    state,
)

UNSEEN = TableName("shop", "a_quiet_one")


def captured(ledger: Ledger, lease: Lease, *extents: Extent) -> int:
    """The next batch, with these."""
    batch = following(ledger, lease)
    ledger.record_capture(lease, batch.id, replace(record(batch), extents=extents))
    return batch.id


def test_the_newest_word_counts(ledger: Ledger, lease: Lease) -> None:
    """A table without a state is told of too."""
    first_captured(ledger, lease, ORDERS, STOCK)
    begin = [Extent(UNSEEN, place(4), place(9)), Extent(ORDERS, place(4)), Extent(STOCK, place(4))]
    captured(ledger, lease, *begin)
    assert ledger.partial_tables(lease.source) == begin
    captured(ledger, lease, Extent(STOCK, None), Extent(ORDERS, place(7)))
    assert ledger.partial_tables(lease.source) == [begin[0], Extent(ORDERS, place(7))]


def test_a_dropped_table_is_not_partial(ledger: Ledger, lease: Lease) -> None:
    """There is nothing that it could be a part of."""
    first_captured(ledger, lease, ORDERS, STOCK)
    batch = following(ledger, lease)
    dropped = replace(state(ORDERS), condition=TableCondition.DROPPED)
    extents = (Extent(ORDERS, place(4)), Extent(STOCK, place(4)))
    made = replace(record(batch), tables=(dropped,), extents=extents)
    ledger.record_capture(lease, batch.id, made)
    assert [one.table for one in ledger.partial_tables(lease.source)] == [STOCK]


def test_what_was_found_equal_is_whole(ledger: Ledger, lease: Lease) -> None:
    """As of the batch; a later one may say otherwise."""
    first_captured(ledger, lease, ORDERS, STOCK)
    batch = captured(ledger, lease, Extent(ORDERS, place(4)), Extent(STOCK, place(4)))
    ledger.note_complete(lease, batch, {ORDERS})
    assert [one.table for one in ledger.partial_tables(lease.source)] == [STOCK]
    captured(ledger, lease, Extent(ORDERS, place(8)))
    assert [one.table for one in ledger.partial_tables(lease.source)] == [ORDERS, STOCK]


# -- comparisons -------------------------------------------------------------------------


EQUAL = EqualityProof(ProofKind.PREFIX, 3, place(9), "a:1-5")


def test_the_newest_comparison_of_a_table_counts(ledger: Ledger, lease: Lease) -> None:
    """Of all rows and of samples, each for itself; nobody else's."""
    source = lease.source
    assert ledger.proofs(source) == []
    ledger.note_compared(
        source,
        [
            ComparisonResult(STOCK, False, EqualityProof(ProofKind.SAMPLE, 2, place(9), ""), 0),
            ComparisonResult(STOCK, True, EQUAL, 0),
            ComparisonResult(ORDERS, True, None, 7),
        ],
    )
    found = ledger.proofs(source)
    assert [(one.table, one.is_whole, one.differing_count) for one in found] == [
        (ORDERS, True, 7),
        (STOCK, True, 0),
        (STOCK, False, 0),
    ]
    assert [one.proof for one in found][:2] == [None, EQUAL]
    assert [one.proven_at == one.compared_at for one in found] == [False, True, True]
    assert ledger.proofs("another source") == []


def test_a_difference_leaves_the_last_proof(ledger: Ledger, lease: Lease) -> None:
    """How long ago it was is what somebody wants to know."""
    ledger.note_compared(lease.source, [ComparisonResult(ORDERS, True, EQUAL, 0)])
    (before,) = ledger.proofs(lease.source)
    ledger.note_compared(lease.source, [ComparisonResult(ORDERS, True, None, 2)])
    (after,) = ledger.proofs(lease.source)
    assert (after.differing_count, after.proof, after.proven_at) == (2, EQUAL, before.proven_at)
    assert after.compared_at >= before.compared_at
    again = EqualityProof(ProofKind.ROWS, 4, place(11), "a:1-6")
    ledger.note_compared(lease.source, [ComparisonResult(ORDERS, True, again, 0)])
    (mended,) = ledger.proofs(lease.source)
    assert (mended.differing_count, mended.proof) == (0, again)


def test_an_equal_sample_leaves_the_difference_of_an_earlier_one(
    ledger: Ledger, lease: Lease
) -> None:
    """It compared other rows. All rows refute it, and then samples count again."""
    equal_sample = ComparisonResult(
        ORDERS, False, EqualityProof(ProofKind.SAMPLE, 2, place(9), ""), 0
    )
    ledger.note_compared(lease.source, [ComparisonResult(ORDERS, False, None, 2)])
    different = ledger.proofs(lease.source)
    ledger.note_compared(lease.source, [equal_sample])
    assert ledger.proofs(lease.source) == different
    ledger.note_compared(lease.source, [ComparisonResult(ORDERS, False, None, 1)])
    assert [one.differing_count for one in ledger.proofs(lease.source)] == [1]
    ledger.note_compared(lease.source, [ComparisonResult(ORDERS, True, EQUAL, 0)])
    ledger.note_compared(lease.source, [equal_sample])
    assert [(one.is_whole, one.differing_count) for one in ledger.proofs(lease.source)] == [
        (True, 0),
        (False, 0),
    ]


# -- entries in catalogs -----------------------------------------------------------------


HERE, ELSEWHERE = "catalog here", "catalog elsewhere"
BEGUN = RecordedEntry(TableName("shop", "Orders"), EntryName("shop", "orders"), "file:///lake/1")
RENAMED = replace(BEGUN, new_name=EntryName("m_shop", "orders"))
MADE = replace(BEGUN, content_hash="0123456789abcdef", schema_version=3)


def test_an_entry_is_known_from_before_it_is_made(ledger: Ledger, lease: Lease) -> None:
    """As it was told last, of each catalog by itself, until it is forgotten."""
    ledger.note_registration(lease, HERE, BEGUN.table, BEGUN)
    assert ledger.registrations(lease.source, HERE).entries == {BEGUN.table: BEGUN}
    ledger.note_registration(lease, HERE, MADE.table, MADE)
    ledger.note_registration(lease, ELSEWHERE, BEGUN.table, BEGUN)
    assert ledger.registrations(lease.source, HERE).entries == {MADE.table: MADE}
    for entry in (RENAMED, MADE):
        ledger.note_registration(lease, HERE, entry.table, entry)
        assert ledger.registrations(lease.source, HERE).entries == {entry.table: entry}
    for _ in range(2):
        ledger.note_registration(lease, HERE, MADE.table, None)
    assert ledger.registrations(lease.source, HERE).entries == {}
    assert ledger.registrations(lease.source, ELSEWHERE).entries == {BEGUN.table: BEGUN}


def test_comments_were_looked_at_up_to_a_statement(ledger: Ledger, lease: Lease) -> None:
    """Of each catalog by itself."""
    assert ledger.registrations(lease.source, HERE).statement_id == 0
    for statement in (7, 12):
        ledger.note_registered_up_to(lease, HERE, statement)
    assert ledger.registrations(lease.source, HERE).statement_id == 12
    assert ledger.registrations(lease.source, ELSEWHERE).statement_id == 0


# -- how attempts ended: what is kept of it as values, apart from what is only shown -----


IDLE = Decision("idle", "nothing-to-do", "nothing was written", head=place(500, 3))
REFUSED = Decision(
    "refusal", "position-purged", "it is gone", recovery=Recovery.OPERATOR, hint="restore it"
)
FAILED = Decision("failure", "CommitConflict", "another was first", recovery=Recovery.RETRY)


def test_attempts_come_newest_first(ledger: Ledger, lease: Lease) -> None:
    """With their sentences and values; what was begun or handed over is none, nor are another
    source's."""
    handed_over = replace(DECISION, kind="recovery")
    decided = [
        ledger.decide(lease, one).decided_at
        for one in (IDLE, DECISION, REFUSED, handed_over, FAILED)
    ]
    with ledger.lock(f"{lease.source} beside", "beside", None) as beside:
        ledger.decide(beside, IDLE)
    attempts = [
        Attempt(AttemptOutcome.FAILED, decided[4], FAILED.reason, Recovery.RETRY, rule=FAILED.rule),
        Attempt(
            AttemptOutcome.REFUSED,
            decided[2],
            "it is gone",
            Recovery.OPERATOR,
            "restore it",
            rule=REFUSED.rule,
        ),
        Attempt(
            AttemptOutcome.IDLE,
            decided[0],
            "nothing was written",
            head=place(500, 3),
            rule=IDLE.rule,
        ),
    ]
    assert attempts_of(ledger, lease.source) == attempts
    assert attempts_of(ledger, lease.source, limit=2) == attempts[:2]
    assert [one.decision for one in ledger.decisions(lease.source)] == [
        *(FAILED, handed_over, REFUSED, DECISION, IDLE)
    ]


@pytest.mark.parametrize("recovery", Recovery)
def test_whose_move_it_is_is_kept(ledger: Ledger, lease: Lease, recovery: Recovery) -> None:
    """By its name: the ledger knows each."""
    ledger.decide(lease, replace(FAILED, recovery=recovery))
    assert [one.recovery for one in attempts_of(ledger, lease.source)] == [recovery]


def test_the_newest_comparison_of_structures_counts(ledger: Ledger, lease: Lease) -> None:
    """Which tables are still to be compared, and since when; none once all were."""
    assert unproven_structures(ledger, lease.source) is None
    tables = (TableName("shop", "a.b"), TableName("shop", "c"))
    for open_ in (tables[:1], tables):
        one = Decision(STRUCTURES_KIND, "structures-not-compared", "why", structures=open_)
        decided = ledger.decide(lease, one)
        ledger.decide(lease, IDLE)
        found = UnprovenStructures(frozenset(open_), decided.decided_at, "why")
        assert unproven_structures(ledger, lease.source) == found
    assert ledger.decisions(lease.source, limit=2)[1].decision.structures == tables
    ledger.decide(lease, replace(decided.decision, structures=()))
    assert unproven_structures(ledger, lease.source) is None


def test_facts_are_no_values(ledger: Ledger, lease: Lease) -> None:
    """What a decision tells of its hint and of the log's end is for whoever reads it."""
    facts = {"hint": "do", "head": "binlog.000003:900"}
    for one in (replace(FAILED, facts=facts), replace(IDLE, facts=facts, head=None)):
        ledger.decide(lease, one)
    idle, failed = attempts_of(ledger, lease.source)
    assert (failed.hint, idle.head) == ("", None)


def test_the_farthest_end_of_a_log_is_kept(ledger: Ledger, lease: Lease) -> None:
    """The last file and offset that there can be, under any name."""
    head = Coordinates.parse(f"my.log-bin.2147483647:{(1 << 63) - 1}")
    ledger.decide(lease, replace(IDLE, head=head))
    assert [one.head for one in attempts_of(ledger, lease.source)] == [head]
