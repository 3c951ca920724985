"""What the steps of a run are given: ports, the plan of the source, and where they say how far they
are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import sleep
from typing import TYPE_CHECKING, Protocol

from pipeline.batch import Requests
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


class Progress(Protocol):
    """Where a step says how far it is; called a few times a second at most."""

    def capture(self, *, transactions: int, rows: int, log_bytes: int, total_bytes: int) -> None:
        """Cumulative figures of the capture; `total_bytes` is the distance to the end."""

    def search(self, *, read_bytes: int, total_bytes: int) -> None:
        """Bytes of the log looked through for a place, of those there are."""

    def load(self, tables: Sequence[LoadProgress]) -> None:
        """How far the tables are that are read from the source."""

    def merge(self, *, done: int, total: int, table: TableName | None) -> None:
        """Tables merged of all to merge; `table` is the one just finished."""

    def compare(self, *, done: int, total: int, table: TableName) -> None:
        """Tables read for a comparison, of all; `table` is the next one."""

    def note(self, sentence: str) -> None:
        """One sentence a person should see (a repair, a table quarantined)."""


class Unwatched:
    """Progress that nobody watches."""

    def capture(self, *, transactions: int, rows: int, log_bytes: int, total_bytes: int) -> None:
        """Nobody asked."""

    def search(self, *, read_bytes: int, total_bytes: int) -> None:
        """Nobody asked."""

    def load(self, tables: Sequence[LoadProgress]) -> None:
        """Nobody asked."""

    def merge(self, *, done: int, total: int, table: TableName | None) -> None:
        """Nobody asked."""

    def compare(self, *, done: int, total: int, table: TableName) -> None:
        """Nobody asked."""

    def note(self, sentence: str) -> None:
        """Nobody asked."""


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

    def quarantine(self, quarantined: Quarantine) -> None:
        """Say so while the run goes on."""
        self.progress.note(
            f"{quarantined.table} was quarantined at {quarantined.position}: {quarantined.reason}"
        )
