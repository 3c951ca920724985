"""The loads of one run: which tables are read from the source, and what was read of each.

Belongs here: beginning a load, and what comes of it. Does not: whose rows are read (`due`), reading
chunks (`read_chunks`), joining them with the log (`capturing.snapshot_join`), columns that are read
by key (`rejoining.resnapshot`).

A table is loaded because somebody ordered it, because the log alone could not bring it back, or
because it is older than what is read of the log. A load that a run does not finish is taken up by
the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter

from pipeline.decisions import Lease
from pipeline.errors import Remedy, StructureMoved, TableBusy, TableError
from pipeline.load import Load, LoadBasis
from pipeline.ports.source import Baseline
from pipeline.retries import TABLE_READ
from pipeline.runs.begin import RunStart
from pipeline.runs.context import Workplace
from pipeline.runs.cures import refusal
from pipeline.runs.loading.due import LoadReason, give_up, kept_loads, lost_tables
from pipeline.runs.loading.read_chunks import ChunkReader, ChunksRead
from pipeline.runs.reread import Reread, owed
from pipeline.shown import listed
from pipeline.snapshot.log_room import LogRoom, keep_longer, kept_for
from pipeline.table import TableName
from pipeline.table_state import TableCondition


def load_tables(
    work: Workplace, lease: Lease, run_start: RunStart, wanted: Mapping[TableName, LoadReason]
) -> list[Reread]:
    """Read the tables of `wanted`, those that somebody ordered, and those that earlier runs did
    not finish; until all is read, or the time for it in one run is over."""
    room = LogRoom(kept_for(run_start.facts.settings), work.source.snapshot.seconds)
    until = perf_counter() + room.seconds
    states = work.ledger.table_states(work.source.name)
    lost = lost_tables(run_start, states)
    gone = LoadReason("the log behind its rows is gone")
    wanted = {**dict.fromkeys(lost, gone), **wanted}
    kept, asked = kept_loads(work, lease, run_start, states)
    asked |= wanted
    for table, state in states.items():
        if state.condition is TableCondition.LOADING and table not in kept:
            asked.setdefault(table, LoadReason("what was read of it no longer counts"))
    loads = [load for load in kept.values() if work.source.patterns.matches(load.table)]
    for table, reason in asked.items():
        if table not in kept:
            loads.append(
                work.ledger.order_load(lease, table, author=reason.author, reason=reason.why)
            )
    if loads and room.short is not None:
        work.progress.note(f"{room.short}\nhint: `{keep_longer(run_start.facts.settings)}`")
    read = _loaded(work, lease, run_start, loads, until, room.piece_seconds)
    done = {reread.table for reread in read}
    # They may not go on behind the gap.
    left = [load for load in loads if load.table in lost and load.table not in done]
    waits = TableBusy("its turn to be read from the source has not come yet", hint=_AGAIN)
    return [*read, *_unread(work, left, waits)]


def begun_loads(rereads: Sequence[Reread]) -> list[Reread]:
    """Those whose tables this capture begins to follow."""
    return [
        reread for reread in rereads if reread.load is not None and reread.load.followed is None
    ]


def _loaded(
    work: Workplace,
    lease: Lease,
    run_start: RunStart,
    loads: Sequence[Load],
    until: float,
    piece_seconds: float,
) -> list[Reread]:
    rereads: dict[TableName, Reread] = {}
    later = set[TableName]()
    for _ in TABLE_READ.tries():
        waiting = [load for load in loads if load.table not in rereads.keys() | later]
        if not waiting:
            break
        ready = _begun(work, lease, run_start, waiting, rereads)
        moved = []
        reader = ChunkReader(
            work, lease, ready, start=run_start.start.at, until=until, piece_seconds=piece_seconds
        )
        for read in reader.read():
            if isinstance(read.ended, StructureMoved):
                give_up(work, lease, read.load, read.ended.message)
                reason, author = read.load.reason, read.load.author
                again = {"author": author, "reason": reason}
                moved.append(work.ledger.order_load(lease, read.load.table, **again))
            elif (reread := _told(work, lease, read)) is not None:
                rereads[read.load.table] = reread
            else:
                later.add(read.load.table)
        loads = moved
    altered = TableBusy("it kept being altered while it was read", hint=_AGAIN)
    left = [load for load in loads if load.table not in rereads.keys() | later]
    return [*rereads.values(), *_unread(work, left, altered)]


def _unread(work: Workplace, loads: Sequence[Load], why: TableBusy) -> list[Reread]:
    """Tables that this run does not read, up to where the log is now."""
    if not loads:
        return []
    head = work.server.facts().head
    return [Reread(load.table, load.reason, None, head, head, error=why) for load in loads]


_AGAIN = owed("", Remedy.RESNAPSHOT).hint


def _begun(
    work: Workplace,
    lease: Lease,
    run_start: RunStart,
    loads: Sequence[Load],
    rereads: dict[TableName, Reread],
) -> list[Load]:
    """Loads whose chunks can be read: those that were begun before, and those that begin now.
    What cannot be read is `found`."""
    fresh = [one for one in loads if one.reading is None]
    if not fresh:
        return list(loads)
    estimates = work.server.estimated_rows([one.table for one in fresh])
    baselines = _baselines(work, fresh, rereads)
    begun: dict[str, list[TableName]] = {}
    for load in fresh:
        baseline = baselines.get(load.table)
        if baseline is None:
            if load.table in rereads:
                give_up(work, lease, load, "it cannot be read")
            continue
        schema = next((table for table in baseline.tables if table.name == load.table), None)
        refused = None if schema is None else refusal(schema)
        if schema is None or refused is not None:
            rereads[load.table] = Reread(
                load.table, load.reason, schema, baseline.low, baseline.high, error=refused
            )
            give_up(work, lease, load, "it is gone" if refused is None else refused.reason)
            continue
        if baseline.low < run_start.start.at:
            busy = TableBusy("transactions that are in the log are not committed yet", hint=_AGAIN)
            head = baseline.high
            rereads[load.table] = Reread(load.table, load.reason, schema, head, head, error=busy)
            continue
        uuid = run_start.facts.server_uuid
        reading = LoadBasis(schema, uuid, baseline.low, estimates.get(load.table))
        work.ledger.begin_load(lease, load.id, reading)
        begun.setdefault(load.reason, []).append(load.table)
    for reason, tables in begun.items():
        work.progress.note(f"{_are(tables)} read from the source: {reason}")
    open_now = {one.id: one for one in work.ledger.open_loads(work.source.name)}
    return [open_now[one.id] for one in loads if one.id in open_now and open_now[one.id].reading]


def _are(tables: Sequence[TableName]) -> str:
    """Which tables something is done to, for a sentence."""
    return f"{listed(tables)} {'is' if len(tables) == 1 else 'are'}"


def _baselines(
    work: Workplace, loads: Sequence[Load], rereads: dict[TableName, Reread]
) -> dict[TableName, Baseline]:
    """All tables in one round of questions; one by one where that fails."""
    names = [load.table for load in loads]
    if len(names) > 1:
        try:
            baseline = work.server.baseline(names)
        except (TableError, StructureMoved):
            pass
        else:
            there = {table.name for table in baseline.tables}
            baselines = dict.fromkeys((name for name in names if name in there), baseline)
            rest = [load for load in loads if load.table not in there]
            return baselines | _one_by_one(work, rest, rereads)
    return _one_by_one(work, loads, rereads)


def _one_by_one(
    work: Workplace, loads: Sequence[Load], rereads: dict[TableName, Reread]
) -> dict[TableName, Baseline]:
    told = {}
    for load in loads:
        try:
            told[load.table] = work.server.baseline([load.table])
        except StructureMoved:
            continue
        except TableError as error:
            head = work.server.facts().head
            rereads[load.table] = Reread(load.table, load.reason, None, head, head, error=error)
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
