"""What a consumer in Python is told when something is missing or mistaken."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lockstep
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import (
    ConfigurationError,
    ConsumerUnknown,
    SegmentsLost,
    TableQuarantined,
)
from tests.consumers.shop import NOTES, ORDERS, Shop, inserts, next_delivery
from tests.ledger.made import DECISION, position, record


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
    with (
        pytest.raises(ConsumerUnknown, match="'audit'"),
        billing.consume("audit"),
    ):
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
