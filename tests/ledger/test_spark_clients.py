"""Processes that may have left statements to a server of Spark's."""

from __future__ import annotations

from uuid import UUID

from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.decisions import Lease

ONE, OTHER = (UUID(int=number) for number in (1, 2))


def test_a_client_is_known_until_it_is_forgotten(ledger: Ledger, lease: Lease) -> None:
    """By whoever holds its source, however often it is noted."""
    for client in (OTHER, ONE, ONE):
        ledger.note_spark_client(lease, client)
    assert ledger.spark_clients(lease.source) == [ONE, OTHER]
    ledger.note_spark_client(lease, ONE, gone=True)
    ledger.note_spark_client(lease, ONE, gone=True)
    assert ledger.spark_clients(lease.source) == [OTHER]
    assert ledger.spark_clients(f"not {lease.source}") == []
