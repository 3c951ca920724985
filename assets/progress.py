"""Progress as Dagster's log shows it: notes as they come, the capture's figures seldom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.runs.context import Progress
from pipeline.snapshot.progress import LoadProgress
from pipeline.table import TableName

SECONDS_BETWEEN = 10.0


class Log(Protocol):
    def info(self, msg: object) -> None: ...

    def warning(self, msg: object) -> None: ...


@dataclass(slots=True)
class LoggedProgress:
    """Writes to a Dagster run's log, and tells `watcher`, who may draw bars.

    Merged tables are not logged here: their materializations are.
    """

    log: Log
    monotonic: Callable[[], float]
    watcher: Progress | None = None
    _last: float = 0.0

    def capture(self, *, transactions: int, rows: int, log_bytes: int, total_bytes: int) -> None:
        if self.watcher is not None:
            self.watcher.capture(
                transactions=transactions, rows=rows, log_bytes=log_bytes, total_bytes=total_bytes
            )
        now = self.monotonic()
        if now - self._last >= SECONDS_BETWEEN:
            self._last = now
            self.log.info(
                f"captured {rows} rows of {transactions} transactions, "
                f"{log_bytes} of {total_bytes} bytes of log"
            )

    def search(self, *, read_bytes: int, total_bytes: int) -> None:
        if self.watcher is not None:
            self.watcher.search(read_bytes=read_bytes, total_bytes=total_bytes)
        now = self.monotonic()
        if now - self._last >= SECONDS_BETWEEN:
            self._last = now
            self.log.info(f"looked through {read_bytes} of {total_bytes} bytes of log")

    def load(self, tables: Sequence[LoadProgress]) -> None:
        if self.watcher is not None:
            self.watcher.load(tables)
        now = self.monotonic()
        if now - self._last >= SECONDS_BETWEEN:
            self._last = now
            for table in tables:
                if not table.finished:
                    self.log.info(table.sentence())

    def merge(self, *, done: int, total: int, table: TableName | None) -> None:
        if self.watcher is not None:
            self.watcher.merge(done=done, total=total, table=table)

    def compare(self, *, done: int, total: int, table: TableName) -> None:
        if self.watcher is not None:
            self.watcher.compare(done=done, total=total, table=table)

    def note(self, sentence: str) -> None:
        if self.watcher is not None:
            self.watcher.note(sentence)
        self.log.warning(sentence)
