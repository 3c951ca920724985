"""The end of a run, which is fixed before its first byte is read and lies between two
transactions.

Here are the end as a value, the check whether it is reached, and the proof that the run
read every transaction which the server had executed when the end was fixed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockstep.pipeline.values.errors import StreamEndedEarly
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates

if TYPE_CHECKING:
    from lockstep.pipeline.ports.source import ServerFacts


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one run: bytes of the log, transactions, and seconds since it began.
    The run ends after the transaction that reaches one of them. None is no limit."""

    max_bytes: int | None = None
    max_transactions: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RunBounds:
    """Where a run ends. `end`: the log's head when the run began, or an earlier place
    that was asked for. `executed`: the server's executed GTIDs. They were asked for
    before the head, so the log up to the head must have them all. Empty if the run ends
    before the head."""

    end: Coordinates
    executed: GtidSet
    budget: Budget = field(default_factory=Budget)

    @classmethod
    def of(cls, facts: ServerFacts, budget: Budget, until: Coordinates | None = None) -> RunBounds:
        """Return the bounds of a run that begins now and ends at the log's head, or at
        `until` if that is earlier."""
        if until is not None and until < facts.head:
            return cls(until, GtidSet(), budget)
        return cls(facts.head, GtidSet.parse(facts.gtid_executed), budget)

    def reached_limit(self, *, transactions: int, log_bytes: int, seconds: float) -> str | None:
        """Return the first limit that is reached, in the words of the configuration, or
        None."""
        budget = self.budget
        if budget.max_transactions is not None and transactions >= budget.max_transactions:
            return f"max_transactions = {budget.max_transactions}"
        if budget.max_bytes is not None and log_bytes >= budget.max_bytes:
            return f"max_bytes = {budget.max_bytes}"
        if budget.max_seconds is not None and seconds >= budget.max_seconds:
            return f"max_seconds = {budget.max_seconds:g}"
        return None

    def is_reached(self, at: Coordinates) -> bool:
        """Return whether `at`, a place between two transactions, is the run's end or
        later."""
        return at >= self.end

    def require_reached(self, at: Coordinates) -> None:
        """Raise StreamEndedEarly if the stream ended at `at`, before the run's end."""
        if not self.is_reached(at):
            raise StreamEndedEarly(
                f"the server's log stream ended at {at}, before the run's end {self.end}",
                hint="run again; if that fails, look at the server's error log",
            )

    def missing_gtids(self, read: GtidSet, purged: GtidSet) -> GtidSet:
        """Return the executed GTIDs that the run neither read up to its end nor found
        purged. If there are any, the log is incomplete."""
        return self.executed.difference(read).difference(purged)
