"""Progress as Dagster's log shows it: notes as they come, the capture's figures seldom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.snapshot.progress import LoadProgress
from pipeline.table import TableName

SECONDS_BETWEEN = 10.0


class Log(Protocol):
    def info(self, msg: object) -> None: ...

    def warning(self, msg: object) -> None: ...


@dataclass(slots=True)
class LoggedProgress:
    """Writes to a Dagster run's log.

    Merged tables are not logged here: their materializations are.
    """

    log: Log
    monotonic: Callable[[], float]
    _last: float = 0.0

    def capture(self, *, transactions: int, rows: int, log_bytes: int, total_bytes: int) -> None:
        now = self.monotonic()
        if now - self._last >= SECONDS_BETWEEN:
            self._last = now
            self.log.info(
                f"captured {rows} rows of {transactions} transactions, "
                f"{log_bytes} of {total_bytes} bytes of log"
            )

    def search(self, *, read_bytes: int, total_bytes: int) -> None:
        now = self.monotonic()
        if now - self._last >= SECONDS_BETWEEN:
            self._last = now
            self.log.info(f"looked through {read_bytes} of {total_bytes} bytes of log")

    def load(self, tables: Sequence[LoadProgress]) -> None:
        now = self.monotonic()
        if now - self._last >= SECONDS_BETWEEN:
            self._last = now
            for table in tables:
                if not table.finished:
                    self.log.info(table.sentence())

    def merge(self, *, done: int, total: int, table: TableName | None) -> None:
        """Materializations say it."""

    def compare(self, *, done: int, total: int, table: TableName) -> None:
        """No run that Dagster starts compares whole tables."""

    def note(self, sentence: str) -> None:
        self.log.warning(sentence)
