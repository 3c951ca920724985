"""What the ledgers know of foreign keys, and of mirrors that are removed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.pipeline.model.life import MirrorRemoved
from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.schema.model import ForeignKey
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LedgerRefused
from tests.ledger.made import (
    ORDERS,
    STOCK,
    begun,
    begun_write,
    first_captured,
    following,
    merged,
    record,
    state,
    version,
)


def test_tables_with_foreign_keys(ledger: Ledger, lease: Lease) -> None:
    """By what they have now: a key that came later counts, one that is gone does not."""
    key = ForeignKey("fk", ("a",), STOCK, ("b",), "CASCADE")

    plain, other = version(ORDERS), version(STOCK)
    assert plain.schema is not None
    assert other.schema is not None
    with_key = replace(other, schema=replace(other.schema, foreign_keys=(key,)))
    first = begun(ledger, lease)
    history = BatchHistory(versions=(plain, with_key))
    ledger.record_capture(lease, first.id, replace(record(first), history=history))
    assert ledger.schemas_at(lease.source, referring=True) == [replace(with_key, batch=first.id)]
    second = following(ledger, lease)
    gained = replace(version(ORDERS, 2, 110), schema=replace(plain.schema, foreign_keys=(key,)))
    history = BatchHistory(versions=(gained, version(STOCK, 2, 120)))
    ledger.record_capture(lease, second.id, replace(record(second), history=history))
    assert ledger.schemas_at(lease.source, referring=True) == [replace(gained, batch=second.id)]
    ledger.abandon(lease, second.id, "damaged")
    assert ledger.schemas_at(lease.source, referring=True) == [replace(with_key, batch=first.id)]


def test_a_mirror_ends_once(ledger: Ledger, lease: Lease) -> None:
    """The next life of a dropped table is another generation, whose writes have versions of
    their own; a table that is there keeps its mirror."""
    first = first_captured(ledger, lease, ORDERS)
    merged(ledger, lease, ORDERS, first.id, first.id, 7)
    settled = ledger.newest_writes(lease.source, [f"{lease.source}/{ORDERS}@1"])[
        f"{lease.source}/{ORDERS}@1"
    ].settled_write
    assert settled is not None
    with pytest.raises(LedgerRefused, match="table_states_dropped"):
        ledger.record_event(lease, ORDERS, MirrorRemoved())
    with pytest.raises(LedgerRefused, match="table_states_dropped"):
        ledger.record_event(lease, STOCK, MirrorRemoved())
    second = following(ledger, lease)
    gone = replace(state(ORDERS), condition=TableCondition.DROPPED)
    ledger.record_capture(lease, second.id, replace(record(second, ORDERS), tables=(gone,)))
    app_id = settled.intent.app_id
    intent = begun_write(ledger, lease, ORDERS, app_id, second.id, second.id)
    ledger.settle(lease, intent, 8, shows=1)
    for _ in range(2):
        ledger.record_event(lease, ORDERS, MirrorRemoved())
        found = ledger.table_states(lease.source)[ORDERS]
        assert (found.generation, found.mirror_schema_version) == (2, None)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, first.id)
    ledger.acknowledge(lease, second.id)
    assert ledger.version_set(lease.source, second.id).entries == []
    third = following(ledger, lease)
    again = replace(state(ORDERS), generation=2)
    ledger.record_capture(lease, third.id, replace(record(third, ORDERS), tables=(again,)))
    intent = begun_write(ledger, lease, ORDERS, "another", third.id, third.id)
    ledger.settle(lease, intent, 0, shows=1)
    ledger.mark_merged(lease)
    ledger.acknowledge(lease, third.id)
    (entry,) = ledger.version_set(lease.source, third.id).entries
    assert (entry.table, entry.delta_version) == (ORDERS, 0)
