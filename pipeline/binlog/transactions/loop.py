"""The Python side of the compiled loop (`stream`): the arrays that the loop works on,
the steps over events that Python handles itself, and the place in the log that reading
has reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from lockstep.pipeline.binlog.rows.maps import TableMaps
from lockstep.pipeline.binlog.rows.table_map import read_table_map
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream import stream
from lockstep.pipeline.binlog.stream.control import (
    FormatDescription,
    read_description,
    read_rotate,
)
from lockstep.pipeline.binlog.stream.framing import (
    CHECKSUM_BYTES,
    HEADER_BYTES,
    NESTED,
    STATEMENT_END,
    TYPE_AT,
    WIRE,
    Event,
    EventType,
    read_event,
    require_supported,
    verify_and_read,
)
from lockstep.pipeline.binlog.stream.intake import InputBytes
from lockstep.pipeline.binlog.stream.registers import Registers
from lockstep.pipeline.binlog.stream.ring import Block, Integers, Ring
from lockstep.pipeline.binlog.stream.rules import compiled_table
from lockstep.pipeline.binlog.stream.stream import TextBuffer
from lockstep.pipeline.values.position import Anchor, Coordinates, LogFile

_VERIFIED_HERE: Final = (EventType.FORMAT_DESCRIPTION, EventType.ROTATE)
"""Events whose checksum is verified by Python instead of compiled code."""

_PACKET_HEADER_BYTES: Final = 4
"""Length 3, sequence number 1."""


class Loop:
    """The loop's registers and arrays. The arrays have the complete transactions first,
    then the open one."""

    def __init__(self, offset: int, ring: Ring, maps: TableMaps, texts: TextBuffer) -> None:
        self.registers = Registers(offset)
        self.ring = ring
        self.maps = maps
        self.texts = texts
        self._rules = compiled_table()
        self._input = InputBytes(np.empty(0, np.uint8), 0, 0, WIRE)

    def scan(self, current: InputBytes) -> int:
        """Process events of this input; return why the loop ended (`stream.scan`)."""
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
            self.maps.contents,
            self.maps.entries,
            self._rules,
            self.texts.data,
            self.texts.index,
        )
        current.at = registers.at
        return code

    # -- the current event -----------------------------------------------------------

    def event(self, at: Coordinates) -> Event:
        """Return the current event, which is at `at`, verified."""
        packet, has_checksum = self._event_bytes(), self.registers.has_checksums
        if self._input.mode == NESTED:
            has_checksum = False
        elif has_checksum is None or packet[TYPE_AT] in _VERIFIED_HERE:
            return verify_and_read(packet, at, has_checksum=has_checksum)
        log_server_id = self.registers.server_id
        return require_supported(
            read_event(packet, at, has_checksum=has_checksum, log_server_id=log_server_id)
        )

    def bind_map(self) -> None:
        """Register the current table map, so that the loop itself handles the same map
        later."""
        has_checksum = self._input.mode != NESTED and self.registers.has_checksums
        packet = self._event_bytes(CHECKSUM_BYTES if has_checksum else 0)
        table_map = read_table_map(packet, self.maps.writer)
        self.maps.bind(table_map.table_id, self.maps.add(table_map))

    def large_rows(self) -> Block:
        """Return the current row event, which is larger than the ring, as a block of
        the input."""
        row = self.registers.events
        return Block(self._input.data, self.ring.events[row : row + 1].copy())

    def packet(self) -> bytes:
        """Return the current packet, which has no event, without its header."""
        begin = self._input.at + _PACKET_HEADER_BYTES
        return self._input.data[begin : self.registers.next].tobytes()

    def _event_bytes(self, trailing_bytes: int = 0) -> bytes:
        begin, size = self.registers.event_at, self.registers.event_size
        return self._input.data[begin : begin + size - trailing_bytes].tobytes()

    # -- stepping over the current event ---------------------------------------------

    def step_into(self) -> None:
        """Step over the current event in the input, but not in the log: the position
        moves when the events inside it are read."""
        registers = self.registers
        registers.at = self._input.at = registers.next
        if self._input.mode == WIRE:
            registers.sequence += 1

    def add_to_log(self, size: int) -> None:
        """Step over `size` bytes of the log, which belong to the open transaction."""
        self.registers.offset += size
        self.open_row[columns.LOG_BYTES] += size

    def step_over(self, *, artificial: bool = False) -> None:
        """Step over the current event; an artificial one occupies no bytes of the log."""
        self.step_into()
        if self._input.mode != NESTED and not artificial:
            self.add_to_log(self.registers.event_size)

    def step_over_rows(self) -> None:
        """Step over the current row event, which is not put into the ring."""
        flags = self._input.data[self.registers.event_at + HEADER_BYTES + 6]
        self.registers.statement += int(flags) & STATEMENT_END
        self.step_over()

    # -- the index of transactions -----------------------------------------------------

    @property
    def open_row(self) -> Integers:
        """The open transaction's row in the index of transactions."""
        row: Integers = self.ring.transactions[self.registers.transactions]
        return row

    def begin(self) -> Integers:
        """Open a transaction at the current offset; return its index row, still without
        GTID."""
        stream.open_transaction(self.registers.array, self.open_row)
        return self.open_row

    def finish(self, timestamp: int, size: int, crc32: int) -> None:
        """Complete the open transaction. `timestamp` (seconds), `size` (bytes of the
        log), `crc32`: those of its last event, which the caller has stepped over."""
        self.registers.event_crc = crc32
        stream.emit(self.registers.array, self.ring.transactions, timestamp, size)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a reading. It stops between two transactions: at or after `end`, or
    after this number of transactions or of bytes of the log. None means no limit."""

    end: Coordinates | None = None
    transactions: int | None = None
    log_bytes: int | None = None

    def offset_in(self, file: LogFile) -> int | None:
        """Return the offset of `end` in a file; 0 if `end` is in an earlier file, None
        if it is in a later one."""
        if self.end is None or file.number < self.end.file.number:
            return None
        return self.end.offset if file.number == self.end.file.number else 0


class LogPlace:
    """The place in the log that reading has reached.

    `files`: all files so far, in order; the index of transactions refers to them by
    number. `file_created`: when the current file was created (seconds since the epoch),
    0 if unknown. `last_event`: the newest event of the log that stands between
    transactions."""

    def __init__(
        self, start: Coordinates, registers: Registers, limits: Limits, file_created: int
    ) -> None:
        self.files: list[LogFile] = [start.file]
        self.description: FormatDescription | None = None
        self.file_created = file_created
        self.last_event: Event | None = None
        self._registers = registers
        self.set_limits(limits)

    @property
    def at(self) -> Coordinates:
        return Coordinates(self.files[self._registers.file], self._registers.offset)

    def anchor(self, event: Event) -> Anchor:
        """Return the anchor of an event between transactions, by which a later run
        recognises it."""
        return Anchor(event.offset, event.size, event.crc32, "", self.file_created)

    def changes_writer(self, event: Event) -> bool:
        """Return whether a server of another version wrote the log from this event on.
        Everything before it has to be decoded by the old version's rules first."""
        if event.type is not EventType.FORMAT_DESCRIPTION or self.description is None:
            return False
        return read_description(event).server_version != self.description.server_version

    # -- how it moves ----------------------------------------------------------------

    def apply_description(self, event: Event) -> FormatDescription:
        """Read a format description, and apply it to all events after it."""
        description = read_description(event)
        self.description = description
        self._registers.has_checksums = description.has_checksums
        self._registers.server_id = event.server_id
        if not event.is_artificial:
            self.file_created = description.created_at
        return description

    def move(self, event: Event) -> None:
        """Move the place past an event between transactions, which the loop has stepped
        over."""
        if event.type is EventType.ROTATE:
            next_place = read_rotate(event.body, event.at)
            if event.is_artificial and next_place.file == self.at.file:
                # A dump begins with this event. The event's offset may have wrapped, so
                # it is ignored: the reading is at the place from which the dump was
                # requested.
                return
            if next_place.file != self.files[-1]:
                self.files.append(next_place.file)
                self._registers.file = len(self.files) - 1
            self._registers.offset = next_place.offset
            self._set_stop_offset()
        if not event.is_artificial:
            self.last_event = event

    # -- where it stops ----------------------------------------------------------------

    def set_limits(self, limits: Limits) -> None:
        """Set the limits, whose transactions and bytes are counted from now on."""
        self._limits = limits
        self._registers.limit_from_here(limits.transactions, limits.log_bytes)
        self._set_stop_offset()

    def _set_stop_offset(self) -> None:
        self._registers.stop_at(self._limits.offset_in(self.files[-1]))
