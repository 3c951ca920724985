"""Prepared XA transactions, as every ledger keeps them from their batch to their end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.model.batch import (
    Batch,
    BatchState,
    EndedTransaction,
    PreparedTransaction,
    WaitingFile,
    Xid,
)
from lockstep.pipeline.ports.ledger import Ledger, batch_content
from lockstep.pipeline.values.decisions import Lease
from tests.ledger.made import (
    ORDERS,
    begun,
    following,
    newest,
    prepared,
    record,
)
from tests.ledger.refusals import refused
from tests.ledger.servers import Stand

FILE = WaitingFile("batch-000000000001-00001.events", 5_000_000_000, "a" * 64, bytes(range(32)))


def captured(
    ledger: Ledger, lease: Lease, *gtrids: bytes, ended: tuple[EndedTransaction, ...] = ()
) -> tuple[PreparedTransaction, ...]:
    """The next batch (the first, where there is none), with these transactions prepared."""
    batch = following(ledger, lease) if ledger.batches(lease.source) else begun(ledger, lease)
    made = tuple(prepared(batch, gtrid, FILE) for gtrid in gtrids)
    ledger.record_capture(
        lease,
        batch.id,
        replace(record(batch), prepared_transactions=made, ended_transactions=ended),
    )
    return made


def test_they_are_given_back_as_recorded(stand: Stand, source: str) -> None:
    """In the order of their prepares, any bytes in their XIDs, with a file or without."""
    with stand.ledger.lock(source, "writer", None) as lease:
        batch = begun(stand.ledger, lease)
        made = (
            prepared(batch, b"b", FILE),
            prepared(batch, b"a"),
            PreparedTransaction(Xid(2**31 - 1, b"", b""), batch.id, "binlog.000001:60", FILE),
            PreparedTransaction(
                Xid(-(2**31), b"'\\\x00" * 21, b"\xff" * 64), batch.id, "x:4", None
            ),
        )
        recorded = replace(record(batch, ORDERS, first=True), prepared_transactions=made)
        stand.ledger.record_capture(lease, batch.id, recorded)
        assert stand.ledger.open_prepared(source) == list(made)
        assert stand.other.open_prepared(source) == list(made)


def test_they_stay_open_over_batches(ledger: Ledger, lease: Lease) -> None:
    """Whatever happens to the batch that read them, later ones add theirs."""
    first = captured(ledger, lease, b"a")
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, first[0].batch)
    second = captured(ledger, lease, b"b")
    captured(ledger, lease)
    assert ledger.open_prepared(lease.source) == [*first, *second]


@pytest.mark.parametrize("committed", [True, False])
def test_one_that_is_ended_is_open_no_longer(ledger: Ledger, lease: Lease, committed: bool) -> None:
    """Committed or rolled back; the others stay."""
    a, b = captured(ledger, lease, b"a", b"b")
    captured(ledger, lease)
    captured(ledger, lease, ended=(EndedTransaction(a, committed),))
    assert ledger.open_prepared(lease.source) == [b]


def test_an_xid_is_used_again(ledger: Ledger, lease: Lease) -> None:
    """By the batch that ends it, and by later ones."""
    (first,) = captured(ledger, lease, b"a")
    (second,) = captured(ledger, lease, b"a", ended=(EndedTransaction(first, committed=True),))
    assert ledger.open_prepared(lease.source) == [second]
    captured(ledger, lease, ended=(EndedTransaction(second, committed=False),))
    (fourth,) = captured(ledger, lease, b"a")
    assert ledger.open_prepared(lease.source) == [fourth]


def test_an_abandoned_batch_takes_what_it_prepared_with_it(ledger: Ledger, lease: Lease) -> None:
    """It will be read again, by the batch that begins there anew."""
    captured(ledger, lease)
    captured(ledger, lease, b"a")
    ledger.abandon(lease, newest(ledger, lease).id, "damaged")
    assert ledger.open_prepared(lease.source) == []
    again = captured(ledger, lease, b"a")
    assert ledger.open_prepared(lease.source) == list(again)


def test_an_abandoned_batch_opens_what_it_ended(ledger: Ledger, lease: Lease) -> None:
    """Also where it used the same XID again; the next one may end it otherwise."""
    a, b = captured(ledger, lease, b"a", b"b")
    ended = (EndedTransaction(a, committed=True), EndedTransaction(b, committed=False))
    captured(ledger, lease, b"a", ended=ended)
    ledger.abandon(lease, newest(ledger, lease).id, "damaged")
    assert ledger.open_prepared(lease.source) == [a, b]
    captured(ledger, lease, ended=(EndedTransaction(a, committed=False),))
    assert ledger.open_prepared(lease.source) == [b]


def test_batches_are_abandoned_down_to_the_one_that_prepared(ledger: Ledger, lease: Lease) -> None:
    """What a later live batch ended cannot be abandoned before that one."""
    (a,) = captured(ledger, lease, b"a")
    captured(ledger, lease, ended=(EndedTransaction(a, committed=True),))
    with refused(ledger, lease, "batches_abandoned_newest_first"):
        ledger.abandon(lease, a.batch, "damaged")
    ledger.abandon(lease, newest(ledger, lease).id, "damaged")
    assert ledger.open_prepared(lease.source) == [a]
    ledger.abandon(lease, a.batch, "damaged")
    assert ledger.open_prepared(lease.source) == []


def test_a_batch_knows_what_it_ended(ledger: Ledger, lease: Lease) -> None:
    """Committed or rolled back, in the order of their prepares, until it is abandoned."""
    a, b, c = captured(ledger, lease, b"a", b"b", b"c")
    captured(ledger, lease, ended=(EndedTransaction(b, committed=True),))
    first = newest(ledger, lease).id
    captured(
        ledger,
        lease,
        ended=(EndedTransaction(c, committed=False), EndedTransaction(a, committed=True)),
    )
    second = newest(ledger, lease).id
    assert [
        batch_content(ledger, lease.source, of).ended_transactions
        for of in (a.batch, first, second)
    ] == [
        (),
        (b,),
        (a, c),
    ]
    ledger.abandon(lease, second, "damaged")
    assert batch_content(ledger, lease.source, second).ended_transactions == ()


def test_sources_share_no_xids(ledger: Ledger, lease: Lease) -> None:
    """Each has its own open ones, and ends only those."""
    (ours,) = captured(ledger, lease, b"a")
    with ledger.lock(f"{lease.source} beside", "beside", None) as beside:
        (theirs,) = captured(ledger, beside, b"a")
        assert ledger.open_prepared(beside.source) == [theirs]
        with refused(ledger, lease, "prepared_known"):
            captured(ledger, beside, ended=(EndedTransaction(ours, committed=True),))
    assert ledger.open_prepared(lease.source) == [ours]


# -- refused -------------------------------------------------------------------------


def _record(
    ledger: Ledger,
    lease: Lease,
    batch: Batch,
    *made: PreparedTransaction,
    ended: tuple[EndedTransaction, ...] = (),
) -> None:
    ledger.record_capture(
        lease,
        batch.id,
        replace(record(batch), prepared_transactions=made, ended_transactions=ended),
    )


def test_an_end_without_a_prepare(ledger: Ledger, lease: Lease) -> None:
    """Neither of an XID never seen, nor of one that another batch prepared."""
    (a,) = captured(ledger, lease, b"a")
    batch = following(ledger, lease)
    for unknown in (prepared(batch, b"a"), replace(a, xid=replace(a.xid, format_id=1))):
        with refused(ledger, lease, "prepared_known"):
            _record(ledger, lease, batch, ended=(EndedTransaction(unknown, committed=True),))


def test_a_refused_capture_ends_nothing(ledger: Ledger, lease: Lease) -> None:
    """Ends, prepares and segments are recorded together or not at all."""
    (a,) = captured(ledger, lease, b"a")
    batch = following(ledger, lease)
    with refused(ledger, lease, "segments_table"):
        recorded = replace(
            record(batch, ORDERS), ended_transactions=(EndedTransaction(a, committed=True),)
        )
        ledger.record_capture(lease, batch.id, recorded)
    assert ledger.open_prepared(lease.source) == [a]
    assert newest(ledger, lease).state is BatchState.CAPTURING
