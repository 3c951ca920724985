"""The progress of a run on a terminal; notes only where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from pipeline.runs.context import Progress
from pipeline.snapshot.progress import LoadProgress
from pipeline.table import TableName


class Together:
    """Several watchers of one run."""

    def __init__(self, *watchers: Progress) -> None:
        self._watchers = watchers

    def capture(self, *, transactions: int, rows: int, log_bytes: int, total_bytes: int) -> None:
        for progress in self._watchers:
            progress.capture(
                transactions=transactions,
                rows=rows,
                log_bytes=log_bytes,
                total_bytes=total_bytes,
            )

    def search(self, *, read_bytes: int, total_bytes: int) -> None:
        for progress in self._watchers:
            progress.search(read_bytes=read_bytes, total_bytes=total_bytes)

    def load(self, tables: Sequence[LoadProgress]) -> None:
        for progress in self._watchers:
            progress.load(tables)

    def merge(self, *, done: int, total: int, table: TableName | None) -> None:
        for progress in self._watchers:
            progress.merge(done=done, total=total, table=table)

    def compare(self, *, done: int, total: int, table: TableName) -> None:
        for progress in self._watchers:
            progress.compare(done=done, total=total, table=table)

    def note(self, sentence: str) -> None:
        for progress in self._watchers:
            progress.note(sentence)


class LiveProgress:
    """`pipeline.runs.context.Progress`, drawn while the context lasts."""

    def __init__(self, console: Console, source: str) -> None:
        self._console = console
        self._source = source
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[told]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> LiveProgress:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def capture(self, *, transactions: int, rows: int, log_bytes: int, total_bytes: int) -> None:
        told = f"{rows:,} rows, {transactions:,} transactions, {log_bytes / 1e6:,.1f} MB"
        self._show("capture", min(log_bytes, total_bytes), total_bytes, told)

    def search(self, *, read_bytes: int, total_bytes: int) -> None:
        told = f"{read_bytes / 1e6:,.1f} MB of the log"
        self._show("search", read_bytes, total_bytes, told)

    def load(self, tables: Sequence[LoadProgress]) -> None:
        done = sum(table.rows for table in tables)
        total = sum(max(table.rows, table.estimated_rows or 0) for table in tables)
        reading = [table for table in tables if not table.finished]
        told = reading[0].sentence() if len(reading) == 1 else f"{done:,} of about {total:,} rows"
        self._show("read tables", done, total, told)

    def merge(self, *, done: int, total: int, table: TableName | None) -> None:
        self._show("merge", done, total, f"{done} of {total} tables {table or ''}")

    def compare(self, *, done: int, total: int, table: TableName) -> None:
        self._show("compare", done, total, f"{done} of {total} tables, {table}")

    def note(self, sentence: str) -> None:
        self._console.print(f"{self._source}: {sentence}", markup=False)

    def _show(self, step: str, completed: int, total: int, told: str) -> None:
        if step not in self._tasks:
            self._tasks[step] = self._bars.add_task(f"{self._source}: {step}", told="")
        self._bars.update(self._tasks[step], completed=completed, total=max(total, 1), told=told)
