"""What was decided, and what a person chose.

Belongs here: the port to a source's decisions and what follows from them. Does not: the
batches that they begin (`ports.batches`).
"""

from __future__ import annotations

from typing import Protocol

from pipeline.decisions import Attempt, Decision, Lease, Override, RecordedDecision, Unproven
from pipeline.gaps import Gap


class Decisions(Protocol):
    """Decisions of a source; none is changed once it is recorded."""

    def decide(self, lease: Lease, decision: Decision) -> RecordedDecision:
        """Record a decision that makes no batch (a refusal, an idle run) or that the
        next `begin_batch` refers to."""

    def decisions(self, source: str, *, limit: int = 5) -> list[RecordedDecision]:
        """The newest decisions, newest first: to be shown. What is decided from is
        `attempts`, and columns that others ask for."""

    def attempts(self, source: str, *, limit: int = 100) -> list[Attempt]:
        """How the newest attempts ended that were idle, refused or failed, newest first. Those
        that went through are batches."""

    def unproven(self, source: str) -> Unproven | None:
        """Return the tables whose structures are still to be compared with the server's, as the
        newest decision of the kind `STRUCTURES` names them; None if there are none."""

    def note_gtids_off(self, lease: Lease) -> None:
        """A run found the server's `gtid_mode` not ON: no set that was captured before this is
        resumed by. To be called before what is decided on it."""

    def choose_start(self, lease: Lease, *, place: str, reason: str, author: str) -> Override:
        """Record an operator's one-shot choice; it takes the place of one still open."""

    def open_override(self, source: str) -> Override | None:
        """The newest choice, until a live batch was begun by it."""

    def gaps(self, source: str) -> list[Gap]:
        """What no batch read, by whose choice, oldest first."""
