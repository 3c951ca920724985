"""Reading the log from a start to an end: transactions to their taker, the position kept.

Most servers keep a prepared transaction's tables locked until it ends. MySQL 5.7 lets go of them
with the session that prepared it: then a table may be truncated or dropped, so that the rows are
gone, or renamed, so that they are another name's. The server alone knows what its commit brings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from time import monotonic
from typing import Final, Protocol

from pipeline.binlog.search.log_scan import log_between
from pipeline.binlog.search.set_witness import LastOfSources
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.commit_times import NewestCommit
from pipeline.binlog.stream.ring import ANONYMOUS, TransactionGroup
from pipeline.binlog.transactions.buffer import TransactionBuffer
from pipeline.binlog.transactions.identity import GtidsRead, together
from pipeline.binlog.transactions.log_place import Limits
from pipeline.binlog.transactions.xa import CommittedRows
from pipeline.bounds import RunBounds
from pipeline.engines import is_merge, is_part
from pipeline.errors import (
    DamagedEvent,
    LogStops,
    PreparedBeforeStart,
    TableError,
    TransactionsMissing,
    TransactionsWithoutGtid,
    UnsupportedStatement,
    named,
)
from pipeline.gtid import GtidSet
from pipeline.position import Coordinates, Position, Witness
from pipeline.runs.begin import RunStart
from pipeline.runs.capturing.basis import Basis
from pipeline.runs.capturing.initial_schemas import Stopped, with_way_on
from pipeline.runs.capturing.logged_statements import (
    all_statements,
    facts_of_writer,
    recorded_statements,
    with_views,
)
from pipeline.runs.context import Workplace, captured_until_now
from pipeline.runs.cures import resume_hint
from pipeline.schema.history import SchemaStatement
from pipeline.schema.logged import FollowedStatement, LoggedStatement
from pipeline.schema.model import RowCode, ServerSchema
from pipeline.schema.reach import Reaches, Unknown, Verdict, reached
from pipeline.schema.refold import logged_statement
from pipeline.schema.statements.changes import (
    CreateLike,
    CreateSelect,
    CreateTable,
    Irrelevant,
    NotUnderstood,
    SchemaChange,
    TruncateTable,
    touched_by,
)
from pipeline.schema.statements.read import read_change
from pipeline.schema.statements.row_changes import read_created, read_row_change
from pipeline.schema.tracker import SchemaTracker
from pipeline.shown import first_words
from pipeline.source_plan import SourcePlan
from pipeline.table import TableName

_MOVED: Final = (
    "a statement changed it while an XA transaction with rows of it was prepared, and the server "
    "alone knows what became of these"
)
_TELL_SECONDS = 0.3
"""How often progress is told at the most."""


class Taker(Protocol):
    """Who takes what is read: a segmenter, or a tally."""

    @property
    def changes(self) -> int: ...

    @property
    def rows(self) -> int: ...

    def follow(self, buffer: TransactionBuffer) -> None: ...

    def wanted(self, table: TableName) -> bool: ...

    def watches(self, table: TableName) -> bool:
        """Whether its events are wanted, captured or not: rows of others may go with its."""

    def reach(self, at: Coordinates | None) -> None: ...

    def changed(self, logged: LoggedStatement, followed: FollowedStatement) -> None: ...

    def reached(self, table: TableName, at: Coordinates, error: TableError) -> None:
        """A statement may have changed the table whose rows are not in the log: it goes no further
        than `at`, unless it is read from the source behind that."""

    def lose(self, table: TableName, at: Coordinates, reason: str) -> None:
        """The source alone knows the table's rows behind the transaction that begins there."""

    def put(self, group: TransactionGroup) -> None: ...


def refuse(error: UnsupportedStatement) -> None:
    """A statement in the log ends the run."""
    raise error


class LogReading:
    """The loop over the dump: where it stands, and what it hands to the taker. `stops` is
    told of a statement that a run does not go past; `keeps`: whether the rows of prepared XA
    transactions are kept whatever their table, since a later run may want other tables; `warms`:
    whether Spark is started with the first change."""

    def __init__(
        self,
        basis: Basis,
        taker: Taker,
        *,
        stops: Callable[[UnsupportedStatement], None] = refuse,
        keeps: bool = False,
        warms: bool = True,
    ) -> None:
        self._work = work = basis.work
        self._begun = run_start = basis.run_start
        self._bounds = bounds = basis.bounds
        self._structures = basis.structures
        self._taker = taker
        self._stops = stops
        self._taken: Coordinates | None = None
        """Where the group begins that is being taken."""
        self._gtids = GtidsRead()
        self.last_of_sources = LastOfSources()
        self._anonymous = 0
        self._newest = NewestCommit(run_start.facts.read_at)
        self._clock = self._told = monotonic()
        self._spark_wanted = warms
        self._total = log_between(run_start.start.at, bounds.end, run_start.facts.binlogs)
        self._dump = work.server.dump(run_start.start.at)
        self.buffer = TransactionBuffer(
            run_start.start.at,
            begins=self._dump.begins,
            wants=self._wants,
            spool=work.spool,
            source=work.source.name,
            prepared=basis.prepared,
            created=run_start.witness.file_created if run_start.witness else 0,
            limits=self._limits(),
            leave_out=run_start.leave_out,
            keeps=keeps,
            elsewhere=self._elsewhere,
        )
        taker.follow(self.buffer)
        self.row_statements = RowStatements(self._structures, work.source)
        self.transactions = 0
        self.log_bytes = 0
        self.largest = 0
        """Bytes of the log that the largest transaction takes."""

    @property
    def end(self) -> Position:
        start = self._begun.start
        return Position(
            at=self.buffer.at,
            gtid_set=together(start.gtid_set, self._gtids.set()),
            server_uuid=start.server_uuid,
            committed_at=self._newest.time or start.committed_at,
        )

    @property
    def by_gtid(self) -> bool:
        """Whether `end` may be resumed by its GTID set."""
        return self._begun.by_gtid and not self._anonymous

    @property
    def witness(self) -> Witness:
        witness = self.buffer.witness or self._begun.witness
        if witness is None:
            raise DamagedEvent(f"no event stands before {self.end}", hint="report this log to us")
        return witness

    @property
    def spent(self) -> str | None:
        """What ended the run before its bounds' end, a budget mostly; None if nothing did."""
        if self._bounds.reached(self.buffer.at) or self._is_among_known(self.buffer.at):
            return None
        return self._bounds.spent(
            transactions=self.transactions,
            log_bytes=self.log_bytes,
            seconds=monotonic() - self._clock,
        )

    def run(self) -> None:
        """Read up to the end, or until a budget is spent; `StreamEndedEarly`, and `LogStops`
        with the places before and behind what stopped it."""
        try:
            self._read()
        except LogStops as error:
            raise self._whole(error) from error

    def _whole(self, error: Stopped) -> Stopped:
        """The same error, with the places before and behind what it is about."""
        before = self._taken or self.buffer.complete
        if not error.before and before > self._begun.start.at:
            error.before = str(before)
        error = with_way_on(error, self._work.server, self._begun.facts.head)
        return named(error, self._work.source.name)

    def _read(self) -> None:
        if self._bounds.reached(self._begun.start.at):
            self._taker.reach(None)
            return
        buffer = self.buffer
        try:
            for received in self._dump:
                buffer.put(received)
                self._take_runs()
                if buffer.stopped or buffer.ended:
                    break
                if self.spent is not None:
                    buffer.stop()
        finally:
            self._dump.close()
        buffer.end()
        self._take_runs()
        self._taker.reach(None)
        if self.spent is None:
            self._bounds.require_reached(buffer.at)

    def _limits(self) -> Limits:
        """Those that hold from the start on; where known transactions come first, a budget
        is asked for between two pieces of the dump."""
        budget = self._bounds.budget
        if self._begun.known_until is not None:
            return Limits(self._bounds.end)
        return Limits(self._bounds.end, budget.max_transactions, budget.max_bytes)

    def _take_runs(self) -> None:
        while (run := self.buffer.get()) is not None:
            facts = facts_of_writer(self._begun.facts, self.buffer.description)
            statements = all_statements(run, facts)
            self._taken = run.begin(0)
            self._take(run, statements)
            self._taken = None
            self.buffer.ack()

    def _is_among_known(self, at: Coordinates) -> bool:
        """Whether transactions after a place were read before: no run ends there."""
        known = self._begun.known_until
        return known is not None and at < known

    def _wants(self, table: TableName) -> bool:
        taken = self._work.source.patterns.matches(table) and self._taker.wanted(table)
        return taken or self._taker.watches(table)

    def _elsewhere(self, table: TableName) -> bool:
        """Whether rows of a table may be rows of captured ones: of a MERGE table, or where captured
        tables are such as have one, of one that the history does not know."""
        version = self._structures.version(table)
        if version is not None and version.schema is not None:
            return is_merge(version.schema.engine)
        return self._parts_captured

    @cached_property
    def _parts_captured(self) -> bool:
        matches, engines = self._work.source.patterns.matches, self._work.server.engines()
        return any(is_part(engine) and matches(table) for table, engine in engines.items())

    def _lose_parts(self, group: TransactionGroup) -> None:
        """Captured tables may have got rows that the log has under a MERGE table's name alone."""
        for number, rows in group.elsewhere:
            for table in sorted(rows.others):
                version = self._structures.version(table)
                schema = None if version is None else version.schema
                part = schema is None or is_part(schema.engine)
                if part and self._work.source.patterns.matches(table) and self._taker.wanted(table):
                    why = f"rows were logged under {rows.table} that may be its own (MERGE)"
                    error = TableError(why, hint=resume_hint(table))
                    self._taker.reached(table, group.begin(number), error)

    def _take(self, group: TransactionGroup, statements: Sequence[LoggedStatement]) -> None:
        for statement in statements:
            self._taker.reach(statement.begin)
            if statement.for_rows:
                self._take_verdict(self.row_statements.judge(statement), statement)
                continue
            self._take_verdict(self.row_statements.judge_created(statement), statement)
            logged = with_views(statement, self._structures.whole, self._work.server)
            followed = self._structures.take(logged)
            why = followed.not_understood
            if why is not None and why.may_touch is None:
                self._stops(self._whole(_not_understood(logged, why.reason)))
            self._taker.changed(logged, followed)
        self._lose_parts(group)
        self._taker.reach(group.end(-1))
        committed = self.buffer.prepared.take_committed()
        for table in () if committed is None else self._moved(committed):
            self._taker.lose(table, group.begin(0), _MOVED)
        self._taker.put(group)
        if self._taker.changes and self._spark_wanted:
            self._spark_wanted = False
            self._work.mirrors.prepare(self._total)
        self._newest.put(group.transactions)
        self._note_gtids(group)
        self.transactions += len(group.transactions)
        sizes = group.transactions[:, columns.LOG_BYTES]
        self.log_bytes += int(sizes.sum())
        self.largest = max(self.largest, int(sizes.max()))
        if monotonic() - self._told < _TELL_SECONDS:
            return
        self._told = monotonic()
        so_far = captured_until_now(
            transactions=self.transactions,
            rows=self._taker.rows,
            log_bytes=self.log_bytes,
            total_bytes=self._total,
        )
        self._work.progress.tell(so_far)

    def _take_verdict(self, verdict: Verdict, logged: LoggedStatement) -> None:
        """What a statement reaches whose rows are not in the log."""
        match verdict:
            case Unknown():
                self._stops(self._whole(cannot_be_told(logged, verdict)))
            case Reaches(tables):
                for table, why in sorted(tables.items()):
                    if self._taker.wanted(table):
                        error = TableError(why_reached(why, logged), hint=reached_hint(table))
                        self._taker.reached(table, logged.begin, error)

    def _moved(self, committed: CommittedRows) -> Iterable[TableName]:
        """Tables that a statement changed since the transaction was prepared."""
        place, batch = committed.prepared, committed.batch
        since = list(self._structures.history.statements)
        if batch is None:
            since = [one for one in since if one.begin >= place]
        else:
            earlier = ((one.batch, one.begin, one) for one in self._recorded)
            since = [
                *(one for of, at, one in earlier if of > batch or (of == batch and at >= place)),
                *since,
            ]
        return sorted(moved(committed.tables, since, self._structures.fold))

    @cached_property
    def _recorded(self) -> Sequence[SchemaStatement]:
        """The statements of earlier batches."""
        return tuple(recorded_statements(self._work.ledger, self._work.source.name))

    def _note_gtids(self, group: TransactionGroup) -> None:
        self._gtids.add(group.transactions, group.sources)
        self.last_of_sources.add(group.transactions, group.sources, group.files)
        anonymous = int((group.transactions[:, columns.GTID_KIND] == ANONYMOUS).sum())
        self._anonymous += anonymous
        if anonymous and self._begun.leave_out:
            raise TransactionsWithoutGtid(
                f"the log between {self._begun.start} and {self.buffer.at} holds {anonymous} "
                "transactions without a GTID: it cannot be told whether they were read before",
                hint="choose the place to go on at: `lockstep start-at PLACE --reason …`",
            )


def _not_understood(logged: LoggedStatement, reason: str) -> UnsupportedStatement:
    return UnsupportedStatement(
        f"the log holds a statement that is not understood, at {logged.begin}: {reason}; "
        "it may change any table",
        hint="it was not recorded. If it changes no captured table, go on after it: `lockstep "
        f"start-at {logged.end} --reason …`; and report the statement to us",
    )


_WORDS = 5


class RowStatements:
    """Statements of one reading that stand in the log instead of the rows they changed; `passed`:
    how many changed each table and no captured one.

    A verdict depends on the statement's names and on the history alone: a heartbeat's is found
    once, until a structure changes."""

    def __init__(self, structures: SchemaTracker, source: SourcePlan) -> None:
        self._structures = structures
        self._source = source
        self._schema: ServerSchema | None = None
        self._verdicts: dict[RowCode, Verdict] = {}
        self.passed: Counter[str] = Counter()

    def judge(self, logged: LoggedStatement) -> Verdict:
        """What a statement does that stands for rows."""
        change = read_row_change(logged.text, logged.context)
        verdict = self._reached(change)
        if verdict == Reaches({}):
            word = any(self._source.passes.matches(table) for table, _ in change.writes)
            names = ", ".join(str(table) for table, _ in change.writes) or "no table"
            self.passed[f"{names} (passed_statements)" if word else names] += 1
        return verdict

    def judge_created(self, logged: LoggedStatement) -> Verdict:
        """What the query of a CREATE TABLE … SELECT does beside making the table, where the log has
        it: a session in statement format has no rows of what its functions changed."""
        change = read_created(logged.text, logged.context)
        return Reaches({}) if change is None else self._reached(change)

    def _reached(self, change: RowCode) -> Verdict:
        schema = self._structures.whole()
        if schema is not self._schema:
            self._schema, self._verdicts = schema, {}
        if change not in self._verdicts:
            captured, trusted = self._source.patterns.matches, self._source.passes.matches
            self._verdicts[change] = reached(change, schema, captured, trusted)
        return self._verdicts[change]

    def lines(self) -> Iterator[str]:
        """What was passed, for a person."""
        for names, count in sorted(self.passed.items()):
            many = "1 statement was" if count == 1 else f"{count:,} statements were"
            yield (
                f"{many} logged instead of rows and passed: {names} "
                "is all they change, and is not captured"
            )


def why_reached(why: str, logged: LoggedStatement) -> str:
    """Why a captured table is quarantined that a statement reaches."""
    return (
        f"a statement was logged instead of its rows, {first_words(logged.text, _WORDS)}, and "
        f"may have changed it ({why})"
    )


def reached_hint(table: TableName) -> str:
    return f"{resume_hint(table)}; and have its session log rows (binlog_format=ROW)"


def cannot_be_told(logged: LoggedStatement, unknown: Unknown) -> UnsupportedStatement:
    """The error for a statement that may change any table."""
    hint = (
        "it was not recorded; have its session log rows (binlog_format=ROW). If such statements "
        "change no captured table"
    )
    if unknown.target is not None and unknown.target.database:
        hint += f', pass them for good: `passed_statements = ["{unknown.target}"]`'
    return UnsupportedStatement(
        f"a transaction holds a statement instead of rows, at {logged.begin}, and it cannot be "
        f"told which tables it changes: {first_words(logged.text, _WORDS)}: {unknown.reason}",
        hint=hint,
        at=str(logged.begin),
    )


def moved(
    tables: Collection[TableName],
    statements: Iterable[SchemaStatement],
    fold: Callable[[TableName], TableName],
) -> set[TableName]:
    """Those of the tables that the statements changed, and every name that their rows may be under
    since. `fold`: the name as the server compares it."""
    names, found = {fold(table) for table in tables}, set[TableName]()
    for statement in statements:
        touched = {fold(table) for table in _touched(statement, sorted(names))}
        if not names.isdisjoint(touched):
            names |= touched
            found |= touched
    return found


def _touched(statement: SchemaStatement, tables: list[TableName]) -> set[TableName]:
    logged = logged_statement(statement)
    read = read_change(logged.text, logged.context)
    if isinstance(read, Irrelevant):
        return set()
    if isinstance(read, NotUnderstood):
        return set(tables if read.may_touch is None else read.may_touch)
    emptied = {change.table for change in read if isinstance(change, TruncateTable)}
    return emptied | touched_by([one for one in read if not _creates(one)], tables).keys()


def _creates(change: SchemaChange) -> bool:
    """Whether it makes a table where none is: one with rows has gone from there before, or it does
    nothing (IF NOT EXISTS)."""
    if isinstance(change, CreateTable | CreateLike | CreateSelect):
        return not change.or_replace
    return False


def require_followed(run_start: RunStart, reading: LogReading) -> None:
    """What was prepared when a start was chosen is prepared behind it in the log."""
    unseen = run_start.prepared - reading.buffer.prepared.seen
    if unseen:
        first = min(unseen, key=str)
        raise PreparedBeforeStart(
            f"the XA transaction {first} was prepared before the start {run_start.start}: its rows "
            "would be missing once it is committed",
            hint="wait until it is committed or rolled back (`xa recover` lists it), then run "
            "again; or start before its prepare",
        )


def require_whole(work: Workplace, run_start: RunStart, bounds: RunBounds, read: GtidSet) -> None:
    """Every transaction the server had executed by the end was read, or purged."""
    if not bounds.unread(read, GtidSet.parse(run_start.facts.gtid_purged)):
        return
    missing = bounds.unread(read, GtidSet.parse(work.server.facts().gtid_purged))
    if missing:
        raise TransactionsMissing(
            f"the server had executed {missing} when the run began, but its log up to "
            f"{bounds.end} does not hold them",
            hint="the log is not whole (restored backup, log filters, RESET?); nothing was "
            "recorded. Compare SHOW BINARY LOGS with the server's history",
        )
