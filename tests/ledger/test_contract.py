"""A run's steps in order, as every ledger records them and gives them back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.model.batch import Cursor, RequestCounts
from lockstep.pipeline.model.claim import BatchSpan
from lockstep.pipeline.model.table_state import SnapshotFiles, StoppedTable
from lockstep.pipeline.ports.ledger import Ledger, batch_content
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.intent import VersionSetEntry
from lockstep.pipeline.values.position import ServerProcess
from lockstep.pipeline.values.segment import SegmentFile, SystemTable, SystemTableSegment
from lockstep.resources.postgres.session import Transaction
from tests.ledger.made import (
    ANCHOR,
    MOMENT,
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
    state,
    version,
)
from tests.ledger.refusals import refused
from tests.ledger.servers import Stand

QUARANTINED = StoppedTable(ORDERS, "a type is not supported", "exclude it", "binlog.000001:100")


def test_files_belong_to_their_rows_however_postgres_numbers_them(
    ledger: Ledger, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It promises no order for the rows of an INSERT."""
    insert = Transaction.insert
    monkeypatch.setattr(
        Transaction, "insert", lambda self, name, rows: insert(self, name, rows[::-1])
    )
    batch = begun(ledger, lease)
    made = record(batch, STOCK, ORDERS, first=True)
    parts = tuple(
        SnapshotFiles(
            one.table, 1, batch.sequence_before, (replace(one.files[0], path=f"{one.table}"),)
        )
        for one in made.segments
    )
    ledger.record_capture(lease, batch.id, replace(made, snapshots=parts))
    content = batch_content(ledger, lease.source, batch.id)
    for recorded, kept in ((made.segments, content.segments), (parts, content.snapshots)):
        files = [{part.table: part.files for part in some} for some in (recorded, kept)]
        assert files[0] == files[1]


def test_a_capture_is_given_back_whole(ledger: Ledger, lease: Lease) -> None:
    """Segments, files, also those of the source's own tables, versions, states, end and anchor are
    what was recorded."""
    batch = begun(ledger, lease)
    files = (
        SegmentFile("0.parquet", 5, 1000, "0" * 64),
        SegmentFile("1.parquet", 7, 2000, "f" * 64),
    )
    own = (
        SystemTableSegment(SystemTable.DDL, files[:1]),
        SystemTableSegment(SystemTable.TRANSACTIONS, files),
    )
    recorded = replace(
        record(batch, STOCK, ORDERS, first=True),
        server_process=ServerProcess(MOMENT, 3),
        system_segments=own[::-1],
    )
    ledger.record_capture(lease, batch.id, recorded)
    captured = newest(ledger, lease)
    assert captured.server_process == recorded.server_process
    content = batch_content(ledger, lease.source, batch.id)
    assert list(content.segments) == list(recorded.segments)
    assert tuple(content.system_segments) == own
    assert ledger.table_states(lease.source) == {t: state(t) for t in (ORDERS, STOCK)}
    versions = [replace(version(t), batch=batch.id) for t in (ORDERS, STOCK)]
    assert ledger.schemas_at(lease.source) == versions
    assert (captured.end, captured.anchor) == (recorded.end, ANCHOR)
    assert (captured.changes, captured.transactions, captured.log_bytes) == (20, 3, 100)
    assert ledger.cursors(lease.source).captured == Cursor(batch.id, recorded.end, ANCHOR)


def test_batches_wait_for_each_of_their_tables(stand: Stand, source: str) -> None:
    """A write that is begun covers nothing until it is settled, by whoever finds it, once. Then
    batches are merged and acknowledged, with the version set of that position."""
    ledger, other = stand.ledger, stand.other
    with ledger.lock(source, "one", None) as lease:
        first = first_captured(ledger, lease, ORDERS, STOCK)
        second, third = next_captured(ledger, lease, ORDERS), next_captured(ledger, lease)
        opened = intended(ledger, lease, ORDERS, first.id, second.id)
        assert ledger.pending_batches(source) == {ORDERS: [first.id, second.id], STOCK: [first.id]}
        assert ledger.mark_merged(lease) == [third.id]
    with other.lock(source, "two", None) as lease:
        assert other.open_intents(source) == [opened]
        for reason in ("rows were inserted only", None):
            other.settle(lease, opened, 7, reason=reason)
        assert other.open_intents(source) == []
        [settled] = other.writes_within(source, first.id, second.id)
        assert (settled.intent, settled.delta_version) == (opened, 7)
        assert settled.reason == "rows were inserted only"
        assert other.pending_batches(source) == {STOCK: [first.id]}
        assert other.mark_merged(lease) == [second.id]
        assert merged(other, lease, STOCK, first.id, first.id, 2).txn_version > opened.txn_version
        assert [other.mark_merged(lease) for _ in range(2)] == [[first.id], []]
        other.acknowledge(lease, first.id)
        other.acknowledge(lease, second.id, RequestCounts(77, None))
    newest, *_ = ledger.batches(source, limit=2)[1:]
    assert newest.requests == RequestCounts(77, None)
    assert second.end is not None
    assert ledger.cursors(source).acknowledged == Cursor(second.id, second.end, ANCHOR)
    assert [one.id for one in ledger.unfinished_batches(source)] == [third.id]
    assert ledger.version_set(source, second.id).entries == [
        VersionSetEntry(ORDERS, "s/shop/orders", 7),
        VersionSetEntry(STOCK, "s/shop/stock", 2),
    ]


def test_an_open_write_is_settled_after_a_capture_quarantine_its_table(
    ledger: Ledger, lease: Lease
) -> None:
    """What was committed to the lake is recorded whatever the log held since."""
    batch = first_captured(ledger, lease, ORDERS)
    intent = intended(ledger, lease, ORDERS, batch.id, batch.id)
    later = following(ledger, lease)
    ledger.record_capture(lease, later.id, replace(record(later), stopped_tables=(QUARANTINED,)))
    ledger.settle(lease, intent, 5)
    assert [w.delta_version for w in ledger.writes_within(lease.source, batch.id, batch.id)] == [5]


def test_gtid_sets_may_be_long(ledger: Ledger, lease: Lease) -> None:
    """Longer than any index row may be."""
    batch = begun(ledger, lease)
    text = ",".join(f"{number:08x}-0000-4000-8000-000000000000:1-9" for number in range(2000))
    from_many = replace(position(104), gtid_set=type(position(4).gtid_set).parse(text))
    ledger.record_capture(lease, batch.id, record(batch, end=from_many))
    assert following(ledger, lease).start == from_many


def test_the_highest_number_is_one_given_or_passed_over(ledger: Ledger, lease: Lease) -> None:
    """Also that of an abandoned batch."""
    batch = begun(ledger, lease)
    ledger.abandon(lease, batch.id, "damaged")
    assert ledger.highest_number() == batch.id
    ledger.skip_numbers(lease, batch=batch.id + 70, txn_version=0)
    assert ledger.highest_number() == batch.id + 70
    assert begun(ledger, lease).id == batch.id + 71


def test_what_a_recovered_ledger_took_over_is_kept(
    ledger: Ledger, source: str, lease: Lease
) -> None:
    assert ledger.inherited_batches(source) == ()
    ledger.skip_numbers(lease, batch=0, txn_version=0, inherited=[BatchSpan(0, 3)])
    spans = (BatchSpan(0, 2), BatchSpan(4, 7))
    ledger.skip_numbers(lease, batch=0, txn_version=0, inherited=reversed(spans))
    assert ledger.inherited_batches(source) == spans


# -- steps about nothing that the ledger knows, refused by name (constraints: violations.sql)


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


def test_setting_an_unknown_table_aside(ledger: Ledger, lease: Lease) -> None:
    """Its state is recorded first."""
    with refused(ledger, lease, "table_states_known"):
        ledger.quarantine(lease, QUARANTINED)


def test_settling_what_nobody_began(ledger: Ledger, lease: Lease) -> None:
    """A write is known by its number."""
    batch = first_captured(ledger, lease, ORDERS)
    intent = intended(ledger, lease, ORDERS, batch.id, batch.id)
    with refused(ledger, lease, "writes_known"):
        ledger.settle(lease, replace(intent, txn_version=0), 7)
