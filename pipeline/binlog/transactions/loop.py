"""The Python side of the compiled loop: the arrays that it works on, and the steps over events that
Python handles itself."""

from __future__ import annotations

from typing import Final

import numpy as np

from lockstep.pipeline.binlog.rows.maps import TableMaps
from lockstep.pipeline.binlog.rows.table_map import read_table_map
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream import stream
from lockstep.pipeline.binlog.stream.framing import (
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
from lockstep.pipeline.binlog.stream.intake import InputBytes
from lockstep.pipeline.binlog.stream.registers import Registers
from lockstep.pipeline.binlog.stream.ring import Block, Integers, Ring
from lockstep.pipeline.binlog.stream.rules import compiled_table
from lockstep.pipeline.binlog.stream.text_buffer import TextBuffer
from lockstep.pipeline.values.position import Coordinates

_VERIFIED_HERE: Final = (EventType.FORMAT_DESCRIPTION, EventType.ROTATE)
"""Events whose checksum Python verifies, not compiled code."""

_TYPE_AT: Final = 4
_PACKET_HEAD: Final = 4
"""Length 3, sequence number 1."""


class Loop:
    """The loop's registers and arrays. The arrays hold the complete transactions, and after them
    the open one."""

    def __init__(self, offset: int, ring: Ring, maps: TableMaps, texts: TextBuffer) -> None:
        self.registers = Registers(offset)
        self.ring = ring
        self.maps = maps
        self.texts = texts
        self._rules = compiled_table()
        self._input = InputBytes(np.empty(0, np.uint8), 0, 0, WIRE)

    def scan(self, current: InputBytes) -> int:
        """Process events of this input; return one of `outcomes`."""
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

    # -- the current event -----------------------------------------------------------

    def event(self, at: Coordinates) -> Event:
        packet, checksum = self._bytes(), self.registers.checksum
        nested = self._input.mode == NESTED
        if not nested and (checksum is None or packet[_TYPE_AT] in _VERIFIED_HERE):
            return read_first_event(packet, at, checksum=checksum)
        return read_event(packet, at, checksum=checksum and not nested)

    def bind_map(self) -> None:
        """Register the current table map, so that the loop handles its repetitions itself."""
        has_checksum = self._input.mode != NESTED and self.registers.checksum
        packet = self._bytes(CHECKSUM_BYTES if has_checksum else 0)
        table_map = read_table_map(packet, self.maps.writer)
        self.maps.bind(table_map.table_id, self.maps.add(table_map))

    def large_rows(self) -> Block:
        """Return the current row event, which is larger than the ring, as a block of the input."""
        row = self.registers.events
        return Block(self._input.data, self.ring.events[row : row + 1].copy())

    def packet(self) -> bytes:
        begin = self._input.at + _PACKET_HEAD
        return self._input.data[begin : self.registers.next].tobytes()

    def _bytes(self, without: int = 0) -> bytes:
        begin, size = self.registers.event_at, self.registers.event_size
        return self._input.data[begin : begin + size - without].tobytes()

    # -- stepping over the current event ---------------------------------------------

    def enter(self) -> None:
        """Step over the event in the input, but not in the log, since the events that it contains
        come first."""
        registers = self.registers
        registers.at = self._input.at = registers.next
        if self._input.mode == WIRE:
            registers.sequence += 1

    def add_to_log(self, size: int) -> None:
        """Step over `size` bytes of the log, which belong to the open transaction."""
        self.registers.offset += size
        self.open_row[columns.LOG_BYTES] += size

    def advance(self, *, artificial: bool = False) -> None:
        """Step over the current event; an artificial one occupies no bytes of the log."""
        self.enter()
        if self._input.mode != NESTED and not artificial:
            self.add_to_log(self.registers.event_size)

    def pass_rows(self) -> None:
        """Step over the current row event, which is not put into the ring."""
        flags = self._input.data[self.registers.event_at + HEADER_BYTES + 6]
        self.registers.statement += int(flags) & STATEMENT_END
        self.advance()

    # -- the index of transactions -----------------------------------------------------

    @property
    def open_row(self) -> Integers:
        row: Integers = self.ring.transactions[self.registers.transactions]
        return row

    def begin(self) -> Integers:
        """Open a transaction at the current offset; return its index row, still without GTID."""
        stream.open_transaction(self.registers.array, self.open_row)
        return self.open_row

    def finish(self, timestamp: int, size: int, crc32: int) -> None:
        """Complete the open transaction, whose last event has `size` bytes in the log; to be called
        after stepping over that event."""
        self.registers.event_crc = crc32
        stream.emit(self.registers.array, self.ring.transactions, timestamp, size)
