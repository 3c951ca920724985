"""The search for places in the server's log: the start and the end of a run, and
moments.

A start may be named by a GTID set. The run then begins at the start of a log file,
before the first transaction that is missing in the set. Transactions of the set that
follow in the log were read before, so the run leaves them out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lockstep.pipeline.binlog.search.log_scan import (
    ReportProgress,
    find_file_before,
    read_file_head,
)
from lockstep.pipeline.binlog.search.places import (
    MomentPlace,
    find_boundary,
    find_end_of,
    find_last_end,
    find_moment,
    find_moment_in_file,
    read_anchor,
)
from lockstep.pipeline.binlog.stream.framing import FIRST_OFFSET
from lockstep.pipeline.model.batch import Cursor
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.progress import search_progress
from lockstep.pipeline.run.unpruned_batches import batch_of_run
from lockstep.pipeline.start.question import AnchorReading, ChosenPlace, Since, StartPlace
from lockstep.pipeline.start.rules import compare_anchor
from lockstep.pipeline.values.errors import (
    EndNotReached,
    MomentOutOfRange,
    NotAnEventBoundary,
    PositionPurged,
    SourceMoving,
    SpanRefused,
    StartUnreachable,
    TransactionsWithoutGtid,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import (
    AfterGtids,
    AtCoordinates,
    AtMoment,
    Earliest,
    InFile,
    Latest,
    OfRun,
    Place,
    moment_text,
    start_at,
)
from lockstep.pipeline.values.position import Anchor, Coordinates, LogFile, Position


@dataclass(frozen=True, slots=True)
class LogBoundary:
    """A boundary between two transactions in the server's log.

    - `gtid_set`: the GTIDs that have been read once the log up to there is read: those
      that were executed before it, and those of `leave_out`.
    - `anchor`: the checksum and the place of the event before it.
    - `leave_out`: transactions after it that are left out, because they were read
      before.
    """

    at: Coordinates
    gtid_set: GtidSet
    anchor: Anchor | None
    leave_out: GtidSet = field(default_factory=GtidSet)


def find_place(ports: RunPorts, where: StartPlace, facts: ServerFacts) -> LogBoundary:
    """Return the boundary at the place that a start decision names. Raise the error of
    the search if it cannot be found."""
    match where:
        case GtidSet():
            return _boundary_after_gtids(ports, where, facts)
        case Since(moment, LogFile() as file):
            place = _first_transaction_in_file(ports, file, moment, facts)
            # `InFile`: a file without a transaction since the moment is read whole.
            return boundary_at(ports, place or Coordinates(file, FIRST_OFFSET))
        case Since(moment, _, read_until):
            return boundary_at(ports, _first_transaction_since(ports, moment, read_until, facts))
        case Coordinates():
            return boundary_at(ports, where)


def boundary_at(ports: RunPorts, at: Coordinates, *, verb: str = "starts") -> LogBoundary:
    """Return the boundary between transactions at a place. If the place is inside a
    transaction, return the boundary before it and tell the user. `verb`: completes that
    message ("the run starts at …")."""
    boundary = find_boundary(ports.server, at, report_progress=_search_reporter(ports))
    if boundary.is_rewound:
        ports.progress.note(f"{at} lies inside a transaction; the run {verb} at {boundary.at}")
    return LogBoundary(boundary.at, boundary.gtid_set, boundary.anchor)


def _boundary_after_gtids(ports: RunPorts, gtids: GtidSet, facts: ServerFacts) -> LogBoundary:
    """Return the beginning of a log file before which only transactions of the set were
    executed, so that the log from there on has all others. Transactions of the set that
    come after this place are left out."""
    file = find_file_before(ports.server, facts.binlogs, gtids)
    if file is None:
        raise PositionPurged(
            f"the oldest log file of {facts.server_uuid} begins after transactions that are not in "
            f"{gtids.shortened_text()}",
            hint="restore older log files to the server, or choose another start",
        )
    if facts.flavour == "mysql":
        _require_served(ports, gtids)
    return LogBoundary(Coordinates(file, FIRST_OFFSET), gtids, None, leave_out=gtids)


def _require_served(ports: RunPorts, gtids: GtidSet) -> None:
    """Open a dump for the set, so that the server proves that it has all transactions
    which are missing in the set. It refuses the dump if it purged some of them, or if
    the set has transactions with the server's own UUID that it never executed."""
    dump = ports.server.dump_after(gtids)
    try:
        next(iter(dump), None)
    finally:
        dump.close()


def end_of_transactions_to_leave_out(
    ports: RunPorts, boundary: LogBoundary, facts: ServerFacts
) -> Coordinates:
    """Return the end of the last transaction that has to be left out. If some of these
    transactions are neither in the log nor purged, return the log's end."""
    gtids_before = read_file_head(ports.server, boundary.at.file).gtid_set
    start = Position(boundary.at, gtids_before, facts.server_uuid)
    in_log = boundary.leave_out.difference(GtidSet.parse(facts.gtid_purged))
    try:
        return _end_of(ports, in_log, facts, start)
    except EndNotReached:
        return facts.head
    except TransactionsWithoutGtid as error:
        raise TransactionsWithoutGtid(
            f"the log of {facts.server_uuid} holds transactions without a GTID after "
            f"{boundary.at}: nothing says whether they were read before",
            hint=f"choose the place to continue at: {start_at('PLACE', ports.source.name)}; if "
            "these transactions come after it, set global gtid_mode = ON_PERMISSIVE until they are "
            "read: in other modes the server does not send them",
        ) from error


def resolve_start(ports: RunPorts, place: Place, facts: ServerFacts) -> ChosenPlace:
    """Return the place on the server of a start that a person chose, in a form that can
    be compared with a cursor (the end of a batch)."""
    where = _resolve_place(ports, place, facts)
    # A GTID set, too, has to be found in the log: otherwise this raises an error.
    boundary = find_place(ports, where, facts)
    if isinstance(where, GtidSet):
        return ChosenPlace(where, where)
    return ChosenPlace(boundary.at, boundary.gtid_set)


def _resolve_place(ports: RunPorts, place: Place, facts: ServerFacts) -> StartPlace:
    """Return the coordinates, GTID set or moment to search the log for. Raise
    `StartUnreachable` if the server certainly does not have that place."""
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
            return _end_of_run(ports, run, facts)


def _end_of_run(ports: RunPorts, run: str, facts: ServerFacts) -> StartPlace:
    try:
        batch = batch_of_run(ports.ledger, ports.source.name, run)
    except SpanRefused as error:
        raise StartUnreachable(error.message, hint=error.hint) from error
    end = batch.captured_end
    if end.server_uuid == facts.server_uuid:
        _require_listed(end.at, facts)
        if read_anchor_of(ports, batch.captured_cursor, facts) is AnchorReading.DIFFERENT:
            raise StartUnreachable(
                f"run {run} ended at {end.at}, and the server's log is not the log that was read: "
                "the event before that place is a different one",
                hint="the server's log was reset, or its data was restored; choose a moment or a "
                "place of the present log",
            )
        return end.at
    if batch.by_gtid:
        return end.gtid_set
    raise StartUnreachable(
        f"run {run} ended at {end} of server {end.server_uuid}, which does not answer",
        hint="choose a moment or a place of this server",
    )


def read_anchor_of(ports: RunPorts, cursor: Cursor | None, facts: ServerFacts) -> AnchorReading:
    """Read the event at the cursor's anchor from the server's log, and return whether
    it is the same event."""
    if cursor is None or facts.server_uuid != cursor.position.server_uuid:
        return AnchorReading.NOT_READ
    at, anchor = cursor.position.at, cursor.anchor
    size = facts.size_of(at.file)
    if size is None or at.offset > size:
        return AnchorReading.NOT_READ
    try:
        event = read_anchor(ports.server, Coordinates(at.file, anchor.offset))
    except PositionPurged as error:
        raise SourceMoving(
            f"{at.file} was purged while the run began",
            hint="run again: the next run decides its start by the log that is left",
        ) from error
    except (NotAnEventBoundary, StartUnreachable):
        return AnchorReading.DIFFERENT
    return compare_anchor(anchor, event)


def _require_listed(at: Coordinates, facts: ServerFacts) -> None:
    """Raise `StartUnreachable` unless the place is in a log file that the server
    lists."""
    size = facts.size_of(at.file)
    if size is not None and FIRST_OFFSET <= at.offset <= size:
        return
    raise StartUnreachable(
        f"{at} is not on the server ({facts.extent_of(at.file)})",
        hint="choose a place that SHOW BINARY LOGS lists",
    )


def _require_executed(gtids: GtidSet, facts: ServerFacts) -> None:
    missing_gtids = gtids.difference(GtidSet.parse(facts.gtid_executed))
    if missing_gtids:
        raise StartUnreachable(
            f"the server never executed {missing_gtids.shortened_text()}",
            hint="choose a set that lies within @@gtid_executed",
        )


def find_run_end(ports: RunPorts, place: Place, facts: ServerFacts, start: Position) -> Coordinates:
    """Return the end of a run from `start` to `place`, which a person chose with
    `--until`. A run does not end at the beginning of a log file, because the anchor of
    its position is the event before. Instead it ends after the last transaction of an
    earlier file."""
    if isinstance(place, Earliest):
        raise EndNotReached(
            "'earliest' is where the log begins: nothing ends there",
            hint="choose a place, a moment, a GTID set, a run, or latest",
        )
    end = resolve_end(ports, place, facts, start)
    if end.offset > FIRST_OFFSET or not start.at < end:
        return end
    span = range(start.at.file.number, end.file.number)
    for log in reversed([log for log in facts.binlogs if log.file.number in span]):
        last = _find_last_end(ports, log.file, facts)
        if last.offset > FIRST_OFFSET:
            return max(last, start.at)
    return start.at


def _find_last_end(ports: RunPorts, file: LogFile, facts: ServerFacts) -> Coordinates:
    report_progress = _search_reporter(ports)
    return find_last_end(
        ports.server, file, facts.head, binlogs=facts.binlogs, report_progress=report_progress
    )


def resolve_end(ports: RunPorts, place: Place, facts: ServerFacts, start: Position) -> Coordinates:
    """Return the place in the log of the end that a person chose. It is never after the
    end of the log. `start`: where the run starts."""
    match place:
        case Latest():
            return facts.head
        case InFile(file, moment):
            _require_listed(Coordinates(file, FIRST_OFFSET), facts)
            first = _first_transaction_in_file(ports, file, moment, facts)
            return first or _find_last_end(ports, file, facts)
        case AtMoment(moment):
            return _search_moment(ports, moment, facts).at
        case AfterGtids(gtids):
            return _end_of(ports, gtids, facts, start)
        case _:
            where = _resolve_place(ports, place, facts)
    if isinstance(where, GtidSet):
        return _end_of(ports, where, facts, start)
    assert isinstance(where, Coordinates), f"{where} is an end that a case above resolves"
    return boundary_at(ports, where, verb="ends").at


def _end_of(ports: RunPorts, gtids: GtidSet, facts: ServerFacts, start: Position) -> Coordinates:
    return find_end_of(
        ports.server,
        start,
        facts.head,
        gtids,
        binlogs=facts.binlogs,
        report_progress=_search_reporter(ports),
    )


def _first_transaction_since(
    ports: RunPorts, moment: datetime, read_until: datetime | None, facts: ServerFacts
) -> Coordinates:
    """Return the beginning of the first transaction at or after a moment.

    `read_until`: the commit time of the last transaction that was read; None for a
    moment that a person chose. With `read_until`, no transaction may be missed. So the
    result is the first transaction in the log whose commit time is the moment or later,
    even if a wrong clock gave transactions after it earlier times. If the log begins
    after the moment, but before `read_until`, it is read from its beginning.
    """
    try:
        place = _search_moment(ports, moment, facts)
    except MomentOutOfRange as error:
        if read_until is None:
            raise
        oldest = facts.binlogs[0].file
        log_begin = read_file_head(ports.server, oldest).created
        if read_until < log_begin + timedelta(seconds=1):  # a file's head has whole seconds
            raise MomentOutOfRange(
                f"{error.message}; the last commit that was read is from {moment_text(read_until)}",
                hint="restore older log files to the server; or accept what may be missing: "
                f"{start_at('earliest', ports.source.name)} reads all there is",
            ) from error
        ports.progress.note(
            f"the log does not reach back to {moment_text(moment)}: it is read from its "
            f"beginning, {oldest}, made at {moment_text(log_begin)}"
        )
        return Coordinates(oldest, FIRST_OFFSET)
    return place.at if read_until is None else place.first_begin or place.at


def _first_transaction_in_file(
    ports: RunPorts, file: LogFile, moment: datetime, facts: ServerFacts
) -> Coordinates | None:
    """Return the beginning of the first transaction at or after a moment in a log file;
    None if the moment is after all transactions of the file."""
    place = find_moment_in_file(
        ports.server,
        file,
        moment,
        facts.head,
        facts.read_at,
        binlogs=facts.binlogs,
        report_progress=_search_reporter(ports),
    )
    if place is None:
        return None
    _warn_of_clock(ports, moment, place)
    return place.at


def _search_moment(ports: RunPorts, moment: datetime, facts: ServerFacts) -> MomentPlace:
    """Return the place of a moment among the transactions of the server's log. If the
    moment is after all of them, it is the end of the log."""
    place = find_moment(
        ports.server,
        facts.binlogs,
        facts.head,
        moment,
        facts.read_at,
        report_progress=_search_reporter(ports),
    )
    _warn_of_clock(ports, moment, place)
    return place


def _warn_of_clock(ports: RunPorts, moment: datetime, place: MomentPlace) -> None:
    """Show a warning if the log's commit times do not ascend around the moment."""
    sentence = place.warning(moment_text(moment))
    if sentence is not None:
        ports.progress.note(sentence)


def _search_reporter(ports: RunPorts) -> ReportProgress:
    """Return the callback that reports the progress of a search."""
    return lambda read, total: ports.progress.tell(search_progress(read, total))
