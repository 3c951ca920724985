"""The rare events: everything the compiled loop leaves to Python, one at a time.

Belongs here: carrying out what the rules say. Does not: the rules themselves (`rules`), what
an event is to them (`inputs`), events' bodies (`control`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pipeline.binlog.arrays import registers
from pipeline.binlog.stream.control import (
    Query,
    read_rotate,
    read_xa_prepare,
    read_xid,
    savepoint_name,
)
from pipeline.binlog.stream.damage import damaged
from pipeline.binlog.stream.description import Description, read_description
from pipeline.binlog.stream.framing import (
    COMPRESSED_ROWS,
    Event,
    EventType,
)
from pipeline.binlog.stream.intake import Nested
from pipeline.binlog.stream.mariadb import changes_nothing_yet, plain_query, plain_rows
from pipeline.binlog.stream.payload import payload_pieces
from pipeline.binlog.stream.ring import Block
from pipeline.binlog.stream.rules import TRANSITIONS, BufferAction, EventRole, Phase
from pipeline.binlog.transactions.assembly import Assembly
from pipeline.binlog.transactions.identity import read_identity
from pipeline.binlog.transactions.inputs import classify
from pipeline.binlog.transactions.xa import PreparedTransactions
from pipeline.errors import DamagedEvent, UnsupportedStatement
from pipeline.gtid import GtidSet

_OF_PREPARED: Final = frozenset(
    {BufferAction.PREPARE, BufferAction.EMIT_PREPARED, BufferAction.FORGET_PREPARED}
)
_WORD: Final = 20
"""Of a statement that is refused, so much is looked at for its first word."""


class RareEvents:
    """Takes rare events; `nested` is the payload that has to be read next, if any."""

    def __init__(
        self,
        assembly: Assembly,
        prepared: PreparedTransactions,
        *,
        created: int,
        again: GtidSet,
    ) -> None:
        self._assembly = assembly
        self._prepared = prepared
        self._again = again
        self.description: Description | None = None
        self.nested: Nested | None = None
        self.place: Event | None = None
        self.created = created
        self._holder: Event | None = None

    def take(self, event: Event) -> bool:
        """Do what the rules say; False if complete transactions must be handed out first,
        and the event be taken again after that."""
        if event.type is EventType.MARIADB_QUERY_COMPRESSED:
            event = plain_query(event)
        kind, query = classify(event)
        phase = self._assembly.phase
        if self.nested is not None and phase is Phase.BETWEEN:
            raise damaged("a compressed transaction continues after its end", event.at)
        action, following = TRANSITIONS.get((phase, kind), (BufferAction.REFUSE, phase))
        if action is BufferAction.REFUSE:
            raise refused(event, phase, kind, query)
        full = action is BufferAction.BEGIN and self._assembly.full
        if self._assembly.complete and (full or _comes_alone(action, kind)):
            return False
        self._act(action, event, kind, query)
        self._assembly.state[registers.PHASE] = following
        if (following is Phase.XA_OPEN) != (phase is Phase.XA_OPEN):
            self._assembly.maps.prepares(following is Phase.XA_OPEN)
        return True

    def _act(
        self, action: BufferAction, event: Event, kind: EventRole, query: Query | None
    ) -> None:
        """What comes before the step over the event, the step, and what comes after."""
        if action is BufferAction.UNPACK:
            self._enter(event, Nested(payload_pieces(event)))
            return
        if action is BufferAction.KEEP and event.type in COMPRESSED_ROWS:
            self._enter(event, Nested(iter((plain_rows(event),))))
            return
        if action is BufferAction.MOVE:
            self._move(event)
            return
        if action is BufferAction.BEGIN:
            self._begin(event)
        self._assembly.advance()
        if self._again and action in _OF_PREPARED:
            self._prepared.again = self._assembly.open_is_in(self._again)
        if query is not None:
            self._take_statement(action, event, kind, query)
        elif action is BufferAction.PREPARE:
            xid, _ = read_xa_prepare(event)
            self._prepared.keep(xid, event.at, self._assembly.take_open(), self._assembly.maps)
            self._emit(event)
        elif action is BufferAction.EMIT:
            self._emit(event)

    def _take_statement(
        self, action: BufferAction, event: Event, kind: EventRole, query: Query
    ) -> None:
        assembly = self._assembly
        match action:
            case BufferAction.KEEP if kind is EventRole.CREATE:
                assembly.keep(query)
            case BufferAction.MARK:
                assembly.mark(savepoint_name(query.text))
            case BufferAction.DROP_TO_MARK:
                assembly.drop_to(savepoint_name(query.text))
            case BufferAction.EMIT:
                if kind in (EventRole.STATEMENT, EventRole.CREATE) and not self._two_phase(event):
                    assembly.keep(query)
                self._emit(event)
            case BufferAction.EMIT_NOTHING:
                assembly.drop_open()
                self._emit(event)
            case BufferAction.EMIT_PREPARED:
                xid = read_xid(query.text, event.at)
                self._emit(event, self._prepared.commit(xid, event.at, assembly.maps))
            case BufferAction.FORGET_PREPARED:
                self._prepared.forget(read_xid(query.text, event.at))
                self._emit(event)
            case _:
                pass

    def _two_phase(self, event: Event) -> bool:
        """Whether a statement is one that MariaDB announces, or takes back."""
        flavour = self.description.flavour if self.description else ""
        return flavour == "mariadb" and changes_nothing_yet(event)

    def finish(self) -> None:
        """All events of `nested` are read: the event that held them is done with."""
        holder, self._holder, self.nested = self._holder, None, None
        assert holder is not None, "what is nested stands in an event"
        if holder.type is not EventType.TRANSACTION_PAYLOAD:
            self._assembly.leave(holder.size)
            return
        if self._assembly.phase is not Phase.BETWEEN:
            raise damaged("a compressed transaction has no end", holder.at)
        self._assembly.complete_payload(holder.size, holder.crc32)

    def _enter(self, event: Event, nested: Nested) -> None:
        if self.nested is not None:
            raise damaged("a compressed event holds another", event.at)
        self._assembly.enter()
        self.nested, self._holder = nested, event

    def _begin(self, event: Event) -> None:
        self._assembly.begin(read_identity(event, self._assembly.sources), event.server_id)

    def _move(self, event: Event) -> None:
        assembly = self._assembly
        if event.type is EventType.FORMAT_DESCRIPTION:
            self.description = read_description(event)
            assembly.state[registers.CHECKSUM] = self.description.checksum
            assembly.maps.forget_ids()
            if not event.artificial:
                self.created = self.description.created
        self._assembly.advance()
        if event.type is EventType.ROTATE:
            self._rotate(event)
        elif not event.artificial:
            self.place = event

    def _rotate(self, event: Event) -> None:
        assembly = self._assembly
        to = read_rotate(event.body, event.at)
        if event.artificial and to.file == assembly.at.file:
            # Where the dump begins: what was asked for counts, the field may wrap.
            return
        if not event.artificial:
            self.place = event
        assembly.move_to(to)

    def _emit(self, event: Event, blocks: Iterator[Block] | None = None) -> None:
        self._assembly.state[registers.EVENT_CRC] = event.crc32
        size = 0 if self.nested is not None else event.size
        self._assembly.emit(event.timestamp, size, blocks)


def _comes_alone(action: BufferAction, kind: EventRole) -> bool:
    """Statements that may change a structure, and rows that come from a file, are groups of
    their own."""
    statement = action is BufferAction.EMIT and kind in (EventRole.STATEMENT, EventRole.CREATE)
    return statement or action is BufferAction.EMIT_PREPARED


_NO_ROWS: Final = (
    "nothing was recorded; some session writes with binlog_format=STATEMENT or MIXED, and its rows "
    "are not in the log: make it log rows"
)
_DROPPED: Final = (
    "nothing was recorded; MariaDB logs this for a CREATE OR REPLACE TABLE … SELECT that failed "
    "(the table is gone), and any server for a temporary table of a session in statement format"
)


def refused(
    event: Event, phase: Phase, kind: EventRole, query: Query | None
) -> DamagedEvent | UnsupportedStatement:
    """The error for an event that no rule allows in that phase."""
    if query is not None and phase in (Phase.OPEN, Phase.XA_OPEN):
        word = "".join(query.text[:_WORD].upper().split()[:1])
        return UnsupportedStatement(
            f"a transaction holds a statement instead of rows, at {event.at}: {word} …",
            hint=_DROPPED if word == "DROP" else _NO_ROWS,
            at=str(event.at),
        )
    return DamagedEvent(
        f"a {event.type.name} event stands {phase.words}, at {event.at}",
        hint=f"nothing was recorded ({kind.words} is not expected there); start at the "
        "beginning of a transaction, or look at that place with mysqlbinlog",
    )
