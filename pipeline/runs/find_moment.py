"""A moment, found in the server's log.

Belongs here: from a moment to the first transaction committed at or after it, by the ledger's index
of times and the searches of `pipeline.binlog`. Does not: other forms of a place (`find_place`).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pipeline.batch import Batch
from pipeline.binlog.search.file_heads import read_file_head
from pipeline.binlog.search.log_scan import Tell
from pipeline.binlog.search.moments import find_moment, find_moment_in_file
from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.errors import MomentOutOfRange
from pipeline.places import moment_text
from pipeline.ports.source import ServerFacts
from pipeline.position import Coordinates, LogFile
from pipeline.runs.context import Workplace


def first_since(
    work: Workplace, moment: datetime, known: datetime | None, facts: ServerFacts
) -> Coordinates:
    """The first transaction committed at or after a moment. Where what is asked for is all
    since `known`, a log that begins later than the moment, but before that, is read whole."""
    try:
        return find_moment_of(work, moment, facts)
    except MomentOutOfRange as error:
        if known is None:
            raise
        oldest = facts.binlogs[0].file
        begins = read_file_head(work.server, oldest).created
        if known < begins + timedelta(seconds=1):  # a head tells whole seconds
            raise MomentOutOfRange(
                f"{error.message}; the last commit that was read is from {moment_text(known)}",
                hint="restore older log files to the server; or accept what may be missing: "
                "`lockstep start-at earliest --reason …` reads all there is",
            ) from error
        work.progress.note(
            f"the log does not reach back to {moment_text(moment)}: it is read from its "
            f"beginning, {oldest}, made at {moment_text(begins)}"
        )
        return Coordinates(oldest, FIRST_OFFSET)


def find_moment_of(work: Workplace, moment: datetime, facts: ServerFacts) -> Coordinates:
    """The first transaction committed at or after it: in the batch that the ledger's times
    name, if one does and its log is there, else wherever the log has it."""
    batch = work.ledger.reaching(work.source.name, facts.server_uuid, moment)
    if batch is not None and (place := _in_batch(work, batch, moment, facts)):
        return place
    return find_moment(
        work.server, facts.binlogs, facts.head, moment, facts.read_at, tell=telling(work)
    )


def _in_batch(
    work: Workplace, batch: Batch, moment: datetime, facts: ServerFacts
) -> Coordinates | None:
    start, end = batch.start, batch.end
    before = start.committed_at
    if end is None or before is None or before >= moment or start.server_uuid != facts.server_uuid:
        return None
    span = [
        log
        for log in facts.binlogs
        if start.at.file.number <= log.file.number <= end.at.file.number
    ]
    if not span or span[0].file != start.at.file:
        return None
    try:
        return find_moment(work.server, span, end.at, moment, facts.read_at, tell=telling(work))
    except MomentOutOfRange:
        return None  # its first file was made later


def first_in_file(
    work: Workplace, file: LogFile, moment: datetime, facts: ServerFacts
) -> Coordinates | None:
    """In one file; None where all of it was committed before."""
    return find_moment_in_file(work.server, file, moment, facts.head, tell=telling(work))


def telling(work: Workplace) -> Tell:
    """Who is told how far a search is."""
    return lambda read, total: work.progress.search(read_bytes=read, total_bytes=total)
