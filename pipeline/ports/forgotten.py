"""Changes that are kept no longer: what the ledger knows of them.

Belongs here: the port to its notes, and to what holds changes. Does not: up to which batch they go
(`pipeline.upkeep.changes`), their files (`ports.changelog`, `ports.segments`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from pipeline.decisions import Lease
from pipeline.upkeep.changes import ChangeFile, Forgotten, ForgottenStep, Holder, Pruned


class ForgottenChanges(Protocol):
    """Part of `Ledger`. Changes of batches up to `forgotten(source).through` may be gone; nobody
    reads them, whether their files are still there or not."""

    def forgotten(self, source: str) -> Forgotten | None:
        """The newest note; None where all changes are kept."""

    def unfinished_notes(self, source: str) -> list[Forgotten]:
        """Notes whose files are still listed or still there, or which the ledger still tells more
        of than it needs to, oldest first."""

    def holders(self, source: str) -> list[Holder]:
        """Who needs changes."""

    def acknowledged_before(self, source: str, moment: datetime) -> int:
        """The newest batch that was acknowledged before a moment; 0 for none."""

    def change_files(self, source: str, above: int, through: int) -> list[ChangeFile]:
        """The files of acknowledged batches behind `above` up to `through`, replaced ones too."""

    def forget(self, lease: Lease, through: int) -> None:
        """Changes up to that batch are kept no longer, from here on. Refused while somebody needs
        one of them, and where those of the note before are still listed."""

    def note_forgotten(self, lease: Lease, done: ForgottenStep, through: int) -> None:
        """What became of the changes up to a batch that `forget` noted, one step after the other.
        Repeating it changes nothing."""

    def prune(self, lease: Lease, above: int, last: int, through: int) -> int:
        """Delete rows about the batches behind `above` up to `last` that nobody can ask for, since
        what was forgotten up to `through` is deleted; how many. Repeating it changes nothing."""

    def prune_leases(self, lease: Lease, above: int, through: int, most: int) -> Pruned:
        """Look at the next `most` leases behind that number, of runs before the batch `through`,
        and delete what was decided under them and led to no batch, and those of which nothing is
        left. Repeating it changes nothing."""

    def prune_batches(self, lease: Lease, above: int, through: int, most: int) -> Pruned:
        """Look at the next `most` batches behind `above` and before `through`, and delete those
        that nothing refers to, with their leases. One that stays keeps its predecessor's number.
        Repeating it changes nothing."""

    def pruned_through(self, source: str) -> int:
        """Up to which batch such rows may be gone, and before which the batches themselves: nothing
        tells any more where most of those ended, and which versions of mirrors show it; 0 where all
        is told. The batch itself is there."""
