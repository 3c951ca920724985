"""How much of a table the lake can have, as the books keep it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg2
import pytest

from pipeline.decisions import Lease
from pipeline.ports.ledger import Ledger
from pipeline.schema.history import History, Knowledge, SchemaVersion, VersionOrigin
from pipeline.table import TableName
from pipeline.table_state import (
    Extent,
    Handover,
    TableCondition,
    TableEvent,
    TableEventKind,
)
from resources.postgres.ledger import open_ledger
from resources.postgres.migrate import migrations
from tests.ledger.made import (
    ORDERS,
    STOCK,
    begun,
    first_captured,
    following,
    place,
    record,
    state,
    version,
)
from tests.ledger.refusals import refused
from tests.ledger.servers import EACH_POSTGRES

UNSEEN = TableName("shop", "a_quiet_one")


def captured(ledger: Ledger, lease: Lease, *extents: Extent) -> int:
    """The next batch, with these."""
    batch = following(ledger, lease)
    ledger.record_capture(lease, batch.id, replace(record(batch), extents=extents))
    return batch.id


def test_the_newest_word_of_a_live_batch_counts(ledger: Ledger, lease: Lease) -> None:
    """A table without a state is told of too; what an abandoned batch said was never said."""
    first_captured(ledger, lease, ORDERS, STOCK)
    begin = [Extent(UNSEEN, place(4), place(9)), Extent(ORDERS, place(4)), Extent(STOCK, place(4))]
    captured(ledger, lease, *begin)
    assert ledger.partial(lease.source) == begin
    batch = captured(ledger, lease, Extent(STOCK, None), Extent(ORDERS, place(7)))
    assert ledger.partial(lease.source) == [begin[0], Extent(ORDERS, place(7))]
    ledger.abandon(lease, batch, "a test")
    assert ledger.partial(lease.source) == begin
    assert ledger.partial("another source") == []


def test_a_dropped_table_is_not_partial(ledger: Ledger, lease: Lease) -> None:
    """There is nothing that it could be a part of."""
    first_captured(ledger, lease, ORDERS, STOCK)
    batch = following(ledger, lease)
    dropped = replace(state(ORDERS), condition=TableCondition.DROPPED)
    extents = (Extent(ORDERS, place(4)), Extent(STOCK, place(4)))
    made = replace(record(batch), tables=(dropped,), extents=extents)
    ledger.record_capture(lease, batch.id, made)
    assert [one.table for one in ledger.partial(lease.source)] == [STOCK]


def test_what_was_found_equal_is_whole(ledger: Ledger, lease: Lease) -> None:
    """As of the batch; a later one may say otherwise."""
    first_captured(ledger, lease, ORDERS, STOCK)
    batch = captured(ledger, lease, Extent(ORDERS, place(4)), Extent(STOCK, place(4)))
    ledger.note_whole(lease, batch, {ORDERS})
    assert [one.table for one in ledger.partial(lease.source)] == [STOCK]
    captured(ledger, lease, Extent(ORDERS, place(8)))
    assert [one.table for one in ledger.partial(lease.source)] == [ORDERS, STOCK]


def test_only_partial_tables_were_seen_empty(ledger: Ledger, lease: Lease) -> None:
    """A whole one needs no such place."""
    batch = begun(ledger, lease)
    made = replace(record(batch), extents=(Extent(ORDERS, None, place(4)),))
    with refused(ledger, lease, "extents_empty_of_partial"):
        ledger.record_capture(lease, batch.id, made)


# -- ledgers of before ------------------------------------------------------------------


@pytest.fixture(params=EACH_POSTGRES)
def dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.getfixturevalue(request.param)


def test_a_ledger_of_before_is_read_with_care(dsn: str) -> None:
    """Whatever the server had at the start is taken for partial until something made it whole;
    a mirror that changed hands is what it was."""
    names = "made", "emptied", "dropped", "reread", "kept", "renamed", "gone"
    made, emptied, dropped, reread, kept, renamed, gone = (TableName("shop", n) for n in names)
    there = (emptied, dropped, reread, kept)
    source = "a ledger of before"
    with open_ledger(dsn, Path()) as ledger, ledger.lock(source, "a test", None) as lease:
        first = begun(ledger, lease)
        history = History(versions=tuple(map(version, (*there, UNSEEN, gone))))
        told = replace(record(first), history=history, tables=tuple(map(state, there)))
        ledger.record_capture(lease, first.id, told)
        _acknowledged(ledger, lease, first.id)
        second = following(ledger, lease)
        before = ledger.table_states(source)[kept]
        taken = Handover(renamed, 2, before.mirror, 3, 1, replace(before, table=renamed))
        left = Handover(kept, 2, f"{before.mirror}@2", None, None, before)
        events = {
            made: TableEventKind.CREATED,
            emptied: TableEventKind.TRUNCATED,
            dropped: TableEventKind.DROPPED,
            reread: TableEventKind.REREAD,
        }
        told = replace(
            record(second),
            history=History(
                versions=(
                    *(
                        replace(version(one), origin=VersionOrigin.STATEMENT)
                        for one in (made, renamed)
                    ),
                    SchemaVersion(gone, 2, place(9), Knowledge.DROPPED, VersionOrigin.STATEMENT),
                )
            ),
            tables=(
                state(made),
                replace(state(renamed), generation=2, mirror=before.mirror),
                replace(before, generation=2, condition=TableCondition.DROPPED),
            ),
            events=tuple(
                TableEvent(table, kind, second.base, 1, place(9), "read anew")
                for table, kind in events.items()
            ),
            handovers=(taken, left),
        )
        ledger.record_capture(lease, second.id, told)
        assert ledger.partial(source) == []
        _derive_again(dsn)
        begins = {one.table: one.begins for one in ledger.partial(source)}
        assert begins == {UNSEEN: place(4), renamed: place(4)}


def _acknowledged(ledger: Ledger, lease: Lease, batch: int) -> None:
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, batch)


def _derive_again(dsn: str) -> None:
    """The part of the migration that reads what is there."""
    (migration,) = (one for one in migrations() if one.name == "extents")
    connection = psycopg2.connect(dsn)
    with connection, connection.cursor() as cursor:
        cursor.execute(migration.text[migration.text.index("-- What was read before this") :])
    connection.close()
