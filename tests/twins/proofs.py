"""What comparisons of tables found, in memory: `pipeline.ports.proofs`."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.proof.proven import Compared, TableProof
from resources.postgres.refusals import refusal
from tests.twins.books import MemorySubject


class MemoryProofs(MemorySubject):
    def note_compared(self, source: str, compared: Sequence[Compared]) -> None:
        now = self._clock()
        for one in compared:
            if one.differing < 0:
                raise refusal("table_proofs_differing_counts")
            if one.proven is None and not one.differing:
                raise refusal("table_proofs_differing_or_proven")
            key = source, one.table, one.whole
            before = self.books.proofs.get(key)
            earlier = (before.proven, before.proven_at) if before else (None, None)
            proven = earlier if one.proven is None else (one.proven, now)
            self.books.proofs[key] = TableProof(one.table, one.whole, now, one.differing, *proven)

    def proofs(self, source: str) -> list[TableProof]:
        found = [one for (of, *_), one in self.books.proofs.items() if of == source]
        return sorted(found, key=lambda one: (one.table, not one.whole))
