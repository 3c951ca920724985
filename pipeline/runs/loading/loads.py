"""The loads of one run: which tables are read from the source, and what was read of each.

Belongs here: whose rows are read, giving up what counts no more, beginning a load. Does not:
reading its chunks (`read_chunks`), joining them with the log (`capturing.snapshot_join`), columns
that are read by key (`rejoining.resnapshot`).

A table is loaded because somebody ordered it, because the log alone could not bring it back, or
because it is older than what is read of the log. A load that a run does not finish is taken up by
the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from pipeline.changes.layout import snapshot_path
from pipeline.decisions import Lease
from pipeline.engines import why_refused
from pipeline.errors import Remedy, StructureMoved, TableBusy, TableError
from pipeline.load import Load, Reading, why_void
from pipeline.ports.source import Baseline
from pipeline.retries import TABLE_READ
from pipeline.runs.begin import Begun
from pipeline.runs.context import Workplace
from pipeline.runs.loading.read_chunks import ChunkReader
from pipeline.runs.loading.read_chunks import Reading as ChunksRead
from pipeline.runs.rejoining.resnapshot import Reread, owed
from pipeline.runs.schema_choice import engine_hint
from pipeline.start.question import Rule
from pipeline.table import TableName
from pipeline.table_state import GOING, STOPPED, TableCondition, TableState

LOCKSTEP = "lockstep"
OLDER = "it is older than what is read of the log"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Why a table is read from the source, and who says so."""

    why: str
    author: str = LOCKSTEP


def load_tables(
    work: Workplace, lease: Lease, begun: Begun, wanted: Mapping[TableName, Wanted]
) -> list[Reread]:
    """Read the tables of `wanted`, those that somebody ordered, and those that earlier runs did
    not finish; until all is read, or the time for it in one run is over."""
    until = perf_counter() + work.source.snapshot.seconds
    states = work.ledger.table_states(work.source.name)
    lost = _lost(begun, states)
    gone = Wanted("the log behind its rows is gone")
    wanted = {**dict.fromkeys(lost, gone), **wanted}
    kept, asked = _kept(work, lease, begun, states)
    asked |= wanted
    for table, state in states.items():
        if state.condition is TableCondition.LOADING and table not in kept:
            asked.setdefault(table, Wanted("what was read of it counts no more"))
    loads = [one for one in kept.values() if work.source.patterns.matches(one.table)]
    for table, one in asked.items():
        if table not in kept:
            loads.append(work.ledger.order_load(lease, table, author=one.author, reason=one.why))
    read = _loaded(work, lease, begun, loads, until)
    head = work.server.facts().head
    waits = TableBusy("its turn to be read from the source has not come", hint=_AGAIN)
    done = {one.table for one in read}
    # They may not go on behind the gap.
    left = [one for one in loads if one.table in lost and one.table not in done]
    read += [Reread(one.table, one.reason, None, head, head, error=waits) for one in left]
    return read


def is_due(work: Workplace) -> bool:
    """Whether a table waits to be read from the source: a run that would have nothing else to do
    is not idle then."""
    source = work.source.name
    states = work.ledger.table_states(source).values()
    return bool(
        any(one.condition is TableCondition.LOADING for one in states)
        or any(work.source.patterns.matches(one.table) for one in work.ledger.open_loads(source))
    )


def new_tables(work: Workplace, begun: Begun) -> dict[TableName, Wanted]:
    """Tables that have rows which are older than what is read of the log, where those are wanted
    (`start = "snapshot"`), or that have none yet. One that is made in the log which is still
    to be read is not among them."""
    if not work.source.loads_new_tables:
        return {}
    source = work.source.name
    known = work.ledger.table_states(source).keys()
    loads = {one.table for one in work.ledger.open_loads(source)}
    there = [one.name for one in work.server.tables() if work.source.patterns.matches(one.name)]
    new = [one for one in there if one not in known and one not in loads]
    cursor = work.ledger.captured_cursor(source)
    if cursor is not None:
        batch, place = cursor.batch, cursor.position.at
        found = {one: work.ledger.schema_at(source, one, batch=batch, place=place) for one in new}
        new = [one for one in new if found[one] is not None]
    return dict.fromkeys(new, Wanted(OLDER))


def order_new(work: Workplace, lease: Lease, begun: Begun) -> None:
    """Have new tables read by a later run; nothing is captured of them until then."""
    for table, one in new_tables(work, begun).items():
        work.ledger.order_load(lease, table, author=one.author, reason=one.why)


def begun_loads(rereads: Sequence[Reread]) -> list[Reread]:
    """Those whose tables this capture begins to follow."""
    return [one for one in rereads if one.load is not None and one.load.followed is None]


def _lost(begun: Begun, states: Mapping[TableName, TableState]) -> set[TableName]:
    """Tables that cannot go on by the log, since part of it was purged unread."""
    if begun.decision.rule is not Rule.TABLES_READ_AGAIN:
        return set()
    return {table for table, one in states.items() if one.condition in GOING}


def give_up(work: Workplace, lease: Lease, load: Load, why: str) -> None:
    """What was read of it counts no more."""
    work.ledger.void_load(lease, load.id, why)
    work.segments.discard_load(snapshot_path(work.source.name, load.table), load.id)


def _kept(
    work: Workplace, lease: Lease, begun: Begun, states: Mapping[TableName, TableState]
) -> tuple[dict[TableName, Load], dict[TableName, Wanted]]:
    """Open loads that go on; the others are given up, and begin again unless their tables
    stopped."""
    found, again = dict[TableName, Load](), dict[TableName, Wanted]()
    for load in work.ledger.open_loads(work.source.name):
        gap = load.followed is not None and _gap_since(work, begun, load.followed.batch)
        uuid = begun.facts.server_uuid
        why = why_void(load, states.get(load.table), uuid, begun.start.at, gap=gap)
        if why is None and load.complete:
            folder = snapshot_path(work.source.name, load.table)
            why = next(iter(work.segments.damaged(folder, load.files)), None)
        if why is None:
            found[load.table] = load
            continue
        give_up(work, lease, load, why)
        state = states.get(load.table)
        if state is None or state.condition not in STOPPED:
            again[load.table] = Wanted(load.reason, load.author)
            if load.rows:
                work.progress.note(f"{load.table} is read from the beginning again: {why}")
    return found, again


def _gap_since(work: Workplace, begun: Begun, batch: int) -> bool:
    """Whether some of the log behind a batch was passed over, or read twice."""
    if begun.decision.predecessor is None:
        return True
    chain = work.ledger.live_batches(work.source.name, batch + 1, begun.decision.predecessor)
    return any(one.predecessor is None and not one.catches_up for one in chain)


def _loaded(
    work: Workplace, lease: Lease, begun: Begun, loads: Sequence[Load], until: float
) -> list[Reread]:
    found: dict[TableName, Reread] = {}
    later = set[TableName]()
    for _ in TABLE_READ.tries():
        waiting = [one for one in loads if one.table not in found.keys() | later]
        if not waiting:
            break
        ready = _begun(work, lease, begun, waiting, found)
        moved = []
        reader = ChunkReader(work, lease, ready, start=begun.start.at, until=until)
        for read in reader.read():
            if isinstance(read.ended, StructureMoved):
                give_up(work, lease, read.load, read.ended.message)
                reason, author = read.load.reason, read.load.author
                again = {"author": author, "reason": reason}
                moved.append(work.ledger.order_load(lease, read.load.table, **again))
            elif (told := _told(work, lease, read)) is not None:
                found[read.load.table] = told
            else:
                later.add(read.load.table)
        loads = moved
    head = work.server.facts().head
    for load in loads:
        if load.table not in found.keys() | later:
            altered = TableBusy("it kept being altered while it was read", hint=_AGAIN)
            found[load.table] = Reread(load.table, load.reason, None, head, head, error=altered)
    return list(found.values())


_AGAIN = owed("", Remedy.RESNAPSHOT).hint


def _begun(
    work: Workplace,
    lease: Lease,
    begun: Begun,
    loads: Sequence[Load],
    found: dict[TableName, Reread],
) -> list[Load]:
    """Loads whose chunks can be read: those that were begun before, and those that begin now.
    What cannot be read is `found`."""
    fresh = [one for one in loads if one.reading is None]
    if not fresh:
        return list(loads)
    estimates = work.server.estimated_rows([one.table for one in fresh])
    baselines = _baselines(work, fresh, found)
    for load in fresh:
        baseline = baselines.get(load.table)
        if baseline is None:
            if load.table in found:
                give_up(work, lease, load, "it cannot be read")
            continue
        schema = next((one for one in baseline.tables if one.name == load.table), None)
        refused = None if schema is None else why_refused(schema.engine)
        if schema is None or refused is not None:
            error = None
            if refused is not None:
                error = TableError(refused, hint=engine_hint(load.table))
            found[load.table] = Reread(
                load.table, load.reason, schema, baseline.low, baseline.high, error=error
            )
            give_up(work, lease, load, refused or "it is gone")
            continue
        if baseline.low < begun.start.at:
            busy = TableBusy("transactions that are in the log are not committed yet", hint=_AGAIN)
            head = baseline.high
            found[load.table] = Reread(load.table, load.reason, schema, head, head, error=busy)
            continue
        uuid = begun.facts.server_uuid
        reading = Reading(schema, uuid, baseline.low, estimates.get(load.table))
        work.ledger.begin_load(lease, load.id, reading)
        work.progress.note(f"{load.table} is read from the source: {load.reason}")
    open_now = {one.id: one for one in work.ledger.open_loads(work.source.name)}
    return [open_now[one.id] for one in loads if one.id in open_now and open_now[one.id].reading]


def _baselines(
    work: Workplace, loads: Sequence[Load], found: dict[TableName, Reread]
) -> dict[TableName, Baseline]:
    """All tables in one round of questions; one by one where that fails."""
    names = [one.table for one in loads]
    if len(names) > 1:
        try:
            baseline = work.server.baseline(names)
        except (TableError, StructureMoved):
            pass
        else:
            there = {one.name for one in baseline.tables}
            told = dict.fromkeys((name for name in names if name in there), baseline)
            rest = [one for one in loads if one.table not in there]
            return told | _one_by_one(work, rest, found)
    return _one_by_one(work, loads, found)


def _one_by_one(
    work: Workplace, loads: Sequence[Load], found: dict[TableName, Reread]
) -> dict[TableName, Baseline]:
    told = {}
    for load in loads:
        try:
            told[load.table] = work.server.baseline([load.table])
        except StructureMoved:
            continue
        except TableError as error:
            head = work.server.facts().head
            found[load.table] = Reread(load.table, load.reason, None, head, head, error=error)
    return told


def _told(work: Workplace, lease: Lease, read: ChunksRead) -> Reread | None:
    """What a capture joins; None for a table whose turn had not come. One that others keep busy
    is read on by the next run; of one that cannot be read nothing counts."""
    load = read.load
    if read.ended is None and load.at_once and not load.complete:
        return None
    assert load.reading is not None, "it was begun"
    assert load.low is not None, "it was begun"
    reading = load.reading
    result = Reread(
        load.table,
        load.reason,
        reading.schema,
        load.low,
        load.high or load.low,
        load.files,
        load=load,
    )
    if read.ended is None or isinstance(read.ended, StructureMoved):
        return result
    if isinstance(read.ended, TableBusy) and load.high is not None:
        work.progress.note(f"{load.table} is read on by the next run: {read.ended.reason}")
        return result
    if not isinstance(read.ended, TableBusy):
        give_up(work, lease, load, read.ended.reason)
    return Reread(load.table, load.reason, reading.schema, load.low, load.low, error=read.ended)
