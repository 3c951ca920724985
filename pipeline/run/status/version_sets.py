"""Version sets: the versions of a source's mirrors (the Delta tables with the current
rows) that together show one place of its log, and the tables without such a version.
Only the ledger is read.

A set shows the end of a batch (what one run captured). For a place, the newest set that
shows nothing after the place is chosen; for `gtid:<set>`, the first set that has all
these GTIDs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from lockstep.pipeline.model.batch import Batch, BatchKind
from lockstep.pipeline.ports.ledger import Batches, Ledger
from lockstep.pipeline.replay.spans import is_unread
from lockstep.pipeline.run.unpruned_batches import read_until_for, unpruned_batches
from lockstep.pipeline.values.division import find_moment_end
from lockstep.pipeline.values.errors import PastRefused, VersionSetUnknown
from lockstep.pipeline.values.intent import MissingReason, MissingTable, VersionSetEntry
from lockstep.pipeline.values.places import (
    AfterGtids,
    AtCoordinates,
    AtMoment,
    Earliest,
    InFile,
    Latest,
    OfRun,
    Place,
    Snapshot,
)
from lockstep.pipeline.values.position import Coordinates, LogFile, Position
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
    show."""

    source: str
    batch: Batch
    position: Position
    entries: tuple[VersionSetEntry, ...]
    missing: tuple[MissingVersion, ...]


def version_set_at(ledger: Ledger, source: str, place: Place | None) -> ShownVersions:
    """Return the set for a place, or the newest set if `place` is None. Raise
    `VersionSetUnknown` if no batch shows it."""
    newest = place is None or isinstance(place, Latest)
    cursor = ledger.cursors(source).acknowledged if newest else None
    batches = unpruned_batches(ledger, source, 0 if cursor is None else cursor.batch)
    read_until = None if place is None else read_until_for(ledger, place, batches)
    return version_set_of(ledger, source, batch_for_place(source, batches, place, read_until))


def newest_sets(ledger: Ledger, source: str, limit: int) -> list[ShownVersions]:
    newest = reversed(unpruned_batches(ledger, source)[-limit:])
    return [version_set_of(ledger, source, batch) for batch in newest]


def version_set_of(ledger: Ledger, source: str, batch: Batch) -> ShownVersions:
    versions = ledger.version_set(source, batch.id)
    ends = _ends_of(ledger, source, versions.missing_tables)
    return ShownVersions(
        source,
        batch,
        batch.captured_end,
        tuple(versions.entries),
        tuple(_missing_version(table, ends) for table in versions.missing_tables),
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
    source: str,
    batches: Sequence[Batch],
    place: Place | None,
    read_until: datetime | None = None,
) -> Batch:
    """Return the batch whose end is shown for a place. `batches`: the acknowledged
    batches, oldest first. `read_until`: as for `is_unread`."""
    if not batches:
        raise VersionSetUnknown(
            f"{source}: nothing was acknowledged yet", hint=f"`lockstep run --source {source}`"
        )
    batch = _find_batch(batches, place, read_until)
    if batch is None:
        first, last = batches[0].captured_end, batches[-1].captured_end
        raise VersionSetUnknown(
            f"{source}: no versions show {place}; they begin at {_in_words(first)} and end at "
            f"{_in_words(last)}",
            hint=f"`lockstep versions --list --source {source}` lists the newest; "
            f"`lockstep run --source {source}` reads on",
        )
    return batch


def _in_words(position: Position) -> str:
    moment = position.committed_at
    return str(position) if moment is None else f"{position} ({moment.isoformat()})"


def _find_batch(
    batches: Sequence[Batch], place: Place | None, read_until: datetime | None
) -> Batch | None:
    """Return the last batch whose end shows nothing after the place; None if there is
    none, or if none has read the place. For GTIDs, return the first batch that has all
    of them."""
    match place:
        case None | Latest():
            return batches[-1]
        case Earliest():
            return batches[0]
        case AtMoment(moment):
            if is_unread(moment, batches, read_until):
                return None
            return _last_batch(_batches_ended_by(batches, moment))
        case AtCoordinates(at):
            return _batch_at(batches, at)
        case InFile(file, moment):
            return _batch_in_file(batches, file, moment, read_until)
        case AfterGtids(gtids):
            batches_with_gtids = (
                batch for batch in batches if batch.captured_end.gtid_set.contains(gtids)
            )
            return next(batches_with_gtids, None)
        case OfRun(run):
            return _last_batch(
                [batch for batch in batches if (batch.dagster_run or "").startswith(run)]
            )
        case Snapshot():
            raise PastRefused(
                "'snapshot' is a way to start, not a place in time", hint="`lockstep versions`"
            )


def _batches_ended_by(batches: Sequence[Batch], moment: datetime) -> Sequence[Batch]:
    """Return the batches that end at or before a moment."""
    ends = [
        (committed_at, batch)
        for batch in batches
        if (committed_at := batch.captured_end.committed_at) is not None
    ]
    count = find_moment_end([committed_at for committed_at, _ in ends], moment).place
    return [batch for _, batch in ends[:count]]


def _last_batch(batches: Sequence[Batch]) -> Batch | None:
    return batches[-1] if batches else None


def _batch_at(batches: Sequence[Batch], at: Coordinates) -> Batch | None:
    """Return the last batch that shows nothing after these coordinates; None if no
    batch captured the place. Several servers may have log files of the same name: the
    newest batch that captured the place decides which server is meant."""
    covering = [batch for batch in batches if _covers(batch, at)]
    if not covering:
        return None
    ending = [batch for batch in covering if batch.captured_end.at == at]
    if ending:
        same = ending[-1].captured_end
        return _last_batch([batch for batch in batches if batch.captured_end == same])
    return _last_batch([batch for batch in batches if batch.id < covering[-1].id])


def _covers(batch: Batch, at: Coordinates) -> bool:
    start, end = batch.start.at, batch.captured_end.at
    same_base = start.file.base == at.file.base == end.file.base
    return batch.kind is not BatchKind.CATCHING_UP and same_base and start <= at <= end


def _batch_in_file(
    batches: Sequence[Batch], file: LogFile, moment: datetime, read_until: datetime | None
) -> Batch | None:
    """Return the last batch that shows nothing after a moment in a log file; None if no
    batch has read it. If several servers have a file of this name, the most recently
    captured one is meant."""
    touching = [batch for batch in batches if _touches(batch, file)]
    if not touching:
        return None
    server = touching[-1].captured_end.server_uuid
    of_server = [
        batch
        for batch in batches
        if batch.captured_end.server_uuid == server and batch.captured_end.at.file.base == file.base
    ]
    is_last = batches[-1] is of_server[-1] and batches[-1].captured_end.at.file == file
    if is_last and is_unread(moment, of_server, read_until):
        return None
    before = [batch for batch in of_server if batch.captured_end.at.file.number < file.number]
    within = [batch for batch in of_server if batch.captured_end.at.file == file]
    return _last_batch([*before, *_batches_ended_by(within, moment)])


def _touches(batch: Batch, file: LogFile) -> bool:
    start, end = batch.start.at.file, batch.captured_end.at.file
    return start.base == file.base == end.base and start.number <= file.number <= end.number


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
