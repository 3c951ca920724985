"""What the ledger keeps of its lake, on Postgres: `pipeline.ports.lake_books`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipeline.claim import BatchSpan
from pipeline.decisions import Lease
from resources.postgres.session import Books


class PostgresLakeBooks(Books):
    _identity: str | None = None

    def identity(self) -> str:
        if self._identity is None:
            self._identity = str(self._only("identity")["id"])
        return self._identity

    def looked(self, source: str) -> dict[str, int]:
        return {row["folder"]: row["delta_version"] for row in self._all("looked", source=source)}

    def note_looked(self, lease: Lease, looked: Mapping[str, int | None]) -> None:
        with self._step(lease) as step:
            for folder, version in looked.items():
                name = "forget_looked" if version is None else "note_looked"
                step.run(name, source=lease.source, folder=folder, delta_version=version)

    def number_above(self, lease: Lease, *, batch: int, txn_version: int) -> None:
        with self._step(lease) as step:
            step.run("number_above", batch=batch, txn_version=txn_version)

    def inherit(self, lease: Lease, spans: Iterable[BatchSpan]) -> None:
        with self._step(lease) as step:
            step.run("forget_inherited", source=lease.source)
            for span in spans:
                ends = {"above": span.after, "through": span.through}
                step.run("inherit", source=lease.source, **ends)

    def inherited(self, source: str) -> tuple[BatchSpan, ...]:
        rows = self._all("inherited", source=source)
        return tuple(BatchSpan(row["above"], row["through"]) for row in rows)
