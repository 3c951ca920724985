"""Who may write for a source.

Belongs here: the port to a source's lock and its leases. Does not: what is written under one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from pipeline.decisions import Lease, LeaseView


class Leases(Protocol):
    """A source's lock, and the leases that were taken under it."""

    def lock(
        self, source: str, holder: str, dagster_run: str | None
    ) -> AbstractContextManager[Lease]:
        """Take the source's advisory lock and a new lease, or raise `SourceBusy` at
        once. The lock goes with the connection; leaving the context releases both."""

    def require_held(self, lease: Lease) -> None:
        """`LeaseLost` if another run took over since; records nothing."""

    def lease(self, source: str) -> LeaseView | None:
        """The newest lease of a source, whoever holds it; None before the first."""
