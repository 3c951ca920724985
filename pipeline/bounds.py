"""Where a run ends: fixed before its first byte, kept to the transaction.

Belongs here: the end of a run as a value, the question whether it is reached, and the
proof that nothing which the server had executed by then was passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeline.errors import StreamEndedEarly
from pipeline.gtid import GtidSet
from pipeline.position import Coordinates

if TYPE_CHECKING:
    from pipeline.ports.source import ServerFacts


@dataclass(frozen=True, slots=True)
class Budget:
    """How much one run may read; it ends at the first end of a transaction at or beyond
    any of these. None: without limit. Bytes are those of the log."""

    max_bytes: int | None = None
    max_transactions: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RunBounds:
    """`end`: the log's head when the run began, or a place before it that was asked for.
    `executed`: the server's GTIDs, read before that head, so that all of them stand in the
    log up to it; none where the run ends before it."""

    end: Coordinates
    executed: GtidSet
    budget: Budget = field(default_factory=Budget)

    @classmethod
    def fixed(
        cls, facts: ServerFacts, budget: Budget, until: Coordinates | None = None
    ) -> RunBounds:
        if until is not None and until < facts.head:
            return cls(until, GtidSet(), budget)
        return cls(facts.head, GtidSet.parse(facts.gtid_executed), budget)

    def spent(self, *, transactions: int, log_bytes: int, seconds: float) -> str | None:
        """The budget that so much has used up, in words; None if there is more."""
        budget = self.budget
        if budget.max_transactions is not None and transactions >= budget.max_transactions:
            return f"max_transactions = {budget.max_transactions}"
        if budget.max_bytes is not None and log_bytes >= budget.max_bytes:
            return f"max_bytes = {budget.max_bytes}"
        if budget.max_seconds is not None and seconds >= budget.max_seconds:
            return f"max_seconds = {budget.max_seconds:g}"
        return None

    def reached(self, at: Coordinates) -> bool:
        """Whether a run that stands between two transactions at `at` is done."""
        return not at < self.end

    def require_reached(self, at: Coordinates) -> None:
        """The stream ended at `at`: StreamEndedEarly if that is too early."""
        if not self.reached(at):
            raise StreamEndedEarly(
                f"the server's log stream ended at {at}, before the run's end {self.end}",
                hint="run again; if that fails, look at the server's error log",
            )

    def unread(self, read: GtidSet, purged: GtidSet) -> GtidSet:
        """GTIDs the server had executed before the end was fixed that are neither among
        those up to the run's end nor purged. Not empty means the log is not whole."""
        return self.executed.difference(read).difference(purged)
