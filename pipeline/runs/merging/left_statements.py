"""What dead runs left to a server of Spark's: ended before the next one writes.

Belongs here: the order of noting, ending and forgetting. Does not: how statements are ended
(`resources.lake.remote`).

A process that dies takes a Spark of its own along. A server goes on with what it was asked for.
The commit that this would come to is bound to a version, so that it does no harm; but it takes the
cores and the memory that the same write needs once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.decisions import Lease
from pipeline.runs.context import Workplace


@contextmanager
def statements_noted(work: Workplace, lease: Lease) -> Iterator[None]:
    """What is written inside is known to the next run, should this one not come to its end; first
    it ends what was left by others. An error inside leaves the note: nobody knows then what the
    server does."""
    client, source = work.mirrors.client, lease.source
    if client is None:
        yield
        return
    for other in work.ledger.spark_clients(source):
        if other != client:
            work.mirrors.end_statements(other)
            work.ledger.forget_spark_client(lease, other)
    work.ledger.note_spark_client(lease, client)
    yield
    work.ledger.forget_spark_client(lease, client)
