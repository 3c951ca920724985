"""Which parts of a source's past are covered: told to Dagster, and kept beside lockstep.toml.

`.lockstep/coverage.json` is a copy for Dagster's page only, as the catalogue is: where it is lost,
the first batch tells the beginning again, and partitions are told of again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import dagster as dg
import pyarrow.compute as pc

from assets.declared import Declaration
from assets.files import changing_object, read_object
from assets.table_news import Events
from pipeline.batch import Batch
from pipeline.changes.source_tables import source_table_path
from pipeline.ports.ledger import content_of
from pipeline.replay.partitions import Partitions
from pipeline.runs.context import Workplace
from pipeline.segment import SourceTable
from resources.config import Settings

FILE: Final = "coverage.json"

_AT_ONCE: Final = 200
"""Partitions that one run tells of; Dagster takes milliseconds for each."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """`begins`: the beginning of the partition that the first captured transaction is in; it only
    moves back. `until`: the end of the last partition that Dagster was told of."""

    begins: datetime
    until: datetime

    def closed(self, moment: datetime, partitions: Partitions, most: int) -> Iterator[datetime]:
        """The beginnings of the partitions that are over at a moment and were not told yet, oldest
        first, `most` of them."""
        begin = self.until
        for _ in range(most):
            if begin + partitions.length > moment:
                return
            yield begin
            begin += partitions.length


def read_coverage(folder: Path, source: str) -> Coverage | None:
    """None where nothing was captured yet, or the file is none of ours."""
    entry = read_object(folder / FILE).get(source, {})
    try:
        return Coverage(*(datetime.fromisoformat(entry[key]) for key in ("begins", "until")))
    except (TypeError, KeyError, ValueError):
        return None


def coverage_from(before: Coverage | None, first: datetime, partitions: Partitions) -> Coverage:
    """With the partition of the first captured transaction among them: where that is earlier than
    what was known, all behind it are told again. Partitions may be longer than they were."""
    begin = partitions.begin_of(first)
    if before is None or begin < partitions.begin_of(before.begins):
        return Coverage(begin, begin)
    return Coverage(*map(partitions.begin_of, (before.begins, before.until)))


def write_coverage(folder: Path, source: str, coverage: Coverage) -> None:
    with changing_object(folder / FILE) as entries:
        entries[source] = {key: moment.isoformat() for key, moment in asdict(coverage).items()}


def note_coverage(
    into: Events, settings: Settings, work: Workplace, began: datetime | None
) -> None:
    """Tell Dagster of the partitions that are over and read: up to the moment at which this run
    looked where the log ends, by this machine's clock; None: up to the last commit that was
    read."""
    source, partitions = work.source.name, settings.file.dagster.partitions
    cursor = work.ledger.cursors(source).acknowledged
    folder = settings.state_folder
    before = read_coverage(folder, source)
    first = None if cursor is None else _first_commit(work, before)
    if cursor is None or first is None:
        return
    until = began or cursor.position.committed_at or first
    names = Declaration.of(settings, source).names
    known = coverage_from(before, first, partitions)
    told = known.until
    for begin in known.closed(until, partitions, _AT_ONCE):
        key = begin.strftime(partitions.key_format)
        into.log_event(dg.AssetMaterialization(names.replayed, partition=key))
        told = begin + partitions.length
    write_coverage(folder, source, replace(known, until=told))


def _first_commit(work: Workplace, before: Coverage | None) -> datetime | None:
    """When the first transaction was committed that the source's first batch may have. A time
    before the log file was made, or after it was read, is a wrong one: it opens no partitions."""
    batch = next(iter(work.ledger.live_batches(work.source.name, limit=1)), None)
    if batch is None or batch.end is None or batch.witness is None:
        return None
    first = batch.start.committed_at
    if first is None and before is not None:
        return before.begins
    first = first or _first_transaction(work, batch) or batch.end.committed_at
    if first is None:
        return None
    created = datetime.fromtimestamp(batch.witness.file_created, UTC)
    return min(max(first.astimezone(UTC), created), batch.captured_at or created)


def _first_transaction(work: Workplace, batch: Batch) -> datetime | None:
    """When the earliest transaction of a batch was committed; None where none is known any more."""
    parts = content_of(work.ledger, batch.source, batch.id).source_parts
    files = [one for part in parts if part.table is SourceTable.TRANSACTIONS for one in part.files]
    folder, moments = source_table_path(batch.source, SourceTable.TRANSACTIONS), list[datetime]()
    if not work.segments.damaged(folder, files):
        for piece in work.segments.pieces(folder, files, ["_committed_at"]):
            moments += filter(None, [pc.min(piece.column(0)).as_py()])
    return min(moments, default=None)
