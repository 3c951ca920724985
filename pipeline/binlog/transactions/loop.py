"""The compiled loop as Python calls it, and the arrays it works on."""

from __future__ import annotations

from typing import Final

import numpy as np

from pipeline.binlog.rows.maps import TableMaps
from pipeline.binlog.rows.table_map import read_table_map
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream import stream
from pipeline.binlog.stream.framing import (
    CHECKSUM_BYTES,
    HEADER_BYTES,
    NESTED,
    STATEMENT_END,
    WIRE,
    Event,
    EventType,
    read_event,
    read_first_event,
)
from pipeline.binlog.stream.intake import InputBytes
from pipeline.binlog.stream.registers import Registers
from pipeline.binlog.stream.ring import Block, Integers, Ring
from pipeline.binlog.stream.rules import compiled_table
from pipeline.binlog.stream.text_buffer import TextBuffer
from pipeline.position import Coordinates

_FIRST: Final = (EventType.FORMAT_DESCRIPTION, EventType.ROTATE)
"""Events whose checksum compiled code leaves to Python."""

_TYPE_AT: Final = 4
_PACKET_HEAD: Final = 4
"""Length 3, number 1."""


class Loop:
    """Complete transactions first in all arrays, then the one that is open."""

    def __init__(self, offset: int, ring: Ring, maps: TableMaps, texts: TextBuffer) -> None:
        self.registers = Registers(offset)
        self.ring = ring
        self.maps = maps
        self.texts = texts
        self._rules = compiled_table()
        self._input = InputBytes(np.empty(0, np.uint8), 0, 0, WIRE)

    def scan(self, current: InputBytes) -> int:
        """Take events of this input; one of `outcomes`."""
        self._input, registers = current, self.registers
        registers.at = current.at
        code = stream.scan(
            current.data,
            current.stop,
            current.mode,
            registers.array,
            self.ring.data,
            self.ring.events,
            self.ring.transactions,
            self.maps.ids,
            self.maps.bytes,
            self.maps.places,
            self._rules,
            self.texts.data,
            self.texts.index,
        )
        current.at = registers.at
        return code

    # -- what it stands before -------------------------------------------------------

    def event(self, at: Coordinates) -> Event:
        packet, known = self._bytes(), self.registers.checksum
        nested = self._input.mode == NESTED
        if not nested and (known is None or packet[_TYPE_AT] in _FIRST):
            return read_first_event(packet, at, checksum=known)
        return read_event(packet, at, checksum=known and not nested)

    def bind_map(self) -> None:
        """From now on the table map at hand is known."""
        carried = self._input.mode != NESTED and self.registers.checksum
        packet = self._bytes(CHECKSUM_BYTES if carried else 0)
        table_map = read_table_map(packet, self.maps.writer)
        self.maps.bind(table_map.table_id, self.maps.add(table_map))

    def large_rows(self) -> Block:
        """The row event at hand, which is larger than the ring, where it lies in the input."""
        row = self.registers.events
        return Block(self._input.data, self.ring.events[row : row + 1].copy())

    def packet(self) -> bytes:
        begin = self._input.at + _PACKET_HEAD
        return self._input.data[begin : self.registers.next].tobytes()

    def _bytes(self, without: int = 0) -> bytes:
        begin, size = self.registers.event_at, self.registers.event_size
        return self._input.data[begin : begin + size - without].tobytes()

    # -- stepping over it ------------------------------------------------------------

    def enter(self) -> None:
        """Step over the event in the input, not yet in the log: what it holds is read first."""
        registers = self.registers
        registers.at = self._input.at = registers.next
        if self._input.mode == WIRE:
            registers.sequence += 1

    def leave(self, size: int) -> None:
        """Step over so many bytes of the log, which are the open transaction's."""
        self.registers.offset += size
        self.open_row[columns.LOG_BYTES] += size

    def advance(self, *, artificial: bool = False) -> None:
        """Step over the event at hand; an artificial one takes no place in the log."""
        self.enter()
        if self._input.mode != NESTED and not artificial:
            self.leave(self.registers.event_size)

    def pass_rows(self) -> None:
        """Step over the row event at hand, which was put elsewhere."""
        flags = self._input.data[self.registers.event_at + HEADER_BYTES + 6]
        self.registers.statement += int(flags) & STATEMENT_END
        self.advance()

    # -- the index of transactions -----------------------------------------------------

    @property
    def open_row(self) -> Integers:
        row: Integers = self.ring.transactions[self.registers.transactions]
        return row

    def begin(self) -> Integers:
        """Open a transaction where the log stands; its row, without an identity."""
        stream.open_transaction(self.registers.array, self.open_row)
        return self.open_row

    def finish(self, timestamp: int, size: int, crc32: int) -> None:
        """The open transaction is complete; its last event is behind the loop, and has so many
        bytes in the log."""
        self.registers.event_crc = crc32
        stream.emit(self.registers.array, self.ring.transactions, timestamp, size)
