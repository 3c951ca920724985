"""How a table comes back that was paused or in quarantine: one decision, with its reason.

| the table | how it comes back |
|---|---|
| lacks what only the source has | `READ_AGAIN` |
| stopped where the newest batch ends | `NOTHING` |
| … and lacks new columns of which the log has no values | `BACKFILL` |
| … and is to be reloaded, and its changelog is complete | `REBUILD` |
| … and its mirror refused a write, or values may have changed that no log tells | `READ_AGAIN` |
| the log behind its place is there, in one unbroken chain of batches | a `span` of it, and one of \
the others |
| any other | `READ_AGAIN` |

A table that a run could not follow by the log alone is quarantined there, and read by the next one:
before the end of that run is fixed, so that the log up to the reading's high watermark is part of
it. What the log holds of the table behind the low watermark wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from pipeline.batch import Batch, Cursor, Prepared, Xid
from pipeline.binlog.search.log_scan import log_between
from pipeline.changes.layout import application_id, changelog_path, snapshot_path
from pipeline.changes.lineage import ColumnsRead
from pipeline.changes.merging import SETTLES, FromChangelog, Origin, reload_origin
from pipeline.decisions import Continuity, Lease
from pipeline.errors import BY_ITSELF, Remedy, StructureMoved, TableError
from pipeline.ports.ledger import contents_of
from pipeline.ports.source import ServerFacts
from pipeline.position import Coordinates, Position, Witness
from pipeline.retries import TABLE_READ
from pipeline.row_groups import row_groups
from pipeline.runs.begin import read_witness_of
from pipeline.runs.context import Workplace
from pipeline.runs.cures import Reread, refusal
from pipeline.runs.merging.job import lineage_over, versions_between
from pipeline.runs.mirror_places import meetings, moves, renew, why_elsewhere
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.schema.model import TableSchema
from pipeline.schema.rows import row_structure
from pipeline.start.question import WitnessReading
from pipeline.table import TableName
from pipeline.table_state import OrderKind, Stopped, TableCondition, TableOrder, TableState


@dataclass(frozen=True, slots=True)
class LogSpan:
    """What a table lacks of the log: from `low` on. `batch` read that place, and from
    `start`, its beginning or its end, the log can be read with what `batch` knew there."""

    batch: Batch
    start: Position
    witness: Witness | None
    low: Coordinates


LogReach = LogSpan | str | None
"""What the log brings of a table; None: it has nothing that the table lacks; a sentence: why it
cannot bring it."""


class Besides(Enum):
    """What a table needs besides the log."""

    NOTHING = auto()
    BACKFILL = auto()
    """New columns are read from the source, by key."""
    REBUILD = auto()
    """Its mirror is written anew from its changelog."""
    READ_AGAIN = auto()
    """All of it is read from the source."""


@dataclass(frozen=True, slots=True)
class Rejoin:
    """How a table comes back. `span`: a batch of its own reads the log behind its place."""

    besides: Besides = Besides.NOTHING
    why: str = ""
    span: LogSpan | None = None

    @property
    def reads_source(self) -> bool:
        return self.besides in (Besides.BACKFILL, Besides.READ_AGAIN)


def remedy_of(state: TableState) -> Remedy | None:
    """What a table owes besides the rows that the log has of it; None where that is all."""
    lost = state.mirror_generation > 1 and state.mirror_version is None
    if state.condition is TableCondition.DROPPED or lost:
        return Remedy.RESNAPSHOT
    return None if state.remedy is Remedy.CATCH_UP else state.remedy


def must_be_read(state: TableState) -> bool:
    """Whether a table lacks what only the source has: nobody catches it up by the log."""
    return remedy_of(state) in (Remedy.RESNAPSHOT, Remedy.RELEASED_RESNAPSHOT)


def why_owed(state: TableState) -> str:
    return state.reason or "the next run reads it from the source"


def only_the_source(order: TableOrder, state: TableState, *, goes_on: bool) -> Rejoin | None:
    """What no log has to be asked for. `goes_on`: all but new columns is complete."""
    owes = must_be_read(state)
    if remedy_of(state) is Remedy.BACKFILL:
        owes = order.kind is OrderKind.RELOAD or order.schema is not None or not goes_on
    return Rejoin(Besides.READ_AGAIN, why_owed(state)) if owes else None


def rejoin(order: TableOrder, state: TableState, reach: LogReach, origin: Origin | None) -> Rejoin:
    """How the table comes back that `only_the_source` leaves to the log. `origin`: where the
    rows of a mirror come from that is to be reloaded; None for any other order."""
    if isinstance(reach, str):
        return Rejoin(Besides.READ_AGAIN, reach)
    if isinstance(origin, str):
        why = f"{order.author} has it reloaded, and {origin}"
        return Rejoin(Besides.READ_AGAIN, why)
    if origin is not None:
        return Rejoin(Besides.REBUILD, origin.told, reach)
    remedy = remedy_of(state)
    if state.generation > 1 and state.mirror_version is None:
        return Rejoin(Besides.READ_AGAIN, f"it gets a new mirror: {state.reason}", reach)
    if remedy is Remedy.REWRITE_MIRROR:
        return Rejoin(Besides.READ_AGAIN, f"its mirror refused a write: {state.reason}", reach)
    if remedy is Remedy.BACKFILL:
        return Rejoin(Besides.BACKFILL, why_owed(state), reach)
    return Rejoin(span=reach)


def origin_of(work: Workplace, state: TableState, *, files: bool = True) -> Origin:
    """Where the rows of a mirror come from that is written anew; `files`: whether the
    changelog's are looked at, byte by byte."""
    source, table = work.source.name, state.table
    newest = work.ledger.cursors(source).captured
    gone = work.ledger.forgotten(source, table)
    origin = reload_origin(
        [] if newest is None else contents_of(work.ledger, source, table, 1, newest.batch),
        adopted=state.adopted is not None,
        gaps=[gap.batch for gap in work.ledger.gaps(source)],
        overlaps=[
            batch.id for batch in work.ledger.live_batches(source, continuity=Continuity.OVERLAP)
        ],
        tried=state.behind,
        forgotten=gone.through,
        why="" if gone.newest is None else gone.newest.why,
    )
    if isinstance(origin, str):
        return origin
    why = _not_followed(work, table, origin) or (_damage(work, table, origin) if files else None)
    return origin if why is None else why


def _not_followed(work: Workplace, table: TableName, origin: FromChangelog) -> str | None:
    """Why its rows of then cannot be told in the columns of today."""
    history = work.ledger.schema_versions(work.source.name, table)
    if not history or history[-1].knowledge is not Knowledge.KNOWN:
        return "its present structure is not known"
    try:
        last = history[-1].version
        line = lineage_over(work, versions_between(work, table, origin.version, last))
    except TableError as error:
        return error.reason
    written = {segment.schema_version for part in origin.parts for segment in part.segments}
    if line.reread or line.asked:
        return (*line.reread, f"values of {', '.join(line.asked)} are not in it")[0]
    if line.key_of((written & line.versions.keys()) | {history[-1].version}) is None:
        return "no key tells its rows apart in every version it had"
    return None


def _damage(work: Workplace, table: TableName, origin: FromChangelog) -> str | None:
    wrong: list[str] = []
    for part in origin.parts:
        for segment in part.segments:
            version = work.ledger.schema_version(work.source.name, table, segment.schema_version)
            folder = changelog_path(work.source.name, table, version.generation)
            wrong += work.segments.damaged(folder, segment.files)
    if not wrong:
        return None
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return f"its changelog is damaged: {wrong[0]}{more}"


def goes_on(work: Workplace, state: TableState) -> bool:
    """Whether the mirror's rows are those that the table had: it was written, and nothing
    since settles anew what the table holds."""
    source = work.source.name
    app_id = application_id(source, state, "mirror")
    settled = work.ledger.newest_writes(source, [app_id])[app_id].settled
    cursor = work.ledger.cursors(source).captured
    if settled is None or cursor is None or state.mirror_version is None:
        return False
    return not any(
        event.kind in SETTLES
        for content in work.ledger.contents(
            source, settled.intent.last_batch + 1, cursor.batch, [state.table]
        )
        for event in content.events
    )


def due(work: Workplace, lease: Lease) -> list[TableOrder]:
    """Open orders for tables that still match, those that the last run left among them, and those
    whose mirrors are to lie elsewhere; a run whose end a person fixed leaves those to the next."""
    source = work.source.name
    for state in _left(work, work.ledger.open_orders(source)):
        reason = why_owed(state)
        work.ledger.order_table(
            lease, state.table, OrderKind.RELEASE, author="lockstep", reason=reason
        )
    if work.source.until is None:
        away = moves(work)
        for table, name in away.empty.items():
            renew(work, lease, table, why_elsewhere(name))
        for table, name in away.reloaded.items():
            why = why_elsewhere(name)
            work.ledger.order_table(lease, table, OrderKind.RELOAD, author="lockstep", reason=why)
    return _matching(work, work.ledger.open_orders(source))


def foreseen_orders(work: Workplace) -> list[TableOrder]:
    """What `due` would give, found out without writing anything."""
    source, now = work.source.name, work.clock()
    orders = work.ledger.open_orders(source)
    orders += [
        TableOrder(
            0, state.table, OrderKind.RELEASE, "lockstep", why_owed(state), now, state.stopped
        )
        for state in _left(work, orders)
    ]
    cursor = work.ledger.cursors(source).captured
    if work.source.until is None and cursor is not None:
        here = Stopped(cursor.batch, cursor.position.at)
        orders += [
            TableOrder(0, table, OrderKind.RELOAD, "lockstep", why_elsewhere(name), now, here)
            for table, name in moves(work).reloaded.items()
        ]
    return _matching(work, orders)


def _left(work: Workplace, orders: Sequence[TableOrder]) -> list[TableState]:
    """Tables that a run left for the next one to read, and nobody ordered back yet."""
    ordered = {order.table for order in orders}
    return [
        state
        for table, state in work.ledger.table_states(work.source.name).items()
        if state.condition is TableCondition.QUARANTINED
        and state.remedy in BY_ITSELF
        and table not in ordered
    ]


def _matching(work: Workplace, orders: Sequence[TableOrder]) -> list[TableOrder]:
    """Those that a run can carry out; the others wait for other settings."""
    met = meetings(work, work.ledger.table_states(work.source.name)) if orders else {}
    matches = work.source.patterns.matches
    return [order for order in orders if matches(order.table) and order.table not in met]


def reread_columns(
    work: Workplace, orders: Sequence[TableOrder], batch: int
) -> tuple[list[Reread], dict[TableName, str]]:
    """Read new columns of tables by key; their values are durable in files of the batch. And the
    tables of which all must be read, each with the reason."""
    rereads, whole = list[Reread](), dict[TableName, str]()
    for order in orders:
        reread = _columns_of(work, order, batch)
        if reread is None:
            whole[order.table] = order.reason or order.kind.value
        else:
            rereads.append(reread)
    return rereads, whole


def _columns_of(work: Workplace, order: TableOrder, batch: int) -> Reread | None:
    """None where that is not enough, or the table kept being altered."""
    why = order.reason or order.kind.value
    for _ in TABLE_READ.tries():
        try:
            baseline = work.server.baseline([order.table])
        except StructureMoved:
            continue
        except TableError as error:
            head = work.server.facts().head
            return Reread(order.table, why, None, head, head, error=error)
        found = enough(work, order, baseline.tables[0]) if baseline.tables else None
        if found is None:
            return None
        schema, (version, columns) = baseline.tables[0], found
        read = Reread(
            order.table, why, schema, baseline.low, baseline.high, columns=columns, version=version
        )
        try:
            return _read(work, read, schema, batch)
        except StructureMoved:
            continue
        except TableError as error:
            return replace(read, error=error)
    return None


def _read(work: Workplace, reread: Reread, schema: TableSchema, batch: int) -> Reread:
    if (refused := refusal(schema)) is not None:
        raise refused
    names = ", ".join(reread.columns or ())
    work.progress.note(f"{reread.table} is read from the source, only {names} by key: {reread.why}")
    with work.server.snapshot(schema, reread.columns) as rows:
        writer = work.segments.open(
            snapshot_path(work.source.name, reread.table),
            batch=batch,
            schema_version=0,
            schema=rows.schema,
        )
        try:
            for group in row_groups(rows.batches):
                writer.write(group)
        except (TableError, StructureMoved):
            writer.drop(0)
            raise
        return replace(reread, low=rows.low, high=rows.high, files=writer.close())


MOST = 2
"""All of a table is read where more than one of so many of its columns would be."""


def enough(
    work: Workplace, order: TableOrder, schema: TableSchema
) -> tuple[int, tuple[str, ...]] | None:
    """The columns that the mirror lacks of a table that is built like that now, and the version
    of the log's end; None where all of the table is to be read."""
    state = work.ledger.table_states(work.source.name)[order.table]
    newest = _newest(work, order.table)
    if newest is None or newest.schema is None:
        return None
    if row_structure(newest.schema) != row_structure(schema):
        return None
    structure = newest.shown_structure
    if state.mirror_version is None or not structure.primary_key or not goes_on(work, state):
        return None
    if remedy_of(state) is not Remedy.BACKFILL:
        return None  # it was quarantined once more, for something else
    try:
        versions = versions_between(work, order.table, state.mirror_version, newest.version)
        line = lineage_over(work, versions, read=ColumnsRead(newest.version))
    except TableError:
        return None
    others = len(structure.columns) - len(structure.primary_key)
    if line.reread or not line.asked or line.key_of(line.versions) != structure.primary_key:
        return None
    return None if MOST * len(line.asked) > others else (newest.version, line.asked)


def _newest(work: Workplace, table: TableName) -> SchemaVersion | None:
    """What the history says of the table where the batches end."""
    source = work.source.name
    cursor = work.ledger.cursors(source).captured
    if cursor is None:
        return None
    return work.ledger.schema_at(source, table, batch=cursor.batch, place=cursor.position.at)


@dataclass(frozen=True, slots=True)
class ReturnPlan:
    """How the tables of `orders` come back, and what they catch up to: `cursor`. `first`: where
    the log is read from for all of them, `prepared` the XA transactions that were open there.
    `waits`: tables that stay where they are in this run, and why they are read from the source
    by one without a fixed end."""

    orders: tuple[TableOrder, ...] = ()
    ways: Mapping[TableName, Rejoin] = field(default_factory=dict)
    cursor: Cursor | None = None
    facts: ServerFacts | None = None
    prepared: Mapping[Xid, Prepared] = field(default_factory=dict)
    first: LogSpan | None = None
    waits: Mapping[TableName, str] = field(default_factory=dict)

    @property
    def caught_up(self) -> tuple[TableOrder, ...]:
        return tuple(order for order in self.orders if order.table in self.spans)

    @property
    def spans(self) -> dict[TableName, LogSpan]:
        """What those lack that catch up through the log."""
        return {name: way.span for name, way in self.ways.items() if way.span is not None}

    def wanting(self, besides: Besides) -> dict[TableName, str]:
        """Which tables want that, and why."""
        return {name: way.why for name, way in self.ways.items() if way.besides is besides}

    @property
    def log_bytes(self) -> int:
        if self.first is None or self.cursor is None or self.facts is None:
            return 0
        end = self.cursor.position.at
        return log_between(self.first.start.at, end, self.facts.binlogs)


def returns_of(work: Workplace, orders: Sequence[TableOrder]) -> ReturnPlan:
    """How the tables of these orders come back; writes nothing.

    What is read from the source belongs before an end of the log that nobody knew when the
    run began: a run whose end a person fixed leaves such a table to the next one without.
    """
    plan = _returns_of(work, orders)
    if work.source.until is None:
        return plan
    waits = {table: way.why for table, way in plan.ways.items() if way.reads_source}
    if not waits:
        return plan
    kept = [order for order in orders if order.table not in waits]
    return replace(_returns_of(work, kept), waits=waits)


def _returns_of(work: Workplace, orders: Sequence[TableOrder]) -> ReturnPlan:
    if not orders:
        return ReturnPlan()
    cursor = work.ledger.cursors(work.source.name).captured
    states = work.ledger.table_states(work.source.name)
    facts = work.server.facts()
    ways = {order.table: _way(work, order, states[order.table], cursor, facts) for order in orders}
    spans = [way.span for way in ways.values() if way.span is not None]
    first, prepared = None, dict[Xid, Prepared]()
    if spans and cursor is not None:
        found = _with_prepared(work, min(spans, key=lambda span: span.start.at), cursor)
        if found is not None and facts.lists(found[0].start.at.file):
            first, prepared = found
        else:
            why = "the log with the rows of an XA transaction that it lacks is gone"
            gone = Rejoin(Besides.READ_AGAIN, why)
            ways = {t: way if way.span is None else gone for t, way in ways.items()}
    return ReturnPlan(tuple(orders), ways, cursor, facts, prepared, first)


def _way(
    work: Workplace,
    order: TableOrder,
    state: TableState,
    cursor: Cursor | None,
    facts: ServerFacts,
) -> Rejoin:
    notes = work.ledger.in_clear(work.source.name)
    if any(note.table == state.table and note.stale for note in notes):
        return Rejoin(Besides.READ_AGAIN, "less of it is shown than when it stopped")
    lacks_columns = remedy_of(state) is Remedy.BACKFILL
    told = only_the_source(order, state, goes_on=lacks_columns and goes_on(work, state))
    if told is not None:
        return told
    reach = _reach(work, order, cursor, facts)
    reload = order.kind is OrderKind.RELOAD and not isinstance(reach, str)
    return rejoin(order, state, reach, origin_of(work, state) if reload else None)


def _reach(
    work: Workplace, order: TableOrder, cursor: Cursor | None, facts: ServerFacts
) -> LogReach:
    """What the log has to bring of a table, and can."""
    if order.stopped is None or cursor is None:
        return "nothing says where in the log it stopped"
    low, end = order.stopped.at, cursor.position
    batch = None
    if low.file.base == end.at.file.base:
        batch = work.ledger.captured_batch(work.source.name, server_uuid=end.server_uuid, at=low)
    since = order.stopped.batch if batch is None else min(batch.id, order.stopped.batch)
    chain = work.ledger.live_batches(work.source.name, since + 1, cursor.batch)
    if batch is None or any(one.predecessor is None and not one.catches_up for one in chain):
        return "the source was read from another server or another place since it stopped"
    if low == end.at and order.schema is None:
        return None
    if facts.server_uuid != end.server_uuid:
        return "another server answers than the one that was read when it stopped"
    if batch.end is None or batch.witness is None:
        return "the batch that it stopped in has no end"
    if low == batch.end.at:
        span = LogSpan(batch, batch.end, batch.witness, low)
    else:
        span = LogSpan(batch, batch.start, None, low)
    if not facts.lists(span.start.at.file):
        return f"the log after its place is gone from the server ({span.start.at.file})"
    if any(
        read_witness_of(work, one, facts) is not WitnessReading.SAME
        for one in (cursor, Cursor(batch.id, batch.end, batch.witness))
    ):
        return "the server's log is not the one that was read when it stopped"
    return span


def _with_prepared(
    work: Workplace, span: LogSpan, cursor: Cursor
) -> tuple[LogSpan, dict[Xid, Prepared]] | None:
    """Where the reading begins so that the rows of each XA transaction that ended behind the
    span's place are read too, and those that ended before it and were open there: nobody
    asks for their rows any more. None where that place is in another log."""
    source = work.source.name
    at_end = span.batch.end is not None and span.start.at == span.batch.end.at
    begin = span.batch.id + at_end
    ended = _ended(work, begin, cursor.batch)
    earliest = min((transaction.batch for transaction in ended), default=begin)
    if earliest >= begin:
        return span, {}
    before = work.ledger.live_batches(source, earliest, span.batch.id)
    if any(batch.predecessor is None and not batch.catches_up for batch in before[1:]):
        return None
    first = LogSpan(before[0], before[0].start, None, span.low)
    ended += _ended(work, earliest, begin - 1)
    return first, {
        transaction.xid: replace(transaction, file=None)
        for transaction in ended
        if transaction.batch < earliest
    }


def _ended(work: Workplace, begin: int, end: int) -> list[Prepared]:
    contents = work.ledger.contents(work.source.name, begin, end)
    return [transaction for content in contents for transaction in content.ended]


@dataclass(frozen=True, slots=True)
class TablesResumed:
    """Tables that an ordinary capture takes up again, and how; the log behind their places is
    read already. None: all of it is read, for the reason of the order."""

    orders: tuple[TableOrder, ...] = ()
    ways: Mapping[TableName, Rejoin | None] = field(default_factory=dict)

    @property
    def read(self) -> tuple[TableOrder, ...]:
        """Those that are read from the source, or some columns of them."""
        return tuple(order for order in self.orders if _is_read(self.ways[order.table]))

    def wanting(self, besides: Besides) -> dict[TableName, str]:
        """Which tables want that, and why."""
        ways = sorted(self.ways.items())
        return {name: way.why for name, way in ways if way and way.besides is besides}

    @classmethod
    def of(
        cls, due: Sequence[TableOrder], returns: ReturnPlan, refused: str | None, *, fixed: bool
    ) -> TablesResumed:
        """`due`: orders that are open behind the batch that caught up, or was `refused`. A
        table that it had to leave has a newer order, which says why. `fixed`: the run's end
        is, so that no table is read from the source."""
        ways = {order.table: _way_back(order, returns, refused) for order in due}
        orders = sorted(due, key=lambda order: _is_read(ways[order.table]))
        if fixed:
            orders = [order for order in orders if not _is_read(ways[order.table])]
        return cls(tuple(orders), ways)


def _is_read(way: Rejoin | None) -> bool:
    return way is None or way.reads_source


def _way_back(order: TableOrder, returns: ReturnPlan, refused: str | None) -> Rejoin | None:
    way = returns.ways.get(order.table)
    if way is None:
        return None
    if way.span is not None and refused is not None:
        return Rejoin(Besides.READ_AGAIN, refused)
    end = None if returns.cursor is None else returns.cursor.position.at
    if way.besides is Besides.BACKFILL:
        return way if order.stopped is not None and order.stopped.at == end else None
    return way if way.span is None else None
