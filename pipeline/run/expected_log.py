"""Estimate of how much of the log a run will merge, made before its first step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockstep.pipeline.binlog.search.log_scan import log_between
from lockstep.pipeline.ports.ledger import content_of
from lockstep.pipeline.values.places import Latest, Place

if TYPE_CHECKING:
    from lockstep.pipeline.ports.ledger import Ledger
    from lockstep.pipeline.ports.source import SourceServer


def waiting_log(ledger: Ledger, source: str) -> int:
    """Return how many bytes of the log were captured by batches that are not acknowledged yet."""
    return sum(batch.log_bytes for batch in ledger.unfinished(source))


def expected_log(
    ledger: Ledger, source: str, server: SourceServer, start: Place | None
) -> int | None:
    """Return from how many bytes of the log the next run will probably write to mirrors, or None if
    it probably writes nothing.

    Changes that were captured and wait are written; and so are new ones, if the log went on since
    the newest batch and that batch had rows of captured tables: where the log is full of other
    tables, the next run is taken to be like the last. A first run has something to write unless
    it starts at the log's end.
    """
    waiting = waiting_log(ledger, source) if ledger.pending(source) else None
    cursor, newest = ledger.cursors(source).captured, ledger.batches(source, limit=1)
    if cursor is None:
        if start is None or isinstance(start, Latest):
            return waiting
        return sum(log.size for log in server.facts().binlogs)
    if not newest or not content_of(ledger, source, newest[0].id).segments:
        return waiting
    facts = server.facts()
    if facts.head == cursor.position.at:
        return waiting
    return (waiting or 0) + log_between(cursor.position.at, facts.head, facts.binlogs)
