"""Where a run's reading ends, and up to where it leaves out what was read before."""

from __future__ import annotations

from pipeline.binlog.search.file_heads import read_file_head
from pipeline.binlog.search.moments import find_last_end
from pipeline.binlog.search.places import find_end_of
from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.errors import EndNotReached, TransactionsWithoutGtid
from pipeline.gtid import GtidSet
from pipeline.places import AfterGtids, AtMoment, Earliest, InFile, Latest, Place
from pipeline.ports.source import ServerFacts
from pipeline.position import Coordinates, Position
from pipeline.runs.context import Workplace
from pipeline.runs.find_moment import find_moment_of, first_in_file, telling
from pipeline.runs.find_place import ProvenPosition, boundary_at, require_listed, where_of


def find_run_end(work: Workplace, place: Place, facts: ServerFacts, start: Position) -> Coordinates:
    """Where a run that starts at `start` ends by `--until`. At a file's very beginning no
    event stands that could be the witness of a cursor: such a run ends behind the last
    transaction before it."""
    if isinstance(place, Earliest):
        raise EndNotReached(
            "'earliest' is where the log begins: nothing ends there",
            hint="choose a place, a moment, a GTID set, a run, or latest",
        )
    end = resolve_end(work, place, facts, start)
    if end.offset > FIRST_OFFSET or not start.at < end:
        return end
    span = range(start.at.file.number, end.file.number)
    for log in reversed([log for log in facts.binlogs if log.file.number in span]):
        last = find_last_end(work.server, log.file, facts.head, tell=telling(work))
        if last.offset > FIRST_OFFSET:
            return max(last, start.at)
    return start.at


def resolve_end(work: Workplace, place: Place, facts: ServerFacts, start: Position) -> Coordinates:
    """The place that was named, as an end: never beyond the head."""
    match place:
        case Latest():
            return facts.head
        case InFile(file, moment):
            require_listed(Coordinates(file, FIRST_OFFSET), facts)
            return first_in_file(work, file, moment, facts) or find_last_end(
                work.server, file, facts.head, tell=telling(work)
            )
        case AtMoment(moment):
            return find_moment_of(work, moment, facts)
        case AfterGtids(gtids):
            return find_end_of(
                work.server, start, facts.head, gtids, binlogs=facts.binlogs, tell=telling(work)
            )
        case _:
            where = where_of(work, place, facts)
    if isinstance(where, GtidSet):
        return find_end_of(work.server, start, facts.head, where, binlogs=facts.binlogs)
    assert isinstance(where, Coordinates), f"{where} is looked for by other means"
    return boundary_at(work, where, then="ends").at


def find_known_until(work: Workplace, proven: ProvenPosition, facts: ServerFacts) -> Coordinates:
    """The end of the last transaction that is to be left out. Where some of them stand
    neither in the log nor among the purged ones nobody can tell: the log's end."""
    before = read_file_head(work.server, proven.at.file).gtid_set
    start = Position(proven.at, before, facts.server_uuid)
    known = proven.leave_out.difference(GtidSet.parse(facts.gtid_purged))
    try:
        return find_end_of(
            work.server, start, facts.head, known, binlogs=facts.binlogs, tell=telling(work)
        )
    except EndNotReached:
        return facts.head
    except TransactionsWithoutGtid as error:
        raise TransactionsWithoutGtid(
            f"the log of {facts.server_uuid} holds transactions without a GTID after {proven.at}: "
            "it cannot be told whether they were read before",
            hint="choose the place to go on at: `lockstep start-at PLACE --reason …`; if they come "
            "after it, with gtid_mode = ON_PERMISSIVE until they are read",
        ) from error
