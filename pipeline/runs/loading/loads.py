"""The loads of one run: which tables are read from the source, and what was read of each.

A table is loaded because somebody ordered it, because the log alone could not bring it back, or
because it is older than what is read of the log. A load that a run does not finish is taken up by
the next one: the ledger knows of a chunk before it is read, and again once its files are durable.
Whatever happens in between, that chunk alone is read again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import perf_counter

from pipeline.changes.layout import snapshot_path
from pipeline.decisions import Lease
from pipeline.errors import StructureMoved, TableBusy, TableError
from pipeline.load import Chunk, ChunkRows, Load, LoadBasis
from pipeline.ports.source import Baseline
from pipeline.position import Coordinates, LogFile
from pipeline.retries import TABLE_READ
from pipeline.row_groups import row_groups
from pipeline.runs.begin import RunStart
from pipeline.runs.context import Workplace, loaded_until_now
from pipeline.runs.cures import Reread, owed, refusal
from pipeline.runs.wanted import TablePlans, lost_tables
from pipeline.schema.rows import merge_key
from pipeline.shown import listed
from pipeline.snapshot.bounds import Range
from pipeline.snapshot.keys import chunk_key
from pipeline.snapshot.log_room import LogRoom, keep_longer, kept_for
from pipeline.snapshot.pace import ChunkRead, next_size, throttle
from pipeline.supply.plan import LOG_LOST, RowsRead
from pipeline.table import TableName


def order_readings(work: Workplace, lease: Lease, plans: TablePlans) -> None:
    """Have tables read by a later run: new ones, of which nothing is captured until then, and those
    that go on after a gap in the log."""
    states, want = work.ledger.table_states(work.source.name), plans.wants
    open_now = {load.table for load in work.ledger.open_loads(work.source.name)}
    for table, why in plans.waits.items():
        lost = plans.plans[table].rule == LOG_LOST
        if (lost or table not in states) and table not in open_now:
            work.ledger.order_load(lease, table, author=want[table].author, reason=why)


def give_up(work: Workplace, lease: Lease, load: Load, why: str) -> None:
    """What was read of it counts no more."""
    work.ledger.void_load(lease, load.id, why)
    work.segments.discard_load(snapshot_path(work.source.name, load.table), load.id)


def load_tables(
    work: Workplace, lease: Lease, run_start: RunStart, plans: TablePlans
) -> list[Reread]:
    """Read the tables whose rows the plans ask the server for, until all is read, or the time for
    it in one run is over."""
    room = LogRoom(kept_for(run_start.facts.settings), work.source.snapshot.seconds)
    until = perf_counter() + room.seconds
    for load, why in plans.void:
        give_up(work, lease, load, why)
        if load.rows and load.table in plans.plans:
            work.progress.note(f"{load.table} is read from the beginning again: {why}")
    loads = []
    for table, plan in plans.plans.items():
        step = plan.besides
        if step is None or not isinstance(step.supply, RowsRead):
            continue
        author = plans.wants[table].author
        begun = step.supply.load
        loads.append(
            begun or work.ledger.order_load(lease, table, author=author, reason=step.reason)
        )
    if loads and room.short is not None:
        work.progress.note(f"{room.short}\nhint: `{keep_longer(run_start.facts.settings)}`")
    read = _loaded(work, lease, run_start, loads, until, room.piece_seconds)
    done = {reread.table for reread in read}
    # They may not go on behind the gap, or without what they lack since they stopped.
    lost = lost_tables(run_start, work.ledger.table_states(work.source.name), plans)
    lost |= {order.table for order in plans.orders}
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
                table, author = read.load.table, read.load.author
                again = work.ledger.order_load(lease, table, author=author, reason=read.load.reason)
                moved.append(again)
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


_AGAIN = owed("").hint


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
        try:
            shape = work.shaping.fingerprint(schema)
        except TableError as error:
            rereads[load.table] = Reread(
                load.table, load.reason, schema, baseline.low, baseline.high, error=error
            )
            give_up(work, lease, load, error.reason)
            continue
        reading = LoadBasis(schema, uuid, baseline.low, estimates.get(load.table), shape)
        work.ledger.begin_load(lease, load.id, reading)
        begun.setdefault(load.reason, []).append(load.table)
    for reason, tables in begun.items():
        are = "is" if len(tables) == 1 else "are"
        work.progress.note(f"{listed(tables)} {are} read from the source: {reason}")
    open_now = {one.id: one for one in work.ledger.open_loads(work.source.name)}
    return [open_now[one.id] for one in loads if one.id in open_now and open_now[one.id].reading]


def _baselines(
    work: Workplace, loads: Sequence[Load], rereads: dict[TableName, Reread]
) -> dict[TableName, Baseline]:
    """All tables in one round of questions; one by one where that fails."""
    names = [load.table for load in loads]
    found: dict[TableName, Baseline] = {}
    if len(names) > 1:
        with suppress(TableError, StructureMoved):
            baseline = work.server.baseline(names)
            there = {table.name for table in baseline.tables}
            found |= dict.fromkeys((name for name in names if name in there), baseline)
    for load in loads:
        if load.table in found:
            continue
        try:
            found[load.table] = work.server.baseline([load.table])
        except StructureMoved:
            continue
        except TableError as error:
            head = work.server.facts().head
            rereads[load.table] = Reread(load.table, load.reason, None, head, head, error=error)
    return found


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


TELL_SECONDS = 0.3
"""How often progress is told at the most: of many tables that takes as long as reading one."""

LOOK_SECONDS = 1.0
"""How often it is looked what else the source has to do, and whether its log is still there."""


@dataclass(slots=True)
class ChunksRead:
    """A load while its chunks are read. `size`: rows of the next chunk; `ended`: what ends it."""

    load: Load
    size: int
    ended: TableError | StructureMoved | None = None
    under_way: set[int] = field(default_factory=set)

    @property
    def goes_on(self) -> bool:
        return self.ended is None and not self.load.complete

    def put(self, chunk: Chunk) -> None:
        chunks = list(self.load.chunks)
        chunks[chunk.number : chunk.number + 1] = [chunk]
        self.load = replace(self.load, chunks=tuple(chunks))


@dataclass(frozen=True, slots=True)
class _Done:
    reading: ChunksRead
    chunk: Chunk
    rows: ChunkRows | TableError | StructureMoved
    asked: int
    bytes: int


class ChunkReader:
    """Reads loads until all are complete, or `until` (`perf_counter`'s time) has come. `start`:
    where the log is read from behind that. `piece_seconds`: so long a table may be read in one
    piece."""

    def __init__(
        self,
        work: Workplace,
        lease: Lease,
        loads: Sequence[Load],
        *,
        start: Coordinates,
        until: float,
        piece_seconds: float,
    ) -> None:
        self._work, self._lease, self._start, self._until = work, lease, start, until
        self._piece_seconds = piece_seconds
        plan = work.source.snapshot
        self._readings = [ChunksRead(load, plan.pace.first) for load in loads]
        self._waiting = deque(self._readings)
        self._begun = False
        self._told_wait = ""
        self._looked = self._told_at = float("-inf")
        self._oldest: LogFile | None = None

    def read(self) -> list[ChunksRead]:
        connections = self._work.source.snapshot.connections
        running: set[Future[_Done]] = set()
        with ThreadPoolExecutor(connections, thread_name_prefix="lockstep-load") as pool:
            try:
                while True:
                    while len(running) < connections and (one := self._next()) is not None:
                        running.add(pool.submit(self._read, *one))
                    if not running:
                        break
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._take(future.result())
            finally:
                for future in running:
                    future.cancel()
        self._tell(at_once=True)
        return self._readings

    # -- which is next --------------------------------------------------------------------

    def _next(self) -> tuple[ChunksRead, Chunk, int] | None:
        """A chunk of the next table in turn; None where there is none, or no time. One is read in
        any case: whatever a run takes to begin, it leaves less to the next."""
        for _ in range(len(self._waiting)):
            if self._begun and (perf_counter() >= self._until or not self._may()):
                return None
            reading = self._waiting.popleft()
            chunk = self._chunk(reading)
            if chunk is not None:
                reading.under_way.add(chunk.number)
                self._begun = True
                self._waiting.append(reading)
                return reading, chunk, reading.size
        return None

    def _chunk(self, reading: ChunksRead) -> Chunk | None:
        """One that is planned and not read, or a new one."""
        if not reading.goes_on:
            return None
        for chunk in reading.load.unread:
            if chunk.number not in reading.under_way:
                return chunk
        if reading.load.planned:
            return None
        try:
            return self._planned(reading)
        except (TableError, StructureMoved) as error:
            reading.ended = error
            return None

    def _planned(self, reading: ChunksRead) -> Chunk:
        load = reading.load
        assert load.reading is not None, "a load that is read has begun"
        after = load.chunks[-1].range.through if load.chunks else None
        through = None
        if chunk_key(load.reading.schema):
            through = self._work.server.next_bound(
                load.reading.schema, after, reading.size, since=load.reading.low
            )
        chunk = Chunk(len(load.chunks), Range(after, through))
        self._work.ledger.plan_chunk(self._lease, load.id, chunk.number, chunk.range)
        reading.put(chunk)
        return chunk

    def _may(self) -> bool:
        """Whether the source has no better things to do; waits where it has, in the while that
        nothing else is to be done."""
        if perf_counter() - self._looked < LOOK_SECONDS:
            return True
        if self._log_runs_away():
            return False
        limits = self._work.source.snapshot.limits
        while (now := throttle(self._work.server.source_load(), limits)).waits:
            if now.reason != self._told_wait:
                self._work.progress.note(f"reading tables waits: {now.reason}")
                self._told_wait = now.reason
            if perf_counter() + now.seconds >= self._until:
                return False
            self._work.pause(now.seconds)
        self._told_wait = ""
        self._looked = perf_counter()
        return True

    def _log_runs_away(self) -> bool:
        """Whether the server purges its log meanwhile, and the file that is read from is next."""
        oldest = self._work.server.facts().binlogs[0].file
        before, self._oldest = self._oldest, oldest
        if before is None or before == oldest or oldest.number < self._start.file.number:
            return False
        self._work.progress.note(
            f"reading tables stops for now: the server purged its log up to {oldest}, and what is "
            "behind that is to be captured first"
        )
        self._until = 0.0
        return True

    # -- reading it ------------------------------------------------------------------------

    def _read(self, reading: ChunksRead, chunk: Chunk, asked: int) -> _Done:
        """In a thread of its own."""
        try:
            rows, size = self._rows(reading.load, chunk)
        except (TableError, StructureMoved) as error:
            return _Done(reading, chunk, error, asked, 0)
        return _Done(reading, chunk, rows, asked, size)

    def _rows(self, load: Load, chunk: Chunk) -> tuple[ChunkRows, int]:
        work, began, size, count = self._work, perf_counter(), 0, 0
        assert load.reading is not None, "a load that is read has begun"
        schema = load.reading.schema
        keyless = not merge_key(schema)
        with work.server.chunk(
            schema,
            chunk.range,
            exact=keyless,
            most_seconds=self._piece_seconds,
            since=load.reading.low,
        ) as rows:
            if keyless and not rows.exact:
                raise TableError(
                    "no key tells its rows apart, and no moment was found in which nothing was "
                    "written",
                    hint="give the table a PRIMARY KEY, or resume it again when there are fewer "
                    "writes",
                )
            folder = snapshot_path(work.source.name, load.table)
            writer = work.segments.open_chunk(
                folder, load=load.id, chunk=chunk.number, schema=rows.schema
            )
            try:
                for group in row_groups(rows.batches):
                    count += group.num_rows
                    size += group.nbytes
                    writer.write(group)
                files = writer.close()
            except BaseException:
                writer.drop(0)
                raise
            return ChunkRows(rows.low, rows.high, count, perf_counter() - began, files), size

    def _take(self, done: _Done) -> None:
        reading, chunk = done.reading, done.chunk
        reading.under_way.discard(chunk.number)
        if not isinstance(done.rows, ChunkRows):
            reading.ended = reading.ended or done.rows
            return
        self._work.ledger.record_chunk(self._lease, reading.load.id, chunk.number, done.rows)
        reading.put(replace(chunk, read=done.rows))
        read = ChunkRead(done.asked, done.rows.rows, done.bytes, done.rows.seconds)
        reading.size = next_size(self._work.source.snapshot.pace, read)
        if reading not in self._waiting and reading.goes_on:
            self._waiting.append(reading)
        self._tell()

    def _tell(self, *, at_once: bool = False) -> None:
        """Of those that are being read, and those that just ended."""
        if at_once or perf_counter() - self._told_at >= TELL_SECONDS:
            told = (reading.load.progress for reading in self._readings if reading.load.chunks)
            self._work.progress.tell(loaded_until_now(tuple(told)))
            self._told_at = perf_counter()
