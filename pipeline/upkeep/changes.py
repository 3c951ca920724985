"""Decides up to which batch old changes are deleted from changelogs (the tables with
all changes). A batch is what one run captured. Pure.

Whole batches are deleted, oldest first, so that the changes of all tables begin at one
place. A batch is deleted if it was acknowledged longer ago than `keep_changes`, and if
nothing needs it or an earlier one:

| a batch is needed by | because |
|---|---|
| a consumer that has not acknowledged it | it has not read its changes |
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

KEY: Final = "`keep_changes`"


class DeletionStep(StrEnum):
    """The steps of deleting old changes, in their order."""

    UNLISTED = "unlisted"
    """No changelog lists their files any more."""
    DELETED = "deleted"
    """Their files are deleted."""
    PRUNED = "pruned"
    """The ledger's rows about them are deleted."""


@dataclass(frozen=True, slots=True)
class DeletedChanges:
    """The ledger's note that the changes of batches are deleted: those after batch
    `above`, up to and including `through`. `end`: the end of batch `through` in the
    log. `unlisted_at`, `deleted`, `pruned`: the steps that are done. `table`: the only
    table concerned, because its settings now show less of it; None for all tables."""

    above: int
    through: int
    end: Position
    unlisted_at: datetime | None = None
    deleted: bool = False
    pruned: bool = False
    table: TableName | None = None

    @property
    def told(self) -> str:
        """A sentence on the deletion."""
        return f"changes up to {self.place} were deleted, {self.why}"

    @property
    def why(self) -> str:
        """The reason for the deletion, as a clause."""
        if self.table is None:
            return f"as {KEY} says"
        return f"since less of {self.table} is shown now"

    @property
    def place(self) -> str:
        """The end of the deleted changes, as text."""
        moment = self.end.committed_at
        return str(self.end) if moment is None else f"{self.end} ({moment_text(moment)})"


@dataclass(frozen=True, slots=True)
class DeletionNotes:
    """The notes whose steps are not all done, and the newest note; oldest first."""

    notes: Sequence[DeletedChanges] = ()

    @property
    def newest(self) -> DeletedChanges | None:
        return self.notes[-1] if self.notes else None

    @property
    def through(self) -> int:
        """The last batch whose changes are deleted, or 0."""
        return self.notes[-1].through if self.notes else 0

    @property
    def unfinished(self) -> list[DeletedChanges]:
        """The notes whose steps are not all done."""
        return [note for note in self.notes if not note.pruned]


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that still needs changes, such as a consumer. `kind`, `name`: what it
    is; `through`: the last batch that it does not need, or 0."""

    kind: str
    name: str
    through: int

    @property
    def told(self) -> str:
        return holder_sentence(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class DeletableChanges:
    """The facts about changes that may be deleted. `aged`: the newest batch that is
    older than `keep_changes`, or 0. `holders`: everything that needs changes."""

    aged: int
    holders: Sequence[Holder]


@dataclass(frozen=True, slots=True)
class ChangeFile:
    """A file of a changelog, or of a system table (`_transactions`, `_ddl`).
    `generation`: the number of the changelog among all that its table has had; `size`:
    bytes."""

    table: TableName | SystemTable
    generation: int
    path: str
    size: int


class Prunable(StrEnum):
    """The kinds of rows that the ledger deletes after changes were deleted, in their
    order."""

    CONTENTS = "contents"
    """Rows about the contents of batches. The limit of a transaction counts batches,
    not rows."""
    LEASES = "leases"
    """Decisions that led to no batch, and leases without a decision or batch."""
    BATCHES = "batches"
    """Batches to which nothing refers, with their leases. A batch that stays keeps the
    number of its predecessor, even if that is deleted."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """The result of deleting some of the ledger's rows. `rows`: their number;
    `reached`: the last id that was examined; `ended`: no more are left."""

    rows: int
    reached: int
    ended: bool


@dataclass(frozen=True, slots=True)
class ChangesPlan:
    """The changes that are deleted now.

    `through`: the last batch to delete, or None. `held`: a sentence on what needs older
    changes. `left`: why nothing is deleted at all. `unlisted`, `deleted`: total of the
    files that changelogs stop listing, and of those that are deleted. `rows`: number of
    rows deleted from the ledger. `unlist`, `delete`, `prune`: the notes for which that
    step is due.
    """

    through: int | None = None
    held: str | None = None
    left: str | None = None
    unlisted: FileTotal = field(default_factory=FileTotal)
    deleted: FileTotal = field(default_factory=FileTotal)
    rows: int = 0
    unlist: Sequence[DeletedChanges] = ()
    delete: Sequence[DeletedChanges] = ()
    prune: Sequence[DeletedChanges] = ()

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        notes = self.unlist or self.delete or self.prune
        return self.through is None and not notes


def through_of(forgettable: DeletableChanges, before: int) -> tuple[int | None, str | None]:
    """Return the last batch whose changes are deleted now, or None. Return also a
    sentence if something needs batches that are old enough, or None. `before`: the last
    batch whose changes are deleted already."""
    aged = forgettable.aged
    first = min(forgettable.holders, key=lambda holder: holder.through, default=None)
    through = aged if first is None else min(aged, first.through)
    held = None
    if first is not None and first.through < aged and first.kind != "recovery":
        held = (
            f"changes up to batch {aged} are old enough, and those after batch "
            f"{max(first.through, before)} stay: {first.told}"
        )
    return (through if through > before else None), held
