"""Mirrors that were written, told to Dagster as they are committed.

Belongs here: gathering what a materialization shows, and when it is logged. Does not: how it is
shown (`pages.tables`). A run that fails, or is cancelled, has told of what it committed until then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

import dagster as dg

from assets.names import SourceNames
from assets.pages.tables import MergedTable, materialization
from pipeline.errors import LockstepError
from pipeline.position import Position
from pipeline.runs.context import Workplace
from pipeline.runs.reports import TableMerge
from pipeline.runs.run import RunSession
from pipeline.table import TableName
from resources.config import Settings

_FIRST: Final = 10
"""So many tables are told of one by one."""

_SECONDS: Final = 5.0
"""After that the others are told of so often: Dagster takes milliseconds for each time."""


@dataclass(frozen=True, slots=True)
class _BatchNews:
    """Where a batch ends, and the bytes of its changes by table."""

    end: Position | None
    sizes: Counter[TableName]


@dataclass(slots=True)
class MergeNews:
    """What one step merges."""

    context: dg.AssetExecutionContext
    settings: Settings
    names: SourceNames
    session: RunSession
    _waiting: list[TableMerge] = field(default_factory=list)
    _told: int = 0
    _last: float = 0.0
    _batches: dict[int, _BatchNews] = field(default_factory=dict)
    _looked_at: set[int] = field(default_factory=set)

    def take(self, done: TableMerge) -> None:
        """A mirror was committed."""
        self._waiting.append(done)
        if self._told < _FIRST or monotonic() - self._last >= _SECONDS:
            self.tell()

    def tell(self) -> None:
        """Of all that were not told of."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        lake, work = self.settings.lake_path(), self.session.workplace()
        now = work.clock()
        comments = _comments(work, {done.table for done in waiting})
        for done in sorted(waiting, key=lambda one: (one.table, one.first_batch)):
            merged = self._merged(work, done, comments.get(done.table, {}))
            self.context.log_event(materialization(self.names, merged, lake, now))
        self._told += len(waiting)
        self._last = monotonic()

    def end(self) -> None:
        """Of the rest; where the ledger does not answer any more, nobody can tell."""
        with suppress(LockstepError):
            self.tell()

    def _merged(
        self, work: Workplace, done: TableMerge, comments: Mapping[str, str]
    ) -> MergedTable:
        batches = self._between(work, done.first_batch, done.last_batch)
        newest = self._batches.get(done.last_batch)
        return MergedTable(
            done,
            position=None if newest is None else newest.end,
            change_bytes=sum(batch.sizes[done.table] for batch in batches),
            schema=work.ledger.schema_version(work.source.name, done.table, done.shows).schema,
            comments=comments,
        )

    def _between(self, work: Workplace, first: int, last: int) -> list[_BatchNews]:
        ledger, source = work.ledger, work.source.name
        if not self._looked_at.issuperset(range(first, last + 1)):
            for batch in ledger.live_batches(source, first, last):
                if batch.id not in self._batches:
                    sizes = Counter[TableName]()
                    for segment in ledger.segments(batch.id):
                        sizes[segment.table] += sum(file.size for file in segment.files)
                    for part in ledger.snapshots(source, batch.id):
                        sizes[part.table] += sum(file.size for file in part.files)
                    self._batches[batch.id] = _BatchNews(batch.end, sizes)
            self._looked_at |= set(range(first, last + 1))
        return [one for number, one in self._batches.items() if first <= number <= last]


def _comments(
    work: Workplace, tables: Collection[TableName]
) -> Mapping[TableName, Mapping[str, str]]:
    """As the source has them now; none where it does not answer: a merge does without it."""
    try:
        return work.server.comments(tables)
    except LockstepError:
        return {}
