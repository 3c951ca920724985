"""Reports to Dagster which partitions of a source's past were read. A partition is an
hour or a day of commit time.

`.lockstep/coverage.json` keeps which partitions were reported. The file only serves
Dagster's page. If it is lost, all partitions are reported again, from the first batch
that the ledger has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import dagster as dg
import pyarrow.compute as pc

from lockstep.assets.declaration import Declaration
from lockstep.assets.state_files import edit_json_object, note_write_errors, read_json_object
from lockstep.assets.table_list import TableLists, shown_fields
from lockstep.assets.table_news import EventReceiver
from lockstep.pipeline.mirror.system_tables import system_table_path
from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.replay.partitions import Partitions
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.values.segment import SystemTable
from lockstep.resources.config import Settings

FILE: Final = "coverage.json"

_MAX_REPORTS: Final = 200
"""Largest number of partitions that one run reports; Dagster takes milliseconds for
each."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The span of time whose partitions were reported. `begins`: the beginning of the
    partition with the first captured transaction; it can only move to an earlier time.
    `until`: the end of the last reported partition."""

    begins: datetime
    until: datetime

    def unreported_begins(
        self, moment: datetime, partitions: Partitions, limit: int
    ) -> Iterator[datetime]:
        """Yield the beginnings of the partitions that had ended by the moment and were
        not reported yet: the oldest first, at most `limit`."""
        begin = self.until
        for _ in range(limit):
            if begin + partitions.length > moment:
                return
            yield begin
            begin += partitions.length


def read_coverage(folder: Path, source: str) -> Coverage | None:
    """Return the source's coverage; None if nothing was captured yet or the file is
    damaged."""
    entry = read_json_object(folder / FILE).get(source, {})
    try:
        return Coverage(*(datetime.fromisoformat(entry[key]) for key in ("begins", "until")))
    except (TypeError, KeyError, ValueError):
        return None


def fingerprint(table_lists: TableLists, coverages: Mapping[str, Coverage | None]) -> str:
    """Return 16 hex digits that change whenever the assets that Dagster declares
    change: a source's tables, or the partition with which its past begins."""
    begins = {source: coverage.begins for source, coverage in coverages.items() if coverage}
    entries = {
        source: [asdict(shown_fields(entry)) for entry in table_lists[source]]
        for source in table_lists
    }
    text = json.dumps([entries, begins], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def next_coverage(
    last: Coverage | None, first_commit: datetime, partitions: Partitions
) -> Coverage:
    """Return the coverage from which a run continues to report. `last`: the coverage in
    the file, if there is one; `first_commit`: the commit time of the first captured
    transaction. If there is no `last`, or `first_commit` lies in an earlier partition
    than its beginning, the result is empty, so that all partitions are reported again.
    Otherwise `last` is rounded down to whole partitions, because the settings may have
    changed their length."""
    begin = partitions.begin_of(first_commit)
    if last is None or begin < partitions.begin_of(last.begins):
        return Coverage(begin, begin)
    return Coverage(*map(partitions.begin_of, (last.begins, last.until)))


def write_coverage(folder: Path, source: str, coverage: Coverage) -> None:
    with edit_json_object(folder / FILE) as entries:
        entries[source] = {key: moment.isoformat() for key, moment in asdict(coverage).items()}


def report_coverage(
    receiver: EventReceiver, settings: Settings, ports: RunPorts, log_end_asked_at: datetime | None
) -> None:
    """Report the partitions that have ended and were read completely.
    `log_end_asked_at`: the time at which this run asked the server for the end of the
    log, by this machine's clock. All partitions before that time were read; if the time
    is None, all before the last acknowledged commit.
    """
    source, partitions = ports.source.name, settings.file.dagster.partitions
    cursor = ports.ledger.cursors(source).acknowledged
    folder = settings.state_folder
    last = read_coverage(folder, source)
    first_commit = None if cursor is None else _first_commit(ports, last)
    if cursor is None or first_commit is None:
        return
    read_until = log_end_asked_at or cursor.position.committed_at or first_commit
    names = Declaration.of(settings, source).names
    coverage = next_coverage(last, first_commit, partitions)
    reported_until = coverage.until
    for begin in coverage.unreported_begins(read_until, partitions, _MAX_REPORTS):
        key = begin.strftime(partitions.key_format)
        receiver.log_event(dg.AssetMaterialization(names.replayed_key, partition=key))
        reported_until = begin + partitions.length
    with note_write_errors("The list of reported partitions", receiver.log.warning):
        write_coverage(folder, source, replace(coverage, until=reported_until))


def _first_commit(ports: RunPorts, last: Coverage | None) -> datetime | None:
    """Return the commit time with which the source's history begins; None if nothing
    was captured yet. This is the time of the last commit before the first batch. If
    that is unknown, return the beginning of `last`, or the earliest commit time in the
    batch, or, if the batch only read tables, the time at which it began. The server's
    clock may be wrong, so a commit time is limited to the span from the creation of the
    log file to the capture of the batch."""
    batch = next(iter(ports.ledger.live_batches(ports.source.name, limit=1)), None)
    if batch is None or batch.end is None or batch.anchor is None:
        return None
    if batch.start.committed_at is None and last is not None:
        return last.begins
    first_commit = (
        batch.start.committed_at
        or _earliest_commit(ports, batch)
        or batch.end.committed_at
        or batch.created_at
    )
    log_created_at = datetime.fromtimestamp(batch.anchor.file_created, UTC)
    upper_limit = batch.captured_at or log_created_at
    return min(max(first_commit.astimezone(UTC), log_created_at), upper_limit)


def _earliest_commit(ports: RunPorts, batch: Batch) -> datetime | None:
    """Return the earliest commit time of a batch's transactions; None if it has none,
    or if their files are missing or damaged."""
    segments = batch_content(ports.ledger, batch.source, batch.id).system_segments
    transaction_segments = [
        segment for segment in segments if segment.table is SystemTable.TRANSACTIONS
    ]
    files = [file for segment in transaction_segments for file in segment.files]
    folder = system_table_path(batch.source, SystemTable.TRANSACTIONS)
    if ports.segments.damage_sentences(folder, files):
        return None
    pieces = ports.segments.pieces(folder, files, ["_committed_at"])
    return min(filter(None, (pc.min(piece.column(0)).as_py() for piece in pieces)), default=None)
