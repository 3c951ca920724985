"""The transaction buffer: events in, whole transactions out.

The rules, as prose; `TRANSITIONS` below is the same as a table.

A transaction is announced by a GTID event (real or anonymous). What follows is either
one lone statement (DDL and the like: a QUERY that is not BEGIN), which is a transaction
of its own, or BEGIN … up to XID, COMMIT or ROLLBACK. Table maps and row events occur
inside only. A transaction that ends in ROLLBACK comes out without rows. Everything else
(ROTATE, PREVIOUS_GTIDS, …) stands between transactions and moves the position alone.

Nothing leaves the buffer before its transaction's last event has come in. An event that
no rule allows in the present state is refused, and the buffer is left as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from pipeline.binlog.control import Gtid, Query, read_gtid, read_query
from pipeline.binlog.framing import Event, EventType
from pipeline.errors import DamagedEvent, UnsupportedStatement
from pipeline.position import Coordinates


class Phase(StrEnum):
    BETWEEN = "between transactions"
    ANNOUNCED = "announced by a GTID"
    OPEN = "inside BEGIN"


class Input(StrEnum):
    GTID = "GTID"
    BEGIN = "QUERY BEGIN"
    STATEMENT = "QUERY other"
    CHANGE = "rows, table map, rows query"
    COMMIT = "XID or QUERY COMMIT"
    ROLLBACK = "QUERY ROLLBACK"
    SAVEPOINT = "QUERY SAVEPOINT"
    CREATE_AS_SELECT = "QUERY CREATE … START TRANSACTION"
    PLACE = "ROTATE, FORMAT_DESCRIPTION, PREVIOUS_GTIDS, STOP"
    HEARTBEAT = "HEARTBEAT"


class Action(StrEnum):
    KEEP = "keep the event"
    EMIT = "keep, and let the transaction out"
    EMIT_EMPTY = "drop what was kept, let out an empty transaction"
    MOVE = "move the position"
    IGNORE = "nothing"


_P, _I, _A = Phase, Input, Action

TRANSITIONS: Mapping[tuple[Phase, Input], tuple[Action, Phase]] = MappingProxyType(
    {
        (_P.BETWEEN, _I.GTID): (_A.KEEP, _P.ANNOUNCED),
        (_P.BETWEEN, _I.PLACE): (_A.MOVE, _P.BETWEEN),
        (_P.BETWEEN, _I.HEARTBEAT): (_A.IGNORE, _P.BETWEEN),
        (_P.ANNOUNCED, _I.BEGIN): (_A.KEEP, _P.OPEN),
        (_P.ANNOUNCED, _I.STATEMENT): (_A.EMIT, _P.BETWEEN),
        (_P.ANNOUNCED, _I.HEARTBEAT): (_A.IGNORE, _P.ANNOUNCED),
        (_P.OPEN, _I.CHANGE): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _I.SAVEPOINT): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _I.CREATE_AS_SELECT): (_A.KEEP, _P.OPEN),
        (_P.OPEN, _I.COMMIT): (_A.EMIT, _P.BETWEEN),
        (_P.OPEN, _I.ROLLBACK): (_A.EMIT_EMPTY, _P.BETWEEN),
        (_P.OPEN, _I.HEARTBEAT): (_A.IGNORE, _P.OPEN),
    }
)


@dataclass(frozen=True, slots=True)
class Transaction:
    """One whole transaction. `events` are its row events and table maps in order, empty
    for a statement or a rollback; `statements` are the QUERYs that may change a
    structure. `end` is the place behind its last event, `last` that event."""

    gtid: Gtid
    begin: Coordinates
    end: Coordinates
    events: tuple[Event, ...]
    statements: tuple[Query, ...]
    last: Event
    log_bytes: int

    @property
    def committed_at(self) -> int:
        """Microseconds since the epoch; the last event's second where the log has no
        commit time."""
        return self.gtid.committed_at or self.last.timestamp * 1_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """The position moved without a transaction: behind `event`."""

    event: Event


_PLACES = frozenset(
    {
        EventType.ROTATE,
        EventType.FORMAT_DESCRIPTION,
        EventType.PREVIOUS_GTIDS,
        EventType.STOP,
    }
)
_CHANGES = frozenset(
    {
        EventType.TABLE_MAP,
        EventType.WRITE_ROWS,
        EventType.UPDATE_ROWS,
        EventType.DELETE_ROWS,
        EventType.ROWS_QUERY,
    }
)


class TransactionBuffer:
    """Feed events in log order; answers come one transaction, or place, at a time."""

    def __init__(self) -> None:
        self._phase = Phase.BETWEEN
        self._events: list[Event] = []
        self._statements: list[Query] = []
        self._first: Event | None = None
        self._gtid = Gtid("", None)
        self._bytes = 0

    @property
    def phase(self) -> Phase:
        return self._phase

    def put(self, event: Event) -> Transaction | Place | None:
        """Take the next event; a transaction or place that it completes, else None."""
        kind, query = _classify(event)
        rule = TRANSITIONS.get((self._phase, kind))
        if rule is None:
            raise self._refusal(event, kind, query)
        action, phase = rule
        if kind is Input.GTID:
            self._gtid = read_gtid(event, anonymous=event.type is EventType.ANONYMOUS_GTID)
            self._first = event
        self._phase = phase
        if action is Action.MOVE:
            return Place(event)
        if action is Action.IGNORE:
            return None
        self._keep(event, kind, query)
        if action is Action.KEEP:
            return None
        return self._emit(event, empty=action is Action.EMIT_EMPTY)

    def _keep(self, event: Event, kind: Input, query: Query | None) -> None:
        self._bytes += event.size
        if kind is Input.CHANGE and event.type is not EventType.ROWS_QUERY:
            self._events.append(event)
        elif query is not None and kind in (Input.STATEMENT, Input.CREATE_AS_SELECT):
            self._statements.append(query)

    def _emit(self, last: Event, *, empty: bool) -> Transaction:
        first = self._first or last
        transaction = Transaction(
            gtid=self._gtid,
            begin=Coordinates(first.file, first.offset),
            end=last.after,
            events=() if empty else tuple(self._events),
            statements=tuple(self._statements),
            last=last,
            log_bytes=self._bytes,
        )
        self._events, self._statements = [], []
        self._first, self._bytes = None, 0
        return transaction

    def _refusal(
        self, event: Event, kind: Input, query: Query | None
    ) -> DamagedEvent | UnsupportedStatement:
        where = f"{event.file}:{event.offset}"
        if query is not None and self._phase is Phase.OPEN:
            return UnsupportedStatement(
                f"a transaction holds a statement instead of rows, at {where}: "
                f"{query.text.split(None, 1)[0].upper()} …",
                hint="some session writes with binlog_format=STATEMENT or MIXED, or rolls back "
                "to a savepoint; its rows are not in the log. Nothing was recorded",
            )
        return DamagedEvent(
            f"a {event.type.name} event stands {self._phase}, at {where}",
            hint=f"nothing was recorded ({kind.value} is not expected there); start at the "
            "beginning of a transaction, or look at that place with mysqlbinlog",
        )


def _classify(event: Event) -> tuple[Input, Query | None]:
    if event.type is EventType.QUERY:
        query = read_query(event)
        return _classify_query(query.text), query
    if event.type in (EventType.GTID, EventType.ANONYMOUS_GTID):
        return Input.GTID, None
    if event.type is EventType.XID:
        return Input.COMMIT, None
    if event.type in _CHANGES:
        return Input.CHANGE, None
    if event.type in _PLACES:
        return Input.PLACE, None
    return Input.HEARTBEAT, None


def _classify_query(text: str) -> Input:
    """The server writes these words itself, in this spelling, in row format."""
    words = text[:64].upper().split()
    if words == ["BEGIN"]:
        return Input.BEGIN
    if words == ["COMMIT"]:
        return Input.COMMIT
    if words == ["ROLLBACK"]:
        return Input.ROLLBACK
    if words[:1] == ["SAVEPOINT"]:
        return Input.SAVEPOINT
    if words[:2] == ["CREATE", "TABLE"] and text.rstrip().upper().endswith("START TRANSACTION"):
        return Input.CREATE_AS_SELECT
    return Input.STATEMENT
