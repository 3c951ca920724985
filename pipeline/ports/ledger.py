"""The books of a source: batches, tables, intents, decisions.

Belongs here: the port to the ledger, and the order its methods are called in. Does not:
the values it keeps (`pipeline.batch`), consumers' cursors (`ports.consumers`).
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from pipeline.batch import Batch, BatchKind, CaptureRecord, Cursor, Prepared
from pipeline.coverage import CaptureScope
from pipeline.decisions import Decision, Lease, LeaseView, Override, RecordedDecision
from pipeline.gaps import Gap
from pipeline.intent import Intent, SettledWrite, VersionSetEntry
from pipeline.ports.history import HistoryBooks
from pipeline.ports.lake_books import LakeBooks
from pipeline.ports.orders import OrderBooks
from pipeline.position import Lineage, Position, SetWitness
from pipeline.segment import Segment, SourcePart
from pipeline.table import TableName
from pipeline.table_state import Extent, SetAside, TableState


class Ledger(HistoryBooks, OrderBooks, LakeBooks, Protocol):
    """The books. Each writing method is one transaction that checks the lease's token
    (`LeaseLost` if an other run took over) and is refused whole (`LedgerRefused`) when
    it is out of order. Connection trouble is `LedgerUnavailable`.

    Order within a run: `lock` → `begin_batch` → `record_capture` → per table
    `open_intent` → `settle` → `mark_merged` → `acknowledge`. Any step may be the first
    that a new process makes: it asks the ledger, never its own memory.
    """

    def lock(
        self, source: str, holder: str, dagster_run: str | None
    ) -> AbstractContextManager[Lease]:
        """Take the source's advisory lock and a new lease, or raise `SourceBusy` at
        once. The lock goes with the connection; leaving the context releases both."""

    def require_held(self, lease: Lease) -> None:
        """`LeaseLost` if another run took over since; records nothing."""

    def lease(self, source: str) -> LeaseView | None:
        """The newest lease of a source, whoever holds it; None before the first."""

    def captured_cursor(self, source: str) -> Cursor | None: ...

    def acknowledged_cursor(self, source: str) -> Cursor | None: ...

    def batches(self, source: str, *, limit: int = 20) -> list[Batch]:
        """The newest batches, newest first, abandoned ones among them."""

    def unfinished(self, source: str) -> list[Batch]:
        """Batches that are capturing, captured or merged, oldest first."""

    def live_batches(self, source: str, first: int, last: int) -> list[Batch]:
        """Batches of these ids and between, abandoned ones left out, oldest first."""

    def batches_of(self, source: str, table: TableName) -> list[Batch]:
        """Live captured batches with segments or events of a table, oldest first."""

    def segments(self, batch: int) -> list[Segment]:
        """Segments of a batch, in the order they were recorded."""

    def source_parts(self, batch: int) -> list[SourcePart]:
        """What a batch adds to the source's own tables, by their names."""

    def table_states(self, source: str) -> dict[TableName, TableState]: ...

    def partial(self, source: str) -> list[Extent]:
        """Tables that the lake can have but a part of, by name, as live batches left them;
        some of them nobody has seen a change of, and they have no state."""

    def open_prepared(self, source: str) -> list[Prepared]:
        """Prepared XA transactions that some live batch recorded and no live batch ended."""

    def ended_prepared(self, batch: int) -> list[Prepared]:
        """Prepared XA transactions that this batch ended; none if it was abandoned."""

    def decide(self, lease: Lease, decision: Decision) -> RecordedDecision:
        """Record a decision that makes no batch (a refusal, an idle run) or that the
        next `begin_batch` refers to."""

    def decisions(self, source: str, *, limit: int = 5) -> list[RecordedDecision]: ...

    def note_gtids_off(self, lease: Lease) -> None:
        """A run found the server's `gtid_mode` not ON: no set that was captured before this is
        resumed by. To be called before what is decided on it."""

    def choose_start(self, lease: Lease, *, place: str, reason: str, author: str) -> Override:
        """Record an operator's one-shot choice; it takes the place of one still open."""

    def open_override(self, source: str) -> Override | None:
        """The newest choice, until a live batch was begun by it."""

    def gaps(self, source: str) -> list[Gap]:
        """What no batch read, by whose choice, oldest first."""

    def overlaps(self, source: str) -> list[Batch]:
        """Live batches that began before the end of the one they follow, oldest first."""

    def lineage(self, source: str) -> Lineage:
        """The servers the source was read from, in order."""

    def set_witnesses(self, source: str, batch: int) -> list[SetWitness]:
        """Of each source of GTIDs the newest that was kept by live batches up to that one;
        that of the last transaction first."""

    def capture_scopes(self, source: str) -> list[CaptureScope]:
        """What live batches were captured with, oldest first: one for each change of it."""

    def captured_by(self, source: str, dagster_run: str) -> Batch | None:
        """The newest live batch that a Dagster run captured; its id may be shortened."""

    def reaching(self, source: str, server_uuid: str, moment: datetime) -> Batch | None:
        """The first captured batch from that server whose last commit is at or after the
        moment: the time index."""

    def begin_batch(
        self,
        lease: Lease,
        start: Position,
        *,
        predecessor: int | None,
        start_decision: int | None,
        kind: BatchKind = BatchKind.ORDINARY,
    ) -> Batch:
        """Open a *capturing* batch: exactly one of `predecessor` (whose end is its
        start) and `start_decision`, which may follow a batch (`Decision.follows`). The
        answer has its id and sequence base."""

    def record_capture(self, lease: Lease, batch: int, record: CaptureRecord) -> None:
        """capturing → captured: segments, source parts, history, tables, events, snapshots,
        prepared transactions (new and ended ones), orders carried out, witnesses of the GTIDs
        read, the patterns where they are others than before, and end at once."""

    def abandon(self, lease: Lease, batch: int, reason: str) -> None:
        """capturing, or captured with no table merged → abandoned; the newest first."""

    def set_aside(self, lease: Lease, set_aside: SetAside) -> None:
        """active → quarantined, outside a capture; repeating it changes nothing. The table's
        open write is given up: to be called when nothing of it is in the lake."""

    def pending(self, source: str) -> dict[TableName, list[int]]:
        """For each active or dropped table: captured batches with segments or events of it
        that no settled write covers, oldest first; and those that a table missed while
        it had stopped, whatever their state."""

    def open_intents(self, source: str) -> list[Intent]: ...

    def open_intent(
        self,
        lease: Lease,
        table: TableName,
        *,
        app_id: str,
        first_batch: int,
        last_batch: int,
        step: str,
    ) -> Intent:
        """Commit to a write; its `txn_version` comes from a ledger sequence. At most
        one open intent per table."""

    def settle(
        self, lease: Lease, intent: Intent, delta_version: int, *, shows: int | None = None
    ) -> None:
        """The intent's commit was read back from the lake at that version; `shows`: the
        schema version that the mirror has since, None for the one it had."""

    def settled(self, source: str, batch: int) -> list[SettledWrite]:
        """Settled writes that cover a batch."""

    def last_settled(self, source: str, app_id: str) -> SettledWrite | None:
        """The newest settled write of an application id; None before the first."""

    def mark_merged(self, lease: Lease) -> list[int]:
        """captured → merged for every batch, oldest first, all of whose tables have a
        settled write or are set aside; the ids moved."""

    def acknowledge(self, lease: Lease, batch: int) -> None:
        """merged → acknowledged, in order, and record the version set: each active
        table's newest settled write up to this batch."""

    def renew_mirror(self, lease: Lease, table: TableName, mirror: str) -> TableState:
        """The table's next write makes another mirror, in that folder: the one it had stays as
        it is, and nothing of the table is in the new one yet."""

    def give_up(self, lease: Lease, table: TableName) -> None:
        """The table's open write is never made: the next one takes its batches. None open
        there changes nothing."""

    def end_mirror(self, lease: Lease, table: TableName) -> None:
        """A dropped table's mirror is removed: what its name brings next is another
        generation. Once done, repeating it changes nothing."""

    def note_whole(self, lease: Lease, batch: int, tables: Collection[TableName]) -> None:
        """The lake was found to have all of these tables, as of the batch's end."""

    def version_set(self, source: str, batch: int) -> list[VersionSetEntry]: ...
