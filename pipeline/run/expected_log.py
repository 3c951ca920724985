"""Estimate of how much of the log a run will merge, made before its first step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockstep.pipeline.binlog.search.log_scan import log_bytes_between
from lockstep.pipeline.ports.ledger import Batches, Ledger, batch_content
from lockstep.pipeline.values.places import Latest, Place, Snapshot

if TYPE_CHECKING:
    from lockstep.pipeline.ports.source import SourceServer


def waiting_log_bytes(ledger: Batches, source: str) -> int:
    """Return how many bytes of the log were captured by unfinished batches."""
    return sum(batch.log_bytes for batch in ledger.unfinished_batches(source))


def expected_log_bytes(
    ledger: Ledger, source: str, server: SourceServer, start: Place | Snapshot | None
) -> int | None:
    """Return an estimate of how many bytes of the log the next run will merge into
    mirrors (the Delta tables with the current rows); None if it will probably write
    nothing.

    Captured changes that wait for their merge always count. A log may consist mostly of
    changes to other tables, so the next run is expected to be like the last: the log
    after the newest batch counts only if that batch had rows of captured tables. For a
    first run the whole log counts, unless the run starts at the log's end.
    """
    waiting_bytes = waiting_log_bytes(ledger, source) if ledger.pending_batches(source) else None
    captured = ledger.cursors(source).captured
    if captured is None:
        if start is None or isinstance(start, Latest):
            return waiting_bytes
        return sum(log.size for log in server.facts().binlogs)
    newest_batches = ledger.batches(source, limit=1)
    if not newest_batches or not batch_content(ledger, source, newest_batches[0].id).segments:
        return waiting_bytes
    facts = server.facts()
    read_until = captured.position.at
    if facts.head == read_until:
        return waiting_bytes
    return (waiting_bytes or 0) + log_bytes_between(read_until, facts.head, facts.binlogs)
