"""Batches looked up by run and by moment, failures, and whether a cursor's set is trusted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lockstep.pipeline.model.batch import Batch, BatchTimes
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease
from tests.ledger.made import (
    CONTIGUOUS,
    DECISION,
    MOMENT,
    OTHER,
    SERVER,
    begun,
    captured_elsewhere,
    elsewhere,
    first_captured,
    following,
    newest,
    next_captured,
    on,
    position,
    record,
)


def test_a_run_is_found_by_its_id_or_its_beginning(ledger: Ledger, source: str) -> None:
    """The newest captured batch of it; one that is capturing or abandoned has no end to
    name, and no character stands for another."""
    runs = ["0f3c-1", "0f3c_1", "0f3cx1"]
    ids: list[int] = []
    for run in runs:
        with ledger.lock(source, "a test", run) as lease:
            batch = next_captured(ledger, lease) if ids else first_captured(ledger, lease)
            ids.append(batch.id)
    found = [ledger.captured_batch(source, run=run) for run in [*runs, "0f3c", "0f4", "f3c"]]
    assert [one.id if one else None for one in found] == [*ids, ids[-1], None, None]
    with ledger.lock(source, "a test", "0f3c-9") as lease:
        capturing = following(ledger, lease)
        assert ledger.captured_batch(source, run="0f3c-9") is None
        ledger.record_capture(lease, capturing.id, record(capturing))
        assert ledger.captured_batch(source, run="0f3c-9") == newest(ledger, lease)
        ledger.abandon(lease, capturing.id, "damaged")
    assert ledger.captured_batch(source, run="0f3c-9") is None


def test_the_times_of_batches(ledger: Ledger, lease: Lease) -> None:
    """Those of each captured batch's ends, and of which server; nothing was committed in the
    last."""
    assert ledger.batch_times(lease.source) == []
    first = first_captured(ledger, lease)
    batch = following(ledger, lease)
    assert [one.id for one in ledger.batch_times(lease.source)] == [first.id]
    second = captured_elsewhere(ledger, lease, batch, on(SERVER, position(300), minutes=10))
    there = elsewhere(ledger, lease, second, CONTIGUOUS, on(OTHER, position(4)))
    end = replace(on(OTHER, position(300)), committed_at=None)
    third = captured_elsewhere(ledger, lease, there, end)
    times = ledger.batch_times(lease.source)
    assert times == [BatchTimes.of(one) for one in (first, second, third)]
    assert [one.server_uuid for one in times] == [SERVER, SERVER, OTHER]
    assert [one.end for one in times] == [MOMENT, MOMENT + timedelta(minutes=10), None]
    assert not any(one.acknowledged or one.catches_up for one in times)


def trust(ledger: Ledger, lease: Lease) -> tuple[bool, bool]:
    cursor = ledger.cursors(lease.source).captured
    assert cursor is not None
    return cursor.by_gtid, cursor.lapsed


def with_set(ledger: Ledger, lease: Lease, batch: Batch, *, by_gtid: bool = True) -> Batch:
    ledger.record_capture(lease, batch.id, replace(record(batch), by_gtid=by_gtid))
    return newest(ledger, lease)


def test_a_cursor_tells_whether_its_set_is_trusted(ledger: Ledger, lease: Lease) -> None:
    """As its capture recorded it."""
    assert with_set(ledger, lease, begun(ledger, lease)).by_gtid
    assert trust(ledger, lease) == (True, False)


def test_a_set_that_never_was_has_not_lapsed(ledger: Ledger, lease: Lease) -> None:
    """A source without GTIDs may switch them on."""
    with_set(ledger, lease, begun(ledger, lease), by_gtid=False)
    ledger.note_gtids_off(lease)
    assert trust(ledger, lease) == (False, False)


def test_a_set_lapses_when_gtids_were_found_off(ledger: Ledger, lease: Lease) -> None:
    """After its capture; what is decided behind that does not bring it back."""
    with_set(ledger, lease, begun(ledger, lease))
    ledger.note_gtids_off(lease)
    assert trust(ledger, lease) == (False, True)
    ledger.decide(lease, replace(DECISION, kind="idle", facts={"gtid_mode": "ON"}))
    assert trust(ledger, lease) == (False, True)


def test_what_a_decision_tells_of_its_facts_decides_nothing(ledger: Ledger, lease: Lease) -> None:
    """They are for whoever reads the decision."""
    with_set(ledger, lease, begun(ledger, lease))
    ledger.decide(lease, replace(DECISION, facts={"gtid_mode": "OFF"}))
    assert trust(ledger, lease) == (True, False)


def test_what_was_found_before_the_capture_does_not_count(ledger: Ledger, lease: Lease) -> None:
    """Nor what was found for another source."""
    ledger.note_gtids_off(lease)
    with_set(ledger, lease, begun(ledger, lease))
    with ledger.lock(f"{lease.source} beside", "beside", None) as beside:
        ledger.note_gtids_off(beside)
    assert trust(ledger, lease) == (True, False)


def test_a_set_lapses_with_an_anonymous_transaction(ledger: Ledger, lease: Lease) -> None:
    """The batch that read one is not resumed by its set, though the one before it was."""
    with_set(ledger, lease, begun(ledger, lease))
    second = with_set(ledger, lease, following(ledger, lease), by_gtid=False)
    assert trust(ledger, lease) == (False, True)
    ledger.abandon(lease, second.id, "damaged")
    assert trust(ledger, lease) == (True, False)


def test_both_cursors_tell(ledger: Ledger, lease: Lease) -> None:
    """The acknowledged one by its own batch."""
    with_set(ledger, lease, begun(ledger, lease))
    with_set(ledger, lease, following(ledger, lease), by_gtid=False)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, ledger.unfinished(lease.source)[0].id)
    cursor = ledger.cursors(lease.source).acknowledged
    assert cursor is not None
    assert (cursor.by_gtid, cursor.lapsed) == (True, False)
    assert trust(ledger, lease) == (False, True)
