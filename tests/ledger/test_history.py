"""The history of structures, as every ledger records it and answers for any place."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.schema.history import (
    BatchHistory,
    DatabaseVersion,
    Knowledge,
    RecordedEffect,
    SchemaStatement,
    SchemaVersion,
    VersionOrigin,
)
from lockstep.pipeline.schema.model import (
    DatabaseCode,
    DatabaseSchema,
    TableAccess,
    Trigger,
    View,
    schema_fingerprint,
)
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LedgerRefused
from lockstep.pipeline.values.table import TableName
from tests.ledger.made import (
    MOMENT,
    ORDERS,
    OTHER,
    OVERLAP,
    SERVER,
    STOCK,
    begun,
    elsewhere,
    first_captured,
    following,
    newest,
    place,
    position,
    record,
    schema,
    version,
)
from tests.ledger.refusals import refused

STATEMENT = SchemaStatement(
    begin=place(10),
    end=place(20),
    gtid=f"{SERVER}:5",
    committed_at=MOMENT,
    database="shop",
    text="alter table orders /* \0 \udcff */ add note varchar(20)",
    outcome="followed",
    effects=(RecordedEffect(ORDERS, "changed"), RecordedEffect(None, "one more")),
    context={"sql_mode": ["ANSI_QUOTES"], "client": "utf8mb4", "moment": 1.5, "none": None},
)
ADDED = replace(
    version(ORDERS, 2, 20, "note"),
    columns_from=("id", None, "state"),
    statement_number=0,
    generation=2,
)
DROPPED = SchemaVersion(
    STOCK, 2, place(30), Knowledge.DROPPED, VersionOrigin.STATEMENT, statement_number=1
)
UNKNOWN = SchemaVersion(
    ORDERS, 3, place(40), Knowledge.UNKNOWN, VersionOrigin.STATEMENT, reason="nobody understands it"
)

CODED = DatabaseSchema(
    "shop",
    "latin1",
    "latin1_bin",
    DatabaseCode(
        (
            Trigger(
                "seen",
                TableName("shop", "orders"),
                ("INSERT", "UPDATE"),
                TableAccess(((TableName("log", "x"), ("DELETE",)),), (TableName("a", "b"),)),
            ),
        ),
        (
            View("v", TableAccess(reason="unknown")),
            View("w", TableAccess(with_names=(TableName("a", "c"),))),
        ),
        ("help_topic",),
    ),
)
"""With triggers and views."""


def recorded(ledger: Ledger, lease: Lease, batch: Batch, *versions: SchemaVersion) -> Batch:
    """The batch, captured with these versions."""
    made = replace(record(batch), history=BatchHistory(versions=versions))
    ledger.record_capture(lease, batch.id, made)
    return newest(ledger, lease)


def numbers(versions: list[SchemaVersion]) -> list[tuple[TableName, int]]:
    return [(one.table, one.version) for one in versions]


def test_a_history_is_given_back_whole(ledger: Ledger, lease: Lease) -> None:
    """Statements, versions and databases are what was recorded, with their batch; a version
    names its statement by the ledger's id."""
    batch = begun(ledger, lease)
    drop = replace(STATEMENT, begin=place(20), end=place(30), committed_at=None, context={})
    database = DatabaseVersion("shop", place(4), CODED)
    history = BatchHistory(
        (STATEMENT, drop),
        (version(ORDERS), version(STOCK), ADDED, DROPPED, UNKNOWN),
        (database, replace(database, name="gone", schema=None, statement_number=1)),
    )
    ledger.record_capture(lease, batch.id, replace(record(batch), history=history))
    first, second = ledger.schema_statements(lease.source)
    assert first == replace(STATEMENT, id=first.id, batch=batch.id)
    assert second == replace(drop, id=second.id, batch=batch.id)
    assert ledger.statements(lease.source, [second.id]) == {second.id: second}
    assert ledger.schema_versions(lease.source, ORDERS) == [
        replace(version(ORDERS), batch=batch.id),
        replace(ADDED, batch=batch.id, statement_number=first.id),
        replace(UNKNOWN, batch=batch.id),
    ]
    dropped = replace(DROPPED, batch=batch.id, statement_number=second.id)
    assert ledger.schema_at(lease.source, STOCK) == dropped
    assert ledger.schema_version(lease.source, STOCK, 2) == dropped
    assert ledger.databases_at(lease.source) == [replace(database, batch=batch.id)]


def test_a_place_has_the_newest_versions_up_to_it(ledger: Ledger, lease: Lease) -> None:
    """A batch sees its own versions up to the place, and all of the batches before it; of two at a
    place, as in one transaction, the later holds. What is dropped there is left out. A batch that
    goes back keeps nothing from the answers of the one before it."""
    chance, source, batch = Random(0), lease.source, begun(ledger, lease)
    learnt: list[tuple[int, int, SchemaVersion]] = []
    databases: list[tuple[int, int, DatabaseVersion]] = []
    latin = DatabaseSchema("shop", "latin1", "latin1_bin")
    for number in range(8):
        start = batch.start.at.offset
        for offset in sorted(chance.choices(range(start, start + 100, 10), k=chance.randrange(5))):
            table = chance.choice((ORDERS, STOCK))
            one = version(table, 1 + sum(some.table == table for *_, some in learnt), offset)
            if chance.random() < 0.3:
                one = replace(DROPPED, table=table, version=one.version, since=one.since)
            learnt.append((batch.id, offset, replace(one, statement_number=None)))
            schema = latin if chance.random() < 0.5 else None
            databases.append((batch.id, offset, DatabaseVersion("shop", place(offset), schema)))
        history = BatchHistory(
            versions=tuple(one for of, _, one in learnt if of == batch.id),
            databases=tuple(one for of, _, one in databases if of == batch.id),
        )
        ledger.record_capture(lease, batch.id, replace(record(batch), history=history))
        if number == 4:
            batch = elsewhere(ledger, lease, batch, OVERLAP, start=position(54))
        else:
            batch = following(ledger, lease)
    offsets = sorted({offset + more for _, offset, _ in learnt for more in (-1, 0)})
    places = [(one.id, offset) for one in ledger.live_batches(source) for offset in offsets]
    for asked in places:
        seen = [one for of, offset, one in learnt if (of, offset) <= asked]
        newest_versions = {one.table: one for one in seen}
        for table in (ORDERS, STOCK):
            found = ledger.schema_at(source, table, batch=asked[0], place=place(asked[1]))
            expected = newest_versions.get(table)
            assert (found and found.version) == (expected and expected.version)
        there = [one for one in newest_versions.values() if one.knowledge is Knowledge.KNOWN]
        tables = ledger.schemas_at(source, batch=asked[0], place=place(asked[1]))
        assert numbers(tables) == sorted(numbers(there))
        shown = [one for of, offset, one in databases if (of, offset) <= asked][-1:]
        found_names = ledger.databases_at(source, batch=asked[0], place=place(asked[1]))
        assert len(found_names) == sum(one.schema is not None for one in shown)
    assert numbers(ledger.schemas_at(source)) == numbers(tables)
    last = [one for *_, one in learnt if one.table == ORDERS][-1]
    now = ledger.schema_at(source, ORDERS)
    assert now is not None and now.version == last.version


def test_numbers_of_an_abandoned_batchs_versions_are_not_given_again(
    ledger: Ledger, lease: Lease
) -> None:
    """By its number such a version is still there."""
    recorded(ledger, lease, begun(ledger, lease), version(ORDERS))
    batch = recorded(ledger, lease, following(ledger, lease), version(ORDERS, 2, 110))
    ledger.abandon(lease, batch.id, "damaged")
    assert ledger.schema_version(lease.source, ORDERS, 2).batch == batch.id
    assert ledger.last_versions(lease.source) == {ORDERS: 2}
    again = following(ledger, lease)
    with refused(ledger, lease, "table_versions_pk"):
        recorded(ledger, lease, again, version(ORDERS, 2, 120))
    recorded(ledger, lease, again, version(ORDERS, 3, 120))
    found = [
        ledger.schema_at(lease.source, ORDERS, batch=again.id, place=place(offset))
        for offset in (119, 120)
    ]
    assert [one and one.version for one in found] == [1, 3]


def test_what_the_log_tells_beside_rows_is_no_baseline(ledger: Ledger, lease: Lease) -> None:
    """A history begins with one, of tables or of databases alone."""
    batch = begun(ledger, lease)
    recorded(ledger, lease, batch, replace(version(ORDERS), origin=VersionOrigin.TABLE_MAP))
    assert ledger.has_history(lease.source) is False
    batch = following(ledger, lease)
    shop = DatabaseVersion("shop", place(4), DatabaseSchema("shop", "latin1", "latin1_bin"))
    alone = replace(record(batch), history=BatchHistory(databases=(shop,)))
    ledger.record_capture(lease, batch.id, alone)
    assert ledger.has_history(lease.source) is True


def test_statements_come_page_by_page(ledger: Ledger, lease: Lease) -> None:
    """In the order of the log, over batches."""
    for batch in (begun(ledger, lease), None):
        one = batch or following(ledger, lease)
        texts = [replace(STATEMENT, text=f"{one.id}/{number}") for number in range(3)]
        ledger.record_capture(
            lease, one.id, replace(record(one), history=BatchHistory(statements=tuple(texts)))
        )
    whole = ledger.schema_statements(lease.source)
    assert [one.text[-2:] for one in whole] == ["/0", "/1", "/2"] * 2
    page = ledger.schema_statements(lease.source, limit=4)
    rest = ledger.schema_statements(lease.source, after=page[-1].id, limit=4)
    assert [*page, *rest] == whole


def test_a_place_belongs_to_the_newest_batch_that_read_it(ledger: Ledger, lease: Lease) -> None:
    """From its start to its end, on its server; a batch that is only begun read nothing."""
    first = first_captured(ledger, lease)
    again = elsewhere(ledger, lease, first, OVERLAP, start=position(54))
    ledger.record_capture(lease, again.id, record(again))
    following(ledger, lease)
    found = {
        offset: ledger.captured_batch(lease.source, SERVER, place(offset))
        for offset in (3, 4, 53, 54, 104, 154, 155)
    }
    ids = {offset: batch.id if batch else None for offset, batch in found.items()}
    early, late = dict.fromkeys((4, 53), first.id), dict.fromkeys((54, 104, 154), again.id)
    assert ids == {3: None, **early, **late, 155: None}
    assert ledger.captured_batch(lease.source, OTHER, place(60)) is None
    assert ledger.captured_batch(lease.source, SERVER, place(60, number=2)) is None
    ledger.abandon(lease, newest(ledger, lease).id, "found unfinished")
    ledger.abandon(lease, again.id, "damaged")
    assert ledger.captured_batch(lease.source, SERVER, place(60)) == first


def test_what_another_source_has_is_nobody_elses(ledger: Ledger, lease: Lease) -> None:
    """Not even by its number."""
    with ledger.lock(f"{lease.source} beside", "beside", None) as beside:
        batch = begun(ledger, beside)
        history = BatchHistory((STATEMENT,), (version(ORDERS),), ())
        ledger.record_capture(beside, batch.id, replace(record(batch), history=history))
        (told,) = ledger.schema_statements(beside.source)
    with pytest.raises(LedgerRefused):
        ledger.statements(lease.source, [told.id])
    with pytest.raises(LedgerRefused):
        ledger.schema_version(lease.source, ORDERS, 1)


def test_a_schema_keeps_its_fingerprint(ledger: Ledger, lease: Lease) -> None:
    """Nothing of it is lost on the way."""
    recorded(ledger, lease, begun(ledger, lease), version(ORDERS, 1, 4, "ä", "a'b\\"))
    found = ledger.schema_at(lease.source, ORDERS)
    assert found is not None
    assert found.fingerprint == schema_fingerprint(schema(ORDERS, "ä", "a'b\\"))
