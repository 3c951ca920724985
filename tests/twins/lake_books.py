"""What a ledger keeps of its lake, in memory: `pipeline.ports.lake_books`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipeline.claim import BatchSpan
from pipeline.decisions import Lease
from tests.twins.books import MemorySubject


class MemoryLakeBooks(MemorySubject):
    def identity(self) -> str:
        return self.books.identity

    def looked(self, source: str) -> dict[str, int]:
        return {folder: at for (of, folder), at in self.books.looked.items() if of == source}

    def note_looked(self, lease: Lease, looked: Mapping[str, int | None]) -> None:
        with self._step(lease) as books:
            for folder, version in looked.items():
                if version is None:
                    books.looked.pop((lease.source, folder), None)
                else:
                    books.looked[lease.source, folder] = version

    def number_above(self, lease: Lease, *, batch: int, txn_version: int) -> None:
        with self._step(lease) as books:
            books.skip_to("batch", len(books.batches), batch)
            books.skip_to("write", len(books.intents), txn_version)

    def inherit(self, lease: Lease, spans: Iterable[BatchSpan]) -> None:
        with self._step(lease) as books:
            books.inherited[lease.source] = tuple(sorted(spans, key=lambda span: span.after))

    def inherited(self, source: str) -> tuple[BatchSpan, ...]:
        return self.books.inherited.get(source, ())
