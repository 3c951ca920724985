"""What the steps of a run are given: ports, the plan of the source, and where they say how far they
are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import sleep
from typing import TYPE_CHECKING, Protocol

from pipeline.batch import Requests
from pipeline.shape.shaping import Shaping
from pipeline.snapshot.progress import LoadProgress
from pipeline.source_plan import SourcePlan
from pipeline.table import TableName
from pipeline.table_state import Quarantine

if TYPE_CHECKING:
    from pipeline.ports.catalog import Registry
    from pipeline.ports.changelog import Changelog
    from pipeline.ports.claims import Claims
    from pipeline.ports.ledger import Ledger
    from pipeline.ports.mirrors import Mirrors
    from pipeline.ports.segments import SegmentStore
    from pipeline.ports.source import SourceServer
    from pipeline.ports.spool import Spool


@dataclass(frozen=True, slots=True)
class StepProgress:
    """How far a step is: `done` of `total` of whatever it counts, in words (`told`) and in figures
    for a program, a mapping for each table where it is about tables."""

    step: str
    done: int
    total: int
    told: str
    figures: tuple[Mapping[str, object], ...]


def captured_until_now(
    *, transactions: int, rows: int, log_bytes: int, total_bytes: int
) -> StepProgress:
    """`total_bytes`: the distance to the end."""
    figures = {
        "transactions": transactions,
        "rows": rows,
        "log_bytes": log_bytes,
        "total_bytes": total_bytes,
    }
    told = f"{rows:,} rows, {transactions:,} transactions, {log_bytes / 1e6:,.1f} MB"
    return StepProgress("capture", min(log_bytes, total_bytes), total_bytes, told, (figures,))


def searched(read: int, total: int) -> StepProgress:
    """Bytes of the log that were looked through for a place, of those there are."""
    figures = {"log_bytes": read, "total_bytes": total}
    return StepProgress("search", read, total, f"{read / 1e6:,.1f} MB of the log", (figures,))


def loaded_until_now(tables: Sequence[LoadProgress]) -> StepProgress:
    """Tables that are read from the source."""
    done = sum(table.rows for table in tables)
    total = sum(max(table.rows, table.estimated_rows or 0) for table in tables)
    reading = [table for table in tables if not table.finished]
    told = reading[0].sentence() if len(reading) == 1 else f"{done:,} of about {total:,} rows"
    figures = tuple(
        {"table": str(table.table), "rows": table.rows, "estimated_rows": table.estimated_rows}
        for table in tables
    )
    return StepProgress("load", done, total, told, figures)


def tables_done(step: str, done: int, total: int, table: TableName) -> StepProgress:
    """Tables that are merged or compared; `table` is the newest of them."""
    figures = {"table": str(table), "done": done, "total": total}
    told = f"{done} of {total} tables, {table}"
    return StepProgress(step, done, total, told, (figures,))


class Progress(Protocol):
    """Where a step says how far it is; called a few times a second at most."""

    def tell(self, step: StepProgress) -> None: ...

    def note(self, sentence: str) -> None:
        """One sentence a person should see (a repair, a table quarantined)."""


class Unwatched:
    """Progress that nobody watches."""

    def tell(self, step: StepProgress) -> None: ...

    def note(self, sentence: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Workplace:
    """The ports one source's run works through. `registry`: where mirrors are registered, None
    where they are not; `ConfigurationError` where that cannot be told."""

    source: SourcePlan
    server: SourceServer
    ledger: Ledger
    segments: SegmentStore
    spool: Spool
    changelog: Changelog
    mirrors: Mirrors
    claims: Claims
    progress: Progress
    clock: Callable[[], datetime]
    requests: Callable[[], Requests | None] = lambda: None
    """What was asked of the lake's object store since this was put together; None in a folder."""
    pause: Callable[[float], None] = sleep
    registry: Callable[[], Registry | None] = lambda: None
    shaping: Shaping = field(default_factory=Shaping)
    """How the lake shows the source's tables."""

    def quarantine(self, quarantined: Quarantine) -> None:
        """Say so while the run goes on."""
        self.progress.note(
            f"{quarantined.table} was quarantined at {quarantined.position}: {quarantined.reason}"
        )
