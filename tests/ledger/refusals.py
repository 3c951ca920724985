"""What a refused step has in common: the rule's name, and books that stay as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pipeline.decisions import Lease
from pipeline.errors import LedgerRefused
from pipeline.ports.ledger import Ledger


def _books(ledger: Ledger, source: str) -> list[object]:
    batches = ledger.batches(source)
    return [
        batches,
        [ledger.segments(batch.id) for batch in batches],
        [ledger.source_parts(batch.id) for batch in batches],
        [ledger.settled(source, batch.id) for batch in batches],
        [ledger.version_set(source, batch.id) for batch in batches],
        ledger.table_states(source),
        ledger.last_versions(source),
        ledger.newest_schemas(source),
        ledger.schema_statements(source),
        ledger.databases(source),
        [ledger.table_events(source, batch.id) for batch in batches],
        [ledger.snapshots(source, batch.id) for batch in batches],
        ledger.pending(source),
        ledger.open_loads(source),
        ledger.open_orders(source),
        ledger.open_intents(source),
        ledger.open_prepared(source),
        ledger.open_revision(source),
    ]


@contextmanager
def refused(ledger: Ledger, lease: Lease, rule: str) -> Iterator[None]:
    """The block is refused by this rule and the books are as before."""
    before = _books(ledger, lease.source)
    with pytest.raises(LedgerRefused, match=rf"\({rule}\)"):
        yield
    assert _books(ledger, lease.source) == before
