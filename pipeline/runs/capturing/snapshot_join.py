"""Tables read from the source, joined with the log while it is read.

Belongs here: where a table's rows begin to count again, and what the ledger records of it.
Does not: reading the table (`resnapshot`), rows of the log (`segment_builder`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.ring import Integers, Run
from pipeline.position import Coordinates
from pipeline.runs.rejoining.resnapshot import Reread
from pipeline.schema.history import SchemaVersion
from pipeline.schema.tracker import SchemaTracker
from pipeline.table import TableName
from pipeline.table_state import SnapshotPart


class Joining:
    """The tables of `rereads` that still wait for their place in the log."""

    def __init__(self, rereads: Sequence[Reread], structures: SchemaTracker) -> None:
        self._waiting = {one.table: one for one in rereads}
        self._structures = structures
        self.snapshots: list[SnapshotPart] = []

    def waits(self, table: TableName) -> bool:
        """Whether the log tells nothing of the table yet."""
        return table in self._waiting and self._waiting[table].columns is None

    def passed(self, at: Coordinates | None) -> Iterator[tuple[Reread, SchemaVersion | None]]:
        """Tables whose rows from `at` on are changes to what was read (None: the log is
        over), each with the version that was read; None for one that is gone. Where only
        columns were read, the version is that of the log."""
        for table, one in list(self._waiting.items()):
            if at is None or one.low <= at:
                del self._waiting[table]
                if one.columns is not None:
                    yield one, self._structures.version(table)
                    continue
                there = one.schema if one.error is None else None
                version = None if there is None else self._structures.adopt(there, one.low)
                yield one, version

    def record(self, one: Reread, version: int, sequence: int) -> None:
        """The table's rows belong behind the change of that number."""
        part = SnapshotPart(one.table, version, sequence, one.files, one.columns)
        self.snapshots.append(part)


def behind(run: Run, events: Integers, low: Coordinates) -> Integers:
    """Which events belong to transactions that end behind a place."""
    rows = run.transactions[events[:, columns.TRANSACTION]]
    ends = rows[:, columns.END_OFFSET]
    numbers = np.array([file.number for file in run.files])[rows[:, columns.FILE]]
    later = (numbers > low.file.number) | ((numbers == low.file.number) & (ends > low.offset))
    return np.flatnonzero(later)
