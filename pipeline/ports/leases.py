"""Who may write for a source.

Belongs here: the port to a source's lock and its leases, the processes that may have left
statements at a server of Spark's under one, and what runs did that Dagster does not record. Does
not: what is written under a lease; ending those statements (`ports.mirrors`,
`pipeline.runs.merge`).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from uuid import UUID

from pipeline.decisions import Lease, LeaseView
from pipeline.intent import SettledWrite
from pipeline.table import TableName

BatchRange: TypeAlias = tuple[int, int]
"""The first and the last of a row of batches."""


@dataclass(frozen=True, slots=True)
class RunsElsewhere:
    """The number of runs, and the batches that they captured, in order. `died`: those of the runs
    that were killed, or hung and were taken over. `forgotten`: leases that upkeep deleted."""

    runs: int
    batches: tuple[int, ...]
    died: int = 0
    forgotten: int = 0


@dataclass(frozen=True, slots=True)
class WriteElsewhere:
    """The last write of a table's mirror, and what each of its writes in the span covers."""

    last: SettledWrite
    spans: frozenset[BatchRange]

    @property
    def first_batch(self) -> int:
        return min(first for first, _ in self.spans)

    def covers(self, batch: int) -> bool:
        return any(first <= batch <= last for first, last in self.spans)


class Leases(Protocol):
    """A source's lock, and the leases that were taken under it."""

    def lock(
        self, source: str, holder: str, dagster_run: str | None, *, in_dagster: bool = False
    ) -> AbstractContextManager[Lease]:
        """Take the source's advisory lock and a new lease, or raise `SourceBusy` at once.
        `dagster_run`: the id of the run, if it is one; `in_dagster`: Dagster gave it that, and
        records what it does. The lock goes with the connection; leaving the context releases
        both."""

    def require_held(self, lease: Lease) -> None:
        """`LeaseLost` if another run took over since, or the lock is known to be lost; records
        nothing."""

    def require_not_lost(self, lease: Lease) -> None:
        """`LeaseLost` once it is known that the lock is lost. Asks nobody: for whoever works for
        long without a step."""

    def require_writable(self) -> None:
        """`LockstepError` if nothing could be recorded: the server is read-only, or the account
        may not write."""

    def lease(self, source: str) -> LeaseView | None:
        """The newest lease of a source, whoever holds it; None before the first."""

    def run_before(self, lease: Lease) -> LeaseView | None:
        """The newest lease of a run among those before this one, so that it is not live. Commands
        that are no runs may have held the source in between."""

    # -- processes at a server of Spark --------------------------------------------------------

    def spark_clients(self, source: str) -> list[UUID]:
        """Those that were noted and not forgotten, in the order of their numbers."""

    def note_spark_client(self, lease: Lease, client: UUID, *, gone: bool = False) -> None:
        """From here on it may have statements there, or has none any more (`gone`). Repeating it
        changes nothing."""

    # -- runs that Dagster does not record: of the command line, on any host -------------------
    # Leases with tokens after `after` and up to `through`; nothing more is recorded under one once
    # the next was taken.

    def runs_elsewhere(self, source: str, after: int, through: int) -> RunsElsewhere:
        """Runs are counted, other commands are not."""

    def written_elsewhere(
        self, source: str, after: int, through: int, beyond: TableName | None, most: int
    ) -> list[WriteElsewhere]:
        """Tables whose mirrors were written, by name, one entry each; the first `most` of those
        that come after `beyond`. Also those that a run of Dagster's wrote which was killed: Dagster
        may know of them, or not."""
