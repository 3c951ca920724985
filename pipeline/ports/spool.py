"""Files for row events that do not fit into memory, or wait for a COMMIT."""

from __future__ import annotations

from typing import Protocol

from lockstep.pipeline.model.batch import WaitingFile


class EventFile(Protocol):
    """A file of row events (`pipeline.binlog.transactions.spill`): appended to, and read at any
    offset."""

    def write(self, data: bytes | memoryview) -> None: ...

    def read(self, at: int, count: int) -> bytes:
        """Return `count` bytes from the offset `at`; `SegmentsLost` if they are missing."""

    def close(self) -> None:
        """Close the file; a scratch file is deleted."""


class Spool(Protocol):
    """Encrypted files in which row events wait. A full disk is `LakeUnavailable`."""

    def scratch(self) -> EventFile:
        """Return a new file that is deleted with this process."""

    def prepared(self, source: str, batch: int, number: int) -> EventFile:
        """Return a new file for the batch's prepared transaction of that number."""

    def seal(self, file: EventFile) -> WaitingFile:
        """Make a prepared file and its folder durable, and close it."""

    def open(self, source: str, file: WaitingFile) -> EventFile:
        """Open a sealed file; `SegmentsLost` if it is missing or not what was sealed."""

    def discard(self, source: str, batch: int) -> int:
        """Delete the files that a batch prepared, and return how many."""

    def remove(self, source: str, file: WaitingFile) -> None:
        """Delete the sealed file of a transaction that ended. Call it only once the batch with that
        end is acknowledged: until then the batch may be abandoned and need the file again.
        Repeating it changes nothing."""
