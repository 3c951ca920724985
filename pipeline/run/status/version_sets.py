"""Version sets: the versions of a source's mirrors (the Delta tables with the current
rows) that together show one place of its log, and the tables without such a version.
Only the ledger is read.

A set shows the end of a batch, a part of the log that a run captured at once. For a
place, the newest set that shows nothing after the place is chosen; for `gtid:<set>`,
the first set that has all these GTIDs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.ports.ledger import Batches, Ledger
from lockstep.pipeline.replay.spans import batch_at, beginning_sentence
from lockstep.pipeline.run.unpruned_batches import (
    RUNS_HINT,
    newest_of_run,
    read_until_for,
    unpruned_batches,
)
from lockstep.pipeline.values.errors import PastRefused, SpanRefused, VersionSetUnknown
from lockstep.pipeline.values.intent import MissingReason, MissingTable, VersionSetEntry
from lockstep.pipeline.values.places import AfterGtids, Latest, OfRun, Place
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class MissingVersion:
    """A table without a version for the batch: the reason, and what to do."""

    json_keys: ClassVar = ("reason", "hint")

    table: TableName
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class ShownVersions:
    """The version set of a batch: the versions to read together, and the tables without
    one, both sorted by table name. `position`: the place in the log that all `entries`
    show. `gaps`: the gaps whose changes they may lack."""

    source: str
    batch: Batch
    position: Position
    entries: tuple[VersionSetEntry, ...]
    missing: tuple[MissingVersion, ...]
    gaps: tuple[Gap, ...] = ()

    def lines_on_gaps(self, tables: Collection[TableName] | None = None) -> list[str]:
        """Return a sentence for each gap that concerns one of the tables, or any entry."""
        if tables is None:
            tables = [entry.table for entry in self.entries]
        return [
            f"the log from {gap.sentence}; rows of {', '.join(map(str, open_tables))} may be wrong"
            for gap in self.gaps
            if (open_tables := gap.open_among(tables))
        ]


def version_set_at(ledger: Ledger, source: str, place: Place | None) -> ShownVersions:
    """Return the set for a place, or the newest set if `place` is None. Raise
    `VersionSetUnknown` if no batch shows it."""
    is_newest = place is None or isinstance(place, Latest)
    cursor = ledger.cursors(source).acknowledged if is_newest else None
    batches = unpruned_batches(ledger, source, 0 if cursor is None else cursor.batch)
    read_until = None if place is None else read_until_for(ledger, place, batches)
    return version_set_of(ledger, source, batch_for_place(source, batches, place, read_until))


def newest_sets(ledger: Ledger, source: str, limit: int) -> list[ShownVersions]:
    newest_first = reversed(unpruned_batches(ledger, source)[-limit:])
    return [version_set_of(ledger, source, batch) for batch in newest_first]


def version_set_of(ledger: Ledger, source: str, batch: Batch) -> ShownVersions:
    versions = ledger.version_set(source, batch.id)
    ends = _ends_of(ledger, source, versions.missing_tables)
    return ShownVersions(
        source,
        batch,
        batch.captured_end,
        tuple(versions.entries),
        tuple(_missing_version(table, ends) for table in versions.missing_tables),
        tuple(
            gap
            for gap in ledger.gaps(source, batch.id)
            if gap.open_among(entry.table for entry in versions.entries)
        ),
    )


def _ends_of(ledger: Batches, source: str, missing: Sequence[MissingTable]) -> dict[int, Position]:
    """Return, by batch id, the ends of the later batches with which changes of missing
    tables were merged."""
    batch_ids = [table.last_batch for table in missing if table.last_batch is not None]
    if not batch_ids:
        return {}
    batches = ledger.live_batches(source, min(batch_ids), max(batch_ids))
    return {batch.id: batch.captured_end for batch in batches if batch.id in batch_ids}


# -- the batch -------------------------------------------------------------------------


def batch_for_place(
    source: str, batches: Sequence[Batch], place: Place | None, read_until: datetime | None = None
) -> Batch:
    """Return the last batch whose end shows nothing after the place; for GTIDs, the
    first batch that has all of them. `batches`: the acknowledged batches, oldest first.
    `read_until`: as for `is_unread`."""
    if not batches:
        raise VersionSetUnknown(
            f"{source}: nothing was acknowledged yet", hint=f"`lockstep run --source {source}`"
        )
    if isinstance(place, OfRun):
        try:
            batch = newest_of_run(batches, place.run)
        except SpanRefused as error:
            raise VersionSetUnknown(f"{source}: {error.message}", hint=error.hint) from error
        if batch is None:
            raise VersionSetUnknown(
                f"{source}: no batch was captured by a run {place.run}", hint=RUNS_HINT
            )
        return batch
    try:
        at_place = batch_at(place or Latest(), batches, {}, read_until)
    except (PastRefused, SpanRefused) as error:
        raise VersionSetUnknown(f"{source}: {error.message}", hint=error.hint) from error
    if at_place.is_batch_end or isinstance(place, AfterGtids):
        return at_place.batch
    earlier = [batch for batch in batches if batch.id < at_place.batch.id]
    if not earlier:
        raise VersionSetUnknown(
            f"{source}: no versions show {place}: {beginning_sentence(batches[0])}",
            hint=f"`lockstep versions --list --source {source}` lists the newest",
        )
    return earlier[-1]


# -- what is missing -------------------------------------------------------------------


def explain_missing(ledger: Batches, source: str, missing: MissingTable) -> MissingVersion:
    """Return why a table has no version for a batch."""
    return _missing_version(missing, _ends_of(ledger, source, [missing]))


def _missing_version(missing: MissingTable, ends: dict[int, Position]) -> MissingVersion:
    reason, hint = _REASONS_AND_HINTS[missing.reason]
    end = ends.get(missing.last_batch or 0)
    values = {"table": missing.table, "batch": missing.last_batch, "place": end}
    return MissingVersion(missing.table, reason.format(**values), hint.format(**values))


_REASONS_AND_HINTS: Final = {
    MissingReason.TOGETHER: (
        "its changes were merged together with those of batch {batch}",
        "`lockstep versions --at {place}` has it",
    ),
    MissingReason.RESUMED_LATER: (
        "it was brought back with a later batch",
        "`lockstep versions` shows its version, or says why there is none",
    ),
    MissingReason.READING: (
        "it was being read from the source",
        "it has a version once all its rows are read: `lockstep run` continues",
    ),
    MissingReason.STOPPED: (
        "it was stopped",
        "`lockstep status` says why, and what brings it back",
    ),
    MissingReason.BEHIND: (
        "its mirror lacks batches that the others have",
        "the next run merges them; `lockstep status` says why they were not merged",
    ),
    MissingReason.UNWRITTEN: (
        "nothing of it was merged yet",
        "it has a version once the first of its changes is merged",
    ),
}
