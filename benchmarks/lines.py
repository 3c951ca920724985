"""A table in Markdown whose lines are printed as they come, as a run of many minutes may end early.

Belongs here: how such a line looks. Does not: tables that are there at once, which are Rich's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console


@dataclass(frozen=True, slots=True)
class Lines:
    """Its first `texts` columns are texts, the others are numbers."""

    console: Console
    texts: int

    def head(self, title: str, columns: Sequence[str]) -> None:
        """The title, the columns' names, and how they are aligned."""
        numbers = len(columns) - self.texts
        self._print(f"\n{title}\n")
        self.add(*columns)
        self.add(*["---"] * self.texts, *["---:"] * numbers)

    def add(self, *cells: str) -> None:
        self._print(f"| {' | '.join(cells)} |")

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, soft_wrap=True)
        self.console.file.flush()
