"""Decides up to which batch old changes are deleted from changelogs (the tables with
all changes). A batch is a part of the log that a run captured at once. Pure.

Whole batches are deleted, oldest first, so that the changes of all tables begin at one
place. A batch is deleted if it was acknowledged longer ago than `keep_changes`, and if
nothing needs it or an earlier batch:

| a batch is needed by | because |
|---|---|
| a consumer that has not acknowledged it | the consumer has not read its changes |
| a later batch that is not acknowledged | its merge may fold earlier changes |
| a table whose mirror lacks it, or whose load began before it | the table's next merge |
| a replay that is not settled | its revision replaces files |
| recovery, if it is one of the eight newest in `_transactions` | a new ledger may continue there |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from lockstep.pipeline.upkeep.clearing import holder_sentence
from lockstep.pipeline.upkeep.decide import FileTotal
from lockstep.pipeline.values.places import moment_text
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.segment import SystemTable
from lockstep.pipeline.values.table import TableName

KEEP_CHANGES: Final = "`keep_changes`"


class DeletionStep(StrEnum):
    """The steps of deleting old changes, in their order."""

    UNLISTED = "unlisted"
    """No changelog lists the files of these changes any more."""
    DELETED = "deleted"
    """The files are deleted."""
    PRUNED = "pruned"
    """The ledger's rows about the files are deleted."""


@dataclass(frozen=True, slots=True)
class DeletedChanges:
    """The ledger's note that the changes of batches are deleted. The batches are those
    after `after_batch`, up to and including `last_batch`, which ends in the log at `end`.
    `unlisted_at`, `is_deleted`, `is_pruned`: the steps that are done. `table`: the only
    table concerned, because its settings now show less of it; None for all tables."""

    after_batch: int
    last_batch: int
    end: Position
    unlisted_at: datetime | None = None
    is_deleted: bool = False
    is_pruned: bool = False
    table: TableName | None = None

    @property
    def sentence(self) -> str:
        return f"changes up to {self.place} were deleted, {self.reason}"

    @property
    def reason(self) -> str:
        """The reason for the deletion, as a clause."""
        if self.table is None:
            return f"as {KEEP_CHANGES} says"
        return f"because less of {self.table} is shown now"

    @property
    def place(self) -> str:
        """The end of the deleted changes, as text."""
        moment = self.end.committed_at
        return str(self.end) if moment is None else f"{self.end} ({moment_text(moment)})"


@dataclass(frozen=True, slots=True)
class DeletionNotes:
    """Notes, oldest first: those whose steps are not all done, and the newest one."""

    notes: Sequence[DeletedChanges] = ()

    @property
    def newest(self) -> DeletedChanges | None:
        return self.notes[-1] if self.notes else None

    @property
    def last_batch(self) -> int:
        """The last batch whose changes are deleted, or 0."""
        return self.notes[-1].last_batch if self.notes else 0

    @property
    def unfinished(self) -> list[DeletedChanges]:
        """The notes whose steps are not all done."""
        return [note for note in self.notes if not note.is_pruned]


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that still needs changes, such as a consumer. `kind`, `name`: what it
    is; `last_unneeded_batch`: the last batch before those that it needs, or 0."""

    kind: str
    name: str
    last_unneeded_batch: int

    @property
    def sentence(self) -> str:
        return holder_sentence(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class DeletableChanges:
    """The facts that decide which changes are deleted. `last_old_batch`: the newest
    batch that is older than `keep_changes`, or 0. `holders`: everything that needs
    changes."""

    last_old_batch: int
    holders: Sequence[Holder]


@dataclass(frozen=True, slots=True)
class ChangeFile:
    """A file of a changelog, or of a system table (`_transactions`, `_ddl`).
    `changelog_generation`: the number of the changelog among all that its table has
    had; `size`: bytes."""

    table: TableName | SystemTable
    changelog_generation: int
    path: str
    size: int


class PrunableRows(StrEnum):
    """The kinds of rows that the ledger deletes after changes were deleted, in their
    order."""

    CONTENTS = "contents"
    """Rows about the contents of batches. A transaction deletes those of a limited
    number of batches."""
    LEASES = "leases"
    """Decisions that led to no batch, and leases without a decision or batch."""
    BATCHES = "batches"
    """Batches to which nothing refers, with their leases. A batch that stays keeps the
    number of its predecessor, even if that is deleted."""


@dataclass(frozen=True, slots=True)
class PruneResult:
    """The result of deleting some of the ledger's rows. `last_id`: the last batch or
    lease that was examined; `is_complete`: no more rows are left."""

    deleted_rows: int
    last_id: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class ChangesPlan:
    """The changes that are deleted now.

    - `last_batch`: the last batch to delete, or None.
    - `holder_sentence`: what needs changes that are old enough; None if nothing does.
    - `obstacle`: why nothing is deleted at all, or None.
    - `unlisted`, `deleted`: total of the files that changelogs stop listing, and of the
      files that are deleted.
    - `ledger_rows`: number of rows deleted from the ledger.
    - `to_unlist`, `to_delete`, `to_prune`: the notes for which that step is due.
    """

    last_batch: int | None = None
    holder_sentence: str | None = None
    obstacle: str | None = None
    unlisted: FileTotal = field(default_factory=FileTotal)
    deleted: FileTotal = field(default_factory=FileTotal)
    ledger_rows: int = 0
    to_unlist: Sequence[DeletedChanges] = ()
    to_delete: Sequence[DeletedChanges] = ()
    to_prune: Sequence[DeletedChanges] = ()

    @property
    def is_empty(self) -> bool:
        notes = self.to_unlist or self.to_delete or self.to_prune
        return self.last_batch is None and not notes


def last_deletable_batch(
    changes: DeletableChanges, deleted_through: int
) -> tuple[int | None, str | None]:
    """Return the last batch whose changes are deleted now, or None. Return also a
    sentence that says what needs batches that are old enough; None if nothing does.
    `deleted_through`: the last batch whose changes are deleted already."""
    last_old_batch = changes.last_old_batch
    last_batch = last_old_batch
    sentence: str | None = None
    holder = min(changes.holders, key=lambda holder: holder.last_unneeded_batch, default=None)
    if holder is not None and holder.last_unneeded_batch < last_old_batch:
        last_batch = holder.last_unneeded_batch
        if holder.kind != "recovery":
            sentence = (
                f"changes up to batch {last_old_batch} are old enough, and those after batch "
                f"{max(last_batch, deleted_through)} stay: {holder.sentence}"
            )
    return (last_batch if last_batch > deleted_through else None), sentence
