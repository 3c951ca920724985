"""The transaction buffer: bytes of the log in, whole transactions out.

    put(bytes) ──▶ get() ──▶ a group of whole transactions ──▶ ack() ──▶ get() …

`get` answers None when all bytes put are used up. While a group is out, the ring's room is
taken; a full ring makes whoever reads the socket wait. A transaction that is larger than
the ring goes through a scratch file and comes out alone.

Belongs here: feeding the compiled loop and handing out groups. Does not: the rules
(`stream.rules`), the loop (`stream.stream`), the events it leaves to Python
(`rare_events`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pipeline.batch import Prepared, Xid
from pipeline.binlog.arrays import outcomes, registers, wire_format
from pipeline.binlog.rows.maps import TableMaps
from pipeline.binlog.rows.table_map import read_table_map
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream import stream
from pipeline.binlog.stream.damage import damage
from pipeline.binlog.stream.description import Description
from pipeline.binlog.stream.dump_refusals import is_end, refused_by
from pipeline.binlog.stream.framing import EventType, read_event, read_first_event
from pipeline.binlog.stream.intake import InputBytes, LargeEvent, Wire
from pipeline.binlog.stream.ring import Block, Ring, TransactionGroup
from pipeline.binlog.stream.rules import Phase, compiled_table
from pipeline.binlog.stream.text_buffer import BUFFER_BYTES
from pipeline.binlog.transactions.assembly import Assembly
from pipeline.binlog.transactions.identity import gtid_text
from pipeline.binlog.transactions.limits import Limits
from pipeline.binlog.transactions.rare_events import RareEvents
from pipeline.binlog.transactions.transaction_filter import LeaveOut
from pipeline.binlog.transactions.xa import PreparedTransactions
from pipeline.errors import NotAnEventBoundary
from pipeline.gtid import GtidSet
from pipeline.ports.source import Received
from pipeline.ports.spool import Spool
from pipeline.position import Coordinates, Witness
from pipeline.table import TableName

RING_BYTES: Final = 64 << 20
GROUP_BYTES: Final = 8 << 20
"""A group is handed out when its row events have so many bytes, or the input ends."""

EVENTS: Final = 1 << 17
TRANSACTIONS: Final = 1 << 16

_FIRST: Final = (EventType.FORMAT_DESCRIPTION, EventType.ROTATE)


class TransactionBuffer:
    """Reads one dump that begins at `start`, between two transactions.

    `wants`: whether a table's rows are to come out; asked once per table map. `spool`:
    where transactions wait that are prepared or do not fit; `prepared`: those that earlier
    batches recorded and that are still open. `begins`: where the dump begins, if that is
    before `start`: what lies between is read and left out. `leave_out`: transactions that
    were read before, from another server perhaps; they do not come out again. `keeps`:
    whether rows of XA transactions are kept although they are not wanted now. `created`:
    when the file was made, if that is known. Sizes are in bytes and rows of the indexes.
    """

    def __init__(
        self,
        start: Coordinates,
        *,
        wants: Callable[[TableName], bool],
        spool: Spool,
        begins: Coordinates | None = None,
        source: str = "",
        prepared: Mapping[Xid, Prepared] | None = None,
        created: int = 0,
        limits: Limits | None = None,
        leave_out: GtidSet | None = None,
        keeps: Callable[[TableName], bool] | None = None,
        ring_bytes: int = RING_BYTES,
        group_bytes: int = GROUP_BYTES,
        events: int = EVENTS,
        transactions: int = TRANSACTIONS,
        text_bytes: int = BUFFER_BYTES,
    ) -> None:
        ring = Ring.of(ring_bytes, events=events, transactions=transactions)
        self._skip_to = start if begins is not None and begins != start else None
        self._limits = limits or Limits()
        first = self._limits if self._skip_to is None else Limits(end=start)
        self._assembly = Assembly(
            begins or start,
            ring,
            wants=wants,
            spool=spool,
            limits=first,
            keeps=keeps,
            text_bytes=text_bytes,
        )
        self.prepared = PreparedTransactions(source, spool, prepared)
        self.prepared.passing = self._skip_to is not None
        self._leave_out = LeaveOut(leave_out) if leave_out else None
        self._rare = RareEvents(
            self._assembly, self.prepared, created=created, again=leave_out or GtidSet()
        )
        self._wire = Wire()
        self._rules = compiled_table()
        self._run_bytes = group_bytes
        self._ready = False
        self._out = False
        self._end = start
        self._witness: Witness | None = None
        self._before: tuple[Coordinates, Witness] | None = None
        self.ended = False
        """The server's end of log was read, or `end` called."""
        self.stopped = False
        """One of the limits was reached."""

    # -- what it knows --------------------------------------------------------------

    @property
    def maps(self) -> TableMaps:
        return self._assembly.maps

    @property
    def phase(self) -> Phase:
        return self._assembly.phase

    @property
    def description(self) -> Description | None:
        """What the log file being read says of itself."""
        return self._rare.description

    @property
    def at(self) -> Coordinates:
        """The place behind the last transaction handed out, or behind what moved the
        position after it."""
        return self._place()[0]

    @property
    def witness(self) -> Witness | None:
        """The event that ends at `at`; None if none was read."""
        return self._place()[1]

    def _place(self) -> tuple[Coordinates, Witness | None]:
        event = self._rare.place
        if event is None or self._assembly.complete or event.after < self._end:
            return self._end, self._witness
        # A ROTATE leads to the next file's beginning; it is read when that file is.
        at = self._assembly.at if self.phase is Phase.BETWEEN else event.after
        return at, Witness(event.offset, event.size, event.crc32, "", self._rare.created)

    @property
    def before(self) -> tuple[Coordinates, Witness] | None:
        """The place where the group handed out last begins, and the event that ends there; None
        where what lies before it is not known so well."""
        return self._before

    @property
    def out_of_order(self) -> int:
        """Transactions left out that this server committed behind one that came out."""
        return 0 if self._leave_out is None else self._leave_out.out_of_order

    # -- bytes in, groups out --------------------------------------------------------

    def put(self, received: Received) -> None:
        """The next bytes of the dump; only when `get` answered None."""
        self._wire.put(received.data, received.begin, received.end)

    def end(self) -> None:
        """No more bytes come."""
        self.ended = True

    def stop(self) -> None:
        """Stop at the next end of a transaction: time is up."""
        if self._skip_to is not None:
            self.ended = True
            return
        self._assembly.stop_here()
        if self.phase is Phase.BETWEEN and self._rare.nested is None:
            self.stopped = True

    def get(self) -> TransactionGroup | None:
        """Complete transactions, when enough are waiting, or all when reading is over;
        None when more bytes are needed, or nothing is left."""
        if self._out:
            raise RuntimeError("a group is out; ack it first")
        assembly = self._assembly
        while True:
            if self._skip_to is not None:
                self._skip(self._skip_to)
            over = self.stopped or self.ended
            enough = assembly.complete_bytes >= self._run_bytes or self._ready or over
            if enough and assembly.complete and self._rare.nested is None:
                if (group := self._hand_out()) is not None:
                    return group
                continue
            current = None if over else self._input()
            if current is None:
                return None
            turned = self._turn(self._scan(current), current) and self._skip_to is None
            if turned and (group := self._hand_out()) is not None:
                return group

    def _skip(self, start: Coordinates) -> None:
        """Leave out what lies before `start`; there, begin."""
        ends_nested = self._rare.nested is not None and self.phase is Phase.BETWEEN
        if self._assembly.complete and not ends_nested:
            self._assembly.drop_complete()
            self._ready = False
        if self.stopped:
            if self._assembly.at != start:
                raise NotAnEventBoundary(
                    f"no transaction ends at {start}; one ends at {self._assembly.at}",
                    hint=f"choose {self._assembly.at}, or a place that SHOW BINLOG EVENTS lists",
                )
            self._skip_to, self.stopped, self._rare.place = None, False, None
            self.prepared.passing = False
            self._assembly.begin_counting(self._limits)
            self._stop_between()

    def ack(self) -> None:
        """The group handed out is done with; its room is free again."""
        if not self._out:
            raise RuntimeError("no group is out")
        self._out = False
        self._assembly.ack()

    def _hand_out(self) -> TransactionGroup | None:
        """What is complete; None if all of it is to be left out."""
        group = self._assembly.group()
        self._ready = False
        self._before = self._place_before(group)
        last = group.transactions[-1]
        self._end = group.end(-1)
        offset, size, crc = (
            int(last[c]) for c in (columns.LAST_OFFSET, columns.LAST_SIZE, columns.LAST_CRC)
        )
        gtid = gtid_text(last, group.sources)
        self._witness = Witness(offset, size, crc, gtid, self._rare.created)
        rest = group if self._leave_out is None else self._leave_out.rest(group)
        if rest is None:
            self._assembly.drop_complete()
            return None
        self._out = True
        return rest

    def _place_before(self, group: TransactionGroup) -> tuple[Coordinates, Witness] | None:
        begin, event = group.begin(0), self._rare.place
        if self._end == begin and self._witness is not None:
            return begin, self._witness
        if event is None or event.after != begin:
            return None
        return begin, Witness(event.offset, event.size, event.crc32, "", self._rare.created)

    # -- one step --------------------------------------------------------------------

    def _input(self) -> InputBytes | None:
        nested = self._rare.nested
        if nested is not None:
            return nested.input
        return self._wire.next()

    def _scan(self, current: InputBytes) -> int:
        assembly = self._assembly
        assembly.input = current
        assembly.state[registers.AT] = current.at
        code = stream.scan(
            current.data,
            current.stop,
            current.mode,
            assembly.state,
            assembly.ring.data,
            assembly.ring.events,
            assembly.ring.transactions,
            assembly.maps.ids,
            assembly.maps.bytes,
            assembly.maps.places,
            self._rules,
            assembly.texts.data,
            assembly.texts.index,
        )
        current.at = int(assembly.state[registers.AT])
        return code

    def _turn(self, code: int, current: InputBytes) -> bool:
        """Do what the loop came back for; whether complete transactions must go out."""
        match code:
            case outcomes.MORE:
                self._more(current)
            case outcomes.EVENT:
                return self._event(current)
            case outcomes.FULL:
                if self._assembly.complete:
                    return True
                self._assembly.spill_open()
            case outcomes.HUGE:
                return self._huge(current)
            case outcomes.NEW_MAP:
                self._map(current)
            case outcomes.EMITTED:
                self._ready = True
                self._stop_between()
            case outcomes.STOPPED:
                self.stopped = True
            case outcomes.LARGE:
                self._wire.large()
            case outcomes.PACKET:
                self._packet(current)
            case _:
                raise damage(code, self._assembly.at)
        return False

    def _more(self, current: InputBytes) -> None:
        nested = self._rare.nested
        if nested is None:
            if isinstance(current, LargeEvent):
                if current.at < current.stop:
                    raise damage(outcomes.WRONG_SIZE, self._assembly.at)
                self._assembly.state[registers.SEQUENCE] += current.packets
            self._wire.read()
            return
        if nested.refill():
            return
        if nested.input.at < nested.input.stop:
            raise damage(outcomes.WRONG_SIZE, self._assembly.at)
        self._rare.finish()
        self._stop_between()

    def _event(self, current: InputBytes) -> bool:
        state = self._assembly.state
        begin, size = int(state[registers.EVENT_AT]), int(state[registers.EVENT_SIZE])
        packet = current.data[begin : begin + size].tobytes()
        nested = self._rare.nested is not None
        known = bool(state[registers.CHECKSUM]) if state[registers.CHECKSUM] >= 0 else None
        if not nested and (known is None or packet[4] in _FIRST):
            event = read_first_event(packet, self._assembly.at, checksum=known)
        else:
            event = read_event(packet, self._assembly.at, checksum=known and not nested)
        if not self._rare.take(event):
            return True
        if self._assembly.alone:
            self._ready = True
        self._stop_between()
        return False

    def _stop_between(self) -> None:
        between = self.phase is Phase.BETWEEN and self._rare.nested is None
        if between and self._assembly.stops:
            self.stopped = True

    def _huge(self, current: InputBytes) -> bool:
        """A row event larger than the ring goes straight into the transaction's file."""
        assembly = self._assembly
        if assembly.complete:
            return True
        row = int(assembly.state[registers.EVENTS])
        index = assembly.ring.events[row : row + 1].copy()
        assembly.spill_event(Block(current.data, index))
        stream.pass_rows(current.data, current.mode, assembly.state, assembly.ring.transactions)
        current.at = int(assembly.state[registers.AT])
        return False

    def _map(self, current: InputBytes) -> None:
        state = self._assembly.state
        begin, end = int(state[registers.EVENT_AT]), int(state[registers.EVENT_SIZE])
        end += begin
        if self._rare.nested is None and state[registers.CHECKSUM] == 1:
            end -= wire_format.CHECKSUM_BYTES
        table_map = read_table_map(current.data[begin:end].tobytes())
        self.maps.bind(table_map.table_id, self.maps.add(table_map))

    def _packet(self, current: InputBytes) -> None:
        """A packet that holds no event: the end of the log, or a refusal."""
        packet = current.data[current.at + 4 : int(self._assembly.state[registers.NEXT])].tobytes()
        if not is_end(packet):
            raise refused_by(packet)
        self.ended = True
