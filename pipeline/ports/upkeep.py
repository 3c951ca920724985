"""Files of mirrors: how many there are, and making them fewer."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from pipeline.lake_commit import LakeCommit
from pipeline.upkeep.decide import MirrorFiles, Pile, UpkeepStep


class MirrorUpkeep(Protocol):
    """Mirrors are paths relative to the lake."""

    @property
    def keep(self) -> timedelta:
        """How long each version of a mirror stays readable."""

    def files(self, mirror: str) -> MirrorFiles:
        """Those of the newest version, and what is left of older ones; starts no JVM."""

    def commit(self, mirror: str, version: int) -> LakeCommit | None:
        """A commit; None where the log has no file of it."""

    def carry_out(self, mirror: str, step: UpkeepStep, said: str, above: int) -> int | None:
        """A step that commits: the new Delta version, None where there was nothing to do. The
        commit says `said`, and is the one behind version `above` or none: `CommitConflict` where
        somebody else committed since."""

    def thin_log(self, folder: str, now: datetime, *, delete: bool) -> Pile:
        """Checkpoints of any table's log that others replace: they are deleted, or would be."""

    def vacuum(self, mirror: str) -> Pile:
        """Delete the files that no version needs which was replaced within the promised time; what
        is gone. Repeating it goes on where one was cut off."""
