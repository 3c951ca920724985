"""What is written to the lake, and what the ledger knows of it.

Belongs here: the port to intents and settled writes of mirrors, version sets, versions that upkeep
made, revisions of changelogs, entries in catalogs, and how a ledger knows its own lake again. Does
not: writing a mirror (`ports.mirrors`), upkeep (`ports.upkeep`), what a revision is made of
(`pipeline.segment`), the catalog (`ports.catalog`), what a log shows
(`pipeline.foreign_commits`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from pipeline.catalog.values import Registered
from pipeline.claim import BatchSpan
from pipeline.decisions import Lease
from pipeline.intent import (
    Intent,
    MissingTable,
    NewestWrites,
    ShownVersion,
    VersionSetEntry,
)
from pipeline.segment import RevisedSegment, Revision
from pipeline.table import TableName


class Writes(Protocol):
    """Mirrors and folders are paths relative to the lake. A write of a mirror is first an intent,
    then settled or given up; so is a revision: files that stand in the place of recorded ones. A
    `catalog` is one by its identity; entries of another are kept, and of no account."""

    # -- mirrors -------------------------------------------------------------------------------

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
        self,
        lease: Lease,
        intent: Intent,
        delta_version: int,
        *,
        shows: int | None = None,
        reason: str | None = None,
        table_id: str | None = None,
        looked: bool = False,
    ) -> None:
        """The intent's commit was read back from the lake at that version; `shows`: the
        schema version that the mirror has since, None for the one it had; `reason`: why it was
        written the way it was; `table_id`: of which Delta table that is a version; `looked`:
        nobody else committed to the mirror up to that version, which is noted as `note_looked`
        does."""

    def give_up(self, lease: Lease, table: TableName) -> None:
        """The table's open write is never made: the next one takes its batches. None open
        there changes nothing."""

    def intended(self, source: str, batch: int) -> list[Intent]:
        """All writes that cover a batch, in their order: settled, open or given up. A batch that
        one of a table which it touched covers is not abandoned any more."""

    def newest_writes(self, source: str, app_id: str) -> NewestWrites: ...

    def version_set(self, source: str, batch: int) -> list[VersionSetEntry]:
        """What to read together to see the source as it was at an acknowledged batch's end, by
        name: of each table that can be read so, the newest settled write up to it. Nothing for
        any other batch."""

    def mirror_versions(self, source: str, table: TableName, last: int) -> list[ShownVersion]:
        """The versions of a table's mirrors that show it as of the ends of acknowledged batches
        up to `last`, newest first; each once, at the first of the batches."""

    def missing_versions(self, source: str, batch: int) -> list[MissingTable]:
        """The tables of the source that cannot be read as of that batch, by name. Not those that
        it had no more."""

    # -- upkeep --------------------------------------------------------------------------------

    def upkept(self, source: str) -> dict[str, int]:
        """Mirror → the newest Delta version that upkeep made of it."""

    def note_upkept(self, lease: Lease, mirror: str, *, shows: int, delta_version: int) -> None:
        """A commit of upkeep shows the rows of the version `shows`, which a settled write made:
        version sets name the newest such version from here on. Repeating it changes nothing."""

    def clock(self) -> datetime:
        """What time it is where the ledger is."""

    # -- revisions -----------------------------------------------------------------------------

    def begin_revision(self, lease: Lease, segments: Sequence[RevisedSegment]) -> Revision:
        """Commit to these files, which are durable, before any changelog has them. They belong to
        acknowledged batches; at most one revision of a source is open."""

    def open_revision(self, source: str) -> Revision | None: ...

    def last_revision(self, source: str) -> int:
        """The newest one's number, whatever became of it; 0 for none."""

    def end_revision(self, lease: Lease, revision: Revision, *, settled: bool) -> None:
        """`settled`: every changelog has the files: they are those of their segments from now on.
        Otherwise no changelog has any of them, and none will."""

    # -- catalogs ------------------------------------------------------------------------------

    def registrations(self, source: str, catalog: str) -> dict[TableName, Registered]: ...

    def note_registration(
        self, lease: Lease, catalog: str, table: TableName, entry: Registered | None
    ) -> None:
        """The table's entry is this, or is being made; it replaces what was known of the table.
        None: it has no entry, or has none any more."""

    def registered_up_to(self, source: str, catalog: str) -> int:
        """The statement up to which entries follow comments; 0 for none."""

    def note_registered_up_to(self, lease: Lease, catalog: str, statement: int) -> None: ...

    # -- the lake ------------------------------------------------------------------------------

    def identity(self) -> str:
        """The ledger's own name, a UUID that was made with it."""

    def looked(self, source: str) -> dict[str, int]:
        """Folder → the Delta version up to which its log was looked at."""

    def note_looked(self, lease: Lease, looked: Mapping[str, int | None]) -> None:
        """From here on; None forgets a folder."""

    def number_above(self, lease: Lease, *, batch: int, txn_version: int) -> None:
        """The next batch and the next write have numbers above these."""

    def inherit(self, lease: Lease, spans: Iterable[BatchSpan]) -> None:
        """The changes of these batches, which earlier ledgers captured, count for this ledger.
        Replaces what was inherited before."""

    def inherited(self, source: str) -> tuple[BatchSpan, ...]:
        """Those batches, oldest first; none unless the ledger was made from its lake."""
