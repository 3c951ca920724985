"""Consumers of the changelog: where they begin, what they hold back, processes of one name."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from lockstep.pipeline.ports.ledger import Consumers, Ledger
from lockstep.pipeline.values.consumers import ConsumerStart
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import ConsumerRefused, ConsumerUnknown
from tests.ledger.consuming import ALL, NAME, acknowledged, given, refused
from tests.ledger.made import (
    ORDERS,
    next_captured,
)
from tests.ledger.servers import Stand


@pytest.mark.parametrize("start", ["earliest", "latest", "second"])
def test_where_a_consumer_begins(
    consumers: Consumers, source: str, batches: list[int], start: str
) -> None:
    """Before everything, behind the newest acknowledged batch, or behind a given one."""
    starts: dict[str, tuple[ConsumerStart, int | None, int | None]] = {
        "earliest": ("earliest", None, batches[0]),
        "latest": ("latest", batches[-1], None),
        "second": (batches[1], batches[1], batches[2]),
    }
    chosen, place, first = starts[start]
    made = consumers.make_consumer(source, NAME, chosen)
    assert (made.source, made.name, made.cursor, made.deliveries_out) == (source, NAME, place, 0)
    assert consumers.consumers(source) == [made]
    delivery = consumers.deliver(source, NAME, ALL)
    assert (delivery.first_batch if delivery else None) == first


def test_a_consumer_may_be_made_before_the_first_run(
    ledger: Ledger, consumers: Consumers, source: str
) -> None:
    """`latest` and `earliest` are the same then, and the first batch is theirs."""
    made = [consumers.make_consumer(source, name, "latest") for name in (NAME, "audit")]
    assert [one.cursor for one in made] == [None, None]
    assert consumers.deliver(source, NAME, ALL) is None
    with ledger.lock(source, "the first run", None) as lease:
        batch = acknowledged(ledger, lease, ORDERS)
    assert given(consumers, source, ALL).batches == (batch,)


def test_what_no_consumer_can_be_made_of(
    ledger: Ledger, lease: Lease, consumers: Consumers, billing: str
) -> None:
    """It is not made a second time, nor moved. It begins behind an acknowledged batch: neither one
    that nobody knows nor one that may still be abandoned; and at no moment, for only whole batches
    are delivered, so whoever names a moment learns how to name a batch."""
    waiting = next_captured(ledger, lease)
    moments = ("2026-11-29T12:29:00Z", "yesterday", "4", "")
    for name, start, rule in (
        (NAME, "latest", "consumers_name_once"),
        ("  ", "latest", "consumers_named"),
        ("audit", 10**9, "consumers_start"),
        ("audit", waiting.id, "consumers_start_acknowledged"),
        *(("audit", moment, "consumers_start") for moment in moments),
    ):
        with refused(consumers, billing, rule):
            consumers.make_consumer(billing, name, cast("ConsumerStart", start))


def test_an_unknown_consumer(consumers: Consumers, source: str, billing: str) -> None:
    """Each call says how one is made."""
    assert billing == source
    calls: list[Callable[[], object]] = [
        lambda: consumers.deliver(source, "audit", ALL),
        lambda: consumers.open_deliveries(source, "audit"),
        lambda: consumers.ack_delivery(source, "audit", 1),
        lambda: consumers.roll_back(source, "audit"),
        lambda: consumers.drop_consumer(source, "audit", author="ada", reason="unused"),
        lambda: consumers.deliver("another source", NAME, ALL),
    ]
    for call in calls:
        with pytest.raises(ConsumerUnknown) as unknown:
            call()
        assert "lockstep.make_consumer" in unknown.value.hint


def test_a_dropped_consumer_is_gone(consumers: Consumers, billing: str) -> None:
    """With what it had out; a later one of its name is another, with its own start."""
    before = given(consumers, billing)
    with refused(consumers, billing, "consumers_drop_explained"):
        consumers.drop_consumer(billing, NAME, author="ada", reason=" ")
    consumers.drop_consumer(billing, NAME, author="ada", reason="the project ended")
    assert consumers.consumers(billing) == []
    with pytest.raises(ConsumerUnknown):
        consumers.ack_delivery(billing, NAME, before.id)
    consumers.make_consumer(billing, NAME, "latest")
    with refused(consumers, billing, "deliveries_known"):
        consumers.ack_delivery(billing, NAME, before.id)
    assert consumers.deliver(billing, NAME, ALL) is None


# -- several processes -----------------------------------------------------------------


def test_processes_that_share_a_name_share_its_work(
    stand: Stand, lease: Lease, billing: str, batches: list[int]
) -> None:
    """Each batch is delivered to one of them, although all ask at once."""
    more = [acknowledged(stand.ledger, lease) for _ in range(16)]
    faces = (stand.consumers, stand.other_consumers)
    with ThreadPoolExecutor(4) as threads:
        out = list(threads.map(lambda number: given(faces[number % 2], billing), range(20)))
    assert sorted(one.batches for one in out) == [(batch,) for batch in (*batches, *more)]
    assert stand.consumers.open_deliveries(billing, NAME) == sorted(out, key=lambda one: one.id)


def test_one_of_two_acknowledgements_counts(stand: Stand, billing: str) -> None:
    """Whichever process comes second is told so."""
    delivery = given(stand.consumers, billing)

    def ack(face: Consumers) -> bool:
        try:
            face.ack_delivery(billing, NAME, delivery.id)
        except ConsumerRefused:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        counted = list(threads.map(ack, (stand.consumers, stand.other_consumers)))
    assert sorted(counted) == [False, True]


def test_a_rollback_meets_an_acknowledgement(stand: Stand, billing: str) -> None:
    """One of them happens; either way each batch is acknowledged once in the end."""
    first = given(stand.consumers, billing)

    def ack() -> bool:
        try:
            stand.consumers.ack_delivery(billing, NAME, first.id)
        except ConsumerRefused:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        acked = threads.submit(ack)
        taken = threads.submit(stand.other_consumers.roll_back, billing, NAME)
        assert acked.result() == (taken.result() == [])
    assert stand.other_consumers.open_deliveries(billing, NAME) == []
