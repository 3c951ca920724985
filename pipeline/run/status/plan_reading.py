"""Reads the log that the next run would capture, and keeps nothing of it. Estimates how
much log there is, how long its capture takes, and how each table's changes would be
merged. The size of row images in bytes, and whether a mirror (the Delta table with the
current rows) is small, is known only after a capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.binlog.rows.images import AFTER, DELETE, INSERT
from lockstep.pipeline.binlog.rows.maps import split_by_map, split_by_table
from lockstep.pipeline.binlog.rows.rows import TableDecoder
from lockstep.pipeline.binlog.search.log_scan import log_bytes_between
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.ring import Block, Integers, TransactionGroup
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.spill import SummarisingSpool
from lockstep.pipeline.mirror.clustering import unclusterable_names
from lockstep.pipeline.mirror.layout import application_id, mirror_columns
from lockstep.pipeline.mirror.lineage import is_stamp, taken_names
from lockstep.pipeline.mirror.strategy import WriteFacts, choose, only_inserts
from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.table_state import StoppedTable, TableState
from lockstep.pipeline.run.begin import RunStart
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.basis import Basis, basis_of, bounds_of
from lockstep.pipeline.run.dump.image_decoder import ImageDecoder
from lockstep.pipeline.run.dump.log_reader import (
    LogReading,
    require_complete,
    require_prepared_after_start,
)
from lockstep.pipeline.run.dump.renames import CopyDecider
from lockstep.pipeline.run.dump.table_changes import StatementDecider
from lockstep.pipeline.run.dump.tables_at_start import (
    DROPPED_IN_GAP,
    record_drops_in_gap,
    stops_at_start,
)
from lockstep.pipeline.run.table_plans import TablePlans
from lockstep.pipeline.run.write.job import may_keep_rows
from lockstep.pipeline.schema.consequences import Action, Consequence
from lockstep.pipeline.schema.effects import FollowedStatement, LoggedStatement
from lockstep.pipeline.schema.rows import merge_key
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import LockstepError, Need, Recovery, StoppedBy, TableError
from lockstep.pipeline.values.policies import DroppedColumns, LakePolicies
from lockstep.pipeline.values.position import Coordinates, Position
from lockstep.pipeline.values.row_images import CHANGE_TYPES
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.shown import first_words
from lockstep.pipeline.values.table import TableName

NEWEST_BATCHES: Final = 1_000
"""Number of newest batches that a plan looks at. A batch is a part of the log that a
run captured at once."""
_BATCHES_FOR_SPEED: Final = 10
"""Number of newest batches from which the speed of a capture is estimated."""
_LEAST_BYTES: Final = 1 << 20
"""Bytes of log that a batch must have to count for this speed."""


@dataclass(frozen=True, slots=True)
class PlannedReading:
    """The log that the next run would read.

    - `end_reason`: why reading ends at `end`.
    - `run_count`: number of such runs until the log's end is reached.
    - `log_bytes`: bytes of log.
    - `foreign_transaction_count`, `foreign_bytes`: number of transactions that change
      no captured table, and their bytes of log.
    - `statements`: the first statements in the log that concern a captured table, and
      the first others. `unlisted_statement_count`: number of further ones.
    - `refusal`: the error that would end the run before anything is recorded.
    - `rereads`: tables that would be re-read from MySQL, and why.
    - `drops`: tables that would be marked as dropped although no statement in the log
      drops them, and why.
    - `merge_sentences`: how each table's changes would be merged, and why.
    - `passed_sentences`: sentences on statements that are logged instead of rows and
      change no captured table.
    - `is_past_end`: nothing is read, because the start is at the end that a person
      chose, or after it.
    """

    end: Position
    end_reason: str
    run_count: int
    transaction_count: int
    log_bytes: int
    tallies: Mapping[TableName, TableTally]
    foreign_transaction_count: int
    foreign_bytes: int
    statements: tuple[LoggedStatementEffect, ...]
    unlisted_statement_count: int
    largest_transaction: LargestTransaction | None
    quarantines: tuple[StoppedTable, ...]
    refusal: LockstepError | None
    rereads: Mapping[TableName, str] = field(default_factory=dict)
    drops: Mapping[TableName, str] = field(default_factory=dict)
    merge_sentences: Mapping[TableName, str] = field(default_factory=dict)
    is_past_end: bool = False
    passed_sentences: tuple[str, ...] = ()


def read_ahead(ports: RunPorts, run_start: RunStart, plans: TablePlans) -> PlannedReading:
    """Read what the next run would read, without its time limit. `plans`: the plans of
    tables that need more than this log. Raise errors that a retry may resolve; others
    are the `refusal` of the result."""
    bounds = bounds_of(ports, run_start)
    bounds = replace(bounds, budget=replace(bounds.budget, max_seconds=None))
    newest_batches = ports.ledger.batches(ports.source.name, limit=1)
    batch = newest_batches[0].id + 1 if newest_batches else 1
    resumed_tables = [order.table for order in plans.resumed_orders]
    basis = basis_of(ports, run_start, bounds, batch, resumed_tables)
    tally = LogTally(basis, plans)
    errors: list[LockstepError] = []
    # A transaction that does not fit in memory is counted here, instead of being
    # spilled.
    spool = SummarisingSpool(ports.spool, tally.count_spilled, tally.tallies_read_back.append)
    counting_basis = replace(basis, ports=replace(basis.ports, spool=spool))
    reading = LogReading(counting_basis, tally, on_unfollowed=errors.append)
    engines = ports.server.engines()
    drops = record_drops_in_gap(basis, engines)
    for table, error in stops_at_start(basis, engines):
        tally.quarantine(table, run_start.start.at, error)
    try:
        reading.run()
        if reading.reached_limit is None:
            require_complete(ports, run_start, bounds, reading.end.gtid_set)
        require_prepared_after_start(run_start, reading)
    except LockstepError as error:
        if error.recovery is Recovery.RETRY:
            raise
        errors.append(error)
    remaining = log_bytes_between(reading.end.at, bounds.end, run_start.facts.binlogs)
    is_last_run = not reading.reached_limit or remaining <= 0
    return PlannedReading(
        end=reading.end,
        end_reason=_end_reason(ports, reading.reached_limit, bounds.end, run_start.facts.head),
        run_count=1 if is_last_run else 1 + -(-remaining // max(reading.log_bytes, 1)),
        transaction_count=reading.transaction_count,
        log_bytes=reading.log_bytes,
        tallies=dict(sorted(tally.tables.items())),
        foreign_transaction_count=tally.foreign_transaction_count,
        foreign_bytes=tally.foreign_bytes,
        statements=tuple(tally.statements),
        unlisted_statement_count=tally.unlisted_statement_count,
        largest_transaction=tally.largest,
        quarantines=tuple(tally.quarantined),
        refusal=errors[0] if errors else None,
        rereads=dict(sorted(tally.rereads.items())),
        drops=dict.fromkeys(sorted(drops), DROPPED_IN_GAP),
        merge_sentences=_merge_sentences(
            ports, run_start, basis.structures, tally.tables, tally.replaced
        ),
        is_past_end=bounds.end < run_start.facts.head and bounds.is_reached(run_start.start.at),
        passed_sentences=tuple(reading.row_statements.passed_sentences()),
    )


def _end_reason(
    ports: RunPorts, reached_limit: str | None, end: Coordinates, head: Coordinates
) -> str:
    if reached_limit is not None:
        return reached_limit
    if end < head:
        return f"--until {ports.source.until}"
    return "the log ends there"


def estimate_seconds(ports: RunPorts, reading: PlannedReading | None) -> float | None:
    if reading is None:
        return None
    rate = bytes_per_second(ports.ledger.batches(ports.source.name, limit=NEWEST_BATCHES))
    return None if rate is None else round(reading.log_bytes / rate, 1)


def bytes_per_second(batches: Sequence[Batch]) -> float | None:
    """Return the speed at which the newest large batches were captured; None if there
    are none."""
    sizes_and_durations = [
        (batch.log_bytes, batch.captured_at - batch.created_at)
        for batch in batches
        if batch.captured_at is not None and batch.log_bytes >= _LEAST_BYTES
    ][:_BATCHES_FOR_SPEED]
    duration = sum((seconds for _, seconds in sizes_and_durations), timedelta()).total_seconds()
    return sum(size for size, _ in sizes_and_durations) / duration if duration > 0 else None


def _merge_sentences(
    ports: RunPorts,
    run_start: RunStart,
    structures: SchemaTracker,
    tables: Mapping[TableName, TableTally],
    replaced_tables: Mapping[TableName, str],
) -> dict[TableName, str]:
    """Return, for each table with changes, how they would be merged. `replaced_tables`:
    tables whose earlier rows are void, and why."""
    # After a gap or in an overlap, the mirror may already have a row that the log
    # inserts.
    continues = run_start.decision.continuity not in (Continuity.GAP, Continuity.OVERLAP)
    inserts_are_new = continues and not ports.ledger.gaps(ports.source.name)
    source = ports.source.name
    states = ports.ledger.table_states(source)
    app_ids = {
        table: application_id(source, states[table], "mirror") for table in tables.keys() & states
    }
    newest_writes = ports.ledger.newest_writes(source, app_ids.values()) if app_ids else {}
    last_intents = {
        table: newest_writes[app_id].settled_intent for table, app_id in app_ids.items()
    }
    last_intents |= {intent.table: intent for intent in ports.ledger.open_intents(source)}
    merges = {}
    for table, tally in tables.items():
        policies = ports.source.policies_of(table)
        version = structures.version(table)
        shown_schema = None if version is None else version.shown_schema
        schema = shown_schema or structures.last_known_schema(table)
        counts = tally.counts
        facts = WriteFacts(
            has_key=schema is not None and bool(merge_key(schema)),
            keeps_deleted=policies.keeps_rows,
            replaces=table in replaced_tables,
            replace_reason=replaced_tables.get(table, ""),
            image_count=counts.total + counts.updated,
            inserts_only=only_inserts([counts]),
            inserts_are_new=inserts_are_new,
            may_repeat=run_start.decision.continuity is Continuity.OVERLAP
            and table not in replaced_tables,
            may_have_kept_rows=policies.marks_deleted
            or may_keep_rows(policies, states.get(table), last_intents.get(table)),
            has_stamps=bool(policies.stamps),
        )
        try:
            strategy = choose(facts)
        except TableError as error:
            merges[table] = f"cannot be merged: {error.reason}"
        else:
            reasons = [strategy.reason]
            if schema is not None:
                columns = mirror_columns(schema)
                reasons += _column_sentences(ports, states.get(table), columns, policies)
            merges[table] = f"{strategy.way}: {'; '.join(reasons)}"
    return merges


def _column_sentences(
    ports: RunPorts, state: TableState | None, table_columns: pa.Schema, policies: LakePolicies
) -> Iterator[str]:
    """Yield sentences on what the settings mean for the columns that a mirror has in
    addition to the table's, and for its files."""
    for name, reason, _ in taken_names(table_columns.names, policies):
        yield f"it would be quarantined, since column {name!r} has the name of {reason}"
    for name, reason in unclusterable_names(policies.cluster_by, table_columns):
        yield f"its files stay clustered as they are, since {name!r} {reason}"
    version = None if state is None else ports.mirrors.version(state.mirror)
    if state is None or version is None:
        return
    mirror_schema = ports.mirrors.schema(state.mirror, version)
    present_stamps = [
        field.name
        for field in mirror_schema
        if is_stamp(field) and field.name not in table_columns.names
    ]
    added_stamps = [name for name in policies.stamps if name not in present_stamps]
    if added_stamps:
        yield (
            f"{', '.join(added_stamps)} are added, NULL in each row until it changes: "
            f"`lockstep reload {state.table.word} --reason …` fills them in all rows"
        )
    unwanted_stamps = [name for name in present_stamps if name not in policies.stamps]
    if unwanted_stamps:
        drops = policies.dropped_columns is DroppedColumns.DROP
        effect = "are dropped" if drops else "are NULL in rows that change"
        yield f"{', '.join(unwanted_stamps)} {effect}"


STATEMENTS: Final = 200
"""Largest number of statements that are listed, of those that concern a captured table
and of the others; further ones are only counted."""


_PASSED: Final = "passed"
_PASSED_UNCAPTURED: Final = "passed: no captured table"
_REPLACE_REASONS: Final = {
    Action.CREATE: "the table is created, so it begins without rows",
    Action.EMPTY: "the table is emptied, so earlier rows do not count",
    Action.COPY: "the table is renamed, so it begins with the rows of its former name",
    Action.REREAD: "the table is read from MySQL, so earlier rows do not count",
}
"""Why a table's earlier rows do not count after these actions."""


@dataclass(frozen=True, slots=True)
class TableTally:
    """Counts of one table's changes. `counts`: rows by operation; `event_count`:
    number of row events; `size_bytes`: the size of these events, uncompressed."""

    counts: RowCounts = field(default_factory=RowCounts)
    event_count: int = 0
    size_bytes: int = 0

    def __add__(self, other: TableTally) -> TableTally:
        return TableTally(
            self.counts + other.counts,
            self.event_count + other.event_count,
            self.size_bytes + other.size_bytes,
        )


@dataclass(frozen=True, slots=True)
class LoggedStatementEffect:
    """What a run does with a statement in the log: `effect`. `place`: where the
    statement's transaction begins; `text`: the statement's first words, without
    literals. `stops_the_run`: a run refuses to continue there."""

    place: Coordinates
    text: str
    effect: str
    stops_the_run: bool

    @property
    def is_passed(self) -> bool:
        """True if the statement concerns no captured table."""
        return self.effect in (_PASSED, _PASSED_UNCAPTURED)


@dataclass(frozen=True, slots=True)
class LargestTransaction:
    """The transaction with the most bytes of log. `rows`: number of its rows in
    captured tables."""

    place: Coordinates
    bytes: int
    rows: int


_Tallies = tuple[dict[TableName, TableTally], Integers]
"""The tally of each table in a block, and an array with the number of captured rows
that each transaction of the group has in the block."""


class LogTally:
    """A `log_reader.LogTaker` that counts rows instead of capturing them. It follows
    structures and quarantines tables as a capture would. `plans`: the plans of tables
    that get rows from elsewhere than this log."""

    def __init__(self, basis: Basis, plans: TablePlans) -> None:
        for table, plan in plans.plans.items():
            # A step supplies what the log lacks, and the table is busy with it.
            basis.tables[table].is_busy = plan.step_after_log is not None
        self._tables_read_later = {
            table for table, plan in plans.plans.items() if plan.will_begin_load
        }
        self._captured_tables = basis.tables
        self._decider = StatementDecider(basis.tables, basis.structures, basis.ports.shaping)
        self._renames = CopyDecider(basis)
        self._decoding = ImageDecoder(basis.structures, basis.ports.shaping)
        self.rereads: dict[TableName, str] = {}
        """Tables that would be re-read from MySQL, and why."""
        self.replaced: dict[TableName, str] = {}
        """Tables whose earlier rows would not count any more, and why."""
        self.tallies_read_back: list[_Tallies] = []
        """Tallies that the spool stored instead of blocks, and that were read back
        since the last group."""
        self.tables: dict[TableName, TableTally] = {}
        self.quarantined: list[StoppedTable] = []
        self.statements: list[LoggedStatementEffect] = []
        self.unlisted_statement_count = 0
        self._listed_counts = Counter[bool]()
        """Numbers of listed statements, by whether they concern a captured table."""
        self.largest: LargestTransaction | None = None
        self.foreign_transaction_count = 0
        """Number of transactions that change no captured table."""
        self.foreign_bytes = 0
        """Bytes of log of these transactions."""
        self.watch = None
        """None, because a plan does not count the rows that cascades may change."""

    @property
    def row_count(self) -> int:
        return sum(table.counts.total for table in self.tables.values())

    def use_buffer(self, buffer: TransactionBuffer) -> None:
        self._decoding.use_buffer(buffer)

    def is_wanted(self, table: TableName) -> bool:
        """Return whether changes of a table count. If all its rows will be read later,
        earlier changes do not."""
        return table not in self._tables_read_later and self._captured_tables.is_wanted(table)

    def reach(self, at: Coordinates | None) -> None:
        """Do nothing: a plan reads no rows from MySQL."""

    def apply_statement(self, logged: LoggedStatement, followed: FollowedStatement) -> None:
        supplies = self._renames(followed.effects)
        by_table = self._decider.consequences(logged, followed, supplies)
        effects = []
        for table, consequence in by_table.items():
            if not self.is_wanted(table):
                self._quarantine_read_later(table, consequence, followed, logged)
                continue
            error = self._decider.stop_error(self._captured_tables[table], consequence, followed)
            action, reason = consequence.action, consequence.reason
            if error is not None:
                action = Action.REREAD if error.by is StoppedBy.RUN else Action.QUARANTINE
                reason = error.reason
            effects.append(f"{table}: {action}, {reason}")
            self._apply(table, consequence.action, error, logged)
        unreadable = followed.not_understood
        stops_the_run = unreadable is not None and unreadable.possible_tables is None
        is_relevant = bool(effects) or stops_the_run
        if self._listed_counts[is_relevant] < STATEMENTS:
            self._listed_counts[is_relevant] += 1
            effect = "; ".join(effects) or (_PASSED_UNCAPTURED if by_table else _PASSED)
            if stops_the_run:
                effect = "stops a run: it is not understood and may change any table"
            text = first_words(logged.text)
            self.statements.append(LoggedStatementEffect(logged.begin, text, effect, stops_the_run))
        else:
            self.unlisted_statement_count += 1

    def _apply(
        self, table: TableName, action: Action, error: TableError | None, logged: LoggedStatement
    ) -> None:
        if error is not None and error.by is StoppedBy.RUN:
            self._reread(table, error.reason)
        elif error is not None:
            self.quarantine(table, logged.begin, error)
        elif action in _REPLACE_REASONS:
            self.replaced[table] = _REPLACE_REASONS[action]
            self._captured_tables[table].has_determined_rows = True

    def _quarantine_read_later(
        self,
        table: TableName,
        consequence: Consequence,
        followed: FollowedStatement,
        logged: LoggedStatement,
    ) -> None:
        """Quarantine a table that would be read from MySQL, if the statement gives it
        rows or columns that another table's settings hide."""
        if table in self._tables_read_later and self._captured_tables.is_wanted(table):
            error = self._decider.hidden_rows_error(table, consequence, followed)
            if error is not None and error.need is Need.CONSENT:
                self.quarantine(table, logged.begin, error)

    def _reread(self, table: TableName, reason: str) -> None:
        self.replaced[table] = _REPLACE_REASONS[Action.REREAD]
        self.rereads[table] = reason
        self._decoding.buffer.maps.skip_table(table)

    def note_unlogged_change(self, table: TableName, at: Coordinates, error: TableError) -> None:
        """Quarantine a table that a statement may have changed without logging rows."""
        self.quarantine(table, at, error)

    def note_lost_rows(self, table: TableName, at: Coordinates, reason: str) -> None:
        """Note that the table has to be re-read, because the log lacks its rows from
        here on."""
        self._reread(table, reason)

    def put(self, group: TransactionGroup) -> None:
        row_counts = np.zeros(len(group.transactions), np.int64)
        has_captured_rows = np.zeros(len(group.transactions), np.bool_)
        for block in group.blocks:
            has_captured_rows[block.events[:, columns.TRANSACTION]] = True
            self._add(self._count_block(block, len(row_counts), group.begin), row_counts)
        for tallies in self.tallies_read_back:
            has_captured_rows[0] = True  # A transaction that was spilled is a group of its own.
            self._add(tallies, row_counts)
        self.tallies_read_back.clear()
        self._take_transactions(group, row_counts, has_captured_rows)

    # -- rows -----------------------------------------------------------------------

    def count_spilled(self, block: Block) -> _Tallies:
        """Count a block that would be spilled. It belongs to one transaction, which
        begins after the last group that the buffer handed out."""
        return self._count_block(block, 1, lambda _: self._decoding.buffer.at)

    def _count_block(
        self, block: Block, transaction_count: int, begin: Callable[[int], Coordinates]
    ) -> _Tallies:
        """Count the captured rows of a block. `transaction_count`: number of
        transactions in its group; `begin`: returns where the transaction with a given
        index begins."""
        tables: dict[TableName, TableTally] = {}
        row_counts = np.zeros(transaction_count, np.int64)
        for table, _, part in split_by_table(block, self._decoding.buffer.maps.table_maps):
            if not self.is_wanted(table):
                continue
            transactions = np.minimum(part.events[:, columns.TRANSACTION], transaction_count - 1)
            at = begin(int(transactions[0]))
            try:
                event_counts_by_map = [
                    (indices, self._decoder(map_number, at).count_images(events))
                    for map_number, indices, events in split_by_map(part)
                ]
            except TableError as error:
                self.quarantine(table, at, error)
                continue
            for indices, event_counts in event_counts_by_map:
                np.add.at(row_counts, transactions[indices], event_counts.rows_by_event)
            kinds = sum(
                (event_counts.images_by_kind for _, event_counts in event_counts_by_map),
                np.zeros(len(CHANGE_TYPES), np.int64),
            )
            counts = RowCounts(int(kinds[INSERT]), int(kinds[AFTER]), int(kinds[DELETE]))
            size = int(part.events[:, columns.SIZE].sum())
            tables[table] = TableTally(counts, len(part.events), size)
        return tables, row_counts

    def _decoder(self, map_number: int, at: Coordinates) -> TableDecoder:
        version, decoder = self._decoding.decoder_of_map(map_number, at)
        self._captured_tables.segment(version)
        return decoder

    def quarantine(self, table: TableName, at: Coordinates, error: TableError) -> None:
        self.rereads.pop(table, None)
        self.quarantined.append(self._captured_tables.stop(table, at, error))
        self._decoding.buffer.maps.skip_table(table)

    def _add(self, tallies: _Tallies, row_counts: Integers) -> None:
        tables, counted_rows = tallies
        row_counts += counted_rows
        for table, tally in tables.items():
            self.tables[table] = self.tables.get(table, TableTally()) + tally

    def _take_transactions(
        self,
        group: TransactionGroup,
        row_counts: Integers,
        has_captured_rows: npt.NDArray[np.bool_],
    ) -> None:
        sizes = group.transactions[:, columns.LOG_BYTES]
        self.foreign_transaction_count += int((~has_captured_rows).sum())
        self.foreign_bytes += int(sizes[~has_captured_rows].sum())
        index = int(np.argmax(sizes))
        size = int(sizes[index])
        if self.largest is None or size > self.largest.bytes:
            self.largest = LargestTransaction(group.begin(index), size, int(row_counts[index]))
