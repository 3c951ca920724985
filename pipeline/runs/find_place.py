"""Places a person or a rule names, found in the server's log.

Belongs here: from a place to a proven boundary between two transactions, by the searches of
`pipeline.binlog` and the ledger's index of times. Does not: which place is asked for
(`pipeline.start`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pipeline.batch import Batch
from pipeline.binlog.search.file_heads import find_file_before, read_file_head
from pipeline.binlog.search.log_scan import Tell
from pipeline.binlog.search.moments import find_last_end, find_moment, find_moment_in_file
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
from pipeline.runs.context import Workplace
from pipeline.runs.known_batches import RUNS, no_such_run
from pipeline.start.question import Reached, Since, Where, size_of


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
            return _boundary(work, _since(work, moment, known, facts))
        case Since(moment, file) if file is not None:
            found = _in_file(work, file, moment, facts)
            return _boundary(work, found or Coordinates(file, FIRST_OFFSET))
        case Coordinates():
            return _boundary(work, where)
    raise AssertionError(f"{where} is no place")


def resolve_start(work: Workplace, place: Place, facts: ServerFacts) -> Reached:
    """Where a chosen start lies on the server, in a form that a cursor compares with."""
    where = _where(work, place, facts)
    found = find_place(work, where, facts)
    if isinstance(where, GtidSet):
        return Reached(where, where)
    return Reached(found.at, found.gtid_set)


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
        last = find_last_end(work.server, log.file, facts.head, tell=_tell(work))
        if last.offset > FIRST_OFFSET:
            return max(last, start.at)
    return start.at


def resolve_end(work: Workplace, place: Place, facts: ServerFacts, start: Position) -> Coordinates:
    """The place that was named, as an end: never beyond the head."""
    match place:
        case Latest():
            return facts.head
        case InFile(file, moment):
            _require_listed(Coordinates(file, FIRST_OFFSET), facts)
            return _in_file(work, file, moment, facts) or find_last_end(
                work.server, file, facts.head, tell=_tell(work)
            )
        case AtMoment(moment):
            return _moment(work, moment, facts)
        case AfterGtids(gtids):
            return find_end_of(
                work.server, start, facts.head, gtids, binlogs=facts.binlogs, tell=_tell(work)
            )
        case _:
            where = _where(work, place, facts)
    if isinstance(where, GtidSet):
        return find_end_of(work.server, start, facts.head, where, binlogs=facts.binlogs)
    assert isinstance(where, Coordinates), f"{where} is looked for by other means"
    return _boundary(work, where, then="ends").at


def _where(work: Workplace, place: Place, facts: ServerFacts) -> Where:
    match place:
        case AtCoordinates(at):
            _require_listed(at, facts)
            return at
        case AtMoment(moment):
            return Since(moment)
        case InFile(file, moment):
            _require_listed(Coordinates(file, FIRST_OFFSET), facts)
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
        hint="to read tables from the source again, `lockstep snapshot TABLE --reason …`; to "
        "go on elsewhere in the log, choose earliest, latest, a place or a moment",
    )


def _end_of_run(work: Workplace, run: str, facts: ServerFacts) -> Where:
    batch = work.ledger.captured_by(work.source.name, run)
    if batch is None or batch.end is None:
        raise StartUnreachable(no_such_run(work.ledger, work.source.name, run), hint=RUNS)
    if batch.end.server_uuid == facts.server_uuid:
        _require_listed(batch.end.at, facts)
        return batch.end.at
    if batch.by_gtid:
        return batch.end.gtid_set
    raise StartUnreachable(
        f"run {run} ended at {batch.end} of server {batch.end.server_uuid}, which does not answer",
        hint="choose a moment or a place of this server",
    )


def _require_listed(at: Coordinates, facts: ServerFacts) -> None:
    size = size_of(at.file, facts.binlogs)
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


def _boundary(work: Workplace, at: Coordinates, *, then: str = "starts") -> ProvenPosition:
    """`then`: what a run does there."""
    boundary = find_boundary(work.server, at, tell=_tell(work))
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


def find_known_until(work: Workplace, found: ProvenPosition, facts: ServerFacts) -> Coordinates:
    """The end of the last transaction that is to be left out. Where some of them stand
    neither in the log nor among the purged ones nobody can tell: the log's end."""
    before = read_file_head(work.server, found.at.file).gtid_set
    start = Position(found.at, before, facts.server_uuid)
    known = found.leave_out.difference(GtidSet.parse(facts.gtid_purged))
    try:
        return find_end_of(
            work.server, start, facts.head, known, binlogs=facts.binlogs, tell=_tell(work)
        )
    except EndNotReached:
        return facts.head
    except TransactionsWithoutGtid as error:
        raise TransactionsWithoutGtid(
            f"the log of {facts.server_uuid} holds transactions without a GTID after {found.at}: "
            "it cannot be told whether they were read before",
            hint="choose the place to go on at: `lockstep start-at PLACE --reason …`; if they come "
            "after it, with gtid_mode = ON_PERMISSIVE until they are read",
        ) from error


def _since(
    work: Workplace, moment: datetime, known: datetime | None, facts: ServerFacts
) -> Coordinates:
    """The first transaction committed at or after a moment. Where what is asked for is all
    since `known`, a log that begins later than the moment, but before that, is read whole."""
    try:
        return _moment(work, moment, facts)
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


def _moment(work: Workplace, moment: datetime, facts: ServerFacts) -> Coordinates:
    """The first transaction committed at or after it: in the batch that the ledger's times
    name, if one does and its log is there, else wherever the log has it."""
    batch = work.ledger.reaching(work.source.name, facts.server_uuid, moment)
    if batch is not None and (found := _in_batch(work, batch, moment, facts)):
        return found
    return find_moment(
        work.server, facts.binlogs, facts.head, moment, facts.read_at, tell=_tell(work)
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
        return find_moment(work.server, span, end.at, moment, facts.read_at, tell=_tell(work))
    except MomentOutOfRange:
        return None  # its first file was made later


def _in_file(
    work: Workplace, file: LogFile, moment: datetime, facts: ServerFacts
) -> Coordinates | None:
    return find_moment_in_file(work.server, file, moment, facts.head, tell=_tell(work))


def _tell(work: Workplace) -> Tell:
    return lambda read, total: work.progress.search(read_bytes=read, total_bytes=total)
