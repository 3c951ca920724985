"""Places a person or a rule names, found in the server's log: where a run starts, a moment, where a
run ends, and up to where it leaves out what was read before."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pipeline.binlog.search.file_heads import find_file_before, read_file_head
from pipeline.binlog.search.log_scan import Tell
from pipeline.binlog.search.moments import (
    FoundMoment,
    find_last_end,
    find_moment,
    find_moment_in_file,
)
from pipeline.binlog.search.places import find_boundary, find_end_of
from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.errors import (
    EndNotReached,
    MomentOutOfRange,
    NotYet,
    PositionPurged,
    StartUnreachable,
    TransactionsWithoutGtid,
)
from pipeline.gtid import GtidSet
from pipeline.places import (
    AfterGtids,
    AtCoordinates,
    AtMoment,
    Earliest,
    InFile,
    Latest,
    OfRun,
    Place,
    Snapshot,
    moment_text,
)
from pipeline.ports.source import ServerFacts
from pipeline.position import Coordinates, LogFile, Position, Witness
from pipeline.runs.context import Workplace, searched
from pipeline.runs.known_batches import RUNS, no_such_run
from pipeline.start.question import ReachedPlace, Since, Where


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


def _found(work: Workplace, moment: datetime, facts: ServerFacts) -> FoundMoment:
    """Where a moment lies among the transactions of the server's log; the head if it comes after
    all of them."""
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
    return lambda read, total: work.progress.tell(searched(read, total))


@dataclass(frozen=True, slots=True)
class ProvenPosition:
    """A boundary between two transactions, the GTIDs executed up to it, the witness before
    it, and what must be left out behind it because it was read before."""

    at: Coordinates
    gtid_set: GtidSet
    witness: Witness | None
    leave_out: GtidSet = field(default_factory=GtidSet)


def find_place(work: Workplace, where: Where, facts: ServerFacts) -> ProvenPosition:
    """What a decision names, proven. Errors are those of the searches."""
    match where:
        case GtidSet():
            return _after(work, where, facts)
        case Since(moment, None, known):
            return boundary_at(work, first_since(work, moment, known, facts))
        case Since(moment, file) if file is not None:
            place = first_in_file(work, file, moment, facts)
            return boundary_at(work, place or Coordinates(file, FIRST_OFFSET))
        case Coordinates():
            return boundary_at(work, where)
    raise AssertionError(f"{where} is no place")


def resolve_start(work: Workplace, place: Place, facts: ServerFacts) -> ReachedPlace:
    """Where a chosen start lies on the server, in a form that a cursor compares with."""
    where = where_of(work, place, facts)
    proven = find_place(work, where, facts)
    if isinstance(where, GtidSet):
        return ReachedPlace(where, where)
    return ReachedPlace(proven.at, proven.gtid_set)


def where_of(work: Workplace, place: Place, facts: ServerFacts) -> Where:
    """What is to be looked for. `StartUnreachable` where it is not on the server."""
    match place:
        case AtCoordinates(at):
            require_listed(at, facts)
            return at
        case AtMoment(moment):
            return Since(moment)
        case InFile(file, moment):
            require_listed(Coordinates(file, FIRST_OFFSET), facts)
            return Since(moment, file)
        case AfterGtids(gtids):
            _require_executed(gtids, facts)
            return gtids
        case Earliest():
            return Coordinates(facts.binlogs[0].file, FIRST_OFFSET)
        case Latest():
            return facts.head
        case OfRun(run):
            return _end_of_run(work, run, facts)
        case Snapshot():
            raise snapshot_not_chosen()


def snapshot_not_chosen() -> NotYet:
    """A chosen start is a place in the log. `snapshot` is none: it is how a source begins that has
    captured nothing yet."""
    return NotYet(
        "'snapshot' cannot be chosen: only a source's first run starts that way, "
        'if lockstep.toml has start = "snapshot"',
        hint="to read tables from the source again, `lockstep reload TABLE --from source "
        "--reason …`; to go on elsewhere in the log, choose earliest, latest, a place or a moment",
    )


def _end_of_run(work: Workplace, run: str, facts: ServerFacts) -> Where:
    batch = work.ledger.captured_batch(work.source.name, run=run)
    if batch is None or batch.end is None:
        raise StartUnreachable(no_such_run(work.ledger, work.source.name, run), hint=RUNS)
    if batch.end.server_uuid == facts.server_uuid:
        require_listed(batch.end.at, facts)
        return batch.end.at
    if batch.by_gtid:
        return batch.end.gtid_set
    raise StartUnreachable(
        f"run {run} ended at {batch.end} of server {batch.end.server_uuid}, which does not answer",
        hint="choose a moment or a place of this server",
    )


def require_listed(at: Coordinates, facts: ServerFacts) -> None:
    """`StartUnreachable` where the server's list of logs does not have the place."""
    size = facts.size_of(at.file)
    if size is not None and FIRST_OFFSET <= at.offset <= size:
        return
    listed = f"{facts.binlogs[0].file} to {facts.binlogs[-1].file}" if facts.binlogs else "none"
    there = f"{at.file} ends at {size}" if size is not None else f"files listed: {listed}"
    raise StartUnreachable(
        f"{at} is not on the server ({there})", hint="choose a place that SHOW BINARY LOGS lists"
    )


def _require_executed(gtids: GtidSet, facts: ServerFacts) -> None:
    missing = gtids.difference(GtidSet.parse(facts.gtid_executed))
    if missing:
        raise StartUnreachable(
            f"the server never executed {missing.shortened()}",
            hint="choose a set that lies within @@gtid_executed",
        )


def boundary_at(work: Workplace, at: Coordinates, *, then: str = "starts") -> ProvenPosition:
    """`then`: what a run does there."""
    boundary = find_boundary(work.server, at, tell=telling(work))
    if boundary.rewound:
        work.progress.note(f"{at} lies inside a transaction; the run {then} at {boundary.at}")
    return ProvenPosition(boundary.at, boundary.gtid_set, boundary.witness)


def _after(work: Workplace, gtids: GtidSet, facts: ServerFacts) -> ProvenPosition:
    """The file from which on everything stands that is not in the set; what is in it is
    left out there."""
    file = find_file_before(work.server, facts.binlogs, gtids)
    if file is None:
        raise PositionPurged(
            f"the oldest log file of {facts.server_uuid} begins after transactions that are not in "
            f"{gtids.shortened()}",
            hint="restore older log files to the server, or choose another start",
        )
    if facts.flavour == "mysql":
        _require_served(work, gtids)
    return ProvenPosition(Coordinates(file, FIRST_OFFSET), gtids, None, leave_out=gtids)


def _require_served(work: Workplace, gtids: GtidSet) -> None:
    """The server agrees that it has everything behind the set: it refuses a dump after one
    that it purged beyond, or that holds more of its own than it executed."""
    dump = work.server.dump_after(gtids)
    try:
        next(iter(dump), None)
    finally:
        dump.close()


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
            return _found(work, moment, facts).at
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
