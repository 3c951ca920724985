"""The rare events of the log: the loop that numba compiles hands them to Python one at
a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from lockstep.pipeline.binlog.stream.compressed import (
    decompress_query,
    decompress_rows,
    payload_pieces,
)
from lockstep.pipeline.binlog.stream.control import (
    Query,
    is_uncommitted_alter,
    read_mariadb_gtid,
    read_query,
    read_xa_prepare,
    read_xid,
    savepoint_name,
)
from lockstep.pipeline.binlog.stream.framing import (
    BETWEEN_TRANSACTIONS,
    COMPRESSED_ROWS,
    ROW_EVENTS,
    Event,
    EventType,
    damaged,
)
from lockstep.pipeline.binlog.stream.intake import PayloadInput
from lockstep.pipeline.binlog.stream.ring import Block
from lockstep.pipeline.binlog.stream.rules import TRANSITIONS, BufferAction, EventRole, Phase
from lockstep.pipeline.binlog.transactions.loop import LogPlace, Loop
from lockstep.pipeline.binlog.transactions.ring_transactions import RingTransactions
from lockstep.pipeline.binlog.transactions.spill import PreparedTransactions
from lockstep.pipeline.values.errors import DamagedEvent
from lockstep.pipeline.values.gtid import GtidSet

_XA_ACTIONS: Final = frozenset(
    {BufferAction.PREPARE, BufferAction.EMIT_PREPARED, BufferAction.FORGET_PREPARED}
)
_ROWS: Final = ROW_EVENTS | {EventType.PARTIAL_UPDATE_ROWS}
"""Row events. The compiled loop hands over only those of MERGE tables: the table that
such an event names does not store the rows, which are in other tables."""


class RareEvents:
    """Applies the rules (`stream.rules`) to rare events. `nested`: the events inside a
    compressed event, which the caller reads next, or None. `read_before`: the GTIDs of
    transactions that earlier runs read."""

    def __init__(
        self,
        loop: Loop,
        log: LogPlace,
        transactions: RingTransactions,
        prepared: PreparedTransactions,
        *,
        read_before: GtidSet,
    ) -> None:
        self._loop = loop
        self._log = log
        self._transactions = transactions
        self._prepared = prepared
        self._read_before = read_before
        self.nested: PayloadInput | None = None
        self._outer_event: Event | None = None

    @property
    def is_between(self) -> bool:
        """True if reading is between two transactions, and not inside a compressed
        event."""
        return self.nested is None and self._loop.registers.phase is Phase.BETWEEN

    def handle_event(self, event: Event) -> bool:
        """Apply the rules to an event. Return False if complete transactions have to be
        handed out first; the caller then passes the same event again."""
        if event.type is EventType.MARIADB_QUERY_COMPRESSED:
            event = decompress_query(event)
        role, query = classify(event)
        phase = self._loop.registers.phase
        if self.nested is not None and phase is Phase.BETWEEN:
            raise damaged("a compressed transaction continues after its end", event.at)
        action, next_phase = TRANSITIONS.get((phase, role), (BufferAction.REFUSE, phase))
        if action is BufferAction.REFUSE:
            raise unexpected_event_error(event, phase, role)
        if action is BufferAction.KEEP and event.type in _ROWS:
            return self._note_merge_table(event)
        lacks_room = action is BufferAction.BEGIN and self._transactions.is_full
        if self._transactions.count and (
            lacks_room or _must_begin_group(action, role) or self._log.changes_writer(event)
        ):
            return False
        self._act(action, event, role, query)
        self._loop.registers.phase = next_phase
        if (next_phase is Phase.XA_OPEN) != (phase is Phase.XA_OPEN):
            self._loop.maps.set_preparing(next_phase is Phase.XA_OPEN)
        return True

    def _act(
        self, action: BufferAction, event: Event, role: EventRole, query: Query | None
    ) -> None:
        """Carry out an action and move the position past the event. A transaction
        begins before this move and ends after the move, so that it includes the
        event."""
        if action is BufferAction.UNPACK:
            self._enter(event, PayloadInput(payload_pieces(event)))
            return
        if action is BufferAction.KEEP and event.type in COMPRESSED_ROWS:
            self._enter(event, PayloadInput(iter((decompress_rows(event),))))
            return
        if action is BufferAction.MOVE:
            if event.type is EventType.FORMAT_DESCRIPTION:
                self._loop.maps.begin_file(self._log.describe(event).writer)
            self._loop.step_over(artificial=event.is_artificial)
            self._log.move(event)
            return
        if action is BufferAction.BEGIN:
            self._transactions.begin(event)
        self._loop.step_over(artificial=event.is_artificial)
        if self._read_before and action in _XA_ACTIONS:
            self._prepared.is_recorded_before = self._transactions.is_open_in(self._read_before)
        if query is not None:
            self._take_statement(action, event, role, query)
        elif action is BufferAction.PREPARE:
            xid, _ = read_xa_prepare(event)
            self._prepared.keep(xid, event.at, self._transactions.take_open(), self._loop.maps)
            self._emit(event)
        elif action is BufferAction.EMIT:
            self._emit(event)

    def _note_merge_table(self, event: Event) -> bool:
        """Note that the rows of a MERGE table are stored in other tables. The
        transaction has to be the first of its group, so return False if others have to
        be handed out before it."""
        if self._transactions.count:
            return False
        self._transactions.note_merge_table(int.from_bytes(event.body[:6], "little"))
        self._loop.step_over_rows()
        return True

    def _take_statement(
        self, action: BufferAction, event: Event, role: EventRole, query: Query
    ) -> None:
        match action:
            case BufferAction.KEEP if role is EventRole.CREATE:
                self._transactions.keep_statement(query)
            case BufferAction.KEEP if role is EventRole.STATEMENT:
                self._transactions.keep_statement(replace(query, replaces_rows=True))
            case BufferAction.MARK:
                self._transactions.set_savepoint(savepoint_name(query.text))
            case BufferAction.DROP_TO_MARK:
                self._transactions.roll_back_to(savepoint_name(query.text), self._log.at)
            case BufferAction.EMIT:
                # Of MariaDB's two-phase ALTER only COMMIT ALTER changes the table.
                if role in (EventRole.STATEMENT, EventRole.CREATE) and not (
                    self._loop.maps.writer.is_mariadb and is_uncommitted_alter(event)
                ):
                    self._transactions.keep_statement(query)
                self._emit(event)
            case BufferAction.EMIT_WITHOUT_ROWS:
                self._transactions.roll_back()
                self._emit(event)
            case BufferAction.EMIT_PREPARED:
                xid = read_xid(query.text, event.at)
                self._emit(event, self._prepared.commit(xid, event.at, self._loop.maps))
            case BufferAction.FORGET_PREPARED:
                self._prepared.forget(read_xid(query.text, event.at))
                self._emit(event)
            case _:
                pass

    def finish(self) -> None:
        """Complete the compressed event after all events inside it (`nested`) have been
        read."""
        outer_event = self._outer_event
        self._outer_event = self.nested = None
        assert outer_event is not None, "nested events are inside an event"
        if outer_event.type is not EventType.TRANSACTION_PAYLOAD:
            self._loop.add_to_log(outer_event.size)
            return
        if not self.is_between:
            raise damaged("a compressed transaction has no end", outer_event.at)
        self._transactions.end_payload(outer_event)

    def _enter(self, event: Event, nested: PayloadInput) -> None:
        if self.nested is not None:
            raise damaged("a compressed event contains another", event.at)
        self._loop.step_into()
        self.nested, self._outer_event = nested, event

    def _emit(self, event: Event, blocks: Iterator[Block] | None = None) -> None:
        self._transactions.complete(event, 0 if self.nested is not None else event.size, blocks)


def _must_begin_group(action: BufferAction, role: EventRole) -> bool:
    """Return whether the transaction of this event must be the first of its group, so
    that those before it have to be handed out. A group's statements are applied before
    its rows. So a transaction with a statement that may change a structure, or that was
    logged instead of rows, must be the first: MariaDB's CREATE OR REPLACE TABLE …
    SELECT drops a table of which earlier transactions may have rows. So must a
    transaction whose rows were kept in a file."""
    is_kept_or_emitted = action in (BufferAction.KEEP, BufferAction.EMIT)
    is_statement = is_kept_or_emitted and role in (EventRole.STATEMENT, EventRole.CREATE)
    return is_statement or action is BufferAction.EMIT_PREPARED


def unexpected_event_error(event: Event, phase: Phase, role: EventRole) -> DamagedEvent:
    """Return the error for an event that no rule allows in that phase."""
    return DamagedEvent(
        f"a {EventType(event.type).name} event comes {phase.words}, at {event.at}",
        hint=f"it was not recorded ({role.words} is not expected there); start at the "
        "beginning of a transaction, or look at that place with mysqlbinlog",
    )


_VALUES: Final = frozenset(
    {
        EventType.INTVAR,
        EventType.RAND,
        EventType.USER_VAR,
        EventType.BEGIN_LOAD_QUERY,
        EventType.APPEND_BLOCK,
        EventType.DELETE_FILE,
    }
)
_ROLES: Final[dict[int, EventRole]] = {
    EventType.GTID: EventRole.GTID,
    EventType.ANONYMOUS_GTID: EventRole.GTID,
    EventType.GTID_TAGGED: EventRole.GTID,
    EventType.XID: EventRole.COMMIT,
    EventType.TRANSACTION_PAYLOAD: EventRole.PAYLOAD,
    EventType.ROWS_QUERY: EventRole.NOTE,
    EventType.MARIADB_ANNOTATE_ROWS: EventRole.NOTE,
    EventType.VIEW_CHANGE: EventRole.NOTE,
    **dict.fromkeys(_VALUES, EventRole.VALUE),
    EventType.HEARTBEAT: EventRole.HEARTBEAT,
    EventType.HEARTBEAT_V2: EventRole.HEARTBEAT,
    **dict.fromkeys(BETWEEN_TRANSACTIONS, EventRole.PLACE),
}
_STATEMENTS: Final = {
    ("BEGIN",): EventRole.BEGIN,
    ("COMMIT",): EventRole.COMMIT,
    ("ROLLBACK",): EventRole.ROLLBACK,
}
_XA: Final = {
    "START": EventRole.XA_START,
    "BEGIN": EventRole.XA_START,
    "END": EventRole.XA_END,
    "COMMIT": EventRole.XA_COMMIT,
    "ROLLBACK": EventRole.XA_ROLLBACK,
}


def classify(event: Event) -> tuple[EventRole, Query | None]:
    """Return an event's role, and its statement if it has one."""
    if event.type is EventType.QUERY:
        query = read_query(event)
        return classify_statement(query.text), query
    if event.type is EventType.EXECUTE_LOAD_QUERY:
        return EventRole.STATEMENT, read_query(event)
    if event.type is EventType.XA_PREPARE:
        _, is_one_phase = read_xa_prepare(event)
        return (EventRole.XA_ONE_PHASE if is_one_phase else EventRole.XA_PREPARE), None
    if event.type is EventType.MARIADB_GTID:
        gtid = read_mariadb_gtid(event)
        if gtid.is_prepare:
            return EventRole.XA_GROUP, None
        return (EventRole.GTID if gtid.is_standalone or gtid.xid else EventRole.GROUP), None
    return _ROLES.get(event.type, EventRole.CHANGE), None


def classify_statement(text: str) -> EventRole:
    """Return a statement's role. In row format the server itself writes these words, so
    they have only one spelling."""
    words = text[:80].upper().split()
    if (statement := tuple(words)) in _STATEMENTS:
        return _STATEMENTS[statement]
    match words[:2]:
        case ["XA", word] if word in _XA:
            return _XA[word]
        case ["SAVEPOINT", _]:
            return EventRole.SAVEPOINT
        case ["ROLLBACK", "TO" | "WORK"]:
            return EventRole.ROLLBACK_TO
        case ["RELEASE", "SAVEPOINT"]:
            return EventRole.RELEASE
        case ["CREATE", "TABLE" | "OR"]:
            return EventRole.CREATE
        case _:
            return EventRole.STATEMENT
