"""The facts about a source that `status` shows, and what is measured from them: its
lag, how long its log is kept, and whether it can be followed to another server by
GTIDs.

Purging of logs: MySQL manual, `binlog_expire_logs_seconds`: a file that was not written
to for that time is purged at the next rotation or server start. MariaDB knowledge base,
`expire_logs_days`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from lockstep.pipeline.binlog.search.log_scan import log_bytes_between
from lockstep.pipeline.model.batch import Batch, BatchState, Cursor
from lockstep.pipeline.model.gaps import Gap
from lockstep.pipeline.model.table_state import Extent, StoppedTable
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.proof.proven import ComparisonRecord
from lockstep.pipeline.snapshot.log_retention import log_retention
from lockstep.pipeline.snapshot.progress import LoadProgress
from lockstep.pipeline.start.question import Refusal, Start, StartRule
from lockstep.pipeline.upkeep.clearing import UnclearedValues
from lockstep.pipeline.values.decisions import (
    Attempt,
    AttemptOutcome,
    Continuity,
    LeaseView,
    Override,
    UnprovenStructures,
)
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Position, ServerPeriod
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class Lag:
    """How far the lake is behind the server, in seconds, bytes of log, and
    transactions; None if unknown."""

    seconds: float | None = None
    log_bytes: int | None = None
    transactions: int | None = None


@dataclass(frozen=True, slots=True)
class Headroom:
    """How long the server still keeps the log after the cursor (the place up to which
    the log was read). `is_purged`: the server no longer lists the cursor's file.
    `retention`: how long it keeps any file, None for ever. `remaining`: how long it
    still keeps the cursor's file; None if nothing is purged by time. `bytes_per_day`:
    how fast the log grows."""

    is_purged: bool
    retention: timedelta | None
    remaining: timedelta | None
    bytes_per_day: float | None = None


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """An unfinished batch, and the tables that are not merged yet."""

    batch: Batch
    tables: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class Failures:
    """The attempts that failed after the last success: their number, when the oldest
    known one failed (`first_at`), and the newest (`last_attempt`)."""

    count: int
    first_at: datetime
    last_attempt: Attempt


@dataclass(frozen=True, slots=True)
class Overlap:
    """A batch that began at the place `begin` and read the end of batch
    `previous_batch` again. Rows with `_batch` equal to `batch` and committed up to
    `committed_until` may be in the changelogs twice."""

    batch: int
    previous_batch: int
    begin: str
    committed_until: datetime | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything a person may want to know about a source.

    - `captured`, `acknowledged`: the place up to which the log was captured, and the
      place up to which it is in the lake.
    - `lineage`: the servers that were read, in their order.
    - `facts`: None if the server did not answer; `server_error` then says why.
    - `start`: what the next run would decide; None if that was not examined, and always
      while a chosen start (`override`) is open.
    - `stopped_tables`: the tables that do not follow the source; `tables_to_resume`:
      those that an order resumes.
    - `lease`: the lease of the run that is going on.
    - `extents`: tables whose older rows the lake cannot have.
    - `lake_error`: why the ledger may not be used with this lake.
    - `upcoming_quarantines`: tables that the next run will quarantine because another
      program changed their mirrors or changelogs.
    - `rewritten_changelogs`: tables whose changelogs have unchanged rows in files that
      another program wrote.
    - `invisible_tables`: captured tables that the account cannot see.
    - `loads`: tables whose rows are being read from the source.
    - `proofs`: the results of comparisons with the source.
    - `unproven`: tables whose structures must still be compared with the server's.
    - `uncleared_values`: values that the settings now hide and the lake still has.
    - `former_folders`: folders that mirrors had earlier.
    """

    source: str
    captured: Cursor | None = None
    acknowledged: Cursor | None = None
    lineage: tuple[ServerPeriod, ...] = ()
    facts: ServerFacts | None = None
    server_error: LockstepError | None = None
    start: Start | Refusal | None = None
    lag: Lag = field(default_factory=Lag)
    headroom: Headroom | None = None
    waiting_batches: tuple[WaitingBatch, ...] = ()
    failures: Failures | None = None
    lease: LeaseView | None = None
    override: Override | None = None
    gaps: tuple[Gap, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    stopped_tables: tuple[StoppedTable, ...] = ()
    tables_to_resume: frozenset[TableName] = frozenset()
    extents: tuple[Extent, ...] = ()
    batches: tuple[Batch, ...] = ()
    lake_error: LockstepError | None = None
    upcoming_quarantines: tuple[StoppedTable, ...] = ()
    rewritten_changelogs: tuple[StoppedTable, ...] = ()
    invisible_tables: tuple[StoppedTable, ...] = ()
    loads: tuple[LoadProgress, ...] = ()
    proofs: tuple[ComparisonRecord, ...] = ()
    unproven: UnprovenStructures | None = None
    uncleared_values: tuple[UnclearedValues, ...] = ()
    former_folders: tuple[str, ...] = ()

    @property
    def stopped_names(self) -> frozenset[TableName]:
        """The tables that do not follow the source, now or from the next run on."""
        stops = (*self.stopped_tables, *self.upcoming_quarantines)
        return frozenset(stopped.table for stopped in stops)

    @property
    def reads_other_log(self) -> bool:
        """True if the next run is refused because the server's log is not the one that
        was read."""
        return is_other_log(self.start)

    @property
    def is_other_server(self) -> bool:
        return (
            self.facts is not None
            and self.captured is not None
            and self.facts.server_uuid != self.captured.position.server_uuid
        )


_OTHER_LOG_RULES: Final = frozenset(
    {
        StartRule.HISTORY_REWRITTEN,
        StartRule.SET_REUSED,
        StartRule.SET_UNPROVEN,
        StartRule.SOURCE_DIVERGED,
        StartRule.SOURCE_CHANGED,
    }
)


def is_other_log(start: Start | Refusal | None) -> bool:
    """Return whether a start is refused because the server's log is not, or may not be,
    the one that was read."""
    return isinstance(start, Refusal) and start.rule in _OTHER_LOG_RULES


def log_end_reached_at(attempts: Sequence[Attempt], position: Position | None) -> datetime | None:
    """Return when a run last found that the log ended at the position; None if never.
    `attempts`: newest first."""
    for attempt in attempts:
        if position is not None and attempt.head == position.at:
            return attempt.ended_at
    return None


def lag(
    facts: ServerFacts | None,
    position: Position | None,
    now: datetime,
    end_reached_at: datetime | None = None,
) -> Lag:
    """Return the lag. It is 0 seconds if the log has nothing after the position.
    Otherwise it is the time since the later of two moments: the last commit that was
    read, and `end_reached_at`, when a run last reached the log's end. All unread
    changes are newer than both. The lag is unknown if the server's log lacks
    transactions that were read."""
    if position is None or (facts is not None and _lacks_position(facts, position)):
        return Lag()
    log_bytes = log_distance(facts, position) if facts else None
    transactions = _unread_transactions(facts, position) if facts else None
    seconds = None
    if log_bytes == 0 or (transactions == 0 and facts is not None and facts.gtid_mode == "ON"):
        seconds = 0.0
    elif moments := [moment for moment in (position.committed_at, end_reached_at) if moment]:
        seconds = max((now - max(moments)).total_seconds(), 0.0)
    return Lag(seconds, log_bytes, transactions)


def _lacks_position(facts: ServerFacts, position: Position) -> bool:
    """Return whether the server's log ends before the position, or lacks transactions
    that were read."""
    executed, read = GtidSet.parse(facts.gtid_executed), position.gtid_set
    if executed and read and executed.flavour == read.flavour and read.difference(executed):
        return True
    return facts.server_uuid == position.server_uuid and facts.head < position.at


def log_distance(facts: ServerFacts, position: Position) -> int | None:
    """Return the bytes of log between a position and the server's end of the log.
    Return None if that is unknown (another server, a purged file)."""
    if facts.server_uuid != position.server_uuid or not facts.lists(position.at.file):
        return None
    return log_bytes_between(position.at, facts.head, facts.binlogs)


def _unread_transactions(facts: ServerFacts, position: Position) -> int | None:
    executed, read = GtidSet.parse(facts.gtid_executed), position.gtid_set
    if not executed or not read or executed.flavour != read.flavour:
        return None
    missing = executed.difference(read)
    if executed.flavour == "mariadb" and not set(missing.sources) <= set(read.sources):
        # The numbers of an unread domain may begin anywhere, so they cannot be counted.
        return None
    return sum(last - first + 1 for spans in missing.intervals.values() for first, last in spans)


def headroom(
    facts: ServerFacts,
    position: Position,
    *,
    next_file_at: datetime | None,
    oldest_file_at: datetime | None,
) -> Headroom:
    """Return how long the server that was read keeps its log after the position.
    `next_file_at`: when the file after the position's file was created; None if that
    file does not exist, or if the time is unknown. `oldest_file_at`: when the oldest
    listed file was created."""
    retention = log_retention(facts.settings)
    bytes_per_day = None
    if oldest_file_at is not None and facts.read_at > oldest_file_at:
        size = sum(log.size for log in facts.binlogs)
        bytes_per_day = size / (facts.read_at - oldest_file_at).total_seconds() * 86_400
    if not facts.lists(position.at.file):
        return Headroom(True, retention, timedelta(), bytes_per_day)
    remaining = retention
    if retention is not None and next_file_at is not None:
        remaining = max(next_file_at + retention - facts.read_at, timedelta())
    return Headroom(False, retention, remaining, bytes_per_day)


def reason_not_by_gtid(cursor: Cursor, facts: ServerFacts | None) -> str | None:
    """Return why the source cannot be followed to another server by GTID; None if it
    can."""
    if not cursor.position.gtid_set:
        return "nothing that was read had a GTID"
    if cursor.was_by_gtid:
        return "transactions without a GTID were read or possible since GTIDs were first seen"
    if not cursor.by_gtid:
        return "transactions without a GTID were read, or gtid_mode was not ON"
    if facts is not None and facts.gtid_mode != "ON":
        return f"gtid_mode is {facts.gtid_mode}"
    return None


def failures(
    attempts: Sequence[Attempt], batches: Sequence[Batch], *, has_waiting_batches: bool
) -> Failures | None:
    """Return the failures after the last successful run; None if there are none. Both
    lists are newest first. An idle run counts as a success, unless batches wait for a
    merge that failed."""
    success_at = next((batch.acknowledged_at for batch in batches if batch.acknowledged_at), None)
    failed: list[Attempt] = []
    for attempt in attempts:
        is_idle = attempt.outcome is AttemptOutcome.IDLE
        if is_idle and not has_waiting_batches:
            break
        if success_at is not None and attempt.ended_at <= success_at:
            break
        if not is_idle:
            failed.append(attempt)
    return Failures(len(failed), failed[-1].ended_at, failed[0]) if failed else None


def overlaps(batches: Sequence[Batch]) -> tuple[Overlap, ...]:
    """Return the overlaps of all batches that were not abandoned, in their order."""
    return tuple(
        Overlap(batch.id, batch.previous_batch, str(batch.start), batch.start.committed_at)
        for batch in batches
        if batch.continuity is Continuity.OVERLAP
        and batch.previous_batch is not None
        and batch.end is not None
        and batch.state is not BatchState.ABANDONED
    )
