"""The loads of one run. A load reads all rows of a table from MySQL, in chunks.

A table is loaded because somebody ordered it, because the log lacks changes of it, or
because its rows are older than the log that is read. If a run does not finish a load,
the next run continues it: the ledger records each chunk before it is read, and again
once its files are durable. If a run dies in between, only the chunks that were being
read are read again.

If a table only lacks new columns, these are read together with the primary key, because
its other values are in the mirror (the Delta table with the current rows) and in the
log. If the table's structure differs from the recorded one, or keeps being altered, all
of its rows are read instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import perf_counter

from lockstep.pipeline.mirror.layout import snapshot_path
from lockstep.pipeline.model.load import Chunk, ChunkRows, Load, LoadBegin, SourceReading
from lockstep.pipeline.ports.source import Baseline
from lockstep.pipeline.run.begin import RunStart
from lockstep.pipeline.run.context import Workplace, load_progress
from lockstep.pipeline.run.stop_errors import reread_error, unsupported_error
from lockstep.pipeline.run.table_plans import TablePlans, lost_tables
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import merge_key, row_structure
from lockstep.pipeline.snapshot.bounds import Range
from lockstep.pipeline.snapshot.keys import chunk_key
from lockstep.pipeline.snapshot.log_room import LogRoom, keep_longer, kept_for
from lockstep.pipeline.snapshot.pace import ChunkRead, next_size, throttle
from lockstep.pipeline.supply.plan import LOG_LOST, ColumnsRead, NewColumns, RowsRead
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import StructureMoved, TableBusy, TableError
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.retries import TABLE_READ
from lockstep.pipeline.values.row_groups import row_groups
from lockstep.pipeline.values.shown import name_list
from lockstep.pipeline.values.table import TableName


def order_readings(work: Workplace, lease: Lease, plans: TablePlans) -> None:
    """Order that a later run reads tables which this run does not read: new tables,
    which are not captured until then, and tables for which part of the log was lost."""
    states = work.ledger.table_states(work.source.name)
    open_loads = {load.table for load in work.ledger.open_loads(work.source.name)}
    for table, why in plans.wait_reasons.items():
        lost = plans.plans[table].rule == LOG_LOST
        if (lost or table not in states) and table not in open_loads:
            work.ledger.order_load(lease, table, author=plans.wants[table].author, reason=why)


def give_up(work: Workplace, lease: Lease, load: Load, why: str) -> None:
    """Void a load, and delete the rows that it read."""
    work.ledger.void_load(lease, load.id, why)
    work.segments.discard_load(snapshot_path(work.source.name, load.table), load.id)


def load_tables(
    work: Workplace, lease: Lease, run_start: RunStart, plans: TablePlans
) -> list[SourceReading]:
    """Read the tables that the plans supply from the server, until all rows are read or
    the time for reading in one run is over. Return the tables that were read, and with
    an error those that must not be captured before they are read."""
    room = LogRoom(kept_for(run_start.facts.settings), work.source.snapshot.seconds)
    until = perf_counter() + room.seconds
    for load, why in plans.void_loads:
        give_up(work, lease, load, why)
        if load.row_count and load.table in plans.plans:
            work.progress.note(f"{load.table} is read from the beginning again: {why}")
    loads = []
    for table, plan in plans.plans.items():
        step = plan.besides
        if step is None or not isinstance(step.supply, RowsRead):
            continue
        author = plans.wants[table].author
        loads.append(
            step.supply.load
            or work.ledger.order_load(lease, table, author=author, reason=step.reason)
        )
    if loads and room.short is not None:
        work.progress.note(f"{room.short}\nhint: `{keep_longer(run_start.facts.settings)}`")
    read = _loaded(work, lease, run_start, loads, until, room.piece_seconds)
    # A table that stopped, or for which part of the log was lost, must be read before
    # it is captured again. If its turn did not come in this run, it stays stopped.
    lacking = lost_tables(run_start, work.ledger.table_states(work.source.name), plans)
    lacking |= {order.table for order in plans.orders}
    lacking -= {reread.table for reread in read}
    waits = TableBusy("its turn to be read from the source has not come yet", hint=_AGAIN)
    return [*read, *_unread(work, [load for load in loads if load.table in lacking], waits)]


def begun_loads(rereads: Sequence[SourceReading]) -> list[SourceReading]:
    """Return the readings of loads whose tables no capture follows yet. This capture
    begins to follow them."""
    return [
        reread
        for reread in rereads
        if reread.load is not None and reread.load.followed_from is None
    ]


def _loaded(
    work: Workplace,
    lease: Lease,
    run_start: RunStart,
    loads: Sequence[Load],
    until: float,
    piece_seconds: float,
) -> list[SourceReading]:
    """Read the rows of loads until `until`, a value of `perf_counter`. A load begins
    again if its table was altered meanwhile. `piece_seconds`: as for `ChunkReader`."""
    rereads: dict[TableName, SourceReading] = {}
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
                moved.append(
                    work.ledger.order_load(lease, table, author=author, reason=read.load.reason)
                )
            elif (reread := _reread_of(work, lease, read)) is not None:
                rereads[read.load.table] = reread
            else:
                later.add(read.load.table)
        loads = moved
    altered = TableBusy("it kept being altered while it was read", hint=_AGAIN)
    left = [load for load in loads if load.table not in rereads.keys() | later]
    return [*rereads.values(), *_unread(work, left, altered)]


def _unread(work: Workplace, loads: Sequence[Load], why: TableBusy) -> list[SourceReading]:
    """Return the tables of these loads, which this run does not read, as stopped by the
    error `why` at the log's present end."""
    if not loads:
        return []
    head = work.server.facts().head
    return [SourceReading(load.table, load.reason, None, head, head, error=why) for load in loads]


_AGAIN = reread_error("").hint


def _begun(
    work: Workplace,
    lease: Lease,
    run_start: RunStart,
    loads: Sequence[Load],
    rereads: dict[TableName, SourceReading],
) -> list[Load]:
    """Begin the loads that are new, and return all loads whose chunks can be read.
    Tables that cannot be read are added to `rereads`, with an error."""
    new = [load for load in loads if load.begin is None]
    if not new:
        return list(loads)
    estimates = work.server.estimated_rows([load.table for load in new])
    baselines = _baselines(work, new, rereads)
    begun: dict[str, list[TableName]] = {}
    for load in new:
        baseline = baselines.get(load.table)
        if baseline is None:
            if load.table in rereads:
                give_up(work, lease, load, "it cannot be read")
            continue
        schema = next((table for table in baseline.tables if table.name == load.table), None)
        refused = None if schema is None else unsupported_error(schema)
        if schema is None or refused is not None:
            rereads[load.table] = SourceReading(
                load.table, load.reason, schema, baseline.low, baseline.high, error=refused
            )
            give_up(work, lease, load, "it was dropped" if refused is None else refused.reason)
            continue
        if baseline.low < run_start.start.at:
            # MySQL logs a transaction before its rows are visible: rows would be
            # missing.
            busy = TableBusy("transactions that are in the log are not committed yet", hint=_AGAIN)
            head = baseline.high
            rereads[load.table] = SourceReading(
                load.table, load.reason, schema, head, head, error=busy
            )
            continue
        uuid = run_start.facts.server_uuid
        try:
            shape = work.shaping.shape_fingerprint(schema)
        except TableError as error:
            rereads[load.table] = SourceReading(
                load.table, load.reason, schema, baseline.low, baseline.high, error=error
            )
            give_up(work, lease, load, error.reason)
            continue
        reading = LoadBegin(schema, uuid, baseline.low, estimates.get(load.table), shape)
        work.ledger.begin_load(lease, load.id, reading)
        begun.setdefault(load.reason, []).append(load.table)
    for reason, tables in begun.items():
        are = "is" if len(tables) == 1 else "are"
        work.progress.note(f"{name_list(tables)} {are} read from the source: {reason}")
    open_loads = {load.id: load for load in work.ledger.open_loads(work.source.name)}
    current = [open_loads[load.id] for load in loads if load.id in open_loads]
    return [load for load in current if load.begin]


def _baselines(
    work: Workplace, loads: Sequence[Load], rereads: dict[TableName, SourceReading]
) -> dict[TableName, Baseline]:
    """Return for each table a baseline: its structure on the server, and the places of
    the log before and after it was read. All are read together or, if that fails, one
    by one. A table that cannot be read is added to `rereads`. A table that is being
    altered is left out."""
    names = [load.table for load in loads]
    baselines: dict[TableName, Baseline] = {}
    if len(names) > 1:
        with suppress(TableError, StructureMoved):
            baseline = work.server.baseline(names)
            existing = {table.name for table in baseline.tables}
            baselines |= dict.fromkeys((name for name in names if name in existing), baseline)
    for load in loads:
        if load.table in baselines:
            continue
        try:
            baselines[load.table] = work.server.baseline([load.table])
        except StructureMoved:
            continue
        except TableError as error:
            head = work.server.facts().head
            rereads[load.table] = SourceReading(
                load.table, load.reason, None, head, head, error=error
            )
    return baselines


def _reread_of(work: Workplace, lease: Lease, read: ChunksRead) -> SourceReading | None:
    """Return the rows of a load that were read so far, or the error that stops the
    table. Return None if the table is read in one piece, for lack of a key, and its
    turn did not come. If other sessions keep the table busy, the next run continues the
    load. If the table cannot be read, the load is voided."""
    load = read.load
    if read.ended is None and load.at_once and not load.is_complete:
        return None
    assert load.begin is not None and load.low is not None, "it was begun"
    reading = load.begin
    result = SourceReading(
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
        work.progress.note(f"{load.table}: the next run continues reading: {read.ended.reason}")
        return result
    if not isinstance(read.ended, TableBusy):
        give_up(work, lease, load, read.ended.reason)
    return SourceReading(
        load.table, load.reason, reading.schema, load.low, load.low, error=read.ended
    )


REPORT_SECONDS = 0.3
"""Shortest time between two reports of progress, in seconds. With many tables, a report
takes about as long as reading a chunk."""

LOOK_SECONDS = 1.0
"""Shortest time, in seconds, between two checks of the server's load and of its oldest
log file."""


@dataclass(slots=True)
class ChunksRead:
    """The reading of one load's chunks in this run. `size`: number of rows of the next
    chunk. `ended`: the error that ended the reading. `under_way`: numbers of the chunks
    that threads are reading."""

    load: Load
    size: int
    ended: TableError | StructureMoved | None = None
    under_way: set[int] = field(default_factory=set)

    @property
    def goes_on(self) -> bool:
        return self.ended is None and not self.load.is_complete

    def put(self, chunk: Chunk) -> None:
        """Add a chunk to the load, or replace the chunk with its number."""
        chunks = list(self.load.chunks)
        chunks[chunk.number : chunk.number + 1] = [chunk]
        self.load = replace(self.load, chunks=tuple(chunks))


@dataclass(frozen=True, slots=True)
class _ChunkDone:
    """A chunk that a thread has read. `rows`: its files, or the error. `asked`: the
    number of rows that it was to have. `bytes`: size of its rows in memory."""

    reading: ChunksRead
    chunk: Chunk
    rows: ChunkRows | TableError | StructureMoved
    asked: int
    bytes: int


class ChunkReader:
    """Reads the chunks of loads in several threads, until all loads are complete or
    `perf_counter` reaches `until`. `start`: the place from which the log is captured
    afterwards. `piece_seconds`: longest time for reading a table that cannot be cut
    into chunks."""

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
        self._reported_wait = ""
        self._looked = self._reported_at = float("-inf")
        self._oldest: LogFile | None = None

    def read(self) -> list[ChunksRead]:
        """Read chunks, and return all loads with the chunks that were read."""
        connections = self._work.source.snapshot.connections
        running: set[Future[_ChunkDone]] = set()
        with ThreadPoolExecutor(connections, thread_name_prefix="lockstep-load") as pool:
            try:
                while True:
                    while len(running) < connections and (task := self._next()) is not None:
                        running.add(pool.submit(self._read, *task))
                    if not running:
                        break
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._take(future.result())
            finally:
                for future in running:
                    future.cancel()
        self._report(at_once=True)
        return self._readings

    # -- which is next --------------------------------------------------------------------

    def _next(self) -> tuple[ChunksRead, Chunk, int] | None:
        """Return the next chunk to read, from the tables in turn, and its planned
        number of rows. Return None if no chunk is left or the time is over. At least
        one chunk is returned in every run, so that a load ends even if all runs begin
        late."""
        for _ in range(len(self._waiting)):
            if self._begun and (perf_counter() >= self._until or not self._may_read()):
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
        """Return a planned chunk of this load that was not read, or else a new chunk.
        Return None if the load needs no further chunk."""
        if not reading.goes_on:
            return None
        for chunk in reading.load.unread:
            if chunk.number not in reading.under_way:
                return chunk
        if reading.load.planned:
            return None
        try:
            return self._new_chunk(reading)
        except (TableError, StructureMoved) as error:
            reading.ended = error
            return None

    def _new_chunk(self, reading: ChunksRead) -> Chunk:
        """Choose the key range of the next chunk, and record it before it is read."""
        load = reading.load
        assert load.begin is not None, "a load that is read has begun"
        after = load.chunks[-1].range.through if load.chunks else None
        through = None
        if chunk_key(load.begin.schema):
            through = self._work.server.next_bound(
                load.begin.schema, after, reading.size, since=load.begin.low
            )
        chunk = Chunk(len(load.chunks), Range(after, through))
        self._work.ledger.plan_chunk(self._lease, load.id, chunk.number, chunk.range)
        reading.put(chunk)
        return chunk

    def _may_read(self) -> bool:
        """Wait while the server is too busy for another chunk. Return False if the time
        is over before it is less busy, or if the server purges the log too fast."""
        if perf_counter() - self._looked < LOOK_SECONDS:
            return True
        if self._log_runs_away():
            return False
        limits = self._work.source.snapshot.limits
        while (now := throttle(self._work.server.source_load(), limits)).waits:
            if now.reason != self._reported_wait:
                self._work.progress.note(f"reading tables waits: {now.reason}")
                self._reported_wait = now.reason
            if perf_counter() + now.seconds >= self._until:
                return False
            self._work.pause(now.seconds)
        self._reported_wait = ""
        self._looked = perf_counter()
        return True

    def _log_runs_away(self) -> bool:
        """Return whether the server is about to purge log that is not captured yet: it
        purged a file since the last check, and the file in which the capture starts is
        now the oldest or gone. Then stop reading tables, so that the log is captured
        before it is lost."""
        oldest = self._work.server.facts().binlogs[0].file
        before, self._oldest = self._oldest, oldest
        if before is None or before == oldest or oldest.number < self._start.file.number:
            return False
        self._work.progress.note(
            f"reading tables stops for now: the server purged its log up to {oldest}, so the log "
            "after that is captured first"
        )
        self._until = 0.0
        return True

    # -- reading a chunk -------------------------------------------------------------------

    def _read(self, reading: ChunksRead, chunk: Chunk, asked: int) -> _ChunkDone:
        """Read a chunk in a thread of the pool."""
        try:
            rows, size = self._rows(reading.load, chunk)
        except (TableError, StructureMoved) as error:
            return _ChunkDone(reading, chunk, error, asked, 0)
        return _ChunkDone(reading, chunk, rows, asked, size)

    def _rows(self, load: Load, chunk: Chunk) -> tuple[ChunkRows, int]:
        """Write the rows of a chunk to files. Return the files, and the rows' size in
        bytes."""
        work, began, size, count = self._work, perf_counter(), 0, 0
        assert load.begin is not None, "a load that is read has begun"
        schema = load.begin.schema
        keyless = not merge_key(schema)
        with work.server.chunk(
            schema,
            chunk.range,
            exact=keyless,
            most_seconds=self._piece_seconds,
            since=load.begin.low,
        ) as rows:
            if keyless and not rows.exact:
                raise TableError(
                    "no key tells its rows apart, and at no moment was it free of writes",
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

    def _take(self, done: _ChunkDone) -> None:
        """Record a chunk that was read, and choose the size of its table's next chunk."""
        reading, chunk = done.reading, done.chunk
        reading.under_way.discard(chunk.number)
        if not isinstance(done.rows, ChunkRows):
            reading.ended = reading.ended or done.rows
            return
        self._work.ledger.record_chunk(self._lease, reading.load.id, chunk.number, done.rows)
        reading.put(replace(chunk, rows=done.rows))
        read = ChunkRead(done.asked, done.rows.row_count, done.bytes, done.rows.seconds)
        reading.size = next_size(self._work.source.snapshot.pace, read)
        if reading not in self._waiting and reading.goes_on:
            self._waiting.append(reading)
        self._report()

    def _report(self, *, at_once: bool = False) -> None:
        """Report the progress of all tables that have chunks, if the last report is old
        enough. `at_once`: report in any case."""
        if at_once or perf_counter() - self._reported_at >= REPORT_SECONDS:
            tables = (reading.load.progress for reading in self._readings if reading.load.chunks)
            self._work.progress.tell(load_progress(tuple(tables)))
            self._reported_at = perf_counter()


# -- some columns ----------------------------------------------------------------------------


def read_columns(
    work: Workplace, plans: TablePlans, batch: int
) -> tuple[list[SourceReading], TablePlans]:
    """Read the new columns that the plans supply from the server, into files of the
    batch. Return them, and the plans of all other tables."""
    rereads, remaining = list[SourceReading](), dict(plans.plans)
    for table, plan in plans.plans.items():
        if plan.besides is None or not isinstance(plan.besides.supply, ColumnsRead):
            continue
        reread = _columns_of(work, table, plan.besides.supply.columns, plan.besides.reason, batch)
        if reread is None:
            remaining[table] = plan.with_rows
        else:
            rereads.append(reread)
            del remaining[table]
    return rereads, replace(plans, plans=remaining)


def _columns_of(
    work: Workplace, table: TableName, columns: NewColumns, why: str, batch: int
) -> SourceReading | None:
    """Read these columns of a table. Return None if all of its rows have to be read
    instead."""
    version = work.ledger.schema_version(work.source.name, table, columns.version)
    for _ in TABLE_READ.tries():
        try:
            baseline = work.server.baseline([table])
        except StructureMoved:
            continue
        except TableError as error:
            head = work.server.facts().head
            return SourceReading(table, why, None, head, head, error=error)
        schema = baseline.tables[0] if baseline.tables else None
        if schema is None or version.schema is None:
            return None
        if row_structure(version.schema) != row_structure(schema):
            return None
        reread = SourceReading(
            table,
            why,
            schema,
            baseline.low,
            baseline.high,
            columns=columns.names,
            version=columns.version,
        )
        try:
            return _read_by_key(work, reread, schema, batch)
        except StructureMoved:
            continue
        except TableError as error:
            return replace(reread, error=error)
    return None


def _read_by_key(
    work: Workplace, reread: SourceReading, schema: TableSchema, batch: int
) -> SourceReading:
    if (refused := unsupported_error(schema)) is not None:
        raise refused
    names = ", ".join(reread.columns or ())
    work.progress.note(
        f"{reread.table} is read from the source, only {names} by key: {reread.reason}"
    )
    with work.server.snapshot(schema, reread.columns) as rows:
        writer = work.segments.open(
            snapshot_path(work.source.name, reread.table),
            batch=batch,
            schema_version=0,
            schema=rows.schema,
        )
        try:
            for group in row_groups(rows.batches):
                writer.write(group)
        except (TableError, StructureMoved):
            writer.drop(0)
            raise
        return replace(reread, low=rows.low, high=rows.high, files=writer.close())
