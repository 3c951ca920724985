"""Reads the binlog from a start to an end, hands its transactions and statements to a
`LogTaker`, and keeps the position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from time import monotonic
from typing import Final, Protocol

from lockstep.pipeline.binlog.search.log_scan import log_bytes_between
from lockstep.pipeline.binlog.search.places import LastTransactions
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.commit_times import NewestCommit
from lockstep.pipeline.binlog.stream.ring import ANONYMOUS, TransactionGroup
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.identity import GtidCollector, union
from lockstep.pipeline.binlog.transactions.loop import Limits
from lockstep.pipeline.binlog.transactions.spill import CommittedRows
from lockstep.pipeline.run.begin import RunStart
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.basis import Basis
from lockstep.pipeline.run.dump.cascade_watch import CascadeWatch
from lockstep.pipeline.run.dump.logged_statements import (
    StoppingError,
    all_statements,
    dialect_of_writer,
    recorded_statements,
    with_command_to_continue,
    with_existing_view,
)
from lockstep.pipeline.run.progress import capture_progress
from lockstep.pipeline.run.stop_errors import resume_hint
from lockstep.pipeline.schema.code import ReachedTables, Undetermined, Verdict, reached_tables
from lockstep.pipeline.schema.effects import FollowedStatement, LoggedStatement
from lockstep.pipeline.schema.history import SchemaStatement
from lockstep.pipeline.schema.history_check import logged_statement
from lockstep.pipeline.schema.model import ServerSchema, TableAccess
from lockstep.pipeline.schema.statements.changes import (
    CreateLike,
    CreateSelect,
    CreateTable,
    Irrelevant,
    NotUnderstood,
    SchemaChange,
    TruncateTable,
    restructured_tables,
)
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.schema.statements.row_changes import read_create_select, read_row_change
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.source_plan import SourcePlan
from lockstep.pipeline.start.bounds import RunBounds
from lockstep.pipeline.values.engines import can_be_merged, is_merge
from lockstep.pipeline.values.errors import (
    DamagedEvent,
    LogStops,
    PreparedBeforeStart,
    TableError,
    TransactionsMissing,
    TransactionsWithoutGtid,
    UnsupportedStatement,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import start_at
from lockstep.pipeline.values.position import Anchor, Coordinates, Position
from lockstep.pipeline.values.shown import first_words, pluralize
from lockstep.pipeline.values.table import TableName

_CHANGED_WHILE_PREPARED_REASON: Final = (
    "a statement changed it while an XA transaction with rows of it was prepared, and only the "
    "server knows what became of these rows"
)
_PROGRESS_SECONDS = 0.3
"""Shortest time between two reports of progress, in seconds."""

_QUOTED_WORDS = 5
"""Number of a statement's words that a message quotes."""


class LogTaker(Protocol):
    """Receives the transactions and statements that are read. A `Segmenter` writes the
    rows; other takers only inspect or count them.

    For each statement of a group of transactions the reader calls `reach` with the
    statement's place, `note_unlogged_change` for each table whose rows the statement
    may have changed, and `apply_statement` if it may change a structure. Then, for the
    group, it calls `reach` with the group's end, `note_lost_rows` for tables that were
    changed while an XA transaction was prepared, and `put`. At the end of the log it
    calls `reach(None)`. It calls `note_unlogged_change` and `note_lost_rows` only for
    tables that are wanted, and refreshes the watch after each statement.
    """

    @property
    def watch(self) -> CascadeWatch | None:
        """Finds the rows that foreign keys change, which MySQL does not log; None if
        they are not looked for."""

    @property
    def row_count(self) -> int:
        """Number of rows taken so far; an update has two images and is one row."""

    def use_buffer(self, buffer: TransactionBuffer) -> None:
        """Use the buffer from which the groups will come. This method is called once,
        before all others."""

    def is_wanted(self, table: TableName) -> bool:
        """Return whether changes of the table are taken."""

    def reach(self, at: Coordinates | None) -> None:
        """Begin to follow the tables that wait for this place or an earlier one. `at`
        is None at the end of the log: then begin to follow all of them."""

    def apply_statement(self, statement: LoggedStatement, followed: FollowedStatement) -> None:
        """Apply the effects of a statement on structures."""

    def note_unlogged_change(self, table: TableName, at: Coordinates, error: TableError) -> None:
        """Note that a statement may have changed the table's rows without logging them.
        The table stops at `at`, unless it is read from the source at a later place."""

    def note_lost_rows(self, table: TableName, at: Coordinates, reason: str) -> None:
        """Note that the table's rows after the transaction that begins at `at` can only
        be read from the source."""

    def put(self, group: TransactionGroup) -> None:
        """Take the rows of the group's transactions."""


def _raise(error: UnsupportedStatement) -> None:
    """Raise the error of a statement that the run cannot pass."""
    raise error


class LogReading:
    """One reading of the log, through a binlog dump (the protocol of MySQL's replicas).

    - `on_unfollowed`: is called with the error if a statement cannot be followed, and
      may raise it.
    - `keeps_all_prepared`: rows of prepared XA transactions are kept for every table,
      because the run that reads the commit may capture other tables.
    - `starts_spark`: Spark is started at the first change that is captured.
    """

    def __init__(
        self,
        basis: Basis,
        taker: LogTaker,
        *,
        on_unfollowed: Callable[[UnsupportedStatement], None] = _raise,
        keeps_all_prepared: bool = False,
        starts_spark: bool = False,
    ) -> None:
        ports, run_start, bounds = basis.ports, basis.run_start, basis.bounds
        self._ports, self._run_start, self._bounds = ports, run_start, bounds
        self._structures, self._tables = basis.structures, basis.tables
        self._taker = taker
        self._on_unfollowed = on_unfollowed
        self._group_begin: Coordinates | None = None
        """The beginning of the group that the taker is working on; None between groups."""
        self._gtid_collector = GtidCollector()
        self.last_transactions = LastTransactions()
        self._anonymous_count = 0
        self._newest_commit = NewestCommit(run_start.facts.read_at)
        self._began_at = self._reported_at = monotonic()
        self._starts_spark = starts_spark
        self._total_bytes = log_bytes_between(
            run_start.start.at, bounds.end, run_start.facts.binlogs
        )
        self._dump = ports.server.dump(run_start.start.at)
        self.buffer = TransactionBuffer(
            run_start.start.at,
            begins=self._dump.begins,
            is_captured=self._is_needed,
            spool=ports.spool,
            source=ports.source.name,
            prepared=basis.prepared_transactions,
            file_created=run_start.anchor.file_created if run_start.anchor else 0,
            limits=self._limits(),
            leave_out=run_start.leave_out,
            keeps_all_prepared=keeps_all_prepared,
            may_be_merge_table=self._may_be_merge_table,
        )
        taker.use_buffer(self.buffer)
        self.row_statements = RowStatements(self._structures, ports.source)
        self.transaction_count = 0
        self.log_bytes = 0
        self.largest_transaction = 0
        """Size of the largest transaction in the log, in bytes."""

    @property
    def end(self) -> Position:
        """The position up to which the log was read so far."""
        start = self._run_start.start
        return Position(
            at=self.buffer.at,
            gtid_set=union(start.gtid_set, self._gtid_collector.merged_set()),
            server_uuid=start.server_uuid,
            committed_at=self._newest_commit.time or start.committed_at,
        )

    @property
    def by_gtid(self) -> bool:
        """True if a later run may resume from `end` by its GTID set."""
        return self._run_start.by_gtid and not self._anonymous_count

    @property
    def anchor(self) -> Anchor:
        """The checksum and place of the event before `end`, which show later that a log
        is the same."""
        anchor = self.buffer.anchor or self._run_start.anchor
        if anchor is None:
            raise DamagedEvent(f"no event stands before {self.end}", hint="report this log to us")
        return anchor

    @property
    def reached_limit(self) -> str | None:
        """The setting that limits the run (transactions, bytes or seconds), if that
        limit is reached before the end of the bounds; otherwise None. It is None among
        transactions that an earlier run already read: this run must not end there."""
        at, known_until = self.buffer.at, self._run_start.known_until
        if self._bounds.is_reached(at) or (known_until is not None and at < known_until):
            return None
        return self._bounds.reached_limit(
            transactions=self.transaction_count,
            log_bytes=self.log_bytes,
            seconds=monotonic() - self._began_at,
        )

    def run(self) -> None:
        """Read up to the end of the bounds, or until a limit of the run is reached.
        Raise `StreamEndedEarly` if the log ends earlier. Raise `LogStops`, with the
        places before and after the transaction in question, if the log cannot be read
        further."""
        try:
            self._read()
        except LogStops as error:
            raise self._add_places(error) from error

    def _add_places(self, error: StoppingError) -> StoppingError:
        """Return the error with the places before and after the transaction that it is
        about."""
        last_end = self._group_begin or self.buffer.complete_end
        if not error.transaction_end and last_end > self._run_start.start.at:
            error.transaction_end = str(last_end)
        return with_command_to_continue(error, self._ports, self._run_start.facts.head)

    def _read(self) -> None:
        if self._bounds.is_reached(self._run_start.start.at):
            self._taker.reach(None)
            return
        buffer = self.buffer
        try:
            for received in self._dump:
                buffer.put(received)
                self._take_groups()
                if buffer.has_stopped or buffer.has_ended:
                    break
                if self.reached_limit is not None:
                    buffer.stop()
        finally:
            self._dump.close()
        buffer.end()
        self._take_groups()
        self._taker.reach(None)
        if self.reached_limit is None:
            self._bounds.require_reached(buffer.at)

    def _limits(self) -> Limits:
        """Return the limits of the buffer. If the log begins with transactions that an
        earlier run already read, the run must not end among them, so `_read` checks the
        budget and the buffer gets none."""
        if self._run_start.known_until is not None:
            return Limits(self._bounds.end)
        budget = self._bounds.budget
        return Limits(self._bounds.end, budget.max_transactions, budget.max_bytes)

    def _take_groups(self) -> None:
        while (group := self.buffer.get()) is not None:
            dialect = dialect_of_writer(self._run_start.facts, self.buffer.description)
            self._group_begin = group.begin(0)
            self._take_group(group, all_statements(group, dialect))
            self._group_begin = None
            self.buffer.ack()

    def _is_needed(self, table: TableName) -> bool:
        """Return whether the table's events are read: they are taken, or cascades of a
        foreign key of which the table is the parent may change rows that are taken."""
        watch = self._taker.watch
        return self._taker.is_wanted(table) or (watch is not None and watch.watches(table))

    def _may_be_merge_table(self, table: TableName) -> bool:
        """Return whether rows that are logged under this name may be stored in captured
        tables: it is a MERGE table, or its structure is not known and some captured
        table has an engine whose tables can be part of a MERGE table."""
        version = self._structures.version(table)
        if version is not None and version.schema is not None:
            return is_merge(version.schema.engine)
        return self._captures_merge_parts

    @cached_property
    def _captures_merge_parts(self) -> bool:
        matches, engines = self._ports.source.patterns.matches, self._ports.server.engines()
        return any(can_be_merged(engine) and matches(table) for table, engine in engines.items())

    def _stop_merge_parts(self, group: TransactionGroup) -> None:
        """Stop the captured tables that may store rows which MySQL logged under the
        name of a MERGE table."""
        for transaction, rows in group.merge_table_rows:
            for table in sorted(rows.underlying_tables):
                version = self._structures.version(table)
                schema = None if version is None else version.schema
                is_merge_part = schema is None or can_be_merged(schema.engine)
                if is_merge_part and self._taker.is_wanted(table):
                    reason = f"rows that may be stored in it were logged under {rows.table} (MERGE)"
                    error = TableError(reason, hint=resume_hint(table))
                    self._taker.note_unlogged_change(table, group.begin(transaction), error)

    def _take_group(self, group: TransactionGroup, statements: Sequence[LoggedStatement]) -> None:
        """Hand a group to the taker, first its statements and then its rows, and count
        it."""
        for statement in statements:
            self._taker.reach(statement.begin)
            if statement.replaces_rows:
                self._apply_verdict(self.row_statements.judge_row_statement(statement), statement)
            else:
                self._follow(statement)
        self._stop_merge_parts(group)
        self._taker.reach(group.end(-1))
        # These tables are stopped before `put`, so that they get no rows of this
        # transaction.
        committed_rows = self.buffer.prepared.take_committed()
        if committed_rows is not None:
            for table in self._tables_changed_while_prepared(committed_rows):
                if self._taker.is_wanted(table):
                    reason = _CHANGED_WHILE_PREPARED_REASON
                    self._taker.note_lost_rows(table, group.begin(0), reason)
        self._taker.put(group)
        if self._tables.change_count and self._starts_spark:
            self._starts_spark = False
            self._ports.mirrors.prepare(self._total_bytes)
        self._newest_commit.add(group.transactions)
        self._note_gtids(group)
        self.transaction_count += len(group.transactions)
        sizes = group.transactions[:, columns.LOG_BYTES]
        self.log_bytes += int(sizes.sum())
        self.largest_transaction = max(self.largest_transaction, int(sizes.max()))
        self._report_progress()

    def _follow(self, statement: LoggedStatement) -> None:
        """Apply a statement that may change structures."""
        self._apply_verdict(self.row_statements.judge_create_select(statement), statement)
        statement = with_existing_view(
            statement, self._structures.server_schema, self._ports.server
        )
        followed = self._structures.follow(statement)
        not_understood = followed.not_understood
        if not_understood is not None and not_understood.possible_tables is None:
            error = _not_understood_error(statement, not_understood.reason, self._ports)
            self._on_unfollowed(self._add_places(error))
        self._taker.apply_statement(statement, followed)
        if self._taker.watch is not None and self._taker.watch.refresh():
            self.buffer.maps.update_captured()

    def _report_progress(self) -> None:
        if monotonic() - self._reported_at < _PROGRESS_SECONDS:
            return
        self._reported_at = monotonic()
        progress = capture_progress(
            transactions=self.transaction_count,
            rows=self._taker.row_count,
            log_bytes=self.log_bytes,
            total_bytes=self._total_bytes,
        )
        self._ports.progress.tell(progress)

    def _apply_verdict(self, verdict: Verdict, statement: LoggedStatement) -> None:
        """Stop the tables that may have been changed by a statement whose rows were not
        logged. If these tables cannot be determined, call `on_unfollowed`."""
        match verdict:
            case Undetermined():
                self._on_unfollowed(self._add_places(undetermined_error(statement, verdict)))
            case ReachedTables(tables):
                beginning = first_words(statement.text, _QUOTED_WORDS)
                for table, reason in sorted(tables.items()):
                    if not self._taker.is_wanted(table):
                        continue
                    error = TableError(
                        f"a statement was logged instead of its rows, {beginning}, and may have "
                        f"changed it ({reason})",
                        hint=f"{resume_hint(table)}; and let the statement's session log rows "
                        "(binlog_format=ROW)",
                    )
                    self._taker.note_unlogged_change(table, statement.begin, error)

    def _tables_changed_while_prepared(self, committed: CommittedRows) -> Iterable[TableName]:
        """Return the tables that a statement changed while an XA transaction with rows
        of them was prepared, with every name that they got by renames.

        MySQL 5.7 unlocks the tables when the session that prepared the transaction
        ends; other servers unlock them when it is committed or rolled back. An unlocked
        table may be truncated or dropped, which removes the transaction's rows, or
        renamed, which moves them. The log does not say into which table the commit puts
        which rows.
        """
        place, batch = committed.prepared, committed.batch
        new_statements = self._structures.history.statements
        if batch is None:  # It was prepared in this batch.
            statements = [statement for statement in new_statements if statement.begin >= place]
        else:
            earlier_statements = (
                statement
                for statement in self._recorded_statements
                if statement.batch > batch
                or (statement.batch == batch and statement.begin >= place)
            )
            statements = [*earlier_statements, *new_statements]
        return sorted(tables_changed_by(committed.tables, statements, self._structures.fold_case))

    @cached_property
    def _recorded_statements(self) -> Sequence[SchemaStatement]:
        """The statements of earlier batches."""
        return tuple(recorded_statements(self._ports.ledger, self._ports.source.name))

    def _note_gtids(self, group: TransactionGroup) -> None:
        self._gtid_collector.add(group.transactions, group.gtid_sources)
        self.last_transactions.add(group.transactions, group.gtid_sources, group.files)
        anonymous_count = int((group.transactions[:, columns.GTID_KIND] == ANONYMOUS).sum())
        self._anonymous_count += anonymous_count
        if anonymous_count and self._run_start.leave_out:
            raise TransactionsWithoutGtid(
                f"the log between {self._run_start.start} and {self.buffer.at} holds "
                f"{pluralize(anonymous_count, 'transaction')} without a GTID, "
                "so it is not known whether they were read before",
                hint="choose the place to continue at: "
                f"{start_at('PLACE', self._ports.source.name)}",
            )


def _not_understood_error(
    statement: LoggedStatement, reason: str, ports: RunPorts
) -> UnsupportedStatement:
    return UnsupportedStatement(
        f"the log has a statement that is not understood, at {statement.begin}: {reason}; "
        "it may change any table",
        hint="it was not recorded. If it changes no captured table, go on after it: "
        f"{start_at(statement.end, ports.source.name)}; and report the statement to us",
    )


class RowStatements:
    """Judges the statements that are logged instead of the rows they changed.
    `passed_counts`: how many of them changed no captured table, by the names of the
    tables that they changed.

    A verdict depends only on the tables and functions that the statement names and on
    the structures. It is cached until a structure changes, because such statements
    repeat (a heartbeat, for example)."""

    def __init__(self, structures: SchemaTracker, source: SourcePlan) -> None:
        self._structures = structures
        self._source = source
        self._schema: ServerSchema | None = None
        self._verdicts: dict[TableAccess, Verdict] = {}
        self.passed_counts: Counter[str] = Counter()

    def judge_row_statement(self, statement: LoggedStatement) -> Verdict:
        """Return the captured tables that may have been changed by a statement that is
        logged instead of rows; `Undetermined` if that cannot be known."""
        change = read_row_change(statement.text, statement.context)
        verdict = self._find_reached_tables(change)
        if verdict == ReachedTables({}):
            is_by_setting = any(
                self._source.allowed_statements.matches(table) for table, _ in change.writes
            )
            names = ", ".join(str(table) for table, _ in change.writes) or "no table"
            self.passed_counts[f"{names} (passed_statements)" if is_by_setting else names] += 1
        return verdict

    def judge_create_select(self, statement: LoggedStatement) -> Verdict:
        """Return the captured tables that may have been changed by functions in the
        query of a CREATE TABLE … SELECT. The log has the query only if the session logs
        statements."""
        change = read_create_select(statement.text, statement.context)
        return ReachedTables({}) if change is None else self._find_reached_tables(change)

    def _find_reached_tables(self, change: TableAccess) -> Verdict:
        schema = self._structures.server_schema()
        if schema is not self._schema:
            self._schema, self._verdicts = schema, {}
        if change not in self._verdicts:
            self._verdicts[change] = reached_tables(
                change,
                schema,
                self._source.patterns.matches,
                self._source.allowed_statements.matches,
            )
        return self._verdicts[change]

    def passed_sentences(self) -> Iterator[str]:
        """Yield a sentence for the run's report about each kind of statement in
        `passed_counts`."""
        for names, count in sorted(self.passed_counts.items()):
            statements = "1 statement was" if count == 1 else f"{count:,} statements were"
            yield (
                f"{statements} logged instead of rows and passed, because only tables that "
                f"are not captured are changed: {names}"
            )


def undetermined_error(
    statement: LoggedStatement, undetermined: Undetermined
) -> UnsupportedStatement:
    """Return the error for a statement that may change any table."""
    hint = "it was not recorded; let the statement's session log rows (binlog_format=ROW)"
    if undetermined.target is not None and undetermined.target.database:
        hint += (
            ". If such statements change no captured table, pass them for good: "
            f'`passed_statements = ["{undetermined.target}"]`'
        )
    return UnsupportedStatement(
        f"a transaction has a statement instead of rows, at {statement.begin}, and it is not known "
        f"which tables it changes: {first_words(statement.text, _QUOTED_WORDS)}: "
        f"{undetermined.reason}",
        hint=hint,
        event_place=str(statement.begin),
    )


def tables_changed_by(
    tables: Collection[TableName],
    statements: Iterable[SchemaStatement],
    fold_case: Callable[[TableName], TableName],
) -> set[TableName]:
    """Return those of the tables that the statements changed, with every name that they
    got by renames. `fold_case`: returns a name as the server compares names (in lower
    case, if it ignores case)."""
    names, changed_tables = {fold_case(table) for table in tables}, set[TableName]()
    for statement in statements:
        touched_names = {fold_case(table) for table in _touched_tables(statement, sorted(names))}
        if not names.isdisjoint(touched_names):
            names |= touched_names
            changed_tables |= touched_names
    return changed_tables


def _touched_tables(statement: SchemaStatement, tables: list[TableName]) -> set[TableName]:
    logged = logged_statement(statement)
    changes = read_change(logged.text, logged.context)
    if isinstance(changes, Irrelevant):
        return set()
    if isinstance(changes, NotUnderstood):
        return set(tables if changes.possible_tables is None else changes.possible_tables)
    emptied_tables = {change.table for change in changes if isinstance(change, TruncateTable)}
    other_changes = [change for change in changes if not _creates(change)]
    return emptied_tables | restructured_tables(other_changes, tables).keys()


def _creates(change: SchemaChange) -> bool:
    """Return whether the change is a CREATE without OR REPLACE. It touches no existing
    rows: either no table had this name, or the statement has IF NOT EXISTS and did
    nothing."""
    if isinstance(change, CreateTable | CreateLike | CreateSelect):
        return not change.or_replace
    return False


def require_prepared_after_start(run_start: RunStart, reading: LogReading) -> None:
    """Raise `PreparedBeforeStart` if the XA PREPARE of an open XA transaction lies
    before the start. Its rows are logged there, so this run would read its commit
    without them."""
    unread_xids = run_start.prepared_xids - reading.buffer.prepared.prepared_xids
    if unread_xids:
        xid = min(unread_xids, key=str)
        raise PreparedBeforeStart(
            f"the XA transaction {xid} was prepared before the start {run_start.start}: its rows "
            "would be missing once it is committed",
            hint="wait until it is committed or rolled back (`xa recover` lists it), then run "
            "again; or start before its prepare",
        )


def require_complete(
    ports: RunPorts, run_start: RunStart, bounds: RunBounds, read_gtids: GtidSet
) -> None:
    """Raise `TransactionsMissing` if a transaction that the server had executed before
    the end was neither read nor purged. `read_gtids`: the GTIDs that were read up to
    the end."""
    if not bounds.missing_gtids(read_gtids, GtidSet.parse(run_start.facts.gtid_purged)):
        return
    # The server may have purged more since its facts were read.
    gtid_purged = GtidSet.parse(ports.server.facts().gtid_purged)
    missing_gtids = bounds.missing_gtids(read_gtids, gtid_purged)
    if missing_gtids:
        raise TransactionsMissing(
            f"the server had executed {missing_gtids} when the run began, but its log up to "
            f"{bounds.end} does not have them",
            hint="the log is incomplete (restored backup, log filters, RESET?); nothing was "
            "recorded. Compare SHOW BINARY LOGS with the server's history",
        )
