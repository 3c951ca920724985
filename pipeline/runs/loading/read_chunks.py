"""Reading the chunks of loads: several at a time, over tables and inside one.

Belongs here: which chunk is next, reading it into durable files, telling the ledger. Does not:
which tables are loaded (`loads`), where a chunk ends (`SourceServer.next_bound`), how large it is
and whether it is read now (`pipeline.snapshot.pace`).

The ledger knows of a chunk before it is read, and again once its files are durable. Whatever
happens in between, that chunk alone is read again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from time import perf_counter

from pipeline.changes.layout import snapshot_path
from pipeline.decisions import Lease
from pipeline.errors import StructureMoved, TableError
from pipeline.load import Chunk, ChunkRows, Load
from pipeline.position import Coordinates, LogFile
from pipeline.row_groups import row_groups
from pipeline.runs.context import Workplace
from pipeline.schema.row_keys import merge_key
from pipeline.snapshot.bounds import Range
from pipeline.snapshot.keys import chunk_key
from pipeline.snapshot.pace import ChunkRead, first_size, next_size, throttle

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
        self._readings = [ChunksRead(load, first_size(plan.pace)) for load in loads]
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
                    hint="give the table a PRIMARY KEY, or release it again when there are fewer "
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
            self._work.progress.load(tuple(told))
            self._told_at = perf_counter()
