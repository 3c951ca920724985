"""How attempts ended: what is kept of it as values, and told apart from what is only shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.ports.ledger import Ledger, attempts_of, unproven_structures
from lockstep.pipeline.values.decisions import (
    STRUCTURES_KIND,
    Decision,
    Lease,
    UnprovenStructures,
)
from lockstep.pipeline.values.errors import Recovery
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from tests.ledger.made import DECISION, place

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
    attempts = [(decided[4], FAILED), (decided[2], REFUSED), (decided[0], IDLE)]
    found = attempts_of(ledger, lease.source)
    assert [(one.decided_at, one.decision) for one in found] == attempts
    assert attempts_of(ledger, lease.source, limit=2) == found[:2]
    assert [one.decision for one in ledger.decisions(lease.source)] == [
        *(FAILED, handed_over, REFUSED, DECISION, IDLE)
    ]


@pytest.mark.parametrize("recovery", Recovery)
def test_whose_move_it_is_is_kept(ledger: Ledger, lease: Lease, recovery: Recovery) -> None:
    """By its name: the ledger knows each."""
    ledger.decide(lease, replace(FAILED, recovery=recovery))
    assert [one.decision.recovery for one in attempts_of(ledger, lease.source)] == [recovery]


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
    assert (failed.decision.hint, idle.decision.head) == ("", None)


def test_the_farthest_end_of_a_log_is_kept(ledger: Ledger, lease: Lease) -> None:
    """The last file and offset that there can be, under any name."""
    head = Coordinates.parse(f"my.log-bin.2147483647:{(1 << 63) - 1}")
    ledger.decide(lease, replace(IDLE, head=head))
    assert [one.decision.head for one in attempts_of(ledger, lease.source)] == [head]
