"""A consumer in Python: the changelog's rows of exactly its batches, from real files; and what it
is told when something is missing or mistaken."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import lockstep
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import (
    ConfigurationError,
    ConsumerRefused,
    ConsumerUnknown,
    NothingMatches,
    SegmentsLost,
    TableQuarantined,
    VersionSetUnknown,
)
from lockstep.pipeline.values.table import Column, TableName, TableStructure
from tests.consumers.shop import NOTES, ORDERS, Shop, inserts, next_delivery, with_columns
from tests.ledger.made import DECISION, position, record

MOMENT = datetime(2026, 11, 1, 6, 0, 0, 123456)


def in_order(table: pa.Table) -> list[tuple[int, int]]:
    """(batch, id) of each row."""
    return list(zip(table["_batch"].to_pylist(), table["id"].to_pylist(), strict=True))


def test_a_delivery_has_the_rows_of_its_batches(billing: Shop) -> None:
    """Of one table at a time, in the order of the source, whatever else is in the changelog."""
    first = billing.batch({ORDERS: inserts(1, 2), NOTES: inserts(9)})
    second = billing.batch({NOTES: inserts(8)})
    third = billing.batch({ORDERS: inserts(4, 3)})
    billing.batch({ORDERS: inserts(5)})
    with billing.consume() as consumer:
        delivery = next_delivery(consumer, 3)
        orders = delivery.arrow("shop.orders")
        assert in_order(orders) == [(first, 1), (first, 2), (third, 4), (third, 3)]
        assert in_order(delivery.arrow(str(NOTES))) == [(first, 9), (second, 8)]
    assert (delivery.batches, delivery.changes) == ((first, second, third), 6)
    assert delivery.tables == ("shop.orders", str(NOTES))
    assert (delivery.start.at.offset, delivery.end.at.offset) == (4, 304)


def test_a_consumer_begins_at_a_place(shop: Shop) -> None:
    """With the whole batch that the place lies in, or after the one that ends there; what is no
    place, or none that was read, is refused."""
    _, second, third = (shop.batch({ORDERS: inserts(number)}) for number in (1, 2, 3))
    starts = {
        "binlog.000001:150": second,
        "binlog.000001:204": third,
        "binlog.000001:205": third,
        "binlog.000001:304": None,
    }
    for number, (start, expected) in enumerate(starts.items()):
        name = f"made{number}"
        lockstep.make_consumer(shop.source, name, start=start, config=shop.config)
        with shop.consume(name) as consumer:
            delivery = consumer.get()
            assert (delivery and delivery.first_batch) == expected, start
    for start in ("2026-11-01T05:59:59Z", "2100-01-01T00:00:00Z", "binlog.000001:305"):
        with pytest.raises(VersionSetUnknown):
            lockstep.make_consumer(shop.source, "late", start=start, config=shop.config)
    for start in ("yesterday", "4", "", "gtid:3e11fa47-71ca-11e1-9e33-c80aa9429562:1-150"):
        with pytest.raises(ConfigurationError):
            lockstep.make_consumer(shop.source, "late", start=start, config=shop.config)


def test_all_deliveries_together_are_the_changelog(billing: Shop) -> None:
    """Each row once, with the columns and types of the Delta table."""
    for number in range(0, 12, 3):
        billing.batch({ORDERS: inserts(number, number + 1, number + 2)})
    tables = []
    with billing.consume() as consumer:
        while delivery := consumer.get(max_changes=6):
            tables.append(delivery.arrow("shop.orders"))
            delivery.ack()
    (view,) = lockstep.list_consumers(billing.source, config=billing.config)
    published = pa.table(DeltaTable(billing.changelog(ORDERS)).to_pyarrow_table())
    whole = pa.concat_tables(tables)
    assert (len(tables), view.batches_behind) == (2, 0)
    assert whole.sort_by("_sequence").to_pylist() == published.sort_by("_sequence").to_pylist()
    assert whole.schema.names == published.schema.names


def test_values_come_as_they_were_captured(billing: Shop) -> None:
    """Moments with and without a zone, text, and NULL."""
    values = {"id": 1, "name": "ü", "at": MOMENT, "seen": MOMENT.replace(tzinfo=UTC)}
    billing.batch({ORDERS: [("insert", values), ("delete", {"id": 2})]})
    with billing.delivered() as delivery:
        table = delivery.arrow("shop.orders").select(["_change_type", "id", "name", "at", "seen"])
    nothing = {"name": None, "at": None, "seen": None}
    assert table.to_pylist() == [
        {"_change_type": "insert", **values},
        {"_change_type": "delete", "id": 2, **nothing},
    ]


def test_a_column_that_was_added_is_null_before(billing: Shop) -> None:
    """A delivery over both structures has the columns of the newer one."""
    billing.batch({ORDERS: inserts(1)})
    with_columns(billing, ORDERS, Column("price", "int"))
    billing.batch({ORDERS: [("insert", {"id": 2, "price": 7})]}, publish=False)
    with billing.delivered() as delivery:
        table = delivery.arrow("shop.orders")
    assert table.select(["id", "price"]).to_pylist() == [
        {"id": 1, "price": None},
        {"id": 2, "price": 7},
    ]


def test_a_table_without_changes_is_empty(billing: Shop) -> None:
    """It has its columns, and no row; a table that was never captured is an error."""
    billing.batch({ORDERS: inserts(1), NOTES: inserts(1)})
    billing.batch({NOTES: inserts(2)})
    with billing.consume() as consumer:
        full, empty = next_delivery(consumer, 1), next_delivery(consumer, 1)
        orders = empty.arrow("shop.orders")
        assert (orders.num_rows, orders.schema) == (0, full.arrow("shop.orders").schema)
        with pytest.raises(NothingMatches):
            empty.arrow("shop.unknown")


def test_what_is_rolled_back_is_the_same_again(billing: Shop) -> None:
    """Under another id; the old id is refused."""
    billing.batch({ORDERS: inserts(1, 2)})
    with billing.consume() as consumer:
        before = next_delivery(consumer)
        rows = before.arrow("shop.orders")
    with billing.consume() as consumer:
        assert [one.id for one in consumer.out()] == [before.id]
        assert consumer.get() is None
        assert consumer.rollback() == [before.id]
        again = next_delivery(consumer)
        assert again.arrow("shop.orders") == rows
        with pytest.raises(ConsumerRefused):
            consumer.ack(before.id)
        again.ack()
        with pytest.raises(ConsumerRefused):
            again.rollback()


def test_a_dropped_consumer_holds_nothing_back(billing: Shop) -> None:
    """A person says so, with a reason."""
    lockstep.drop_consumer(billing.source, "billing", reason="no more bills", config=billing.config)
    assert lockstep.list_consumers(billing.source, config=billing.config) == []


def test_importing_lockstep_imports_nothing_heavy() -> None:
    """`lockstep.consume` and its friends are there all the same, and nothing else is."""
    text = (
        "import sys, lockstep; before = set(sys.modules); lockstep.consume;"
        "heavy = {'pyarrow', 'pydantic', 'psycopg2', 'pyspark', 'deltalake'};"
        "assert not heavy & before, heavy & before; print(sorted(lockstep.__all__))"
    )
    root = Path(__file__).resolve().parents[2]
    said = subprocess.run(
        [sys.executable, "-c", text], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    assert said == (
        "['consume', 'drop_consumer', 'list_consumers', 'make_consumer', 'read_at', "
        "'read_changelog']\n"
    )
    with pytest.raises(AttributeError):
        lockstep.consumer  # noqa: B018


def test_files_that_are_gone(billing: Shop) -> None:
    """Vacuumed by somebody, or changed: a clear error, for either reader; other tables and
    the acknowledgement are not touched."""
    billing.batch({ORDERS: inserts(1), NOTES: inserts(1)})
    (file,) = billing.changelog(ORDERS).glob("*.parquet")
    content = file.read_bytes()
    with billing.consume() as consumer:
        delivery = next_delivery(consumer)
        for damage in (file.unlink, lambda: file.write_bytes(content[:-1] + b"?")):
            damage()
            with pytest.raises(SegmentsLost, match=file.name) as lost:
                delivery.arrow("shop.orders")
            assert lost.value.hint.startswith("`lockstep replay --from earliest --to latest`")
            assert "drop the consumer" in lost.value.hint
            with pytest.raises(SegmentsLost):
                delivery.spark("shop.orders", None)
        assert delivery.arrow(str(NOTES)).num_rows == 1
        file.unlink()
        whole = lockstep.read_changelog(billing.source, "shop.orders", config=billing.config)
        with pytest.raises(SegmentsLost, match=f"{file.name} is missing") as lost:
            whole.arrow()
        assert lost.value.hint.startswith("`lockstep replay --from earliest --to latest`")
        file.write_bytes(content)
        assert delivery.arrow("shop.orders").num_rows == 1


def test_a_table_that_is_quarantined(billing: Shop) -> None:
    """Its changes end somewhere: that must be known to who reads them."""
    billing.batch({ORDERS: inserts(1)})
    billing.batch({ORDERS: inserts(2)}, ORDERS)
    billing.batch({NOTES: inserts(1)})
    with billing.consume() as consumer:
        before, delivery, later = (next_delivery(consumer, 1) for _ in range(3))
        assert before.arrow("shop.orders")["id"].to_pylist() == [1]
        with pytest.raises(TableQuarantined, match="a type is not supported") as quarantined:
            delivery.arrow("shop.orders")
        assert "exclude it" in quarantined.value.hint
        assert delivery.arrow("shop.orders", incomplete=True)["id"].to_pylist() == [2]
        assert later.arrow("shop.orders", incomplete=True).num_rows == 0
        assert later.arrow(str(NOTES)).num_rows == 1


def test_a_table_whose_columns_the_lake_cannot_show(billing: Shop) -> None:
    """It never had a changelog: who accepts incomplete changes is not told to accept them."""
    new = TableName("shop", "new")
    billing.versions[new] = [
        TableStructure(new, (Column("id", "int"), Column("v", "hologram")), ("id",))
    ]
    billing.batch({ORDERS: inserts(1)}, new)
    with billing.consume() as consumer:
        delivery = next_delivery(consumer)
        with pytest.raises(TableQuarantined) as quarantined:
            delivery.arrow("shop.new")
        assert "incomplete=True" in quarantined.value.hint
        with pytest.raises(TableQuarantined, match="HOLOGRAM") as quarantined:
            delivery.arrow("shop.new", incomplete=True)
        assert quarantined.value.hint == "exclude it"


def test_a_gap_is_told_with_the_batch_behind_it(billing: Shop) -> None:
    """Changes that a person gave up are missing from the changelog: its consumers can know."""
    before = billing.batch({ORDERS: inserts(1)})
    ledger, lease = billing.ledger, billing.lease
    jump = replace(
        DECISION, previous_batch=before, continuity=Continuity.GAP, gap_tables=("shop.orders",)
    )
    decided = ledger.decide(lease, jump)
    batch = ledger.begin_batch(
        lease, position(9000), continued_batch=None, start_decision=decided.id
    )
    ledger.record_capture(lease, batch.id, record(batch))
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, batch.id)
    with billing.consume() as consumer:
        first, second = next_delivery(consumer, 1), next_delivery(consumer)
        assert first.gaps == []
        assert [(gap.batch, gap.tables) for gap in second.gaps] == [(batch.id, ("shop.orders",))]


def test_mistakes_are_named(billing: Shop) -> None:
    """A consumer that was not made, a source that is not configured, a table's short name."""
    with pytest.raises(ConsumerUnknown, match="'audit'"), billing.consume("audit"):
        pass
    with pytest.raises(ConfigurationError, match="no source 'shoop'"):
        lockstep.make_consumer("shoop", "billing", start="latest", config=billing.config)
    billing.batch({ORDERS: inserts(1)})
    with billing.consume() as consumer:
        delivery = next_delivery(consumer)
        with pytest.raises(ConfigurationError, match="'orders'"):
            delivery.arrow("orders")
        with pytest.raises(ConfigurationError, match="max_batches"):
            consumer.get(max_batches=0)
