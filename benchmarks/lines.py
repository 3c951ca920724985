"""Prints a Markdown table line by line, because a benchmark of many minutes may end early."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console


class Lines:
    """A table whose first `texts` columns are texts and whose other columns are numbers. Its title,
    heads and alignment are printed at once."""

    def __init__(
        self, console: Console, title: str, columns: Sequence[str], *, texts: int = 1
    ) -> None:
        self._console = console
        self._print(f"\n{title}\n")
        self.add(*columns)
        self.add(*["---"] * texts, *["---:"] * (len(columns) - texts))

    def add(self, *cells: str) -> None:
        self._print(f"| {' | '.join(cells)} |")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)
        self._console.file.flush()
