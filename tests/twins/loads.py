"""Loads in the memory ledger: `pipeline.ports.loads`."""

from __future__ import annotations

from dataclasses import replace

from pipeline.batch import Batch, CaptureRecord
from pipeline.decisions import Lease
from pipeline.load import Chunk, ChunkRows, FollowedFrom, Load, LoadBasis
from pipeline.snapshot.bounds import Range
from pipeline.table import TableName
from resources.postgres.refusals import refusal
from tests.twins.books import LoadEntry, MemoryBooks, MemorySubject


class MemoryLoads(MemorySubject):
    def order_load(self, lease: Lease, table: TableName, *, author: str, reason: str) -> Load:
        with self._step(lease) as books:
            for entry in books.loads.values():
                if (entry.source, entry.load.table) == (lease.source, table) and entry.open:
                    if entry.load.reading is None:
                        return entry.load
                    raise refusal("loads_one_open")
            if not author.strip() or not reason.strip():
                raise refusal("loads_authored")
            number = books.next_number("loads", len(books.loads))
            load = Load(number, table, author, reason, self._clock())
            books.loads[number] = LoadEntry(lease.source, load)
            return load

    def open_loads(self, source: str) -> list[Load]:
        entries = self.books.loads.values()
        return [entry.load for entry in entries if entry.source == source and entry.open]

    def begin_load(self, lease: Lease, load: int, reading: LoadBasis) -> None:
        with self._step(lease) as books:
            entry = _open(books, lease.source, load)
            if entry.load.reading not in (None, reading):
                raise refusal("loads_read_once")
            _put(books, replace(entry.load, reading=reading))

    def plan_chunk(self, lease: Lease, load: int, number: int, range: Range) -> None:
        with self._step(lease) as books:
            known = books.loads.get(load)
            if known is None or not known.open or known.load.reading is None:
                raise refusal("load_chunks_while_reading")
            chunks = known.load.chunks
            if any(chunk.number == number for chunk in chunks):
                raise refusal("load_chunks_pk")
            if (number == 0) != (range.after is None):
                raise refusal("load_chunks_begin")
            if number != len(chunks) or (chunks and chunks[-1].range.through != range.after):
                raise refusal("load_chunks_go_on")
            _put(books, replace(known.load, chunks=(*chunks, Chunk(number, range))))

    def record_chunk(self, lease: Lease, load: int, number: int, read: ChunkRows) -> None:
        with self._step(lease) as books:
            known = books.loads.get(load)
            chunks = () if known is None else known.load.chunks
            if known is None or number >= len(chunks):
                raise refusal("load_chunks_known")
            if not known.open:
                raise refusal("load_chunks_while_reading")
            if chunks[number].read is not None:
                raise refusal("load_chunks_read_once")
            told = replace(chunks[number], read=read)
            _put(books, replace(known.load, chunks=(*chunks[:number], told, *chunks[number + 1 :])))

    def void_load(self, lease: Lease, load: int, why: str) -> None:
        with self._step(lease) as books:
            known = books.loads.get(load)
            if known is None or known.source != lease.source or known.joined_batch is not None:
                raise refusal("loads_known")
            if known.void is not None:
                raise refusal("loads_void_once")
            books.loads[load] = replace(known, void=why)


def record_loads(books: MemoryBooks, batch: Batch, record: CaptureRecord) -> None:
    """What a capture tells of loads."""
    for begun in record.followed:
        entry = _open(books, batch.source, begun.load)
        followed = FollowedFrom(batch.id, begun.sequence, begun.version)
        _put(books, replace(entry.load, followed=followed))
    for ended in record.joined:
        entry = _open(books, batch.source, ended.load)
        if not entry.load.complete:
            raise refusal("loads_joined_whole")
        if entry.load.followed is None:
            raise refusal("loads_joined_followed")
        books.loads[ended.load] = replace(entry, joined_batch=batch.id)


def forget_loads(books: MemoryBooks, batch: Batch) -> None:
    """The batch is abandoned: what it said of loads is undone, what was read is kept."""
    for number, entry in list(books.loads.items()):
        if entry.joined_batch == batch.id:
            others = (load for load in books.loads.values() if load is not entry and load.open)
            newer = any(
                (one.source, one.load.table) == (entry.source, entry.load.table) for one in others
            )
            void = "another one was ordered since" if newer else None
            entry = books.loads[number] = replace(entry, joined_batch=None, void=void)
        followed = entry.load.followed
        if entry.void is None and followed is not None and followed.batch == batch.id:
            _put(books, replace(entry.load, followed=None))


def load_of(books: MemoryBooks, batch: Batch, table: TableName) -> Load | None:
    """The load that the batch joined of a table."""
    for entry in books.loads.values():
        if entry.joined_batch == batch.id and entry.load.table == table:
            return entry.load
    return None


def _open(books: MemoryBooks, source: str, number: int) -> LoadEntry:
    entry = books.loads.get(number)
    if entry is None or entry.source != source or not entry.open:
        raise refusal("loads_known")
    return entry


def _put(books: MemoryBooks, load: Load) -> None:
    books.loads[load.id] = replace(books.loads[load.id], load=load)
