"""Who may write for a source, in memory: `pipeline.ports.leases`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pipeline.decisions import Lease, LeaseView
from pipeline.errors import SourceBusy
from pipeline.ports.held import overtaken_first
from tests.twins.books import MemorySubject


class MemoryLeases(MemorySubject):
    @contextmanager
    def lock(
        self, source: str, holder: str, dagster_run: str | None, *, in_dagster: bool = False
    ) -> Iterator[Lease]:
        with self.books.transaction():
            last = self.books.leases.get(source)
            if last is not None and last.live:
                run = f", run {last.dagster_run}" if last.dagster_run else ""
                raise SourceBusy(
                    f"The source {source!r} is busy: {last.holder}{run}, since "
                    f"{last.taken_at:%Y-%m-%d %H:%M:%S} UTC.",
                    hint="Wait for that run to end, then run again; `lockstep status` shows it.",
                )
            token = last.token + 1 if last is not None else 1
            now = self._clock()
            view = LeaseView(token, holder, dagster_run, now, True, now, in_dagster)
            self.books.leases[source] = view
            self.books.runs[source, token] = (dagster_run, in_dagster)
        lease = Lease(source, token, holder, dagster_run)
        try:
            with overtaken_first(lambda: self.require_held(lease)):
                yield lease
        finally:
            with self.books.transaction():
                if self.books.leases[source].token == token:
                    self.lose_lock(source, ended=self.books.leases[source].live)

    def lose_lock(self, source: str, *, ended: bool = False) -> None:
        """What the end of the holder's connection does."""
        self.books.leases[source] = replace(self.books.leases[source], live=False, ended=ended)

    def require_held(self, lease: Lease) -> None:
        with self._step(lease):
            pass

    def require_not_lost(self, lease: Lease) -> None:
        """Memory loses no connection."""

    def require_writable(self) -> None:
        """Memory is."""

    def lease(self, source: str) -> LeaseView | None:
        return self.books.leases.get(source)
