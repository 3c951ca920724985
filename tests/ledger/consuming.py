"""What the tests of consumers do on every ledger, short to write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lockstep.pipeline.ports.ledger import Consumers, Ledger
from lockstep.pipeline.values.consumers import Delivery, DeliveryBounds
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import ConsumerRefused
from lockstep.pipeline.values.table import TableName
from tests.ledger.made import first_captured, merged, next_captured

ALL = DeliveryBounds()
ONE = DeliveryBounds(max_batches=1)
NAME = "billing"


def acknowledged(ledger: Ledger, lease: Lease, *tables: TableName) -> int:
    """The next batch, acknowledged, with ten row images of each table; its id."""
    first = not ledger.batches(lease.source)
    made = first_captured if first else next_captured
    batch = made(ledger, lease, *tables)
    for table in tables:
        merged(ledger, lease, table, batch.id, batch.id, batch.id)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, batch.id)
    return batch.id


def given(consumers: Consumers, source: str, bounds: DeliveryBounds = ONE) -> Delivery:
    delivery = consumers.deliver(source, NAME, bounds)
    assert delivery is not None
    return delivery


@contextmanager
def refused(consumers: Consumers, source: str, rule: str) -> Iterator[None]:
    """The block is refused by this rule, and what stands is as before."""
    before = consumers.consumers(source), consumers.open_deliveries(source, NAME)
    with pytest.raises(ConsumerRefused) as caught:
        yield
    assert caught.value.rule == rule
    assert rule not in caught.value.message + caught.value.hint
    assert "report this" not in caught.value.hint
    assert (consumers.consumers(source), consumers.open_deliveries(source, NAME)) == before
