"""The place in the log that the reading has reached, and the format description in force there."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.pipeline.binlog.stream.control import read_rotate
from lockstep.pipeline.binlog.stream.description import Description, read_description
from lockstep.pipeline.binlog.stream.framing import Event, EventType
from lockstep.pipeline.binlog.stream.registers import Registers
from lockstep.pipeline.values.position import Anchor, Coordinates, LogFile


@dataclass(frozen=True, slots=True)
class Limits:
    """Where reading stops: at the first place between transactions at or after `end`, or
    after so many transactions or bytes of the log; None means no limit."""

    end: Coordinates | None = None
    transactions: int | None = None
    log_bytes: int | None = None

    def offset_in(self, file: LogFile) -> int | None:
        """Return the offset of `end` in a file; 0 if the end is before it, None if after it."""
        if self.end is None or file.number < self.end.file.number:
            return None
        return self.end.offset if file.number == self.end.file.number else 0


class LogPlace:
    """`files`: all files so far, in order; the index of transactions refers to them by number.
    `created`: when the current file was created, 0 if unknown. `last`: the newest event that
    moved the place and belongs to no transaction."""

    def __init__(
        self, start: Coordinates, registers: Registers, limits: Limits, created: int
    ) -> None:
        self.files: list[LogFile] = [start.file]
        self.description: Description | None = None
        self.created = created
        self.last: Event | None = None
        self._registers = registers
        self.count_from_here(limits)

    @property
    def at(self) -> Coordinates:
        return Coordinates(self.files[self._registers.file], self._registers.offset)

    def anchor(self, event: Event) -> Anchor:
        return Anchor(event.offset, event.size, event.crc32, "", self.created)

    def changes_writer(self, event: Event) -> bool:
        """Return whether another version of a server wrote the log from this event on. Everything
        before it has to be decoded by the old version's rules first."""
        if event.type is not EventType.FORMAT_DESCRIPTION or self.description is None:
            return False
        return read_description(event).version != self.description.version

    # -- how it moves ----------------------------------------------------------------

    def describe(self, event: Event) -> Description:
        """Read a format description, which applies to all events after it."""
        self.description = description = read_description(event)
        self._registers.checksum = description.checksum
        self._registers.server_id = event.server_id
        if not event.artificial:
            self.created = description.created
        return description

    def move(self, event: Event) -> None:
        if event.type is EventType.ROTATE:
            to = read_rotate(event.body, event.at)
            if event.artificial and to.file == self.at.file:
                # A dump begins with this event. Its offset field may have wrapped, so the
                # place that the dump was asked for counts.
                return
            self._move_to(to)
        if not event.artificial:
            self.last = event

    def _move_to(self, to: Coordinates) -> None:
        if to.file != self.files[-1]:
            self.files.append(to.file)
            self._registers.file = len(self.files) - 1
        self._registers.offset = to.offset
        self._watch_end()

    # -- where it stops ----------------------------------------------------------------

    def count_from_here(self, limits: Limits) -> None:
        self._limits = limits
        self._registers.count_from_here(limits.transactions, limits.log_bytes)
        self._watch_end()

    def _watch_end(self) -> None:
        self._registers.stop_at(self._limits.offset_in(self.files[-1]))
