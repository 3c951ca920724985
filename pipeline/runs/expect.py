"""What a run will need, foreseen before its first step.

Belongs here: whether Java is worth starting while Dagster is still being imported. Does not:
anything that a run decides; where this is wrong, it costs a start of Java or the wait for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.places import Latest, Place

if TYPE_CHECKING:
    from pipeline.ports.ledger import Ledger
    from pipeline.ports.source import SourceServer


def writes_expected(ledger: Ledger, source: str, server: SourceServer, start: Place | None) -> bool:
    """Whether mirrors will probably be written: changes of before wait for it; or the log went
    on, and the newest batch had rows of captured tables. On a server whose log is full of other
    tables, the next run is taken to be like the last. A first run has something to write unless
    it starts at the log's end."""
    if ledger.pending(source):
        return True
    cursor, newest = ledger.captured_cursor(source), ledger.batches(source, limit=1)
    if cursor is None:
        return start is not None and not isinstance(start, Latest)
    if not newest or not ledger.segments(newest[0].id):
        return False
    return server.facts().head != cursor.position.at
