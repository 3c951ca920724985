"""What is known of a source when somebody asks how it stands. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pipeline.batch import Batch, Cursor
from pipeline.decisions import Attempt, LeaseView, Override, Unproven
from pipeline.errors import LockstepError
from pipeline.gaps import Gap
from pipeline.ports.source import ServerFacts
from pipeline.position import ServerLineage
from pipeline.proof.proven import TableProof
from pipeline.snapshot.progress import LoadProgress
from pipeline.start.question import Refusal, Start
from pipeline.table import TableName
from pipeline.table_state import Extent, Quarantine


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
    the server's."""

    source: str
    captured: Cursor | None = None
    acknowledged: Cursor | None = None
    lineage: ServerLineage = field(default_factory=ServerLineage)
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

    @property
    def stopped(self) -> frozenset[TableName]:
        """Tables that do not follow the source now, whatever the reason."""
        return frozenset(one.table for one in (*self.quarantined, *self.astray))

    @property
    def other_server(self) -> bool:
        """Whether another server answers than the one that was read last."""
        return (
            self.facts is not None
            and self.captured is not None
            and self.facts.server_uuid != self.captured.position.server_uuid
        )
