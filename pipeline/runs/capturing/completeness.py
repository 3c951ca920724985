"""What a reading must have read, or nothing of it is recorded."""

from __future__ import annotations

from pipeline.bounds import RunBounds
from pipeline.errors import PreparedBeforeStart, TransactionsMissing
from pipeline.gtid import GtidSet
from pipeline.runs.begin import RunStart
from pipeline.runs.capturing.log_reader import LogReading
from pipeline.runs.context import Workplace


def require_followed(run_start: RunStart, reading: LogReading) -> None:
    """What was prepared when a start was chosen is prepared behind it in the log."""
    unseen = run_start.prepared - reading.buffer.prepared.seen
    if unseen:
        first = min(unseen, key=str)
        raise PreparedBeforeStart(
            f"the XA transaction {first} was prepared before the start {run_start.start}: its rows "
            "would be missing once it is committed",
            hint="wait until it is committed or rolled back (`xa recover` lists it), then run "
            "again; or start before its prepare",
        )


def require_whole(work: Workplace, run_start: RunStart, bounds: RunBounds, read: GtidSet) -> None:
    """Every transaction the server had executed by the end was read, or purged."""
    if not bounds.unread(read, GtidSet.parse(run_start.facts.gtid_purged)):
        return
    missing = bounds.unread(read, GtidSet.parse(work.server.facts().gtid_purged))
    if missing:
        raise TransactionsMissing(
            f"the server had executed {missing} when the run began, but its log up to "
            f"{bounds.end} does not hold them",
            hint="the log is not whole (restored backup, log filters, RESET?); nothing was "
            "recorded. Compare SHOW BINARY LOGS with the server's history",
        )
