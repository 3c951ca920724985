"""What is known of a source when somebody asks how it stands: values, and what is measured of them:
how far behind it is, how long its log lasts, whether GTIDs would carry it over.

Purging: MySQL manual, `binlog_expire_logs_seconds`: a file goes once it was not written to for so
long, at the next rotation or start; MariaDB knowledge base, `expire_logs_days`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pipeline.batch import Batch, Cursor
from pipeline.binlog.search.log_scan import log_between
from pipeline.decisions import Attempt, AttemptOutcome, Continuity, LeaseView, Override, Unproven
from pipeline.errors import LockstepError
from pipeline.gaps import Gap
from pipeline.gtid import GtidSet
from pipeline.ports.source import ServerFacts
from pipeline.position import Position, Reign
from pipeline.proof.proven import TableProof
from pipeline.snapshot.log_room import kept_for
from pipeline.snapshot.progress import LoadProgress
from pipeline.start.question import Refusal, Start
from pipeline.table import TableName
from pipeline.table_state import Extent, Quarantine
from pipeline.upkeep.clearing import InClear


@dataclass(frozen=True, slots=True)
class Lag:
    """How far the lake is behind the server; None for what cannot be told."""

    seconds: float | None = None
    log_bytes: int | None = None
    transactions: int | None = None


@dataclass(frozen=True, slots=True)
class Headroom:
    """How long the log behind the cursor is still there. `remaining` is None where nothing
    is purged by time; `gone`: the server lists the cursor's file no more."""

    gone: bool
    kept: timedelta | None
    remaining: timedelta | None
    bytes_per_day: float | None = None


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """An unfinished batch, and the tables whose merge it waits for."""

    batch: Batch
    tables: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class Failures:
    """`count` attempts failed since one went through; `first` is when the oldest of them
    did, as far back as was looked."""

    count: int
    first: datetime
    last: Attempt


@dataclass(frozen=True, slots=True)
class Overlap:
    """A batch that read again what `after` had read at its end: rows with `_batch` equal
    to `batch` and committed up to `until` may be in the changelogs twice."""

    batch: int
    after: int
    begin: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything a person may want to know of a source. `facts` is None if the server did
    not answer, and then `trouble` says why. `start`: what the next run would decide; None if
    that was not looked into, and always while `override` is open. Of the tables `quarantined`,
    those that a person `paused`, and those that the next run brings back. `partial`: tables
    that the lake can have but a part of. `lake`: why ledger and lake do not belong together;
    `astray`: tables that the next run quarantines for what somebody did to their mirrors or
    changelogs, `moved`: those whose changelogs list the same rows in files of somebody else's;
    `loading`: those whose rows are being read from the source. `proofs`: what comparisons with
    the source found, and when. `unproven`: tables whose structures are still to be compared with
    the server's; `in_clear`: tables of which less is shown than before, and what stands in clear of
    them; `former`: folders that mirrors had before."""

    source: str
    captured: Cursor | None = None
    acknowledged: Cursor | None = None
    lineage: tuple[Reign, ...] = ()
    facts: ServerFacts | None = None
    trouble: LockstepError | None = None
    start: Start | Refusal | None = None
    lag: Lag = field(default_factory=Lag)
    headroom: Headroom | None = None
    waiting: tuple[WaitingBatch, ...] = ()
    failures: Failures | None = None
    lease: LeaseView | None = None
    override: Override | None = None
    gaps: tuple[Gap, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    quarantined: tuple[Quarantine, ...] = ()
    paused: frozenset[TableName] = frozenset()
    ordered_back: frozenset[TableName] = frozenset()
    partial: tuple[Extent, ...] = ()
    batches: tuple[Batch, ...] = ()
    lake: LockstepError | None = None
    astray: tuple[Quarantine, ...] = ()
    moved: tuple[Quarantine, ...] = ()
    loading: tuple[LoadProgress, ...] = ()
    proofs: tuple[TableProof, ...] = ()
    unproven: Unproven | None = None
    in_clear: tuple[InClear, ...] = ()
    former: tuple[str, ...] = ()

    @property
    def stopped(self) -> frozenset[TableName]:
        """Tables that do not follow the source now, whatever the reason."""
        return frozenset(one.table for one in (*self.quarantined, *self.astray))

    @property
    def other_server(self) -> bool:
        return (
            self.facts is not None
            and self.captured is not None
            and self.facts.server_uuid != self.captured.position.server_uuid
        )


def looked(attempts: Sequence[Attempt], position: Position | None) -> datetime | None:
    """When a run last found that nothing was behind the position; `attempts` newest first."""
    for attempt in attempts:
        if position is not None and attempt.head == position.at:
            return attempt.ended_at
    return None


def lag(
    facts: ServerFacts | None,
    position: Position | None,
    now: datetime,
    since: datetime | None = None,
) -> Lag:
    """Nothing behind is nothing old, whenever that was committed; what is behind is not older
    than the last commit that was read, and came after `since`, when nothing was behind."""
    if position is None:
        return Lag()
    behind = log_distance(facts, position) if facts else None
    missing = _transactions(facts, position) if facts else None
    seconds = None
    if behind == 0 or (missing == 0 and facts is not None and facts.gtid_mode == "ON"):
        seconds = 0.0
    elif moments := [one for one in (position.committed_at, since) if one is not None]:
        seconds = max((now - max(moments)).total_seconds(), 0.0)
    return Lag(seconds, behind, missing)


def log_distance(facts: ServerFacts, position: Position) -> int | None:
    """Bytes of log between a position and the server's head; None if that cannot be told
    (another server, a purged file)."""
    if facts.server_uuid != position.server_uuid or not facts.lists(position.at.file):
        return None
    return log_between(position.at, facts.head, facts.binlogs)


def _transactions(facts: ServerFacts, position: Position) -> int | None:
    executed, read = GtidSet.parse(facts.gtid_executed), position.gtid_set
    if not executed or not read or executed.flavour != read.flavour:
        return None
    missing = executed.difference(read)
    if executed.flavour == "mariadb" and not set(missing.sources) <= set(read.sources):
        return None  # numbers of a domain go on from server to server: its first is not 1
    return sum(last - first + 1 for spans in missing.intervals.values() for first, last in spans)


def headroom(
    facts: ServerFacts, position: Position, *, ended: datetime | None, oldest: datetime | None
) -> Headroom | None:
    """`ended`: when the file behind the position's was made; None if that is the newest, or
    not known. `oldest`: when the oldest listed file was made. None for another server."""
    if facts.server_uuid != position.server_uuid:
        return None
    kept = kept_for(facts.settings)
    rate = None
    if oldest is not None and facts.read_at > oldest:
        size = sum(log.size for log in facts.binlogs)
        rate = size / (facts.read_at - oldest).total_seconds() * 86_400
    if not facts.lists(position.at.file):
        return Headroom(True, kept, timedelta(), rate)
    remaining = kept
    if kept is not None and ended is not None:
        remaining = max(ended + kept - facts.read_at, timedelta())
    return Headroom(False, kept, remaining, rate)


def why_not_by_gtid(cursor: Cursor, facts: ServerFacts | None) -> str | None:
    """Why the source could not be followed to another server by its GTIDs; None if it
    could."""
    if not cursor.position.gtid_set:
        return "nothing that was read had a GTID"
    if cursor.lapsed:
        return "transactions without a GTID were read or possible since GTIDs were first seen"
    if not cursor.by_gtid:
        return "transactions without a GTID were read, or gtid_mode was not ON"
    if facts is not None and facts.gtid_mode != "ON":
        return f"gtid_mode is {facts.gtid_mode}"
    return None


def failures(
    attempts: Sequence[Attempt], batches: Sequence[Batch], *, waiting: bool
) -> Failures | None:
    """What failed since a run went through to its end; both newest first. A run that found
    nothing to read went through unless batches are `waiting` for what failed behind it."""
    done = next((batch.acknowledged_at for batch in batches if batch.acknowledged_at), None)
    failed: list[Attempt] = []
    for attempt in attempts:
        idle = attempt.outcome is AttemptOutcome.IDLE
        if (idle and not waiting) or (done is not None and attempt.ended_at <= done):
            break
        if not idle:
            failed.append(attempt)
    return Failures(len(failed), failed[-1].ended_at, failed[0]) if failed else None


def overlaps(batches: Sequence[Batch]) -> tuple[Overlap, ...]:
    """Those of live batches, newest first."""
    return tuple(
        Overlap(batch.id, batch.follows, str(batch.start), batch.start.committed_at)
        for batch in batches
        if batch.continuity is Continuity.OVERLAP
        and batch.follows is not None
        and batch.end is not None
        and batch.state.value != "abandoned"
    )
