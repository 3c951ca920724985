"""Upkeep of mirrors: counting, compacting and deleting their files."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from lockstep.pipeline.model.lake_commit import LakeCommit
from lockstep.pipeline.upkeep.decide import FileTotal, MirrorFiles, UpkeepStep


class MirrorUpkeep(Protocol):
    """The upkeep of mirrors, which are paths relative to the lake."""

    @property
    def keep(self) -> timedelta:
        """The time for which each version of a mirror stays readable."""

    def files(self, mirror: str) -> MirrorFiles:
        """Return the files of the newest version, and those left of older ones; starts no JVM."""

    def commit(self, mirror: str, version: int) -> LakeCommit | None:
        """Return a commit; None if the log has no file of it."""

    def carry_out(self, mirror: str, step: UpkeepStep, said: str, above: int) -> int | None:
        """Carry out a step that commits, and return the new Delta version; None if there was
        nothing to do. The commit has the metadata `said` and directly follows version `above`:
        `CommitConflict` if somebody else has committed since."""

    def thin_log(self, folder: str, now: datetime, *, delete: bool) -> FileTotal:
        """Return the checkpoints of a table's log that later ones replace, none without a table;
        with `delete`, delete them."""

    def vacuum(self, mirror: str) -> FileTotal:
        """Delete the files that no version needs which was current within the time `keep`, and
        return what was deleted. Repeating it continues an interrupted one."""
