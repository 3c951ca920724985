"""The transaction buffer: bytes of the log in, whole transactions out.

    put(bytes) ──▶ get() ──▶ a group of whole transactions ──▶ ack() ──▶ get() …

`get` returns None when all bytes that were put are used up. Until a group is
acknowledged it occupies the ring, and a full ring makes the reader of the socket wait.
A transaction that is larger than the ring goes through a scratch file and is a group of
its own.

The compiled loop (`stream`) reads the bytes. This module gives it the next bytes, acts
on the reason for which it returns, handles the rare events (`_RareEvents`), hands out
groups, and keeps the position that they reach. It leaves out the transactions that were
read before (`pipeline.start` says which).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.binlog.rows.maps import TableMaps
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream import stream
from lockstep.pipeline.binlog.stream.compressed import (
    decompress_query,
    decompress_rows,
    payload_pieces,
)
from lockstep.pipeline.binlog.stream.control import (
    FormatDescription,
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
    WHOLE,
    Event,
    EventType,
    damaged,
)
from lockstep.pipeline.binlog.stream.intake import (
    InputBytes,
    PayloadInput,
    WireInput,
    is_end_packet,
    packet_error,
)
from lockstep.pipeline.binlog.stream.ring import (
    BEGIN_OFFSET,
    TRANSACTION,
    Block,
    Ring,
    TransactionGroup,
    place_of,
)
from lockstep.pipeline.binlog.stream.rules import TRANSITIONS, BufferAction, EventRole, Phase
from lockstep.pipeline.binlog.stream.stream import TEXT_BUFFER_BYTES, TextBuffer
from lockstep.pipeline.binlog.transactions.identity import gtid_text, membership
from lockstep.pipeline.binlog.transactions.loop import Limits, LogPlace, Loop
from lockstep.pipeline.binlog.transactions.ring_transactions import RingTransactions
from lockstep.pipeline.binlog.transactions.spill import PreparedTransactions
from lockstep.pipeline.model.batch import PreparedTransaction, Xid
from lockstep.pipeline.ports.segments import Spool
from lockstep.pipeline.ports.source import Received
from lockstep.pipeline.values.errors import DamagedEvent, NotAnEventBoundary
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Anchor, Coordinates
from lockstep.pipeline.values.table import TableName

RING_BYTES: Final = 64 << 20
GROUP_EVENT_BYTES: Final = 8 << 20
"""A group with this many bytes of row events is handed out before the input ends."""

EVENTS: Final = 1 << 17
TRANSACTIONS: Final = 1 << 16
"""Rows of the ring's two indexes."""


class TransactionBuffer:
    """Reads one dump from `start` on, a place between two transactions.

    - `is_captured`: returns whether a table's rows are captured; called once per table
      map.
    - `spool`: has files for transactions that are prepared or larger than the ring.
    - `begins`: where the dump begins, if that is before `start`; the transactions up to
      `start` are left out.
    - `prepared`: the XA transactions that are prepared in earlier batches and still
      open.
    - `file_created`: when the first file was created (seconds since the epoch), or 0.
    - `leave_out`: transactions that were read before, perhaps from another server; they
      are not handed out again.
    - `keeps_all_prepared`: keep all rows of an XA transaction until it is committed,
      and call `is_captured` again then.
    - `may_be_merge_table`: returns whether rows of a table that is not captured may be
      stored in other tables (MERGE).
    - `events`, `transactions`: rows of the indexes.
    - `has_ended`: the end of the server's log was read, or `end` was called.
    - `has_stopped`: the reading reached a limit. While it skips the transactions before
      `start`, `start` is the limit.
    """

    def __init__(
        self,
        start: Coordinates,
        *,
        is_captured: Callable[[TableName], bool],
        spool: Spool,
        begins: Coordinates | None = None,
        source: str = "",
        prepared: Mapping[Xid, PreparedTransaction] | None = None,
        file_created: int = 0,
        limits: Limits | None = None,
        leave_out: GtidSet | None = None,
        keeps_all_prepared: bool = False,
        may_be_merge_table: Callable[[TableName], bool] = lambda _: False,
        ring_bytes: int = RING_BYTES,
        group_bytes: int = GROUP_EVENT_BYTES,
        events: int = EVENTS,
        transactions: int = TRANSACTIONS,
        text_bytes: int = TEXT_BUFFER_BYTES,
    ) -> None:
        ring = Ring.of(ring_bytes, events=events, transactions=transactions)
        self._skip_to = start if begins is not None and begins != start else None
        self._limits = limits or Limits()
        self._group_bytes = group_bytes
        self._is_group_out = False
        self._handed_out_end: tuple[Coordinates, Anchor | None] = (start, None)
        """The end of the last group that was handed out, and the anchor of the event
        before it."""
        self._leave_out = TransactionFilter(leave_out) if leave_out else None
        self.prepared = PreparedTransactions(source, spool, prepared)
        self.prepared.is_before_start = self._skip_to is not None

        first = begins or start
        first_limits = self._limits if self._skip_to is None else Limits(end=start)
        self._loop = Loop(
            first.offset,
            ring,
            TableMaps(
                is_captured,
                keeps_all_prepared=keeps_all_prepared,
                may_be_merge_table=may_be_merge_table,
            ),
            TextBuffer.of(text_bytes),
        )
        self._log = LogPlace(first, self._loop.registers, first_limits, file_created)
        self._transactions = RingTransactions(self._loop, self._log, spool)
        self._rare = _RareEvents(
            self._loop,
            self._log,
            self._transactions,
            self.prepared,
            read_before=leave_out or GtidSet(),
        )
        self._wire = WireInput()
        self.has_ended = False
        self.has_stopped = False
        self._must_hand_out = False

    # -- the position that is reached -----------------------------------------------

    @property
    def maps(self) -> TableMaps:
        return self._loop.maps

    @property
    def phase(self) -> Phase:
        return self._loop.registers.phase

    @property
    def description(self) -> FormatDescription | None:
        return self._log.description

    @property
    def at(self) -> Coordinates:
        """The position that is reached once all groups handed out are recorded: the end
        of the last transaction, or of later events that belong to no transaction."""
        return self._reached_place()[0]

    @property
    def anchor(self) -> Anchor | None:
        """The anchor of the event that ends at `at`, by which a later run recognises
        it; None if no event was read."""
        return self._reached_place()[1]

    def _reached_place(self) -> tuple[Coordinates, Anchor | None]:
        event = self._log.last_event
        if event is None or self._transactions.count or event.after < self._handed_out_end[0]:
            return self._handed_out_end
        # After a ROTATE the position is the next file's beginning, not the ROTATE's own
        # end.
        is_between = self.phase is Phase.BETWEEN
        return (self._log.at if is_between else event.after), self._log.anchor(event)

    @property
    def complete_end(self) -> Coordinates:
        """As `at`, but transactions count as soon as they are complete, even if they
        are not handed out yet."""
        if self.phase is Phase.BETWEEN:
            return self._log.at
        return place_of(self._loop.open_row, BEGIN_OFFSET, self._log.files)

    @property
    def out_of_order_count(self) -> int:
        """Number of transactions that were left out although they follow a new one in
        this log."""
        return 0 if self._leave_out is None else self._leave_out.out_of_order_count

    # -- bytes in, groups out ----------------------------------------------------------

    def put(self, received: Received) -> None:
        """Add the next bytes of the dump; only after `get` returned None."""
        self._wire.put(received.data, received.begin, received.end)

    def end(self) -> None:
        """Note that no more bytes come; `get` returns what is complete."""
        self.has_ended = True

    def stop(self) -> None:
        """Stop at the next end of a transaction, because the run reached a limit that
        is not in `limits`, such as its time. At least one transaction is read, so that
        each run makes progress."""
        if self._skip_to is not None:
            self._limits = replace(self._limits, transactions=1)
            return
        self._loop.registers.stop_here()
        self._stop_at_limit()

    def get(self) -> TransactionGroup | None:
        """Return complete transactions if there are enough of them, or if reading has
        ended. Return None if more bytes are needed, or if nothing is left."""
        if self._is_group_out:
            raise RuntimeError("a group is out; ack it first")
        while True:
            if self._skip_to is not None:
                self._skip(self._skip_to)
            is_over = self.has_stopped or self.has_ended
            is_enough = (
                is_over
                or self._must_hand_out
                or self._transactions.event_bytes >= self._group_bytes
            )
            if is_enough and self._transactions.count and self._rare.nested is None:
                if (group := self._hand_out()) is not None:
                    return group
                continue
            if is_over:
                return None
            nested = self._rare.nested
            current = self._wire.next_input() if nested is None else nested.input
            if current is None:
                return None
            # Transactions before the start are dropped by `_skip` instead.
            must_hand_out = self._read(current) and self._skip_to is None
            if must_hand_out and (group := self._hand_out()) is not None:
                return group

    def _skip(self, start: Coordinates) -> None:
        """Drop the transactions before `start`; at `start`, begin to count towards the
        limits."""
        # The end of a transaction in a compressed payload is only set once the payload
        # is finished. Until then the transaction must stay.
        awaits_end = self._rare.nested is not None and self.phase is Phase.BETWEEN
        if self._transactions.count and not awaits_end:
            self._transactions.free()
            self._must_hand_out = False
        if self.has_stopped:
            if self._log.at != start:
                raise NotAnEventBoundary(
                    f"no transaction ends at {start}; one ends at {self._log.at}",
                    hint=f"choose {self._log.at}, or an offset that SHOW BINLOG EVENTS lists",
                )
            self._skip_to, self.has_stopped = None, False
            self._log.last_event = None
            self.prepared.is_before_start = False
            self._log.set_limits(self._limits)
            self._stop_at_limit()

    def ack(self) -> None:
        """Free the ring of the group that `get` returned: its rows have been used."""
        if not self._is_group_out:
            raise RuntimeError("no group is out")
        self._is_group_out = False
        self._transactions.free()

    def _hand_out(self) -> TransactionGroup | None:
        """Return the complete transactions that are not left out; None if there are
        none."""
        group = self._transactions.group()
        self._must_hand_out = False
        last = group.transactions[-1]
        anchor = Anchor(
            int(last[columns.LAST_OFFSET]),
            int(last[columns.LAST_SIZE]),
            int(last[columns.LAST_CRC]),
            gtid_text(last, group.gtid_sources),
            self._log.file_created,
        )
        self._handed_out_end = group.end(-1), anchor
        rest = group if self._leave_out is None else self._leave_out.filter(group)
        if rest is None:
            self._transactions.free()
        self._is_group_out = rest is not None
        return rest

    # -- what the loop returns for ------------------------------------------------------

    def _read(self, current: InputBytes) -> bool:
        """Run the loop once. Return whether a group has to be handed out before the
        loop can continue."""
        code = self._loop.scan(current)
        match code:
            case stream.MORE:
                self._refill(current)
            case stream.EVENT:
                return not self._handle_event()
            case stream.FULL:
                if self._transactions.count:
                    return True
                self._transactions.spill()
            case stream.LARGE_ROWS:
                if self._transactions.count:
                    return True
                self._transactions.spill_rows(self._loop.large_rows())
                self._loop.step_over_rows()
            case stream.NEW_MAP:
                self._loop.bind_map()
            case stream.EMITTED:
                self._must_hand_out = True
                self._stop_at_limit()
            case stream.STOPPED:
                self.has_stopped = True
            case stream.SPLIT_EVENT:
                self._wire.mark_large()
            case stream.PACKET:
                packet = self._loop.packet()
                if not is_end_packet(packet):
                    raise packet_error(packet)
                self.has_ended = True
            case _:
                raise stream.damage_error(code, self._log.at)
        return False

    def _stop_at_limit(self) -> None:
        """Stop if a limit is reached, and the loop is between two transactions."""
        if self._rare.is_between and stream.is_at_stop(self._loop.registers.array):
            self.has_stopped = True

    def _refill(self, current: InputBytes) -> None:
        """Let the loop continue after it has used up `current`. Inside a compressed
        event, it continues with the rest of the content; if there is none, finish the
        event."""
        nested = self._rare.nested
        if nested is None:
            if current.mode == WHOLE:
                if current.at < current.stop:
                    raise stream.damage_error(stream.WRONG_SIZE, self._log.at)
                self._loop.registers.sequence += current.packets
            self._wire.mark_read()
            return
        if nested.refill():
            return
        if nested.input.at < nested.input.stop:
            raise stream.damage_error(stream.WRONG_SIZE, self._log.at)
        self._rare.finish()
        self._stop_at_limit()

    def _handle_event(self) -> bool:
        """Handle the current event. Return False, without handling it, if a group has
        to be handed out first."""
        if not self._rare.handle_event(self._loop.event(self._log.at)):
            return False
        if self._transactions.needs_own_group:
            self._must_hand_out = True
        self._stop_at_limit()
        return True


_XA_ACTIONS: Final = frozenset(
    {BufferAction.PREPARE, BufferAction.EMIT_PREPARED, BufferAction.FORGET_PREPARED}
)
_ROWS: Final = ROW_EVENTS | {EventType.PARTIAL_UPDATE_ROWS}
"""Row events. The compiled loop hands over only those of MERGE tables: the table that
such an event names does not store the rows, which are in other tables."""


class _RareEvents:
    """Applies the rules (`stream.rules`) to rare events. `nested`: the events inside a
    compressed event, which the caller has to read next, or None. `read_before`: the
    GTIDs of the transactions that earlier runs read."""

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
        role, query = _classify(event)
        phase = self._loop.registers.phase
        if self.nested is not None and phase is Phase.BETWEEN:
            raise damaged("a compressed transaction continues after its end", event.at)
        action, next_phase = TRANSITIONS.get((phase, role), (BufferAction.REFUSE, phase))
        if action is BufferAction.REFUSE:
            raise _unexpected_event_error(event, phase, role)
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
                self._loop.maps.begin_file(self._log.apply_description(event).writer)
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
    SELECT drops a table, and earlier transactions may have rows of it. A transaction
    whose rows were kept in a file must be the first, too."""
    is_kept_or_emitted = action in (BufferAction.KEEP, BufferAction.EMIT)
    is_statement = is_kept_or_emitted and role in (EventRole.STATEMENT, EventRole.CREATE)
    return is_statement or action is BufferAction.EMIT_PREPARED


def _unexpected_event_error(event: Event, phase: Phase, role: EventRole) -> DamagedEvent:
    """Return the error for an event that no rule allows in that phase."""
    return DamagedEvent(
        f"a {EventType(event.type).name} event comes {phase.words}, at {event.at}",
        hint=f"it was not recorded ({role.words} is not expected there); start at the "
        "beginning of a transaction, or look at that place with mysqlbinlog",
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
    EventType.INTVAR: EventRole.VALUE,
    EventType.RAND: EventRole.VALUE,
    EventType.USER_VAR: EventRole.VALUE,
    EventType.BEGIN_LOAD_QUERY: EventRole.VALUE,
    EventType.APPEND_BLOCK: EventRole.VALUE,
    EventType.DELETE_FILE: EventRole.VALUE,
    EventType.HEARTBEAT: EventRole.HEARTBEAT,
    EventType.HEARTBEAT_V2: EventRole.HEARTBEAT,
    **dict.fromkeys(BETWEEN_TRANSACTIONS, EventRole.POSITION),
}
_XA: Final = {
    "START": EventRole.XA_START,
    "BEGIN": EventRole.XA_START,
    "END": EventRole.XA_END,
    "COMMIT": EventRole.XA_COMMIT,
    "ROLLBACK": EventRole.XA_ROLLBACK,
}


def _classify(event: Event) -> tuple[EventRole, Query | None]:
    """Return an event's role, and its statement if it has one."""
    if event.type is EventType.QUERY:
        query = read_query(event)
        return _classify_statement(query.text), query
    if event.type is EventType.EXECUTE_LOAD_QUERY:
        return EventRole.STATEMENT, read_query(event)
    if event.type is EventType.XA_PREPARE:
        _, is_one_phase = read_xa_prepare(event)
        return (EventRole.XA_ONE_PHASE if is_one_phase else EventRole.XA_PREPARE), None
    if event.type is EventType.MARIADB_GTID:
        gtid = read_mariadb_gtid(event)
        if gtid.is_prepare:
            return EventRole.GTID_XA_START, None
        return (EventRole.GTID if gtid.is_standalone or gtid.xid else EventRole.GTID_BEGIN), None
    return _ROLES.get(event.type, EventRole.CHANGE), None


def _classify_statement(text: str) -> EventRole:
    """Return a statement's role. In row format the server itself writes these words, so
    they have only one spelling."""
    match text[:80].upper().split():
        case ["BEGIN"]:
            return EventRole.BEGIN
        case ["COMMIT"]:
            return EventRole.COMMIT
        case ["ROLLBACK"]:
            return EventRole.ROLLBACK
        case ["XA", word, *_] if word in _XA:
            return _XA[word]
        case ["SAVEPOINT", _, *_]:
            return EventRole.SAVEPOINT
        case ["ROLLBACK", "TO" | "WORK", *_]:
            return EventRole.ROLLBACK_TO
        case ["RELEASE", "SAVEPOINT", *_]:
            return EventRole.RELEASE
        case ["CREATE", "TABLE" | "OR", *_]:
            return EventRole.CREATE
        case _:
            return EventRole.STATEMENT


class TransactionFilter:
    """Removes the transactions of a GTID set from each group.

    `out_of_order_count`: number of removed transactions that follow a new one in this
    log. They were read from another server before, so the lake has them in another
    order than this server.
    """

    def __init__(self, gtids: GtidSet) -> None:
        self._gtids = gtids
        self._has_new = False
        self.out_of_order_count = 0

    def filter(self, group: TransactionGroup) -> TransactionGroup | None:
        """Return the group without the transactions of the set; None if none is left."""
        keep = ~membership(group.transactions, group.gtid_sources, self._gtids)
        has_new_before = np.logical_or.accumulate(keep) | self._has_new
        self.out_of_order_count += int((~keep & has_new_before).sum())
        self._has_new = self._has_new or bool(keep.any())
        if keep.all():
            return group
        if not keep.any():
            return None
        new_rows = np.cumsum(keep) - 1
        return replace(
            group,
            transactions=group.transactions[keep],
            statements=tuple(
                (int(new_rows[row]), query) for row, query in group.statements if keep[row]
            ),
            merge_table_rows=tuple(
                (int(new_rows[row]), rows) for row, rows in group.merge_table_rows if keep[row]
            ),
            blocks=_filter_blocks(group.blocks, keep, new_rows),
            texts=group.texts.select(keep, new_rows),
        )


def _filter_blocks(
    blocks: Iterator[Block], keep: npt.NDArray[np.bool_], new_rows: npt.NDArray[np.int64]
) -> Iterator[Block]:
    """Yield the events of the transactions in `keep`, with the transactions' new rows."""
    for block in blocks:
        events = block.events[keep[block.events[:, TRANSACTION]]]
        events[:, TRANSACTION] = new_rows[events[:, TRANSACTION]]
        if len(events):
            yield Block(block.data, events)
