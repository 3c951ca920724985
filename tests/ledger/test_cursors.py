"""Batches looked up by run and by moment, failures, and whether a cursor's set is trusted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.table_state import TableEvent, TableEventKind
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.status.span_report import report_of_run
from lockstep.pipeline.run.unpruned_batches import batch_of_run
from lockstep.pipeline.schema.history import (
    BatchHistory,
    RecordedEffect,
    SchemaStatement,
)
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import SpanRefused
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.resources.postgres import batches
from lockstep.resources.postgres.batches import batch_of
from lockstep.resources.postgres.rows import Row
from tests.ledger import servers
from tests.ledger.made import (
    CONTIGUOUS,
    DECISION,
    MOMENT,
    ORDERS,
    OTHER,
    STOCK,
    begun,
    elsewhere,
    first_captured,
    following,
    newest,
    next_captured,
    place,
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
    assert [batch_of_run(ledger, source, run).id for run in runs] == ids
    assert batch_of_run(ledger, source, "0f3cx").id == ids[-1]
    for several in ("0f3c", ""):
        with pytest.raises(SpanRefused, match=f"the ids of 3 runs begin with '{several}'"):
            batch_of_run(ledger, source, several)
    with ledger.lock(source, "a test", "0f3c-9") as lease:
        capturing = following(ledger, lease)
        unknown = ["0f3c-9", "0f4", "f3c"]
        for run in unknown:
            with pytest.raises(SpanRefused, match="no batch of"):
                batch_of_run(ledger, source, run)
        ledger.record_capture(lease, capturing.id, record(capturing))
        assert batch_of_run(ledger, source, "0f3c-9") == newest(ledger, lease)
        ledger.abandon(lease, capturing.id, "damaged")
    with pytest.raises(SpanRefused, match="no batch of"):
        batch_of_run(ledger, source, "0f3c-9")
    with ledger.lock(source, "a test", "0f3c-10") as lease:
        next_captured(ledger, lease)
    assert batch_of_run(ledger, source, "0f3c-1").id == ids[0], "its whole id"


def test_a_run_is_found_without_the_batches_of_others(
    ledger: Ledger, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be a hundred thousand of them."""
    for number in range(4):
        with ledger.lock(source, "a test", f"run-{number % 2}") as lease:
            _ = next_captured(ledger, lease) if number else first_captured(ledger, lease)
    made: list[int] = []

    def counted(row: Row) -> Batch:
        made.append(row["id"])
        return batch_of(row)

    monkeypatch.setattr(batches, "batch_of", counted)
    assert batch_of_run(ledger, source, "run-1").id == made[-1]
    assert len(made) == 2


@pytest.mark.parametrize(("count", "shown_count"), [(39, 1), (40, 0), (41, 0)])
def test_a_run_of_many_batches_is_plotted_with_few_earlier_ones(
    ledger: Ledger, source: str, count: int, shown_count: int
) -> None:
    """Forty in all; none if it has as many itself, and it is shown with all of its own."""
    with ledger.lock(source, "a test", "run-1") as lease:
        earlier = [first_captured(ledger, lease), *(next_captured(ledger, lease) for _ in range(2))]
    with ledger.lock(source, "a test", "run-2") as lease:
        own = tuple(next_captured(ledger, lease) for _ in range(count))
    report = report_of_run(ledger, source, "run-2", MOMENT)
    assert report.batches == own
    assert report.earlier_batches == tuple(earlier[3 - shown_count :])


def test_a_run_is_shown_whole_however_many_batches_other_sources_had_meanwhile(
    stand: servers.Stand, source: str
) -> None:
    """Ids are counted over all sources."""
    ledger = stand.ledger
    with ledger.lock(source, "a test", "run-1") as lease:
        first = first_captured(ledger, lease)
        sequence = "pg_get_serial_sequence('lockstep.batches', 'id')"
        assert servers.run(stand.dsn, f"select setval({sequence}, {first.id + 1000})")
        assert report_of_run(ledger, source, "run-1", MOMENT).batches == (first,)
        second = next_captured(ledger, lease)
    assert second.id > first.id + 1000
    assert report_of_run(ledger, source, "run-1", MOMENT).batches == (first, second)


def test_a_run_after_a_failover_is_reported_in_the_order_of_its_log(
    ledger: Ledger, source: str
) -> None:
    """What no statement did comes first: its place is in the former server's log, which may have
    another name."""
    with ledger.lock(source, "a test", "run-1") as lease:
        first = first_captured(ledger, lease, ORDERS, STOCK)
    with ledger.lock(source, "a test", "run-2") as lease:
        end, begin = Coordinates(LogFile("another", 1), 90), Coordinates(LogFile("another", 1), 4)
        start = replace(first.captured_end, at=begin, server_uuid=OTHER)
        batch = elsewhere(ledger, lease, first, CONTIGUOUS, start)
        altered = SchemaStatement(
            begin,
            end,
            "",
            MOMENT,
            "shop",
            "alter table stock comment 'a'",
            "followed",
            (RecordedEffect(STOCK, "has another comment"),),
        )
        rebuilt = TableEvent(
            ORDERS, TableEventKind.REBUILT, batch.sequence_before, 1, place(4), "ada asked for it"
        )
        made = replace(
            record(batch, end=replace(start, at=end)),
            events=(rebuilt,),
            history=BatchHistory((altered,)),
        )
        ledger.record_capture(lease, batch.id, made)
    report = report_of_run(ledger, source, "run-2", MOMENT)
    assert [str(change.event.table) for change in report.structure_changes] == [
        "shop.orders",
        "shop.stock",
    ]


def trust(ledger: Ledger, lease: Lease) -> list[tuple[bool, bool]]:
    """Whether a run may resume by the sets of the captured and the acknowledged cursor, and
    whether it could before; without cursors that are not there."""
    cursors = ledger.cursors(lease.source)
    both = (cursors.captured, cursors.acknowledged)
    return [(cursor.by_gtid, cursor.was_by_gtid) for cursor in both if cursor is not None]


FRESH, LAPSED, NEVER = (True, False), (False, True), (False, False)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("by_gtid", [FRESH]),
        ("without", [NEVER]),
        ("without off", [NEVER]),
        ("by_gtid off", [LAPSED]),
        ("by_gtid off on_by_facts", [LAPSED]),
        ("by_gtid off_by_facts", [FRESH]),
        ("off by_gtid", [FRESH]),
        ("by_gtid off_elsewhere", [FRESH]),
        ("by_gtid without", [LAPSED]),
        ("by_gtid without abandon", [FRESH]),
        ("without by_gtid abandon", [NEVER]),
        ("by_gtid without acknowledge", [LAPSED, FRESH]),
    ],
)
def test_a_set_is_trusted_until_it_lapses(
    ledger: Ledger, lease: Lease, steps: str, expected: list[tuple[bool, bool]]
) -> None:
    """It lapses with an anonymous transaction, and once a run found `gtid_mode` off after its
    capture. Neither what was found for another source counts, nor the facts of a decision."""
    for step in steps.split():
        match step:
            case "by_gtid" | "without":
                first = not ledger.batches(lease.source)
                batch = (begun if first else following)(ledger, lease)
                made = replace(record(batch), by_gtid=step == "by_gtid")
                ledger.record_capture(lease, batch.id, made)
            case "off":
                ledger.note_gtids_off(lease)
            case "off_elsewhere":
                with ledger.lock(f"{lease.source} beside", "beside", None) as beside:
                    ledger.note_gtids_off(beside)
            case "on_by_facts" | "off_by_facts":
                mode = {"on_by_facts": "ON", "off_by_facts": "OFF"}[step]
                ledger.decide(lease, replace(DECISION, facts={"gtid_mode": mode}))
            case "abandon":
                ledger.abandon(lease, newest(ledger, lease).id, "damaged")
            case "acknowledge":
                ledger.mark_merged(lease)
                ledger.acknowledge(lease, ledger.unfinished_batches(lease.source)[0].id)
    assert trust(ledger, lease) == expected
