"""A run's steps in order, as every ledger records them and gives them back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.model.batch import BatchState, Cursor, RequestCounts
from lockstep.pipeline.model.claim import BatchSpan
from lockstep.pipeline.model.table_state import (
    OrderKind,
    SnapshotFiles,
    StoppedTable,
    TableCondition,
)
from lockstep.pipeline.ports.ledger import Ledger, attempts_of, batch_content
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import Need
from lockstep.pipeline.values.intent import VersionSetEntry
from lockstep.pipeline.values.position import ServerProcess
from lockstep.pipeline.values.segment import SegmentFile, SystemTable, SystemTableSegment
from lockstep.resources.postgres.session import Transaction
from tests.ledger.made import (
    ANCHOR,
    MOMENT,
    ORDERS,
    SERVER,
    STOCK,
    begun,
    first_captured,
    following,
    intended,
    merged,
    newest,
    next_captured,
    place,
    position,
    record,
    state,
    version,
)
from tests.ledger.servers import Stand

QUARANTINED = StoppedTable(ORDERS, "a type is not supported", "exclude it", "binlog.000001:100")


def test_an_empty_ledger_answers_with_nothing(ledger: Ledger, source: str) -> None:
    """No question needs a source to be known."""
    assert ledger.newest_lease(source) is None
    assert ledger.cursors(source).captured is None
    assert ledger.cursors(source).acknowledged is None
    assert ledger.batches(source) == []
    assert ledger.unfinished_batches(source) == []
    assert ledger.decisions(source) == []
    assert attempts_of(ledger, source) == []
    assert ledger.open_override(source) is None
    assert ledger.gaps(source) == []
    assert ledger.server_periods(source) == ()
    assert ledger.batch_times(source) == []
    assert ledger.table_states(source) == {}
    assert ledger.last_versions(source) == {}
    assert ledger.schema_at(source, ORDERS) is None
    assert ledger.schemas_at(source) == []
    assert ledger.schema_at(source, ORDERS, batch=1, place=place(4)) is None
    assert ledger.schemas_at(source, batch=1, place=place(4)) == []
    assert ledger.schema_versions(source, ORDERS) == []
    assert ledger.databases_at(source) == []
    assert ledger.databases_at(source, batch=1, place=place(4)) == []
    assert ledger.schema_statements(source) == []
    assert ledger.has_history(source) is False
    assert ledger.captured_batch(source, SERVER, place(4)) is None
    assert batch_content(ledger, source, 0).events == ()
    assert batch_content(ledger, source, 0).snapshots == ()
    assert ledger.open_orders(source) == []
    assert ledger.pending_batches(source) == {}
    assert ledger.open_intents(source) == []
    assert ledger.open_prepared(source) == []
    assert ledger.writes_within(source, 1, 1) == []
    assert ledger.intents_of_batch(source, 1) == []
    assert ledger.version_set(source, 0).entries == []
    assert batch_content(ledger, source, 0).segments == ()


def test_a_batch_begins_as_capturing(ledger: Ledger, lease: Lease) -> None:
    """It has its start, its lease, and no end."""
    batch = begun(ledger, lease)
    assert (batch.state, batch.start, batch.end) == (BatchState.CAPTURING, position(4), None)
    assert (batch.token, batch.run_id, batch.sequence_before) == (lease.token, "run-1", 0)
    assert ledger.unfinished_batches(lease.source) == [batch]
    assert ledger.cursors(lease.source).captured is None


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
    """Segments, files, versions, states, end and anchor are what was recorded."""
    batch = begun(ledger, lease)
    recorded = replace(
        record(batch, STOCK, ORDERS, first=True), server_process=ServerProcess(MOMENT, 3)
    )
    ledger.record_capture(lease, batch.id, recorded)
    captured = newest(ledger, lease)
    assert captured.server_process == recorded.server_process
    assert list(batch_content(ledger, lease.source, batch.id).segments) == list(recorded.segments)
    assert ledger.table_states(lease.source) == {t: state(t) for t in (ORDERS, STOCK)}
    versions = [replace(version(t), batch=batch.id) for t in (ORDERS, STOCK)]
    assert ledger.schemas_at(lease.source) == versions
    assert (captured.end, captured.anchor) == (recorded.end, ANCHOR)
    assert (captured.changes, captured.transactions, captured.log_bytes) == (20, 3, 100)
    assert ledger.cursors(lease.source).captured == Cursor(batch.id, recorded.end, ANCHOR)


def test_files_of_the_sources_own_tables_are_given_back_by_name(
    ledger: Ledger, lease: Lease
) -> None:
    """Each with its files in order; a batch without has none."""
    first = first_captured(ledger, lease, ORDERS)
    batch = following(ledger, lease)
    files = (
        SegmentFile("0.parquet", 5, 1000, "0" * 64),
        SegmentFile("1.parquet", 7, 2000, "f" * 64),
    )
    ddl = SystemTableSegment(SystemTable.DDL, files[:1])
    transactions = SystemTableSegment(SystemTable.TRANSACTIONS, files)
    made = replace(record(batch), system_segments=(transactions, ddl))
    ledger.record_capture(lease, batch.id, made)
    assert list(batch_content(ledger, lease.source, batch.id).system_segments) == [
        ddl,
        transactions,
    ]
    assert batch_content(ledger, lease.source, first.id).system_segments == ()


def test_others_see_what_was_recorded(stand: Stand, source: str) -> None:
    """A process that only reads sees each step as soon as it returns."""
    with stand.ledger.lock(source, "writer", None) as lease:
        first_captured(stand.ledger, lease, ORDERS)
        assert stand.other.batches(source) == stand.ledger.batches(source)
        assert stand.other.pending_batches(source) == stand.ledger.pending_batches(source)


def test_sequences_go_on(ledger: Ledger, lease: Lease) -> None:
    """A batch's base is that of the batch that it continues, plus the row images captured there."""
    first_captured(ledger, lease, ORDERS, STOCK)
    next_captured(ledger, lease, ORDERS)
    assert following(ledger, lease).sequence_before == 30


def test_an_abandoned_batch_gives_its_start_back(ledger: Ledger, lease: Lease) -> None:
    """The next batch starts where the abandoned one did, by the same decision."""
    batch = begun(ledger, lease)
    ledger.abandon(lease, batch.id, "found unfinished")
    again = ledger.begin_batch(
        lease, batch.start, continued_batch=None, start_decision=batch.start_decision
    )
    assert [b.state for b in ledger.batches(lease.source)] == [
        BatchState.CAPTURING,
        BatchState.ABANDONED,
    ]
    assert ledger.unfinished_batches(lease.source) == [again]


def test_damaged_captures_are_abandoned_newest_first(ledger: Ledger, lease: Lease) -> None:
    """The cursor goes back to before them."""
    first = first_captured(ledger, lease, ORDERS)
    second = next_captured(ledger, lease, ORDERS)
    third = next_captured(ledger, lease, ORDERS)
    ledger.abandon(lease, third.id, "damaged")
    ledger.abandon(lease, second.id, "damaged")
    cursor = ledger.cursors(lease.source).captured
    assert cursor is not None
    assert cursor.batch == first.id
    assert ledger.pending_batches(lease.source) == {ORDERS: [first.id]}


def test_pending_names_what_no_settled_write_covers(ledger: Ledger, lease: Lease) -> None:
    """An open intent covers nothing yet."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    second = next_captured(ledger, lease, ORDERS)
    intent = intended(ledger, lease, ORDERS, first.id, first.id)
    both = {ORDERS: [first.id, second.id], STOCK: [first.id]}
    assert ledger.pending_batches(lease.source) == both
    ledger.settle(lease, intent, 0)
    assert ledger.pending_batches(lease.source) == {ORDERS: [second.id], STOCK: [first.id]}


def test_an_intent_is_open_until_it_is_settled(stand: Stand, source: str) -> None:
    """Whoever comes next finds it as it was; settling again changes nothing."""
    with stand.ledger.lock(source, "one", None) as lease:
        batch = first_captured(stand.ledger, lease, ORDERS)
        intent = intended(stand.ledger, lease, ORDERS, batch.id, batch.id)
    with stand.other.lock(source, "two", None) as lease:
        assert stand.other.open_intents(source) == [intent]
        stand.other.settle(lease, intent, 3, reason="rows were inserted only")
        stand.other.settle(lease, intent, 3)
        assert stand.other.open_intents(source) == []
        (settled,) = stand.other.writes_within(source, batch.id, batch.id)
        assert settled.reason == "rows were inserted only"
        assert (settled.intent, settled.delta_version) == (intent, 3)


def test_txn_versions_ascend(ledger: Ledger, lease: Lease) -> None:
    """A later intent has a greater version, whatever the table."""
    batch = first_captured(ledger, lease, ORDERS, STOCK)
    first = intended(ledger, lease, STOCK, batch.id, batch.id)
    second = intended(ledger, lease, ORDERS, batch.id, batch.id)
    assert first.txn_version < second.txn_version


def test_batches_are_merged_when_all_their_tables_are(ledger: Ledger, lease: Lease) -> None:
    """A batch waits for each of its tables; one without segments waits for none."""
    first = first_captured(ledger, lease, ORDERS, STOCK)
    second = next_captured(ledger, lease, ORDERS)
    third = next_captured(ledger, lease)
    merged(ledger, lease, ORDERS, first.id, second.id, 0)
    assert ledger.mark_merged(lease) == [second.id, third.id]
    merged(ledger, lease, STOCK, first.id, first.id, 0)
    assert ledger.mark_merged(lease) == [first.id]
    assert ledger.mark_merged(lease) == []


def test_acknowledging_moves_the_cursor(ledger: Ledger, lease: Lease) -> None:
    """And records the version set of that position."""
    batch = first_captured(ledger, lease, ORDERS, STOCK)
    merged(ledger, lease, ORDERS, batch.id, batch.id, 7)
    merged(ledger, lease, STOCK, batch.id, batch.id, 2)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, batch.id, RequestCounts(77, None))
    assert [one.requests for one in ledger.batches(lease.source)] == [RequestCounts(77, None)]
    assert batch.end is not None
    assert ledger.cursors(lease.source).acknowledged == Cursor(batch.id, batch.end, ANCHOR)
    assert ledger.unfinished_batches(lease.source) == []
    assert ledger.version_set(lease.source, batch.id).entries == [
        VersionSetEntry(ORDERS, "s/shop/orders", 7),
        VersionSetEntry(STOCK, "s/shop/stock", 2),
    ]


def test_a_table_quarantined_holds_nothing_up(ledger: Ledger, lease: Lease) -> None:
    """The others go on, and it is in no version set."""
    batch = first_captured(ledger, lease, ORDERS, STOCK)
    ledger.quarantine(lease, QUARANTINED)
    merged(ledger, lease, STOCK, batch.id, batch.id, 1)
    assert ledger.pending_batches(lease.source) == {}
    assert ledger.mark_merged(lease) == [batch.id]
    ledger.acknowledge(lease, batch.id)
    assert [e.table for e in ledger.version_set(lease.source, batch.id).entries] == [STOCK]


def test_a_table_is_quarantined_once(ledger: Ledger, lease: Lease) -> None:
    """The first reason stays, also when a later capture tells the table's state."""
    first_captured(ledger, lease, ORDERS)
    ledger.quarantine(lease, QUARANTINED)
    ledger.quarantine(lease, replace(QUARANTINED, reason="another reason"))
    batch = following(ledger, lease)
    ledger.record_capture(lease, batch.id, replace(record(batch), tables=(state(ORDERS),)))
    quarantined = ledger.table_states(lease.source)[ORDERS]
    assert (quarantined.condition, quarantined.reason, quarantined.hint, quarantined.position) == (
        TableCondition.STOPPED,
        QUARANTINED.reason,
        QUARANTINED.hint,
        QUARANTINED.position,
    )


def test_a_capture_quarantines_tables(ledger: Ledger, lease: Lease) -> None:
    """In the same transaction, after their states."""
    batch = begun(ledger, lease)
    recorded = replace(record(batch, ORDERS, STOCK, first=True), stopped_tables=(QUARANTINED,))
    ledger.record_capture(lease, batch.id, recorded)
    assert ledger.table_states(lease.source)[ORDERS].has_stopped
    assert ledger.pending_batches(lease.source) == {STOCK: [batch.id]}


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


@pytest.mark.parametrize("need", [None, Need.ROWS, Need.COLUMNS, Need.MIRROR, Need.CONSENT])
def test_what_a_table_lacks_is_kept(ledger: Ledger, lease: Lease, need: Need | None) -> None:
    """Whatever its hint says, until it is taken up again; and again once the batch that did
    is abandoned."""
    batch = begun(ledger, lease)
    quarantined = replace(QUARANTINED, need=need)
    recorded = replace(record(batch, ORDERS, STOCK, first=True), stopped_tables=(quarantined,))
    ledger.record_capture(lease, batch.id, recorded)
    ledger.quarantine(lease, replace(quarantined, table=STOCK))
    owed = {ORDERS: need, STOCK: need}
    assert {t: one.need for t, one in ledger.table_states(lease.source).items()} == owed
    order = ledger.order_table(lease, ORDERS, OrderKind.RESUME, author="ann", reason="mended")
    taken = following(ledger, lease)
    ledger.record_capture(lease, taken.id, replace(record(taken), orders_done=(order.id,)))
    assert ledger.table_states(lease.source)[ORDERS].need is None
    ledger.abandon(lease, taken.id, "damaged")
    assert ledger.table_states(lease.source)[ORDERS].need is need


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
