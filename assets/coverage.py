"""The partitions of a source's past, by time: those that runs have read are reported to Dagster.

`.lockstep/coverage.json` only serves Dagster's page, like the `catalogue`. If the file is lost, the
beginning is taken from the first batch, and all partitions are reported again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import dagster as dg
import pyarrow.compute as pc

from lockstep.assets.declared import Declaration
from lockstep.assets.files import changing_object, read_object
from lockstep.assets.table_news import Events
from lockstep.pipeline.mirror.source_tables import source_table_path
from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.ports.ledger import content_of
from lockstep.pipeline.replay.partitions import Partitions
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.values.segment import SourceTable
from lockstep.resources.config import Settings

FILE: Final = "coverage.json"

_MOST_REPORTED: Final = 200
"""Largest number of partitions that a run reports; Dagster takes milliseconds for each."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The time whose partitions were reported. `begins`: the beginning of the partition with the
    first captured transaction, which can only move to an earlier one; `until`: the end of the last
    partition that was reported."""

    begins: datetime
    until: datetime

    def unreported(
        self, moment: datetime, partitions: Partitions, limit: int
    ) -> Iterator[datetime]:
        """Yield the beginnings of the partitions that had ended by the moment and were not reported
        yet: the oldest first, at most `limit`."""
        begin = self.until
        for _ in range(limit):
            if begin + partitions.length > moment:
                return
            yield begin
            begin += partitions.length


def read_coverage(folder: Path, source: str) -> Coverage | None:
    """Return the source's coverage; None if nothing was captured yet or the file is damaged."""
    entry = read_object(folder / FILE).get(source, {})
    try:
        return Coverage(*(datetime.fromisoformat(entry[key]) for key in ("begins", "until")))
    except (TypeError, KeyError, ValueError):
        return None


def coverage_from(before: Coverage | None, first: datetime, partitions: Partitions) -> Coverage:
    """Return the coverage from which a run goes on reporting. `before`: the coverage in the file;
    `first`: the commit time of the first captured transaction. If there is no `before`, or it
    begins after the partition of `first`, all partitions are reported again. Otherwise `before` is
    rounded down to partitions, because their length may have been changed."""
    begin = partitions.begin_of(first)
    if before is None or begin < partitions.begin_of(before.begins):
        return Coverage(begin, begin)
    return Coverage(*map(partitions.begin_of, (before.begins, before.until)))


def write_coverage(folder: Path, source: str, coverage: Coverage) -> None:
    with changing_object(folder / FILE) as entries:
        entries[source] = {key: moment.isoformat() for key, moment in asdict(coverage).items()}


def note_coverage(
    events: Events, settings: Settings, work: Workplace, began: datetime | None
) -> None:
    """Report the partitions that have ended and were read completely. `began`: when this run asked
    the server for the log's end, by this machine's clock, up to which partitions count as read; if
    None, they count up to the last captured commit."""
    source, partitions = work.source.name, settings.file.dagster.partitions
    cursor = work.ledger.cursors(source).acknowledged
    folder = settings.state_folder
    before = read_coverage(folder, source)
    first = None if cursor is None else _first_commit(work, before)
    if cursor is None or first is None:
        return
    until = began or cursor.position.committed_at or first
    names = Declaration.of(settings, source).names
    coverage = coverage_from(before, first, partitions)
    reported = coverage.until
    for begin in coverage.unreported(until, partitions, _MOST_REPORTED):
        key = begin.strftime(partitions.key_format)
        events.log_event(dg.AssetMaterialization(names.replayed, partition=key))
        reported = begin + partitions.length
    write_coverage(folder, source, replace(coverage, until=reported))


def _first_commit(work: Workplace, before: Coverage | None) -> datetime | None:
    """Return the earliest commit time of the source's first batch; None if it is unknown. The time
    is limited to the span from the log file's creation to the batch's capture, because a server's
    clock may be wrong."""
    batch = next(iter(work.ledger.live_batches(work.source.name, limit=1)), None)
    if batch is None or batch.end is None or batch.anchor is None:
        return None
    first = batch.start.committed_at
    if first is None and before is not None:
        return before.begins
    first = first or _first_transaction(work, batch) or batch.end.committed_at
    if first is None:
        return None
    created = datetime.fromtimestamp(batch.anchor.file_created, UTC)
    return min(max(first.astimezone(UTC), created), batch.captured_at or created)


def _first_transaction(work: Workplace, batch: Batch) -> datetime | None:
    """Return the earliest commit time of a batch's transactions; None if it has none, or if their
    files are missing or damaged."""
    parts = content_of(work.ledger, batch.source, batch.id).source_parts
    transactions = [part for part in parts if part.table is SourceTable.TRANSACTIONS]
    files = [file for part in transactions for file in part.files]
    folder, moments = source_table_path(batch.source, SourceTable.TRANSACTIONS), list[datetime]()
    if not work.segments.damaged(folder, files):
        for piece in work.segments.pieces(folder, files, ["_committed_at"]):
            moments += filter(None, [pc.min(piece.column(0)).as_py()])
    return min(moments, default=None)
