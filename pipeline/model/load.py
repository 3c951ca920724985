"""A load: the reading of a table's rows from the source, chunk by chunk, in as many
runs as necessary. A chunk is a range of keys that one transaction reads.

    ordered ──the first chunk is planned──▶ reading ──the log is captured up to `high`──▶ joined
       │                                       │
       └──────────────── void ◀────────────────┘

Not here: how a table is divided (`snapshot.chunks`), reading (`pipeline.run.load`),
joining with the log (`pipeline.run.dump.table_changes`).

`low` is a place of the log that is noted before the first chunk is read. From that
place on, the table's changes are captured like those of any other table, but not
merged. `high` is the place of the log noted after the last chunk was read. Once the log
is captured up to it, the chunks become the first rows of the mirror (the Delta table
with the current rows), and everything captured after `low` is merged into them by key.
A chunk may already show some of these changes, and a row may move between chunks if its
key changes: merging by key gives the same result. A change of rows that the log does
not show, and any change of the table's structure, voids the chunks that were read
before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.snapshot.chunks import Range, chunk_key
from lockstep.pipeline.snapshot.progress import LoadProgress
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """The rows of a chunk, which are in `files`. They show every change that was
    committed before the place `low` of the log, and none that was committed after
    `high`. `row_count`: their number. `seconds`: the time it took to read them."""

    low: Coordinates
    high: Coordinates
    row_count: int
    seconds: float
    files: tuple[SegmentFile, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A range of a table's keys. Numbers count from 0 in the order of the keys. `rows`
    is None until its rows are read."""

    number: int
    range: Range
    rows: ChunkRows | None = None


@dataclass(frozen=True, slots=True)
class LoadBasis:
    """The facts on which a load is based, noted when it began: the table's structure, a
    place in the log of `server_uuid` before the first chunk was read, and the server's
    estimate of its rows. `shape`: fingerprint of the rules by which the lake shows the
    rows, or None if it shows them unchanged."""

    schema: TableSchema
    server_uuid: str
    low: Coordinates
    estimated_rows: int | None
    shape: str | None = None


@dataclass(frozen=True, slots=True)
class FollowedFrom:
    """The place from which the changes of a table that is being loaded are captured:
    after the change `sequence` of the batch `batch`. `version`: the number of the
    table's structure there."""

    batch: int
    sequence: int
    version: int


@dataclass(frozen=True, slots=True)
class FollowedLoad:
    """A load for which a batch begins to capture the table's changes. `sequence`,
    `version`: as in `FollowedFrom`."""

    load_id: int
    table: TableName
    sequence: int
    version: int


@dataclass(frozen=True, slots=True)
class JoinedLoad:
    """A load that a batch completes, because it captures the log up to `Load.high`."""

    load_id: int
    table: TableName


@dataclass(frozen=True, slots=True)
class Load:
    """The load of one table. `basis` is None until the first chunk is planned,
    `followed_from` until a batch captures the table's changes after `low`. `with_past`:
    before the rows are read, the changes of the table that the log still has are
    captured (`pipeline.supply`)."""

    id: int
    table: TableName
    author: str
    reason: str
    ordered_at: datetime
    basis: LoadBasis | None = None
    followed_from: FollowedFrom | None = None
    chunks: tuple[Chunk, ...] = ()
    with_past: bool = False

    @property
    def is_planned(self) -> bool:
        """True if the chunks cover all keys: the last one has no upper bound."""
        return bool(self.chunks) and self.chunks[-1].range.through is None

    @property
    def unread_chunks(self) -> tuple[Chunk, ...]:
        return tuple(chunk for chunk in self.chunks if chunk.rows is None)

    @property
    def _rows(self) -> tuple[ChunkRows, ...]:
        return tuple(chunk.rows for chunk in self.chunks if chunk.rows is not None)

    @property
    def is_complete(self) -> bool:
        return self.is_planned and not self.unread_chunks

    @property
    def is_undivided(self) -> bool:
        """True if the table has no key by which it can be divided. Its only chunk shows
        the table at one exact place of the log, and exactly the changes after that
        place are merged into it.
        """
        return self.basis is not None and not chunk_key(self.basis.schema)

    @property
    def row_count(self) -> int:
        """The number of rows that were read so far."""
        return sum(rows.row_count for rows in self._rows)

    @property
    def seconds(self) -> float:
        """The sum of the times it took to read the chunks."""
        return sum(rows.seconds for rows in self._rows)

    @property
    def low(self) -> Coordinates | None:
        """The place after which the log's changes are merged into the chunks.

        Until all chunks are read it is the place at which the load began; then it is
        the lowest `low` of the chunks, unless the table's changes are captured already.
        """
        if self.basis is None:
            return None
        if not self.is_complete or self.followed_from is not None:
            return self.basis.low
        # No changes before `basis.low` are captured for the load.
        return max(min(rows.low for rows in self._rows), self.basis.low)

    @property
    def high(self) -> Coordinates | None:
        """The place up to which the log must be captured, since no chunk shows a later
        change. None before the first chunk is read."""
        return max((rows.high for rows in self._rows), default=None)

    @property
    def progress(self) -> LoadProgress:
        estimated = None if self.basis is None else self.basis.estimated_rows
        return LoadProgress(
            self.table, self.row_count, estimated, self.seconds, self.is_complete, self.is_undivided
        )

    @property
    def files(self) -> tuple[SegmentFile, ...]:
        return tuple(file for rows in self._rows for file in rows.files)


def reason_void(
    load: Load,
    state: TableState | None,
    server_uuid: str,
    log: tuple[Coordinates, Coordinates],
    *,
    has_gap: bool,
) -> str | None:
    """Return why the chunks of a load are void, or None if the load continues. `log`:
    where this run begins to read the log of the server `server_uuid`, and the log's
    end. `has_gap`: part of the log after the load's `low` was never read."""
    if load.basis is None:
        return None
    if load.basis.server_uuid != server_uuid:
        return "its rows were read from another server than the one that answers now"
    if has_gap:
        return "part of the log after the place at which it began was not read"
    if load.followed_from is None:
        start, end = log
        # If `low` is after the log's end, the server's log was reset.
        is_missed = not start <= load.basis.low <= end
        return "the log after the place at which it began was not captured" if is_missed else None
    if state is None or not state.is_loading:
        return "it was stopped or dropped while it was read"
    return None


@dataclass(frozen=True, slots=True)
class SourceReading:
    """The result of reading a table from the source, completely or in part.

    - `reason`: the reason for the reading.
    - `schema`: the table's structure; None if the table was dropped at the source.
    - `low`, `high`: watermarks, the places of the log before and after the reading.
    - `error`: says why the table cannot be read; None if it was read.
    - `columns`: the columns that were read besides the key; None if all columns were
      read.
    - `version`: the number of the table's structure that has `columns`.
    - `load`: the load that reads the rows in chunks; None if they were read at once.
    """

    table: TableName
    reason: str
    schema: TableSchema | None
    low: Coordinates
    high: Coordinates
    files: tuple[SegmentFile, ...] = ()
    error: TableError | None = None
    columns: tuple[str, ...] | None = None
    version: int = 0
    load: Load | None = None

    @property
    def is_complete(self) -> bool:
        return self.load is None or self.load.is_complete
