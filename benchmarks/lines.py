"""Prints a Markdown table line by line, because a benchmark of many minutes may end early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console


@dataclass(frozen=True, slots=True)
class Lines:
    """A table whose first `texts` columns are texts and whose other columns are numbers."""

    console: Console
    texts: int

    def head(self, title: str, columns: Sequence[str]) -> None:
        """Print the title, the heads and their alignment."""
        numbers = len(columns) - self.texts
        self._print(f"\n{title}\n")
        self.add(*columns)
        self.add(*["---"] * self.texts, *["---:"] * numbers)

    def add(self, *cells: str) -> None:
        self._print(f"| {' | '.join(cells)} |")

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, soft_wrap=True)
        self.console.file.flush()
