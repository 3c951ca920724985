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
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Final

from lockstep.pipeline.mirror.layout import snapshot_path
from lockstep.pipeline.model.load import Chunk, ChunkRows, Load, LoadBasis, SourceReading
from lockstep.pipeline.ports.segments import SegmentWriter
from lockstep.pipeline.ports.source import Baseline, TableSnapshot
from lockstep.pipeline.run.begin import RunStart
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.progress import load_progress
from lockstep.pipeline.run.stop_errors import (
    NEXT_RUN_READS_HINT,
    NOT_COMMITTED_REASON,
    logged_otherwise_errors,
    unsupported_error,
)
from lockstep.pipeline.run.table_plans import TablePlans, find_tables_without_log
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import merge_key, row_structure
from lockstep.pipeline.snapshot.chunks import Range, chunk_key
from lockstep.pipeline.snapshot.log_retention import ReadingTime, log_retention, week_statement
from lockstep.pipeline.snapshot.pace import ChunkRead, next_size, reason_to_wait
from lockstep.pipeline.supply import (
    GAP_RULE,
    ColumnsFromServer,
    NewColumns,
    RowsFromServer,
)
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import Need, StructureMoved, TableBusy, TableError
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.retries import TABLE_READ
from lockstep.pipeline.values.row_groups import row_groups
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.pipeline.values.shown import name_list
from lockstep.pipeline.values.table import TableName


def order_later_readings(ports: RunPorts, lease: Lease, plans: TablePlans) -> None:
    """Order that a later run reads tables which this run does not read: new tables,
    which are not captured until then, and tables with a gap in the log."""
    states = ports.ledger.table_states(ports.source.name)
    open_loads = {load.table for load in ports.ledger.open_loads(ports.source.name)}
    for table, reason in plans.wait_reasons.items():
        has_gap = plans.plans[table].rule == GAP_RULE
        if (has_gap or table not in states) and table not in open_loads:
            ports.ledger.order_load(lease, table, author=plans.wants[table].author, reason=reason)


FindAltered = Callable[[Collection[TableName]], Collection[TableName]]

_ALTERED_IN_LOG: Final = "a statement may have altered or renamed it, so the log is read first"


def void_load(ports: RunPorts, lease: Lease, load: Load, reason: str) -> None:
    """Void a load, and delete the rows that it read."""
    ports.ledger.void_load(lease, load.id, reason)
    ports.segments.delete_load(snapshot_path(ports.source.name, load.table), load.id)


def _order_again(ports: RunPorts, lease: Lease, load: Load, reason: str) -> Load:
    """Void a load for this reason, and return a new one in its place."""
    void_load(ports, lease, load, reason)
    return ports.ledger.order_load(lease, load.table, author=load.author, reason=load.reason)


def load_tables(
    ports: RunPorts,
    lease: Lease,
    run_start: RunStart,
    plans: TablePlans,
    find_altered: FindAltered,
) -> list[SourceReading]:
    """Read the tables that the plans supply from the server, until all rows are read or
    the time for reading in one run is over. Return the readings, and a reading with an
    error for each table whose turn did not come but that has to be read before it is
    captured. `find_altered`: returns those of some tables that must not be read before
    the log is."""
    settings = run_start.facts.settings
    reading_time = ReadingTime(log_retention(settings), ports.source.snapshot.max_seconds)
    deadline = perf_counter() + reading_time.seconds
    for load, reason in plans.void_loads:
        void_load(ports, lease, load, reason)
        if load.row_count and load.table in plans.plans:
            ports.progress.note(f"{load.table} is read from the beginning again: {reason}")
    loads = [
        rows.load
        or ports.ledger.order_load(lease, table, author=plans.wants[table].author, reason=reason)
        for table, rows, reason in plans.supplies(RowsFromServer)
    ]
    if loads and reading_time.shortening_sentence is not None:
        ports.progress.note(
            f"{reading_time.shortening_sentence}\nhint: `{week_statement(settings)}`"
        )
    readings = _load_rows(
        ports, lease, run_start, loads, deadline, reading_time.piece_seconds, find_altered
    )
    # A table that stopped, or for which part of the log was lost, must be read before
    # it is captured again. If its turn did not come in this run, it stays stopped.
    unread_tables = find_tables_without_log(
        run_start, ports.ledger.table_states(ports.source.name), plans
    )
    unread_tables |= {order.table for order in plans.orders}
    unread_tables -= {reading.table for reading in readings}
    error = TableBusy(
        "its turn to be read from the source has not come yet", hint=NEXT_RUN_READS_HINT
    )
    unread_loads = [load for load in loads if load.table in unread_tables]
    return [*readings, *_readings_with_error(ports, unread_loads, error)]


def readings_to_follow(readings: Sequence[SourceReading]) -> list[SourceReading]:
    """Return the readings of loads whose tables no capture follows yet. This capture
    begins to follow them."""
    return [
        reading
        for reading in readings
        if reading.load is not None and reading.load.followed_from is None
    ]


def _load_rows(
    ports: RunPorts,
    lease: Lease,
    run_start: RunStart,
    loads: Sequence[Load],
    deadline: float,
    piece_seconds: float,
    find_altered: FindAltered,
) -> list[SourceReading]:
    """Read the rows of loads until `deadline`, a value of `perf_counter`. A load begins
    again if its table was altered meanwhile. `piece_seconds`: as for `ChunkReader`;
    `find_altered`: as for `load_tables`."""
    readings: dict[TableName, SourceReading] = {}
    for _ in TABLE_READ.tries():
        if not loads:
            break
        reader = ChunkReader(
            ports,
            lease,
            _begin_loads(ports, lease, run_start, loads, readings, find_altered),
            log_start=run_start.start.at,
            deadline=deadline,
            piece_seconds=piece_seconds,
        )
        loads = []
        for load_reading in reader.read():
            load, load_error = load_reading.load, load_reading.error
            if isinstance(load_error, StructureMoved):
                loads.append(_order_again(ports, lease, load, load_error.message))
            elif (reading := _reading_of(ports, lease, load, load_error)) is not None:
                readings[load.table] = reading
    error = TableBusy("it kept being altered while it was read", hint=NEXT_RUN_READS_HINT)
    return [*readings.values(), *_readings_with_error(ports, loads, error)]


def _readings_with_error(
    ports: RunPorts, loads: Sequence[Load], error: TableError
) -> list[SourceReading]:
    """Return, for each of these loads, which this run does not read, a reading with
    `error` at the log's present end."""
    if not loads:
        return []
    head = ports.server.facts().head
    return [SourceReading(load.table, load.reason, None, head, head, error=error) for load in loads]


def _begin_loads(
    ports: RunPorts,
    lease: Lease,
    run_start: RunStart,
    loads: Sequence[Load],
    readings: dict[TableName, SourceReading],
    find_altered: FindAltered,
) -> list[Load]:
    """Begin the loads that are new, and return all loads whose chunks can be read.
    Tables that cannot be read are added to `readings`, with an error."""
    new_loads = [load for load in loads if load.basis is None]
    baselines = _baselines(ports, new_loads, readings)
    # The structures were read before, so the log has each statement that led to them.
    altered_tables = find_altered([load.table for load in loads])
    altered_loads = [load for load in loads if load.table in altered_tables]
    for load in altered_loads:
        _order_again(ports, lease, load, _ALTERED_IN_LOG)
    busy = TableBusy(_ALTERED_IN_LOG, hint=NEXT_RUN_READS_HINT)
    for reading in _readings_with_error(ports, altered_loads, busy):
        readings[reading.table] = reading
    loads = [load for load in loads if load.table not in altered_tables]
    new_loads = [load for load in loads if load.basis is None]
    if not new_loads:
        return list(loads)
    estimates = ports.server.estimated_rows([load.table for load in new_loads])
    begun_tables: dict[str, list[TableName]] = {}
    for load in new_loads:
        baseline = baselines.get(load.table)
        if baseline is None:
            void_load(ports, lease, load, "it cannot be read")
            continue
        row_estimate = estimates.get(load.table)
        refused_reading = _begin_load(ports, lease, run_start, load, baseline, row_estimate)
        if refused_reading is None:
            begun_tables.setdefault(load.reason, []).append(load.table)
        else:
            readings[load.table] = refused_reading
    for reason, tables in begun_tables.items():
        verb = "is" if len(tables) == 1 else "are"
        ports.progress.note(f"{name_list(tables)} {verb} read from the source: {reason}")
    open_loads = {load.id: load for load in ports.ledger.open_loads(ports.source.name)}
    begun_loads = [open_loads[load.id] for load in loads if load.id in open_loads]
    return [load for load in begun_loads if load.basis]


def _begin_load(
    ports: RunPorts,
    lease: Lease,
    run_start: RunStart,
    load: Load,
    baseline: Baseline,
    row_estimate: int | None,
) -> SourceReading | None:
    """Begin a load with its table's `baseline`, and return None. If the table was
    dropped or cannot be read now, return a reading that says so."""
    schema = next((table for table in baseline.tables if table.name == load.table), None)
    reading = SourceReading(load.table, load.reason, schema, baseline.low, baseline.high)
    if schema is None:
        void_load(ports, lease, load, "it was dropped")
        return reading
    try:
        shape = _shape_to_read(ports, run_start, schema)
    except TableError as error:
        void_load(ports, lease, load, error.reason)
        return replace(reading, error=error)
    if baseline.low < run_start.start.at:
        # MySQL logs a transaction before its rows are visible, so rows of it would be
        # missing.
        busy = TableBusy(NOT_COMMITTED_REASON, hint=NEXT_RUN_READS_HINT)
        return replace(reading, low=baseline.high, error=busy)
    basis = LoadBasis(schema, run_start.facts.server_uuid, baseline.low, row_estimate, shape)
    ports.ledger.begin_load(lease, load.id, basis)
    return None


def _shape_to_read(ports: RunPorts, run_start: RunStart, schema: TableSchema) -> str | None:
    """Return the fingerprint of a table's shape. Raise `TableError` if the table must
    not be read: the log does not describe its rows, or has them under another name, the
    settings cannot be applied, or a new column may be a hidden one under a new name,
    because the log with its rename is not read yet. The last does not count once a
    person consented to show it."""
    name_in_log = run_start.facts.name_in_log(schema.name)
    errors = logged_otherwise_errors(schema.name, name_in_log)
    error = unsupported_error(schema) or errors.get(schema.name)
    state = ports.ledger.table_states(ports.source.name).get(schema.name)
    if error is None and (state is None or state.need is not Need.CONSENT):
        newest = ports.ledger.schema_at(ports.source.name, schema.name)
        error = None if newest is None else ports.shaping.renamed_error(newest, schema)
    if error is not None:
        raise error
    return ports.shaping.shape_fingerprint(schema)


def _baselines(
    ports: RunPorts, loads: Sequence[Load], readings: dict[TableName, SourceReading]
) -> dict[TableName, Baseline]:
    """Return for each table a baseline: its structure on the server, and the places of
    the log before and after the structure was read. Tables that a common baseline lacks
    are read one by one, to find the error. A table that cannot be read is added to
    `readings`."""
    names = [load.table for load in loads]
    baselines: dict[TableName, Baseline] = {}
    if len(names) > 1:
        baseline = ports.server.baseline(names)
        baselines = dict.fromkeys((table.name for table in baseline.tables), baseline)
    for load in loads:
        if load.table not in baselines:
            try:
                baselines[load.table] = ports.server.baseline([load.table])
            except TableError as error:
                readings[load.table] = _readings_with_error(ports, [load], error)[0]
    return baselines


def _reading_of(
    ports: RunPorts, lease: Lease, load: Load, error: TableError | None
) -> SourceReading | None:
    """Return the rows of a load that were read so far. If an error stops the table,
    return the error instead, and void the load unless the table is only busy. Return
    None if the table has no key, so that it is read in one piece, and its turn did not
    come."""
    if error is None and load.is_undivided and not load.is_complete:
        return None
    assert load.basis is not None and load.low is not None, "it was begun"
    reading = SourceReading(load.table, load.reason, load.basis.schema, load.low, load.low)
    if isinstance(error, TableBusy) and load.high is not None:
        ports.progress.note(f"{load.table}: the next run continues reading: {error.reason}")
    elif error is not None:
        if not isinstance(error, TableBusy):
            void_load(ports, lease, load, error.reason)
        return replace(reading, error=error)
    return replace(reading, high=load.high or load.low, files=load.files, load=load)


_REPORT_SECONDS = 0.3
"""Shortest time between two reports of progress, in seconds. With many tables, a report
takes about as long as reading a chunk."""

CHECK_SECONDS = 1.0
"""Shortest time, in seconds, between two checks of the server's load and of its oldest
log file."""


@dataclass(slots=True)
class LoadReading:
    """The reading of one load's chunks in this run. `next_rows`: number of rows of the
    next chunk. `error`: the error that ended the reading. `chunks_in_progress`: numbers
    of the chunks that threads are reading."""

    load: Load
    next_rows: int
    error: TableError | StructureMoved | None = None
    chunks_in_progress: set[int] = field(default_factory=set)

    @property
    def goes_on(self) -> bool:
        return self.error is None and not self.load.is_complete

    def put(self, chunk: Chunk) -> None:
        """Add a chunk to the load, or replace the chunk with its number."""
        chunks = list(self.load.chunks)
        chunks[chunk.number : chunk.number + 1] = [chunk]
        self.load = replace(self.load, chunks=tuple(chunks))


@dataclass(frozen=True, slots=True)
class _ChunkResult:
    """A chunk that a thread has read. `outcome`: its rows, or the error.
    `planned_rows`: the number of rows that it was to have. `row_bytes`: size of its
    rows in memory."""

    reading: LoadReading
    chunk: Chunk
    outcome: ChunkRows | TableError | StructureMoved
    planned_rows: int
    row_bytes: int


class ChunkReader:
    """Reads the chunks of loads in several threads, until all loads are complete or
    `perf_counter` reaches `deadline`. `log_start`: the place from which the log is
    captured afterwards. `piece_seconds`: longest time for reading a table that cannot
    be cut into chunks."""

    def __init__(
        self,
        ports: RunPorts,
        lease: Lease,
        loads: Sequence[Load],
        *,
        log_start: Coordinates,
        deadline: float,
        piece_seconds: float,
    ) -> None:
        self._ports, self._lease = ports, lease
        self._log_start, self._deadline, self._piece_seconds = log_start, deadline, piece_seconds
        first_rows = ports.source.snapshot.pace.first_rows
        self._readings = [LoadReading(load, first_rows) for load in loads]
        self._waiting_readings = deque(self._readings)
        self._has_begun = False
        self._reported_reason = ""
        self._checked_at = self._reported_at = float("-inf")
        self._oldest_file: LogFile | None = None

    def read(self) -> list[LoadReading]:
        """Read chunks, and return all loads with the chunks that were read."""
        connections = self._ports.source.snapshot.connections
        futures: set[Future[_ChunkResult]] = set()
        with ThreadPoolExecutor(connections, thread_name_prefix="lockstep-load") as pool:
            try:
                while True:
                    while len(futures) < connections and (task := self._next_chunk()) is not None:
                        futures.add(pool.submit(self._read_chunk, *task))
                    if not futures:
                        break
                    done_futures, futures = wait(futures, return_when=FIRST_COMPLETED)
                    for future in done_futures:
                        self._record_chunk(future.result())
            finally:
                for future in futures:
                    future.cancel()
        self._report(at_once=True)
        return self._readings

    # -- which is next --------------------------------------------------------------------

    def _next_chunk(self) -> tuple[LoadReading, Chunk, int] | None:
        """Return the next chunk to read, from the tables in turn, and its planned
        number of rows. Return None if no chunk is left or the time is over. At least
        one chunk is returned in every run, so that a load ends even if all runs begin
        late."""
        for _ in range(len(self._waiting_readings)):
            if self._has_begun and (perf_counter() >= self._deadline or not self._may_read()):
                return None
            reading = self._waiting_readings.popleft()
            chunk = self._chunk_of_load(reading)
            if chunk is not None:
                reading.chunks_in_progress.add(chunk.number)
                self._has_begun = True
                self._waiting_readings.append(reading)
                return reading, chunk, reading.next_rows
        return None

    def _chunk_of_load(self, reading: LoadReading) -> Chunk | None:
        """Return a planned chunk of this load that was not read, or else a new chunk.
        Return None if the load needs no further chunk."""
        if not reading.goes_on:
            return None
        for chunk in reading.load.unread_chunks:
            if chunk.number not in reading.chunks_in_progress:
                return chunk
        if reading.load.is_planned:
            return None
        try:
            return self._new_chunk(reading)
        except (TableError, StructureMoved) as error:
            reading.error = error
            return None

    def _new_chunk(self, reading: LoadReading) -> Chunk:
        """Choose the key range of the next chunk, and record it before it is read."""
        load = reading.load
        assert load.basis is not None, "a load that is read has begun"
        last_bound = load.chunks[-1].range.through if load.chunks else None
        through = None
        if chunk_key(load.basis.schema):
            through = self._ports.server.next_bound(
                load.basis.schema, last_bound, reading.next_rows, since=load.basis.low
            )
        chunk = Chunk(len(load.chunks), Range(last_bound, through))
        self._ports.ledger.plan_chunk(self._lease, load.id, chunk.number, chunk.range)
        reading.put(chunk)
        return chunk

    def _may_read(self) -> bool:
        """Wait while the server is too busy for another chunk. Return False if the time
        is over before it is less busy, or if the server purges the log too fast."""
        if perf_counter() - self._checked_at < CHECK_SECONDS:
            return True
        limits = self._ports.source.snapshot.limits
        while True:
            if self._stop_if_log_at_risk():
                return False
            reason = reason_to_wait(self._ports.server.source_load(), limits)
            if not reason:
                break
            if reason != self._reported_reason:
                self._ports.progress.note(f"the reading of tables pauses: {reason}")
                self._reported_reason = reason
            if perf_counter() + limits.pause_seconds >= self._deadline:
                return False
            self._ports.pause(limits.pause_seconds)
        self._reported_reason = ""
        self._checked_at = perf_counter()
        return True

    def _stop_if_log_at_risk(self) -> bool:
        """Stop reading tables if the server is about to purge log that is not captured
        yet, so that this log is captured before it is lost. The sign is that the server
        purged a file since the last check, and that the file in which the capture
        starts is now the oldest or gone. Return whether reading stops."""
        oldest_file = self._ports.server.facts().binlogs[0].file
        previous_file = self._oldest_file
        self._oldest_file = oldest_file
        if (
            previous_file is None
            or previous_file == oldest_file
            or oldest_file.number < self._log_start.file.number
        ):
            return False
        self._ports.progress.note(
            f"the reading of tables stops for now: the server purged its log up to {oldest_file}, "
            "so the log after that is captured first"
        )
        self._deadline = 0.0
        return True

    # -- reading a chunk -------------------------------------------------------------------

    def _read_chunk(self, reading: LoadReading, chunk: Chunk, planned_rows: int) -> _ChunkResult:
        """Read a chunk in a thread of the pool."""
        try:
            rows, size = self._write_rows(reading.load, chunk)
        except (TableError, StructureMoved) as error:
            return _ChunkResult(reading, chunk, error, planned_rows, 0)
        return _ChunkResult(reading, chunk, rows, planned_rows, size)

    def _write_rows(self, load: Load, chunk: Chunk) -> tuple[ChunkRows, int]:
        """Write the rows of a chunk to files. Return the files, and the rows' size in
        bytes."""
        ports = self._ports
        timer_start = perf_counter()
        assert load.basis is not None, "a load that is read has begun"
        schema = load.basis.schema
        is_keyless = not merge_key(schema)
        with ports.server.chunk(
            schema,
            chunk.range,
            exact=is_keyless,
            most_seconds=self._piece_seconds,
            since=load.basis.low,
        ) as rows:
            if is_keyless and not rows.exact:
                raise TableError(
                    "no key tells its rows apart, and at no moment was it free of writes",
                    hint="give the table a PRIMARY KEY, or resume it again when there are fewer "
                    "writes",
                )
            folder = snapshot_path(ports.source.name, load.table)
            writer = ports.segments.open_chunk(
                folder, load=load.id, chunk=chunk.number, schema=rows.schema
            )
            files, row_count, size = _write_files(writer, rows)
            seconds = perf_counter() - timer_start
            return ChunkRows(rows.low, rows.high, row_count, seconds, files), size

    def _record_chunk(self, result: _ChunkResult) -> None:
        """Record a chunk that was read, and choose the size of its table's next chunk."""
        reading, chunk = result.reading, result.chunk
        reading.chunks_in_progress.discard(chunk.number)
        rows = result.outcome
        if not isinstance(rows, ChunkRows):
            reading.error = reading.error or rows
            return
        self._ports.ledger.record_chunk(self._lease, reading.load.id, chunk.number, rows)
        reading.put(replace(chunk, rows=rows))
        read = ChunkRead(result.planned_rows, rows.row_count, result.row_bytes, rows.seconds)
        reading.next_rows = next_size(self._ports.source.snapshot.pace, read)
        if reading not in self._waiting_readings and reading.goes_on:
            self._waiting_readings.append(reading)
        self._report()

    def _report(self, *, at_once: bool = False) -> None:
        """Report the progress of all tables that have chunks, if the last report is old
        enough. `at_once`: report in any case."""
        if at_once or perf_counter() - self._reported_at >= _REPORT_SECONDS:
            tables = (reading.load.progress for reading in self._readings if reading.load.chunks)
            self._ports.progress.tell(load_progress(tuple(tables)))
            self._reported_at = perf_counter()


# -- some columns ----------------------------------------------------------------------


def read_columns(
    ports: RunPorts, plans: TablePlans, batch_id: int, find_altered: FindAltered
) -> tuple[list[SourceReading], TablePlans]:
    """Read the new columns that the plans supply from the server, into files of the
    batch. Return the readings, and the plans of all other tables. `find_altered`: as
    for `load_tables`."""
    readings: list[SourceReading] = []
    remaining_plans = dict(plans.plans)
    for table, columns, reason in plans.supplies(ColumnsFromServer):
        reading = _columns_of(ports, table, columns.columns, reason, batch_id, find_altered)
        if reading is None:
            remaining_plans[table] = remaining_plans[table].with_rows
        else:
            readings.append(reading)
            del remaining_plans[table]
    return readings, replace(plans, plans=remaining_plans)


def _columns_of(
    ports: RunPorts,
    table: TableName,
    columns: NewColumns,
    reason: str,
    batch_id: int,
    find_altered: FindAltered,
) -> SourceReading | None:
    """Read these columns of a table. Return None if all of its rows have to be read
    instead."""
    version = ports.ledger.schema_version(ports.source.name, table, columns.version)
    for _ in TABLE_READ.tries():
        try:
            baseline = ports.server.baseline([table])
        except TableError as error:
            head = ports.server.facts().head
            return SourceReading(table, reason, None, head, head, error=error)
        if not baseline.tables or version.schema is None:
            return None
        [schema] = baseline.tables
        if row_structure(version.schema) != row_structure(schema) or find_altered([table]):
            return None
        reading = SourceReading(
            table,
            reason,
            schema,
            baseline.low,
            baseline.high,
            columns=columns.names,
            version=columns.version,
        )
        try:
            return _read_by_key(ports, reading, schema, batch_id)
        except StructureMoved:
            continue
        except TableError as error:
            return replace(reading, error=error)
    return None


def _read_by_key(
    ports: RunPorts, reading: SourceReading, schema: TableSchema, batch_id: int
) -> SourceReading:
    if (error := unsupported_error(schema)) is not None:
        raise error
    names = ", ".join(reading.columns or ())
    ports.progress.note(
        f"{reading.table} is read from the source, only {names} by key: {reading.reason}"
    )
    with ports.server.snapshot(schema, reading.columns) as rows:
        writer = ports.segments.open(
            snapshot_path(ports.source.name, reading.table),
            batch=batch_id,
            schema_version=0,
            schema=rows.schema,
        )
        files, _, _ = _write_files(writer, rows)
        return replace(reading, low=rows.low, high=rows.high, files=files)


def _write_files(
    writer: SegmentWriter, rows: TableSnapshot
) -> tuple[tuple[SegmentFile, ...], int, int]:
    """Write rows to files. Return the files, the number of rows, and their size in
    bytes. Delete the files if an error interrupts this."""
    row_count = size = 0
    try:
        for group in row_groups(rows.batches):
            row_count += group.num_rows
            size += group.nbytes
            writer.write(group)
        return writer.close(), row_count, size
    except BaseException:
        writer.drop(0)
        raise
