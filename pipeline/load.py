"""A table's load: its rows are read from the source chunk by chunk, in as many runs as necessary.

    ordered ──the first chunk is planned──▶ reading ──all chunks are read, and the log is
       │                                       │      captured behind the last of them──▶ joined
       └──────────────── void ◀────────────────┘

Not here: how a table is cut (`keys`, `bounds`), reading (`pipeline.runs.loading`),
joining with the log (`pipeline.runs.capturing.table_changes`).

A load's rows belong behind `low`, a place of the log that was read before the first
chunk. From there on the log of the table is captured like any other's, but not merged:
once the last chunk is read and the log behind it is captured, the chunks are what the
mirror begins with, and all that was captured behind `low` comes over them, key by key.
So nobody has to know which chunk a key is in. What changes rows without a word in the
log, and any change of the table's structure, voids what was read before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pipeline.position import Coordinates
from pipeline.schema.model import TableSchema
from pipeline.segment import SegmentFile
from pipeline.snapshot.bounds import Range
from pipeline.snapshot.keys import chunk_key
from pipeline.snapshot.progress import LoadProgress
from pipeline.table import TableName
from pipeline.table_state import TableState


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """A chunk as it was read: whatever was committed before `low` is in its rows, and nothing
    behind `high`; `files` have them. `seconds`: from its opening to its last row."""

    low: Coordinates
    high: Coordinates
    rows: int
    seconds: float
    files: tuple[SegmentFile, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A range of a table's keys. Numbers count from 0, in the order of the keys; `read`: None
    until it is."""

    number: int
    range: Range
    read: ChunkRows | None = None


@dataclass(frozen=True, slots=True)
class LoadBasis:
    """A load that has begun: the table's structure as it is read, the place in the log of
    `server_uuid` that its rows belong behind, and the server's estimate of its rows. `shape`: the
    fingerprint of how its rows are shown, None for as they are."""

    schema: TableSchema
    server_uuid: str
    low: Coordinates
    estimated_rows: int | None
    shape: str | None = None


@dataclass(frozen=True, slots=True)
class FollowedFrom:
    """From where on the log of a table that is loading is captured: behind the change `sequence`
    of a batch, under that version of its structure."""

    batch: int
    sequence: int
    version: int


@dataclass(frozen=True, slots=True)
class LoadFollowed:
    """A capture tells from where on it has the log of a load's table."""

    load: int
    table: TableName
    sequence: int
    version: int


@dataclass(frozen=True, slots=True)
class LoadJoined:
    """A capture tells that it has all of the log up to a load's high."""

    load: int
    table: TableName


@dataclass(frozen=True, slots=True)
class Load:
    """`reading`: None while it is only ordered; `followed`: None until a batch has captured the
    log from its low on. `with_past`: before that, the changes which the log still has of the table
    are captured (`pipeline.supply.past`)."""

    id: int
    table: TableName
    author: str
    reason: str
    ordered_at: datetime
    reading: LoadBasis | None = None
    followed: FollowedFrom | None = None
    chunks: tuple[Chunk, ...] = ()
    with_past: bool = False

    @property
    def planned(self) -> bool:
        return bool(self.chunks) and self.chunks[-1].range.through is None

    @property
    def unread(self) -> tuple[Chunk, ...]:
        return tuple(chunk for chunk in self.chunks if chunk.read is None)

    @property
    def complete(self) -> bool:
        return self.planned and not self.unread

    @property
    def at_once(self) -> bool:
        """Whether the table cannot be cut: it is read in one piece, behind whose very place the
        log counts."""
        return self.reading is not None and not chunk_key(self.reading.schema)

    @property
    def rows(self) -> int:
        return sum(chunk.read.rows for chunk in self.chunks if chunk.read is not None)

    @property
    def seconds(self) -> float:
        """Seconds that reading them took, one chunk behind the other."""
        return sum(chunk.read.seconds for chunk in self.chunks if chunk.read is not None)

    @property
    def low(self) -> Coordinates | None:
        """Where the log begins to count over what was read. A table of one chunk has the very
        place of that; one that is read on has a place that no later chunk can be short of, and
        keeps it once the log is captured from there on."""
        if self.reading is None:
            return None
        if not self.complete or self.followed is not None:
            return self.reading.low
        lows = [chunk.read.low for chunk in self.chunks if chunk.read is not None]
        return max(min(lows), self.reading.low)

    @property
    def high(self) -> Coordinates | None:
        """Nothing that was read lies behind it; None before the first chunk."""
        return max(
            (chunk.read.high for chunk in self.chunks if chunk.read is not None), default=None
        )

    @property
    def progress(self) -> LoadProgress:
        estimated = None if self.reading is None else self.reading.estimated_rows
        return LoadProgress(self.table, self.rows, estimated, self.seconds, self.complete)

    @property
    def files(self) -> tuple[SegmentFile, ...]:
        read = (chunk.read for chunk in self.chunks if chunk.read is not None)
        return tuple(file for rows in read for file in rows.files)


def why_void(
    load: Load, state: TableState | None, server_uuid: str, start: Coordinates, *, gap: bool
) -> str | None:
    """Why what was read of a load counts no more; None where it goes on. `start`: where the log is
    read from now, on the server that answers; `gap`: whether log was passed over since its low."""
    if load.reading is None:
        return None
    if load.reading.server_uuid != server_uuid:
        return "another server answers than the one that it was read from"
    if load.followed is None:
        behind = load.reading.low < start
        return "the log behind its rows was not captured for it" if behind else None
    if gap:
        return "part of the log since then was not read"
    if state is None or not state.loading:
        return "it was stopped, or dropped, while it was read"
    return None
