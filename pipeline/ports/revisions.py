"""Revisions of batches, as the ledger keeps them.

Belongs here: the port that begins, settles and gives up. Does not: what a revision is made of
(`pipeline.revision`), carrying it into the lake (`pipeline.runs.replaying`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pipeline.decisions import Lease
from pipeline.revision import RevisedSegment, Revision


class Revisions(Protocol):
    """Files that stand in the place of recorded ones: first open, then settled or given up."""

    def begin_revision(self, lease: Lease, segments: Sequence[RevisedSegment]) -> Revision:
        """Commit to these files, which are durable, before any changelog has them. They belong to
        acknowledged batches; at most one revision of a source is open."""

    def open_revision(self, source: str) -> Revision | None: ...

    def last_revision(self, source: str) -> int:
        """The newest one's number, whatever became of it; 0 for none."""

    def settle_revision(self, lease: Lease, revision: Revision) -> None:
        """Every changelog has the files: they are those of their segments from now on."""

    def give_up_revision(self, lease: Lease, revision: Revision) -> None:
        """No changelog has any of the files, and none will."""
