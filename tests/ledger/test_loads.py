"""Loads: chunks in order, each recorded once, and what batches say of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from lockstep.pipeline.model.batch import Batch, CaptureRecord
from lockstep.pipeline.model.load import ChunkRows, FollowedLoad, JoinedLoad, Load, LoadBasis
from lockstep.pipeline.model.table_state import OrderKind, SnapshotFiles, TableEvent, TableEventKind
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.proof.proven import ComparisonResult
from lockstep.pipeline.snapshot.chunks import Bound, Range
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import Need
from lockstep.pipeline.values.segment import SegmentFile
from tests.ledger.made import (
    ORDERS,
    first_captured,
    following,
    merged,
    place,
    record,
    schema,
    state,
)
from tests.ledger.refusals import refused

READING = LoadBasis(schema(ORDERS), "server", place(100), 1000)
MIDDLE = Bound(("id",), ("5",))
FIRST, SECOND = Range(None, MIDDLE), Range(MIDDLE, None)
FILE = SegmentFile("load.parquet", 5, 1000, "0" * 64)


def merged_orders(ledger: Ledger, lease: Lease) -> None:
    """A first batch with the table, merged."""
    batch = first_captured(ledger, lease, ORDERS)
    merged(ledger, lease, ORDERS, batch.id, batch.id, 0)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, batch.id)


def rows(offset: int, *files: SegmentFile) -> ChunkRows:
    return ChunkRows(place(offset - 5), place(offset), 5, 0.5, files)


def the_load(ledger: Ledger, lease: Lease) -> Load:
    (load,) = ledger.open_loads(lease.source)
    return load


def read_load(ledger: Ledger, lease: Lease) -> Load:
    """A load of two chunks, both read."""
    load = ledger.order_load(lease, ORDERS, author="ada", reason="older than the log")
    ledger.begin_load(lease, load.id, READING)
    for number, part in enumerate((FIRST, SECOND)):
        ledger.plan_chunk(lease, load.id, number, part)
    ledger.record_chunk(lease, load.id, 1, rows(130))
    ledger.record_chunk(lease, load.id, 0, rows(120, FILE))
    return the_load(ledger, lease)


def follows(batch: Batch, load: Load) -> CaptureRecord:
    """The batch begins to capture the load's table, from its base on."""
    return replace(
        record(batch, ORDERS),
        tables=(replace(state(ORDERS), need=Need.ROWS),),
        followed_loads=(FollowedLoad(load.id, ORDERS, batch.sequence_before, 1),),
    )


def joins(batch: Batch, load: Load) -> CaptureRecord:
    assert load.followed_from is not None
    sequence, version = load.followed_from.sequence, load.followed_from.version
    return replace(
        record(batch),
        events=(
            TableEvent(
                ORDERS, TableEventKind.REREAD, batch.sequence_before, 1, place(200), "loaded"
            ),
        ),
        snapshots=(SnapshotFiles(ORDERS, version, sequence, load.files),),
        joined_loads=(JoinedLoad(load.id, ORDERS),),
    )


def test_a_load_is_ordered_once_until_it_is_read(ledger: Ledger, lease: Lease) -> None:
    load = ledger.order_load(lease, ORDERS, author="ada", reason="older than the log")
    assert (load.table, load.author, load.basis, load.is_complete) == (ORDERS, "ada", None, False)
    again = ledger.order_load(lease, ORDERS, author="bob", reason="me too")
    assert again == load
    ledger.begin_load(lease, load.id, READING)
    assert the_load(ledger, lease).basis == READING
    with refused(ledger, lease, "loads_one_open"):
        ledger.order_load(lease, ORDERS, author="bob", reason="me too")


def test_chunks_go_on_and_are_read_once(ledger: Ledger, lease: Lease) -> None:
    load = read_load(ledger, lease)
    assert [chunk.range for chunk in load.chunks] == [FIRST, SECOND]
    assert (load.is_complete, load.row_count, load.high, load.files) == (
        True,
        10,
        place(130),
        (FILE,),
    )
    with refused(ledger, lease, "load_chunks_read_once"):
        ledger.record_chunk(lease, load.id, 0, rows(140))
    with refused(ledger, lease, "load_chunks_go_on"):
        ledger.plan_chunk(lease, load.id, 2, Range(Bound(("id",), ("9",)), None))
    with refused(ledger, lease, "load_chunks_known"):
        ledger.record_chunk(lease, load.id, 7, rows(140))


def test_each_chunk_is_a_sign_that_its_run_goes_on(ledger: Ledger, lease: Lease) -> None:
    """When it is planned, and when it is read."""

    def last_record() -> datetime:
        view = ledger.newest_lease(lease.source)
        assert view is not None and view.recorded_at is not None
        return view.recorded_at

    load = ledger.order_load(lease, ORDERS, author="ada", reason="older than the log")
    ledger.begin_load(lease, load.id, READING)
    moments = [last_record()]
    ledger.plan_chunk(lease, load.id, 0, Range(None, None))
    moments.append(last_record())
    ledger.record_chunk(lease, load.id, 0, rows(120))
    moments.append(last_record())
    assert moments == sorted(set(moments))


def test_a_void_load_frees_its_table(ledger: Ledger, lease: Lease) -> None:
    load = read_load(ledger, lease)
    ledger.void_load(lease, load.id, "it was altered")
    assert ledger.open_loads(lease.source) == []
    with refused(ledger, lease, "load_chunks_while_reading"):
        ledger.plan_chunk(lease, load.id, 2, SECOND)
    other = ledger.order_load(lease, ORDERS, author="ada", reason="again")
    assert other.id != load.id


def test_a_pause_withdraws_the_load_of_its_table(ledger: Ledger, lease: Lease) -> None:
    merged_orders(ledger, lease)
    read_load(ledger, lease)
    ledger.order_table(lease, ORDERS, OrderKind.PAUSE, author="ada", reason="a trial")
    assert ledger.open_loads(lease.source) == []


def test_a_loading_table_is_merged_once_it_is_joined(ledger: Ledger, lease: Lease) -> None:
    """What is captured of it meanwhile waits; then it is pending from where it was followed."""
    merged_orders(ledger, lease)
    load = read_load(ledger, lease)
    begun = following(ledger, lease)
    ledger.record_capture(lease, begun.id, follows(begun, load))
    assert ledger.table_states(lease.source)[ORDERS].is_loading
    assert ledger.pending_batches(lease.source) == {}
    assert ledger.table_states(lease.source)[ORDERS].missing_since == begun.id
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, begun.id)
    last = following(ledger, lease)
    ledger.record_capture(lease, last.id, joins(last, the_load(ledger, lease)))
    assert ledger.open_loads(lease.source) == []
    assert ledger.table_states(lease.source)[ORDERS].is_complete
    assert list(ledger.pending_batches(lease.source)[ORDERS]) == [begun.id, last.id]


def test_rows_that_were_read_again_differ_no_more(ledger: Ledger, lease: Lease) -> None:
    """A comparison before the reload says nothing of the rows that it read; one since does."""
    different = [ComparisonResult(ORDERS, True, None, 7)]
    merged_orders(ledger, lease)
    ledger.note_compared(lease.source, different)
    load = read_load(ledger, lease)
    begun = following(ledger, lease)
    ledger.record_capture(lease, begun.id, follows(begun, load))
    assert [proof.differing_count for proof in ledger.proofs(lease.source)] == [7]
    last = following(ledger, lease)
    ledger.record_capture(lease, last.id, joins(last, the_load(ledger, lease)))
    assert ledger.proofs(lease.source) == []
    ledger.note_compared(lease.source, different)
    assert [proof.differing_count for proof in ledger.proofs(lease.source)] == [7]
