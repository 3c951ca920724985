"""The reports of a run's steps and of a comparison with the source (MySQL), as values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from lockstep.pipeline.model.table_state import Extent, StoppedTable
from lockstep.pipeline.ports.mirrors import MirrorSize
from lockstep.pipeline.proof.proven import ProofKind
from lockstep.pipeline.proof.running_sum import TransactionBoundary
from lockstep.pipeline.snapshot.progress import LoadProgress
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import LogStops
from lockstep.pipeline.values.position import Coordinates, Position
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class RereadCounts:
    """Numbers of rows of a table that was partly read from the source (MySQL) again, by
    a WHERE condition.

    - `read`: rows that were read.
    - `gone`: rows of the mirror (the Delta table with the current rows) that the source
      deleted.
    - `left`: rows of the mirror that could not be looked up in the source, and remain.
    """

    json_keys: ClassVar = ("read", "gone", "left")

    table: TableName
    read: int
    gone: int
    left: int


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """Report of a capture.

    - `batch_id`: None if nothing was captured.
    - `rule`, `reason`, `continuity`: of the decision where to start.
    - `log_bytes`: bytes of the log that were read. `largest_transaction`: size of its
      largest transaction, in bytes.
    - `softened_counts`: by "database.table.column", the number of values that the lake
      shows differently: zero or partial dates as NULL, and texts with codes that have
      no character.
    - `repairs`: sentences about repairs of what dead runs left.
    - `is_past_end`: nothing was read, because the start is at the chosen end or after
      it.
    - `ended_early`: the log may have more, because a person chose the end, or a limit of
      the run was reached.
    - `unfinished_loads`: tables with rows that have yet to be read from the source.
    - `finished_loads`: tables that were read completely, and are merged from this batch
      on.
    - `reread_counts`: rows of a table that were read by a condition.
    - `stop_error`: the error of the event after `end` that no run can pass. The run
      ends with this error once everything before it is merged.
    - `passed_statements`: number of statements that were logged instead of rows and
      change no captured table.
    """

    batch_id: int | None
    rule: str
    reason: str
    start: Position
    end: Position
    transactions: int = 0
    rows: int = 0
    log_bytes: int = 0
    counts: Mapping[TableName, RowCounts] = field(default_factory=dict)
    quarantined: tuple[StoppedTable, ...] = ()
    softened_counts: Mapping[str, int] = field(default_factory=dict)
    repairs: tuple[str, ...] = ()
    start_seconds: float = 0.0
    capture_seconds: float = 0.0
    continuity: Continuity | None = None
    is_past_end: bool = False
    ended_early: bool = False
    unfinished_loads: tuple[LoadProgress, ...] = ()
    finished_loads: tuple[LoadProgress, ...] = ()
    reread_counts: RereadCounts | None = None
    largest_transaction: int = 0
    stop_error: LogStops | None = None
    passed_statements: int = 0

    def followed_by(self, later: CaptureReport) -> CaptureReport:
        """Return the reports of two successive captures as one. Tables that this
        capture stopped until the next are not quarantined in the result: the later
        capture has started them again."""
        counts = dict(self.counts)
        for table, count in later.counts.items():
            counts[table] = counts.get(table, RowCounts()) + count
        softened_counts = Counter(self.softened_counts)
        softened_counts.update(later.softened_counts)
        remaining = tuple(
            quarantine for quarantine in self.quarantined if not quarantine.starts_by_itself
        )
        return replace(
            self,
            batch_id=later.batch_id if later.batch_id is not None else self.batch_id,
            end=later.end,
            transactions=self.transactions + later.transactions,
            rows=self.rows + later.rows,
            log_bytes=self.log_bytes + later.log_bytes,
            counts=counts,
            quarantined=(*remaining, *later.quarantined),
            softened_counts=softened_counts,
            repairs=(*self.repairs, *later.repairs),
            start_seconds=self.start_seconds + later.start_seconds,
            capture_seconds=self.capture_seconds + later.capture_seconds,
            ended_early=later.ended_early,
            unfinished_loads=later.unfinished_loads,
            finished_loads=(*self.finished_loads, *later.finished_loads),
            reread_counts=self.reread_counts or later.reread_counts,
            largest_transaction=max(self.largest_transaction, later.largest_transaction),
            stop_error=later.stop_error,
            passed_statements=self.passed_statements + later.passed_statements,
        )


@dataclass(frozen=True, slots=True)
class TableMerge:
    """A merge of one table into its mirror.

    - `counts`: numbers of changed rows in the log. `rows_read`: number of written rows
      that were read from the source instead.
    - `delta_version`: the mirror's new version. `size`: the mirror's size; None if it
      is not known.
    - `mirror`, `changelog`: paths relative to the lake.
    - `columns`: the mirror's columns, in order. `shown_version`: the version of the
      table's structure that they correspond to.
    - `reason`: why the rows were appended, merged or replaced.
    """

    table: TableName
    counts: RowCounts
    delta_version: int
    mirror: str
    changelog: str
    seconds: float
    first_batch: int
    last_batch: int
    columns: tuple[tuple[str, pa.DataType], ...]
    shown_version: int
    reason: str = ""
    rows_read: int = 0
    size: MirrorSize | None = None


@dataclass(frozen=True, slots=True)
class MergeReport:
    """Report of a merge of all tables.

    - `quarantined`: tables that the merge quarantined.
    - `waiting_tables`: tables with captured batches that are not merged.
    - `merged_batches`: numbers of the batches that are now completely merged.
    """

    merges: tuple[TableMerge, ...]
    quarantined: tuple[StoppedTable, ...]
    waiting_tables: tuple[TableName, ...]
    merged_batches: tuple[int, ...]
    publish_seconds: float
    merge_seconds: float


@dataclass(frozen=True, slots=True)
class AcknowledgeReport:
    """Report of an acknowledgement.

    - `acknowledged_batches`: numbers of the batches that were acknowledged now.
    - `position`: the place in the log up to which all batches are acknowledged; None if
      none is.
    - `waiting_batches`: captured batches that are not merged, each with the tables that
      have yet to be merged.
    - `quarantined`: all stopped tables.
    - `partial_tables`: tables that existed before the place where the log was first
      read, so that the lake may lack older rows.
    - `sample_report`: the comparison of a sample of rows with the source afterwards.
    """

    acknowledged_batches: tuple[int, ...]
    position: Position | None
    waiting_batches: Mapping[int, tuple[TableName, ...]]
    quarantined: tuple[StoppedTable, ...]
    seconds: float
    partial_tables: tuple[Extent, ...] = ()
    sample_report: VerifyReport | None = None


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that differs.

    - `kind`: the kind of difference, such as "only in MySQL". `key`: the row's key as
      text.
    - `columns`: the differing columns, if both sides have the row.
    - `source`, `lake`: the values of these columns on each side, as text; None unless
      the user asked for values.
    """

    kind: str
    key: str
    columns: tuple[str, ...] = ()
    source: Mapping[str, str] | None = None
    lake: Mapping[str, str] | None = None

    @property
    def values_by_side(self) -> dict[str, Mapping[str, str] | None]:
        return {"MySQL": self.source, "the lake": self.lake}

    def __str__(self) -> str:
        return f"{self.kind}: {self.key}"


@dataclass(frozen=True, slots=True)
class TableComparison:
    """The comparison of one table in MySQL with its mirror.

    - `only_in_source`, `only_in_lake`, `different`: numbers of differing rows.
    - `examples`: keys of differing rows, without values of other columns. `rows`: some
      of these rows, with the differing columns.
    - `proof`: the way in which the table was found equal.
    - `place`: the position as of which both sides were compared, with the GTIDs up to
      there.
    - `compared`: number of compared rows; None if all were compared.
    - `where`: a WHERE condition that matches exactly the differing rows; None if there
      is none.
    - `kept`: rows that the source deleted and that the settings keep in the lake.
    """

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
        "at as place",
        "gtid_set",
        "compared",
        "rows as differences",
    )

    table: TableName
    source_rows: int
    lake_rows: int
    only_in_source: int = 0
    only_in_lake: int = 0
    different: int = 0
    examples: tuple[str, ...] = ()
    proof: ProofKind = ProofKind.EXACT
    place: TransactionBoundary | None = None
    rows: tuple[RowDifference, ...] = ()
    compared: int | None = None
    where: str | None = None
    kept: int = 0

    @property
    def difference_count(self) -> int:
        return self.only_in_source + self.only_in_lake + self.different

    @property
    def equal(self) -> bool:
        return self.difference_count == 0

    @property
    def at(self) -> Coordinates | None:
        return self.place.at if self.place else None

    @property
    def gtid_set(self) -> str | None:
        return self.place.gtids if self.place else None


@dataclass(frozen=True, slots=True)
class UncomparedTable:
    """A table that could not be compared. `is_readable`: both sides could be read, but
    not as of one position; otherwise one side could not be read."""

    json_keys: ClassVar = ("reason", "hint")

    table: TableName
    reason: str
    hint: str
    is_readable: bool = False


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Report of a comparison of MySQL with the lake. `batch_id`, `position`: the newest
    acknowledged batch, and its end, which the lake shows. `not_compared`: tables with a
    side that could not be read. `not_proven`: tables that could be read, but not as of
    one position."""

    batch_id: int
    position: Position
    tables: tuple[TableComparison, ...]
    quarantined: tuple[StoppedTable, ...]
    seconds: float
    not_compared: tuple[UncomparedTable, ...] = ()
    not_proven: tuple[UncomparedTable, ...] = ()

    @property
    def differs(self) -> bool:
        """True if a table differs or could not be read."""
        return bool(self.not_compared) or not all(table.equal for table in self.tables)

    @property
    def equal(self) -> bool:
        """True if every table was compared and none differs."""
        return not self.differs and not self.not_proven


def softened_lines(counts: Mapping[str, int], phrase: str) -> list[str]:
    """Return a sentence for each table with softened values. `counts`: numbers of
    these values by "database.table.column". `phrase`: words for them, such as "zero or
    partial dates are NULL"."""
    tables: dict[str, list[tuple[str, int]]] = {}
    for name, count in counts.items():
        table, _, column = name.rpartition(".")
        tables.setdefault(table, []).append((column, count))
    lines = []
    for table, columns in tables.items():
        total = sum(count for _, count in columns)
        parts = ", ".join(f"{count} of {column}" for column, count in columns)
        lines.append(f"{table}: {total} {phrase} in the lake ({parts})")
    return lines
