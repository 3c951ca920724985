"""What the books keep of comparisons."""

from __future__ import annotations

from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.proof.proven import ComparisonResult, EqualityProof, ProofKind
from lockstep.pipeline.values.decisions import Lease
from tests.ledger.made import ORDERS, STOCK, place

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
