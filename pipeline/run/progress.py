"""The progress of a run's steps, in figures and as a text, and its receiver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lockstep.pipeline.snapshot.progress import LoadProgress
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class StepProgress:
    """The progress of a step. `done`, `total`: numbers of bytes, rows or tables,
    depending on the step. `text`: the progress for people. `figures`: the progress for
    programs; if tables are read, one mapping for each table."""

    step: str
    done: int
    total: int
    text: str
    figures: tuple[Mapping[str, object], ...]


def capture_progress(
    *, transactions: int, rows: int, log_bytes: int, total_bytes: int
) -> StepProgress:
    """Return the progress of a capture. `total_bytes`: bytes of the log from the
    capture's start to its end."""
    figures = {
        "transactions": transactions,
        "rows": rows,
        "log_bytes": log_bytes,
        "total_bytes": total_bytes,
    }
    counts = f"{pluralize(rows, 'row')}, {pluralize(transactions, 'transaction')}"
    text = f"{counts}, {log_bytes / 1e6:,.1f} MB"
    return StepProgress("capture", min(log_bytes, total_bytes), total_bytes, text, (figures,))


def search_progress(read_bytes: int, total_bytes: int) -> StepProgress:
    """Return the progress of a search in the log, in bytes of the log."""
    figures = {"log_bytes": read_bytes, "total_bytes": total_bytes}
    return StepProgress(
        "search", read_bytes, total_bytes, f"{read_bytes / 1e6:,.1f} MB of the log", (figures,)
    )


def load_progress(tables: Sequence[LoadProgress]) -> StepProgress:
    """Return the progress of reading tables from the source."""
    done = sum(table.rows for table in tables)
    total = sum(max(table.rows, table.estimated_rows or 0) for table in tables)
    unfinished = [table for table in tables if not table.is_finished]
    text = (
        unfinished[0].sentence()
        if len(unfinished) == 1
        else f"{done:,} of about {pluralize(total, 'row')}"
    )
    figures = tuple(
        {"table": str(table.table), "rows": table.rows, "estimated_rows": table.estimated_rows}
        for table in tables
    )
    return StepProgress("load", done, total, text, figures)


def table_progress(step: str, done: int, total: int, table: TableName) -> StepProgress:
    """Return the progress of merging or comparing tables. `table`: the last one that
    ended."""
    figures = {"table": str(table), "done": done, "total": total}
    text = f"{done} of {pluralize(total, 'table')}, {table}"
    return StepProgress(step, done, total, text, (figures,))


class Progress(Protocol):
    """The receiver of a step's progress and messages."""

    def tell(self, progress: StepProgress) -> None:
        """Show the progress of a step. It is called at most a few times a second."""

    def note(self, sentence: str) -> None:
        """Show a person one sentence, such as that a table was quarantined."""


class SilentProgress:
    """A `Progress` that shows nothing."""

    def tell(self, progress: StepProgress) -> None: ...

    def note(self, sentence: str) -> None: ...
