"""Statements that may change a structure, or that stand for rows, until their transactions are
handed out.

Belongs here: whose they are. Does not: which statements those are (`rare_events`), the
texts beside rows (`stream.text_buffer`).
"""

from __future__ import annotations

from pipeline.binlog.stream.control import Query
from pipeline.binlog.stream.ring import RowsElsewhere


class Statements:
    """By the row of their transaction in the index: those of complete ones, then those of the
    open one. `elsewhere`: rows that may be those of other tables, likewise."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, Query]] = []
        self._elsewhere: list[tuple[int, RowsElsewhere]] = []

    def keep(self, transaction: int, query: Query) -> None:
        self._kept.append((transaction, query))

    def tell(self, transaction: int, rows: RowsElsewhere) -> None:
        """Rows that may be those of other tables; tables without transactions keep them, whatever
        becomes of the transaction."""
        if (transaction, rows) not in self._elsewhere:
            self._elsewhere.append((transaction, rows))

    def has(self, transaction: int) -> bool:
        """Whether the transaction has any."""
        return any(at == transaction for at, _ in self._kept)

    def complete(self, transactions: int) -> tuple[tuple[int, Query], ...]:
        """Those of the first so many."""
        return tuple(kept for kept in self._kept if kept[0] < transactions)

    def elsewhere(self, transactions: int) -> tuple[tuple[int, RowsElsewhere], ...]:
        """Those of the first so many."""
        return tuple(told for told in self._elsewhere if told[0] < transactions)

    def cut(self, transaction: int) -> None:
        """Forget those of the newest transaction, which is rolled back or waits, but for those
        that stand for rows: they may have changed tables without transactions."""
        self._kept = [(at, q) for at, q in self._kept if at < transaction or q.for_rows]

    def drop(self, transactions: int) -> None:
        """Forget those of the first so many; the others move up."""
        self._kept = [(at - transactions, q) for at, q in self._kept if at >= transactions]
        later = [(at, rows) for at, rows in self._elsewhere if at >= transactions]
        self._elsewhere = [(at - transactions, rows) for at, rows in later]
