"""What comparisons of tables found, as the ledger keeps it.

Belongs here: the port that notes and shows it. Does not: comparing (`runs.inspecting`), what a
table lacked before (`ports.tables`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pipeline.proof.proven import Compared, TableProof


class Proofs(Protocol):
    """Part of `Ledger`. Noting needs no lease: whoever compares reads beside a run."""

    def note_compared(self, source: str, compared: Sequence[Compared]) -> None:
        """These tables were compared now. What was proven before stays where rows differ."""

    def proofs(self, source: str) -> list[TableProof]:
        """Of every table that was compared, by name; of all of it before samples."""
