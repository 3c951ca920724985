"""A moment, found in the server's log."""

from __future__ import annotations

from datetime import datetime, timedelta

from pipeline.binlog.search.file_heads import read_file_head
from pipeline.binlog.search.log_scan import Tell
from pipeline.binlog.search.moments import FoundMoment, find_moment, find_moment_in_file
from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.errors import MomentOutOfRange
from pipeline.places import moment_text
from pipeline.ports.source import ServerFacts
from pipeline.position import Coordinates, LogFile
from pipeline.runs.context import Workplace


def first_since(
    work: Workplace, moment: datetime, known: datetime | None, facts: ServerFacts
) -> Coordinates:
    """Where a moment lies. Where what is asked for is all since `known`, it is the first
    transaction that says it was committed at the moment or later, so that none is left out because
    its time is wrong; and a log that begins later than the moment, but before `known`, is read
    whole."""
    try:
        found = _found(work, moment, facts)
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
    return found.at if known is None else found.first or found.at


def find_moment_of(work: Workplace, moment: datetime, facts: ServerFacts) -> Coordinates:
    """Where a moment lies among the transactions of the server's log; the head if it comes after
    all of them."""
    return _found(work, moment, facts).at


def _found(work: Workplace, moment: datetime, facts: ServerFacts) -> FoundMoment:
    found = find_moment(
        work.server, facts.binlogs, facts.head, moment, facts.read_at, tell=telling(work)
    )
    _note(work, moment, found)
    return found


def first_in_file(
    work: Workplace, file: LogFile, moment: datetime, facts: ServerFacts
) -> Coordinates | None:
    """The same within one file; None where the moment comes after all of it."""
    found = find_moment_in_file(
        work.server, file, moment, facts.head, facts.read_at, tell=telling(work)
    )
    if found is not None:
        _note(work, moment, found)
    return None if found is None else found.at


def _note(work: Workplace, moment: datetime, found: FoundMoment) -> None:
    """What a person should know of a log whose times do not ascend."""
    sentence = found.told(moment_text(moment))
    if sentence is not None:
        work.progress.note(sentence)


def telling(work: Workplace) -> Tell:
    """Who is told how far a search is."""
    return lambda read, total: work.progress.search(read_bytes=read, total_bytes=total)
