"""Prepared XA transactions, as every ledger keeps them from their batch to their end."""

from __future__ import annotations

from dataclasses import replace
from random import Random

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
from tests.ledger.made import ORDERS, begun, following, newest, prepared, record
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


def test_each_is_open_until_a_batch_ends_it(ledger: Ledger, lease: Lease) -> None:
    """Whatever becomes of the batch that read it. XIDs are used again, also by the batch that ends
    them; each batch knows what it ended, committed or rolled back, in the order of prepares."""
    chance, opened = Random(0), list[PreparedTransaction]()
    ended_by = dict[int, tuple[PreparedTransaction, ...]]()
    for number in range(12):
        ended = [one for one in opened if chance.random() < 0.4]
        opened = [one for one in opened if one not in ended]
        free = {b"a", b"b", b"c", b"d"} - {one.xid.gtrid for one in opened}
        names = sorted(name for name in free if chance.random() < 0.6)
        ends = [EndedTransaction(one, chance.random() < 0.5) for one in ended]
        opened += captured(ledger, lease, *names, ended=(*chance.sample(ends, len(ends)),))
        assert ledger.open_prepared(lease.source) == opened
        batch = newest(ledger, lease).id
        ended_by[batch] = (*ended,)
        if number % 4 == 0:
            ledger.mark_merged(lease)
            ledger.acknowledge(lease, ledger.unfinished_batches(lease.source)[0].id)
    assert any(len(some) > 1 for some in ended_by.values())
    assert {
        batch: batch_content(ledger, lease.source, batch).ended_transactions for batch in ended_by
    } == ended_by


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
