"""Where in the log the reading stands, and what the file there says of itself.

Belongs here: the files read so far, the events that move the place without being part of a
transaction, and the limits, told to the loop by the file that it is in. Does not: places of
transactions, which their index has; how far whoever takes them has come (`buffer`).
"""

from __future__ import annotations

from pipeline.binlog.stream.control import read_rotate
from pipeline.binlog.stream.description import Description, read_description
from pipeline.binlog.stream.framing import Event, EventType
from pipeline.binlog.stream.registers import Registers
from pipeline.binlog.stream.transaction_index import is_at_stop
from pipeline.binlog.transactions.limits import Limits
from pipeline.position import Coordinates, LogFile, Witness


class LogPlace:
    """`files`: all that were read, in order; the index of transactions counts in them.
    `created`: when the file at hand was made, 0 if nobody knows. `last`: the newest event that
    moved the place and is of no transaction."""

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

    @property
    def flavour(self) -> str:
        """Of the server that wrote the file; "" before its format description."""
        return self.description.flavour if self.description else ""

    def witness(self, event: Event) -> Witness:
        """The proof that an event of the file at hand, which is of no transaction, was read."""
        return Witness(event.offset, event.size, event.crc32, "", self.created)

    def changes_writer(self, event: Event) -> bool:
        """Whether from this event on another version of a server wrote the log: what stands
        before it is read by the old one's rules."""
        if event.type is not EventType.FORMAT_DESCRIPTION or self.description is None:
            return False
        return read_description(event).version != self.description.version

    # -- how it moves ----------------------------------------------------------------

    def describe(self, event: Event) -> Description:
        """A format description: what it says holds for what follows."""
        self.description = description = read_description(event)
        self._registers.checksum = description.checksum
        self._registers.server_id = event.server_id
        if not event.artificial:
            self.created = description.created
        return description

    def move(self, event: Event) -> None:
        """The loop stepped over an event that stands between transactions."""
        if event.type is EventType.ROTATE:
            to = read_rotate(event.body, event.at)
            if event.artificial and to.file == self.at.file:
                # Where the dump begins: what was asked for counts, the field may wrap.
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

    def leave(self, size: int) -> None:
        """What an event of so many bytes held is read: the log stands behind it."""
        self._registers.offset += size

    # -- where it stops ----------------------------------------------------------------

    def count_from_here(self, limits: Limits) -> None:
        """From here on these limits hold."""
        self._limits = limits
        self._registers.count_from_here(limits.transactions, limits.log_bytes)
        self._watch_end()

    def _watch_end(self) -> None:
        self._registers.stop_at(self._limits.offset_in(self.files[-1]))

    def stop_here(self) -> None:
        """Reading stops at the next end of a transaction."""
        self._registers.stop_here()

    @property
    def stops(self) -> bool:
        """Whether reading is to stop, given that it stands between transactions."""
        return is_at_stop(self._registers.array)
