"""How long changes are kept in changelogs: up to which batch they go. Pure.

Whole batches go, the oldest first, so that what is left begins at one place for all tables. A batch
goes once it was acknowledged longer ago than `keep_changes`, and nobody needs it or one before it:

| what holds a batch | because |
|---|---|
| a consumer that has not acknowledged it | its unread changes |
| a batch of the source that is not acknowledged | its merge may fold earlier changes |
| a table whose mirror lacks it, or that is read from the source since | its merge |
| a replay that is not settled | its revision replaces files |
| that it is one of the eight newest in `_transactions` | a new ledger goes on behind one of them |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from pipeline.places import moment_text
from pipeline.position import Position
from pipeline.segment import SourceTable
from pipeline.table import TableName
from pipeline.upkeep.decide import Pile

KEY: Final = "`keep_changes`"


class ForgottenStep(StrEnum):
    """What was done about changes that are kept no longer, in this order."""

    UNLISTED = "unlisted"
    """No changelog lists them any more."""
    DELETED = "deleted"
    """Their files are gone."""
    PRUNED = "pruned"
    """The ledger's rows about them are gone."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Changes of the batches behind `above` up to `through`, whose end is `end`, are kept no
    longer. `unlisted_at`: since when no changelog lists them; `deleted`: whether the files are
    gone as well; `pruned`: whether the ledger's rows about them are. `table`: of which table
    alone, since less of it is shown now; None for all of the source."""

    above: int
    through: int
    end: Position
    unlisted_at: datetime | None = None
    deleted: bool = False
    pruned: bool = False
    table: TableName | None = None

    @property
    def told(self) -> str:
        """Up to where, in words."""
        return f"changes up to {self.place} were deleted, {self.why}"

    @property
    def why(self) -> str:
        if self.table is None:
            return f"as {KEY} says"
        return f"since less of {self.table} is shown now"

    @property
    def place(self) -> str:
        """Where what is kept begins, in words."""
        moment = self.end.committed_at
        return str(self.end) if moment is None else f"{self.end} ({moment_text(moment)})"


@dataclass(frozen=True, slots=True)
class ForgottenNotes:
    """Notes of forgotten changes, oldest first: those of which something is left to be done, and
    the newest."""

    notes: Sequence[Forgotten] = ()

    @property
    def newest(self) -> Forgotten | None:
        return self.notes[-1] if self.notes else None

    @property
    def through(self) -> int:
        """The last batch whose changes are kept no longer; 0 where all are kept."""
        return self.notes[-1].through if self.notes else 0

    @property
    def unfinished(self) -> list[Forgotten]:
        """Those whose files are still listed or still there, or of whose batches the ledger still
        tells more than it needs to."""
        return [note for note in self.notes if not note.pruned]


@dataclass(frozen=True, slots=True)
class Holder:
    """Who needs changes, and up to which batch they may go for all that; 0: none may."""

    kind: str
    name: str
    through: int

    @property
    def told(self) -> str:
        return _HOLDS[self.kind].format(self.name)


_HOLDS: Final = {
    "consumer": "the consumer {0} has not acknowledged what comes after it; "
    "`lockstep status` shows how far it is",
    "batch": "batch {0} is not acknowledged yet; `lockstep run` goes on with it",
    "table": "{0} still has to merge what comes after it; `lockstep status` says what keeps it",
    "replay": "a replay is not settled; `lockstep run` takes it up",
    "recovery": "a new ledger would go on behind one of the eight newest batches",
}


@dataclass(frozen=True, slots=True)
class Forgettable:
    """What decides how far changes may go: `aged`, the newest batch that was acknowledged before
    a moment, 0 for none; and who needs changes."""

    aged: int
    holders: Sequence[Holder]


@dataclass(frozen=True, slots=True)
class ChangeFile:
    """A file of a changelog's generation, or of one of the source's own tables."""

    table: TableName | SourceTable
    generation: int
    path: str
    size: int


class Prunable(StrEnum):
    """What the ledger deletes once changes are gone, in this order."""

    CONTENTS = "contents"
    """Rows about batches, which nobody can ask for any more. They are counted by batches."""
    LEASES = "leases"
    """What was decided under leases and led to no batch, and leases of which nothing is left."""
    BATCHES = "batches"
    """Batches that nothing refers to, with their leases. One that stays keeps its predecessor's
    number."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """Rows that went from the ledger; the last number that was looked at, and whether there are no
    more."""

    rows: int
    reached: int
    ended: bool


@dataclass(frozen=True, slots=True)
class ChangesPlan:
    """`through`: up to which batch changes go now, None where none do; `held`: who keeps more of
    them, in a sentence; `left`: why nothing is deleted at all. `unlisted`, `deleted`: files that
    changelogs list no more, and files that go from the lake; `rows`: how many went from the
    ledger. `unlist`, `delete`, `prune`: the notes whose files, or rows in the ledger, go."""

    through: int | None = None
    held: str | None = None
    left: str | None = None
    unlisted: Pile = field(default_factory=Pile)
    deleted: Pile = field(default_factory=Pile)
    rows: int = 0
    unlist: Sequence[Forgotten] = ()
    delete: Sequence[Forgotten] = ()
    prune: Sequence[Forgotten] = ()

    @property
    def idle(self) -> bool:
        notes = self.unlist or self.delete or self.prune
        return self.through is None and not notes


def through_of(forgettable: Forgettable, before: int) -> tuple[int | None, str | None]:
    """Return up to which batch changes go, None where none do; and who keeps more of those that
    are old enough. `before`: up to which they went already."""
    aged = forgettable.aged
    first = min(forgettable.holders, key=lambda one: one.through, default=None)
    through = aged if first is None else min(aged, first.through)
    held = None
    if first is not None and first.through < aged and first.kind != "recovery":
        held = f"changes up to batch {aged} are old enough, and those after batch "
        held += f"{max(first.through, before)} stay: {first.told}"
    return (through if through > before else None), held
