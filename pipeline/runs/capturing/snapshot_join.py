"""Tables read from the source, joined with the log while it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto

import numpy as np

from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.ring import Integers, TransactionGroup
from pipeline.load import LoadFollowed, LoadJoined
from pipeline.position import Coordinates
from pipeline.runs.cures import Reread
from pipeline.schema.history import SchemaVersion
from pipeline.schema.tracker import SchemaTracker
from pipeline.snapshot.progress import LoadProgress
from pipeline.table import TableName
from pipeline.table_state import SnapshotPart


class PlaceMeaning(Enum):
    """What a place in the log means to a table that is read from the source."""

    LOW = auto()
    """From here on the log counts."""
    HIGH = auto()
    """Nothing that was read lies behind it, and all was."""
    BOTH = auto()
    """All was read at one place, or nothing of it."""


ReadPassed = tuple[Reread, PlaceMeaning, SchemaVersion | None]
"""A table, what its place means to it, and the version of the structure that was read; None of a
table that is gone, or that could not be read. Where only columns were read, it is that of the
log."""


class Joining:
    """The tables of `rereads` that still wait for their place in the log."""

    def __init__(self, rereads: Sequence[Reread], structures: SchemaTracker) -> None:
        followed = [
            reread for reread in rereads if reread.load is not None and reread.load.followed
        ]
        self._lows = {reread.table: reread for reread in rereads if reread not in followed}
        self._highs = {reread.table: reread for reread in followed if reread.complete}
        self._partial = {reread.table for reread in followed}
        self._structures = structures
        self.snapshots: list[SnapshotPart] = []
        self.followed: list[LoadFollowed] = []
        self.joined: list[LoadJoined] = []
        self.loaded: list[LoadProgress] = []
        """What was read of the tables that are whole now."""
        self._told: Coordinates | None = None

    def waits(self, table: TableName) -> bool:
        """Whether the log tells nothing of the table yet."""
        return table in self._lows and self._lows[table].columns is None

    def is_read(self, table: TableName) -> bool:
        """Whether the place is between those at which its chunks were read, or are to be."""
        return table in self._partial

    def passed(self, at: Coordinates | None) -> Iterator[ReadPassed]:
        """Places up to `at` that were waited for (None: the log is over). A high is passed once
        all changes before it are numbered: they are up to the `at` of before."""
        for table, reread in list(self._lows.items()):
            if at is None or reread.low <= at:
                del self._lows[table]
                yield self._low(reread)
        for table, reread in list(self._highs.items()):
            if at is None or (self._told is not None and reread.high <= self._told):
                del self._highs[table]
                self._partial.discard(table)
                yield reread, PlaceMeaning.HIGH, self._structures.version(table)
        self._told = at

    def _low(self, reread: Reread) -> ReadPassed:
        if reread.columns is not None:
            return reread, PlaceMeaning.BOTH, self._structures.version(reread.table)
        if reread.error is not None or reread.schema is None:
            return reread, PlaceMeaning.BOTH, None
        version = self._structures.adopt(reread.schema, reread.low)
        if reread.complete and reread.low == reread.high:
            return reread, PlaceMeaning.BOTH, version
        self._partial.add(reread.table)
        if reread.complete:
            self._highs[reread.table] = reread
        return reread, PlaceMeaning.LOW, version

    def begin(self, reread: Reread, version: int, sequence: int) -> None:
        """The log of the table counts behind the change of that number."""
        if reread.load is not None:
            self.followed.append(LoadFollowed(reread.load.id, reread.table, sequence, version))

    def record(self, reread: Reread, version: int, sequence: int) -> None:
        """The table's rows belong behind the change of that number."""
        if reread.load is not None:
            self.joined.append(LoadJoined(reread.load.id, reread.table))
            self.loaded.append(reread.load.progress)
        part = SnapshotPart(reread.table, version, sequence, reread.files, reread.columns)
        self.snapshots.append(part)

    def place(self, reread: Reread) -> tuple[int, int]:
        """Behind which change, of which version, the rows of a load belong."""
        assert reread.load is not None, "only loads are read in several places"
        if reread.load.followed is not None:
            return reread.load.followed.sequence, reread.load.followed.version
        (begun,) = (begun for begun in self.followed if begun.load == reread.load.id)
        return begun.sequence, begun.version


def behind(group: TransactionGroup, events: Integers, low: Coordinates) -> Integers:
    """Which events belong to transactions that end behind a place."""
    rows = group.transactions[events[:, columns.TRANSACTION]]
    ends = rows[:, columns.END_OFFSET]
    numbers = np.array([file.number for file in group.files])[rows[:, columns.FILE]]
    later = (numbers > low.file.number) | ((numbers == low.file.number) & (ends > low.offset))
    return np.flatnonzero(later)
