"""Who may write for a source.

Belongs here: the port to a source's lock and its leases, and the processes that may have left
statements at a server of Spark's under one. Does not: what is written under a lease; ending those
statements (`ports.mirrors`, `pipeline.runs.merge`).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol
from uuid import UUID

from pipeline.decisions import Lease, LeaseView


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

    def note_spark_client(self, lease: Lease, client: UUID) -> None:
        """From here on it may have statements there. Repeating it changes nothing."""

    def forget_spark_client(self, lease: Lease, client: UUID) -> None:
        """It has none any more. One that is not noted is no error."""
