"""Old changes deleted from real changelogs by a real ledger, between a consumer's deliveries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg2
import pytest
from deltalake import DeltaTable

import lockstep
from lockstep.pipeline.model.batch import Batch, CaptureRecord
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.upkeep import delete_changes, plan_changes
from lockstep.pipeline.values.errors import ConsumerRefused
from lockstep.pipeline.values.segment import SegmentFile, SystemTable, SystemTableSegment
from lockstep.pipeline.values.table import TableName
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import load_settings
from tests.consumers.shop import NOTES, ORDERS, Images, Shop, inserts, next_delivery, opened_shop

SOURCE = "kept"
BATCHES, READ = 12, 4
KEEP, AT_ONCE = timedelta(days=90), timedelta()


class Told(Shop):
    """Each batch has a file of `_transactions`, as any that a run captures."""

    def _record(
        self, batch: Batch, changed: Mapping[TableName, Images], quarantined: Sequence[TableName]
    ) -> CaptureRecord:
        file = SegmentFile(f"batch-{batch.id:012d}-v0-00000.parquet", 1, 1, "0" * 64)
        part = SystemTableSegment(SystemTable.TRANSACTIONS, (file,))
        return replace(super()._record(batch, changed, quarantined), system_segments=(part,))


@pytest.fixture
def shop(ledger: Ledger, ledger_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """`BATCHES` batches, acknowledged a hundred days ago."""
    monkeypatch.setenv("LOCKSTEP_TEST_LEDGER", ledger_dsn)
    monkeypatch.setenv("NOBODY_NEEDS_IT", "x")
    with opened_shop(tmp_path, SOURCE, ledger) as made:
        shop = Told(made.folder, made.source, made.ledger, made.lease)
        for number in range(BATCHES):
            more = {NOTES: inserts(number)} if number % 2 else {}
            shop.batch({ORDERS: inserts(number), **more})
    connection = psycopg2.connect(ledger_dsn)
    with connection, connection.cursor() as cursor:
        cursor.execute("set session_replication_role = replica")  # no batch's moments change
        cursor.execute(
            "update lockstep.batches set acknowledged_at = acknowledged_at - interval '100 days' "
            "where source = %s",
            (SOURCE,),
        )
    connection.close()
    return shop


def test_what_is_unread_stays_and_what_is_old_goes(shop: Shop, ledger_dsn: str) -> None:
    """As much is listed no more, and then deleted, as the plan says; a consumer reads on where it
    was, one that is made begins with what is kept, and nothing is left to be done. Of the batches
    that are gone the ledger has those that brought a table, and the last."""
    batches = [one.id for one in reversed(shop.ledger.batches(SOURCE, limit=99))]
    orders, notes = shop.changelog(ORDERS), shop.changelog(NOTES)
    lockstep.make_consumer(SOURCE, "billing", start="earliest", config=shop.config)
    with shop.consume() as consumer:
        delivery = next_delivery(consumer, READ)
        consumer.ack(delivery.id)
    kept = set(batches[READ:])
    with Adapters(load_settings(shop.config), on_warning=print) as adapters:
        ports = replace(adapters.ports(SOURCE, SilentProgress()), clock=lambda: datetime.now(UTC))
        due = plan_changes(ports, KEEP, timedelta(days=30))
        assert due.last_batch == batches[READ - 1]
        assert due.holder_sentence is not None
        assert "the consumer billing" in due.holder_sentence
        versions = DeltaTable(orders).version(), DeltaTable(notes).version()
        done = delete_changes(ports, due, "test")
        assert (done.unlisted, done.deleted.count) == (due.unlisted, 0)
        assert done.unlisted.count == READ + READ + READ // 2
        assert (DeltaTable(orders).version(), DeltaTable(notes).version()) == tuple(
            version + 1 for version in versions
        )
        (said,) = DeltaTable(orders).history(1)
        assert f'"batches": [1, {batches[READ - 1]}]' in said["userMetadata"]
        for table, files in ((orders, BATCHES), (notes, BATCHES // 2)):
            assert len([*table.glob("*.parquet")]) == files
            listed = DeltaTable(table).to_pyarrow_table()
            assert set(listed["_batch"].to_pylist()) <= kept
        gone = delete_changes(ports, plan_changes(ports, KEEP, AT_ONCE), "test")
        assert (gone.deleted, gone.ledger_rows > 0) == (done.unlisted, True)
        assert len([*orders.glob("*.parquet")]) == BATCHES - READ
        assert plan_changes(ports, KEEP, AT_ONCE).is_empty
    with psycopg2.connect(ledger_dsn) as connection, connection.cursor() as cursor:
        cursor.execute("select id from lockstep.batches where source = %s order by id", (SOURCE,))
        assert [number for (number,) in cursor] == [*batches[:2], *batches[READ - 1 :]]

    with shop.consume() as consumer:
        rest = next_delivery(consumer)
        assert rest.batches == tuple(batches[READ:])
        assert rest.arrow("shop.orders")["id"].to_pylist() == [*range(READ, BATCHES)]
    lockstep.make_consumer(SOURCE, "audit", start="earliest", config=shop.config)
    with shop.consume("audit") as consumer:
        delivery = next_delivery(consumer)
        assert delivery.batches == rest.batches
    with pytest.raises(ConsumerRefused, match="were deleted"):
        lockstep.make_consumer(SOURCE, "late", start=batches[0], config=shop.config)
