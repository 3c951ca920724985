"""Which way tables come back that were paused or quarantined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline.batch import Cursor, Prepared, Xid
from pipeline.binlog.search.log_scan import log_between
from pipeline.errors import Remedy
from pipeline.ports.source import ServerFacts
from pipeline.runs.begin import read_witness_of
from pipeline.runs.context import Workplace
from pipeline.runs.rejoining.rejoin import (
    Besides,
    LogReach,
    LogSpan,
    Rejoin,
    goes_on,
    only_the_source,
    origin_of,
    rejoin,
    remedy_of,
)
from pipeline.start.question import WitnessReading
from pipeline.table import TableName
from pipeline.table_state import OrderKind, TableOrder, TableState


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
        """Bytes of log that are read again."""
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
    cursor = work.ledger.captured_cursor(work.source.name)
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
        batch = work.ledger.batch_covering(work.source.name, end.server_uuid, low)
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
    batches = work.ledger.live_batches(work.source.name, begin, end)
    return [
        transaction for batch in batches for transaction in work.ledger.ended_prepared(batch.id)
    ]


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
