"""Places a person or a rule names, found in the server's log."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.binlog.search.file_heads import find_file_before
from pipeline.binlog.search.places import find_boundary
from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.errors import NotYet, PositionPurged, StartUnreachable
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
)
from pipeline.ports.source import ServerFacts
from pipeline.position import Coordinates, Witness
from pipeline.runs.context import Workplace
from pipeline.runs.find_moment import first_in_file, first_since, telling
from pipeline.runs.known_batches import RUNS, no_such_run
from pipeline.start.question import ReachedPlace, Since, Where


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
        hint="to read tables from the source again, `lockstep snapshot TABLE --reason …`; to "
        "go on elsewhere in the log, choose earliest, latest, a place or a moment",
    )


def _end_of_run(work: Workplace, run: str, facts: ServerFacts) -> Where:
    batch = work.ledger.captured_by(work.source.name, run)
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
