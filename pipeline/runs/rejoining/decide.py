"""Which way tables come back that were paused or set aside.

Belongs here: what the log can bring of them, and why it cannot bring the rest. Does not:
reading the log (`catch_up`), reading a table from the source (`resnapshot`).

| the table | how it comes back |
|---|---|
| stopped where the newest batch ends | the run takes it up as it is |
| the log behind its place is there, in one unbroken chain of batches | a batch that catches up |
| … and its mirror refused a write, or values may have changed that no log tells | both |
| … and it is to be reloaded, and its changelog is complete | its mirror is written anew from that |
| any other, or it stops at the same place again | read from the source |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline.batch import Batch, Cursor, Prepared, Xid
from pipeline.binlog.search.log_scan import log_between
from pipeline.changes.reload import FromSource
from pipeline.errors import Remedy
from pipeline.ports.source import ServerFacts
from pipeline.position import Coordinates, Position, Witness
from pipeline.runs.begin import read_witness_of
from pipeline.runs.context import Workplace
from pipeline.runs.rejoining.column_backfill import goes_on
from pipeline.runs.rejoining.reload import origin_of
from pipeline.runs.rejoining.resnapshot import must_be_read, remedy_of, why_owed
from pipeline.start.question import WitnessReading
from pipeline.table import TableName
from pipeline.table_state import OrderKind, TableOrder, TableState


@dataclass(frozen=True, slots=True)
class Span:
    """What a table lacks of the log: from `low` on. `batch` read that place, and from
    `start`, its beginning or its end, the log can be read with what `batch` knew there."""

    batch: Batch
    start: Position
    witness: Witness | None
    low: Coordinates


@dataclass(frozen=True, slots=True)
class Returns:
    """How tables come back. `joins`: as they are; `spans`: through the log, up to `cursor`;
    `rereads`: why the others are read from the source; `both`: why some of `spans` are
    besides; `completed`: why new columns of some of joins and spans are; `rebuilds`: which of
    joins and spans get a new mirror from their changelogs, and since when those count.
    `prepared`: XA transactions that were open where the reading begins. `waits`: tables that
    stay where they are in this run, and why they are read from the source by one without a
    fixed end."""

    orders: tuple[TableOrder, ...] = ()
    joins: frozenset[TableName] = frozenset()
    spans: Mapping[TableName, Span] = field(default_factory=dict)
    rereads: Mapping[TableName, str] = field(default_factory=dict)
    both: Mapping[TableName, str] = field(default_factory=dict)
    completed: Mapping[TableName, str] = field(default_factory=dict)
    rebuilds: Mapping[TableName, str] = field(default_factory=dict)
    cursor: Cursor | None = None
    facts: ServerFacts | None = None
    prepared: Mapping[Xid, Prepared] = field(default_factory=dict)
    first: Span | None = None
    waits: Mapping[TableName, str] = field(default_factory=dict)

    @property
    def caught_up(self) -> tuple[TableOrder, ...]:
        return tuple(order for order in self.orders if order.table in self.spans)

    @property
    def log_bytes(self) -> int:
        """Bytes of log that are read again."""
        if self.first is None or self.cursor is None or self.facts is None:
            return 0
        end = self.cursor.position.at
        return log_between(self.first.start.at, end, self.facts.binlogs)


def returns_of(work: Workplace, orders: Sequence[TableOrder]) -> Returns:
    """How the tables of these orders come back; writes nothing.

    What is read from the source belongs before an end of the log that nobody knew when the
    run began: a run whose end a person fixed leaves such a table to the next one without.
    """
    found = _returns_of(work, orders)
    if work.source.until is None:
        return found
    waits = {**found.rereads, **found.both, **found.completed}
    if not waits:
        return found
    kept = [order for order in orders if order.table not in waits]
    return replace(_returns_of(work, kept), waits=waits)


def _returns_of(work: Workplace, orders: Sequence[TableOrder]) -> Returns:
    if not orders:
        return Returns()
    cursor = work.ledger.captured_cursor(work.source.name)
    states = work.ledger.table_states(work.source.name)
    rereads: dict[TableName, str] = {}
    both: dict[TableName, str] = {}
    joins: set[TableName] = set()
    spans: dict[TableName, Span] = {}
    completed: dict[TableName, str] = {}
    rebuilds: dict[TableName, str] = {}
    facts = work.server.facts()
    for order in orders:
        state = states[order.table]
        refused = _refused_write(state)
        found = _way(work, order, state, cursor, facts)
        if order.kind is OrderKind.RELOAD and not isinstance(found, str):
            origin = origin_of(work, state)
            if isinstance(origin, FromSource):
                found = f"{order.author} has it reloaded, and {origin.why}"
            else:
                rebuilds[order.table], refused = origin.told, None
        if isinstance(found, str):
            rereads[order.table] = found
        elif found is not None:
            spans[order.table] = found
            if refused is not None:
                both[order.table] = refused
        elif refused is not None:
            rereads[order.table] = refused
        else:
            joins.add(order.table)
        if remedy_of(state) is Remedy.BACKFILL and order.table not in rereads:
            completed[order.table] = why_owed(state)
    first, prepared = None, dict[Xid, Prepared]()
    if spans and cursor is not None:
        found_first = _with_prepared(work, min(spans.values(), key=_begins), cursor)
        if found_first is not None and _is_listed(found_first[0].start.at, facts):
            first, prepared = found_first
        else:
            why = "the log with the rows of an XA transaction that it lacks is gone"
            rereads |= dict.fromkeys(spans, why)
            completed = {table: told for table, told in completed.items() if table in joins}
            rebuilds = {table: told for table, told in rebuilds.items() if table in joins}
            spans, both = {}, {}
    return Returns(
        orders=tuple(orders),
        joins=frozenset(joins),
        spans=spans,
        rereads=rereads,
        both=both,
        completed=completed,
        rebuilds=rebuilds,
        cursor=cursor,
        facts=facts,
        prepared=prepared,
        first=first,
    )


def _begins(span: Span) -> Coordinates:
    return span.start.at


def _way(
    work: Workplace,
    order: TableOrder,
    state: TableState,
    cursor: Cursor | None,
    facts: ServerFacts,
) -> Span | str | None:
    """What the log has to bring; None where that is nothing, a sentence where it cannot."""
    remedy, reload = remedy_of(state), order.kind is OrderKind.RELOAD
    if must_be_read(state):
        return why_owed(state)
    if remedy is Remedy.BACKFILL and (
        reload or order.schema is not None or not goes_on(work, state)
    ):
        return why_owed(state)
    if order.stopped is None or cursor is None:
        return "nobody recorded where in the log it stopped"
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
        span = Span(batch, batch.end, batch.witness, low)
    else:
        span = Span(batch, batch.start, None, low)
    if not _is_listed(span.start.at, facts):
        return f"the log behind its place is gone from the server ({span.start.at.file})"
    if any(
        read_witness_of(work, one, facts) is not WitnessReading.SAME
        for one in (cursor, Cursor(batch.id, batch.end, batch.witness))
    ):
        return "the server's log is not the one that was read when it stopped"
    return span


def _is_listed(at: Coordinates, facts: ServerFacts) -> bool:
    return any(log.file == at.file for log in facts.binlogs)


def _refused_write(state: TableState) -> str | None:
    """Why a table's mirror must be written as a whole: a merge set it aside, or it begins
    anew."""
    if state.generation > 1 and state.mirror_version is None:
        return f"its mirror begins anew: {state.reason}"
    if remedy_of(state) is not Remedy.REWRITE_MIRROR:
        return None
    return f"its mirror refused a write: {state.reason}"


def _with_prepared(
    work: Workplace, span: Span, cursor: Cursor
) -> tuple[Span, dict[Xid, Prepared]] | None:
    """Where the reading begins so that the rows of each XA transaction that ended behind the
    span's place are read too, and those that ended before it and were open there: nobody
    asks for their rows any more. None where that place is in another log."""
    source = work.source.name
    at_end = span.batch.end is not None and span.start.at == span.batch.end.at
    begin = span.batch.id + at_end
    ended = _ended(work, begin, cursor.batch)
    earliest = min((one.batch for one in ended), default=begin)
    if earliest >= begin:
        return span, {}
    before = work.ledger.live_batches(source, earliest, span.batch.id)
    if any(one.predecessor is None and not one.catches_up for one in before[1:]):
        return None
    first = Span(before[0], before[0].start, None, span.low)
    ended += _ended(work, earliest, begin - 1)
    return first, {one.xid: replace(one, file=None) for one in ended if one.batch < earliest}


def _ended(work: Workplace, begin: int, end: int) -> list[Prepared]:
    batches = work.ledger.live_batches(work.source.name, begin, end)
    return [one for batch in batches for one in work.ledger.ended_prepared(batch.id)]


@dataclass(frozen=True, slots=True)
class Back:
    """Tables that an ordinary capture takes up again: as they are (`joins`), or read from
    the source, and `why`; `completed`: of these, those that may lack only new columns.
    `rebuilds`: those of `joins` that get a new mirror from their changelogs, and why so."""

    joins: tuple[TableOrder, ...] = ()
    rereads: tuple[TableOrder, ...] = ()
    why: Mapping[TableName, str] = field(default_factory=dict)
    completed: frozenset[TableName] = frozenset()
    rebuilds: Mapping[TableName, str] = field(default_factory=dict)

    @property
    def orders(self) -> tuple[TableOrder, ...]:
        return (*self.joins, *self.rereads)

    @classmethod
    def of(
        cls, due: Sequence[TableOrder], returns: Returns, refused: str | None, *, fixed: bool
    ) -> Back:
        """`due`: orders that are open behind the batch that caught up, or was `refused`. A
        table that it had to leave has a newer order, which says why. `fixed`: the run's end
        is, so that no table is read from the source."""
        why = dict(returns.rereads)
        if refused is not None:
            why |= dict.fromkeys(returns.spans, refused)
        at = None if returns.cursor is None else returns.cursor.position.at
        completed = frozenset(
            order.table
            for order in due
            if order.table in returns.completed
            and order.stopped is not None
            and order.stopped.at == at
        )
        whole = returns.joins - completed
        joins = tuple(order for order in due if order.table in whole)
        rereads = () if fixed else tuple(order for order in due if order not in joins)
        told = {order.table for order in joins} & returns.rebuilds.keys()
        rebuilds = {table: returns.rebuilds[table] for table in sorted(told)}
        return cls(joins, rereads, why, completed, rebuilds)
