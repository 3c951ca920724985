"""The reports of a run's steps: values only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from lockstep.pipeline.model.table_state import Extent, StoppedTable
from lockstep.pipeline.ports.mirrors import MirrorSize
from lockstep.pipeline.proof.prefixes import Prefix
from lockstep.pipeline.proof.proven import Proof
from lockstep.pipeline.snapshot.progress import LoadProgress
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import LogStops
from lockstep.pipeline.values.position import Coordinates, Position
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class Refreshed:
    """Counts of a table's rows that were read from the source again by a condition. `gone`: rows of
    the mirror that the source no longer has; `left`: rows of the mirror that could not be looked
    up, and stay."""

    json_keys: ClassVar = ("read", "gone", "left")

    table: TableName
    read: int
    gone: int
    left: int


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """Report of a capture. `batch`: None for an idle run. `rule`, `reason`, `continuity`: those of
    the start decision.

    `softened`: numbers of values that the lake shows differently, by "database.table.column": zero
    or partial dates that became NULL, and texts with codes that have no character. `end_is_behind`:
    nothing was read because the end that a person fixed is not after the start. `short`: the log
    had more when the capture began, but its end was fixed or a budget was spent. `loading`: tables
    of which rows are still to be read from the source; `loaded`: those that were read completely
    and are captured from this batch on. `refreshed`: rows of a table that were read by a condition.
    `largest`: bytes of the largest transaction in the log. `stopped`: the error of the event right
    after `end` that no run can pass; the run ends with it once all before it is merged. `passed`:
    number of statements that were logged instead of rows and change no captured table."""

    batch: int | None
    rule: str
    reason: str
    start: Position
    end: Position
    transactions: int = 0
    rows: int = 0
    log_bytes: int = 0
    counts: Mapping[TableName, RowCounts] = field(default_factory=dict)
    quarantined: tuple[StoppedTable, ...] = ()
    softened: Mapping[str, int] = field(default_factory=dict)
    repaired: tuple[str, ...] = ()
    start_seconds: float = 0.0
    capture_seconds: float = 0.0
    continuity: Continuity | None = None
    end_is_behind: bool = False
    short: bool = False
    loading: tuple[LoadProgress, ...] = ()
    loaded: tuple[LoadProgress, ...] = ()
    refreshed: Refreshed | None = None
    largest: int = 0
    stopped: LogStops | None = None
    passed: int = 0

    def followed_by(self, other: CaptureReport, reread: Collection[TableName]) -> CaptureReport:
        """Return both reports as one. `reread`: tables that this capture quarantined and the other
        one read from the source."""
        counts = dict(self.counts)
        for table, count in other.counts.items():
            counts[table] = counts.get(table, RowCounts()) + count
        softened = Counter(self.softened)
        softened.update(other.softened)
        kept = tuple(
            quarantine for quarantine in self.quarantined if quarantine.table not in reread
        )
        return replace(
            self,
            batch=other.batch if other.batch is not None else self.batch,
            end=other.end,
            transactions=self.transactions + other.transactions,
            rows=self.rows + other.rows,
            log_bytes=self.log_bytes + other.log_bytes,
            counts=counts,
            quarantined=(*kept, *other.quarantined),
            softened=softened,
            repaired=(*self.repaired, *other.repaired),
            start_seconds=self.start_seconds + other.start_seconds,
            capture_seconds=self.capture_seconds + other.capture_seconds,
            short=other.short,
            loading=other.loading,
            loaded=(*self.loaded, *other.loaded),
            refreshed=self.refreshed or other.refreshed,
            largest=max(self.largest, other.largest),
            stopped=other.stopped,
            passed=self.passed + other.passed,
        )


@dataclass(frozen=True, slots=True)
class TableMerge:
    """A merge of one table. `counts`: rows by operation, as logged; `read`: rows that were read
    from the source and are part of it. `delta_version`: the mirror's new one; `mirror`,
    `changelog`: paths relative to the lake. `shows`: the version of the table's structure that the
    mirror shows now; `columns`: the mirror's, in its order. `reason`: why it was written the way
    it was; `size`: the mirror's, if it is known."""

    table: TableName
    counts: RowCounts
    delta_version: int
    mirror: str
    changelog: str
    seconds: float
    first_batch: int
    last_batch: int
    columns: tuple[tuple[str, pa.DataType], ...]
    shows: int
    reason: str = ""
    read: int = 0
    size: MirrorSize | None = None


@dataclass(frozen=True, slots=True)
class MergeReport:
    """Report of a merge. `failed`: tables that it quarantined; `waiting`: tables with captured
    batches that it was not asked to merge."""

    merged: tuple[TableMerge, ...]
    failed: tuple[StoppedTable, ...]
    waiting: tuple[TableName, ...]
    batches_merged: tuple[int, ...]
    publish_seconds: float
    merge_seconds: float


@dataclass(frozen=True, slots=True)
class AcknowledgeReport:
    """Report of an acknowledgement. `position`: the acknowledged one afterwards; None before the
    first batch. `held`: captured batches that are not merged, with the tables they wait for.
    `partial`: tables of which the lake can have only a part. `sampled`: the comparison of a sample
    of rows with the source afterwards."""

    acknowledged: tuple[int, ...]
    position: Position | None
    held: Mapping[int, tuple[TableName, ...]]
    quarantined: tuple[StoppedTable, ...]
    seconds: float
    partial: tuple[Extent, ...] = ()
    sampled: VerifyReport | None = None


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that differs: `kind`, such as "only in MySQL", its key as text, and, of a row that both
    sides have, the columns that differ. `source`, `lake`: the values of these columns on each side,
    as text; None unless values were asked for."""

    kind: str
    key: str
    columns: tuple[str, ...] = ()
    source: Mapping[str, str] | None = None
    lake: Mapping[str, str] | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.key}"


@dataclass(frozen=True, slots=True)
class TableDifference:
    """Verification of one table. `examples`: keys, never values of other columns; `rows`: some of
    the differences, column by column. `place`: the position at which both sides were compared, with
    the GTIDs executed up to it. `compared`: number of rows, if not all were compared. `where`: a
    condition that holds for exactly the rows that differ, if one can be written. `kept`: rows of
    the lake that the source no longer has and that stay, as the settings ask."""

    json_keys: ClassVar = (
        "equal",
        "source_rows",
        "lake_rows",
        "only_in_source",
        "only_in_lake",
        "different",
        "kept",
        "examples",
        "proof",
        "at",
        "gtid_set",
        "compared",
        "rows",
    )

    table: TableName
    source_rows: int
    lake_rows: int
    only_in_source: int = 0
    only_in_lake: int = 0
    different: int = 0
    examples: tuple[str, ...] = ()
    proof: Proof = Proof.EXACT
    place: Prefix | None = None
    rows: tuple[RowDifference, ...] = ()
    compared: int | None = None
    where: str | None = None
    kept: int = 0

    @property
    def differing(self) -> int:
        """Return the number of rows that differ."""
        return self.only_in_source + self.only_in_lake + self.different

    @property
    def equal(self) -> bool:
        return self.differing == 0

    @property
    def at(self) -> Coordinates | None:
        return self.place.at if self.place else None

    @property
    def gtid_set(self) -> str | None:
        return self.place.gtids if self.place else None


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A table of which one side could not be read; or, if `readable`, whose sides could be read but
    not compared at one position."""

    json_keys: ClassVar = ("reason", "hint")

    table: TableName
    reason: str
    hint: str
    readable: bool = False


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Report of a verification. `batch`: the newest acknowledged one, whose end the lake shows.
    `not_proven`: tables whose sides could be read but not compared at one position."""

    batch: int
    position: Position
    tables: tuple[TableDifference, ...]
    quarantined: tuple[StoppedTable, ...]
    seconds: float
    not_compared: tuple[NotCompared, ...] = ()
    not_proven: tuple[NotCompared, ...] = ()

    @property
    def differs(self) -> bool:
        """Return whether a table differs or could not be read."""
        return bool(self.not_compared) or not all(table.equal for table in self.tables)

    @property
    def equal(self) -> bool:
        """Return whether every table was compared and none differs."""
        return not self.differs and not self.not_proven


def softened_lines(softened: Mapping[str, int], what: str) -> list[str]:
    """Return one line for each table that has such values. `softened`: their numbers, by
    "database.table.column"."""
    tables: dict[str, list[tuple[str, int]]] = {}
    for name, count in softened.items():
        table, _, column = name.rpartition(".")
        tables.setdefault(table, []).append((column, count))
    return [
        f"{table}: {sum(count for _, count in columns)} {what} in the lake "
        f"({', '.join(f'{count} of {column}' for column, count in columns)})"
        for table, columns in tables.items()
    ]
