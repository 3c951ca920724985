"""Row events that do not fit into memory, or have to wait."""

from __future__ import annotations

from typing import Protocol

from pipeline.batch import WaitingFile


class EventFile(Protocol):
    """A file of row events (`pipeline.binlog.transactions.spill`): written forward, read
    anywhere."""

    def write(self, data: bytes | memoryview) -> None: ...

    def read(self, at: int, count: int) -> bytes:
        """So many bytes from there; `SegmentsLost` if they are not there."""

    def close(self) -> None:
        """Done with it. A scratch file is gone then."""


class Spool(Protocol):
    """Where row events wait, encrypted. Full disks are `LakeUnavailable`."""

    def scratch(self) -> EventFile:
        """A file that lives no longer than this process."""

    def prepared(self, source: str, batch: int, number: int) -> EventFile:
        """A new file for the batch's so-manieth prepared transaction."""

    def seal(self, file: EventFile) -> WaitingFile:
        """Make a prepared file and its folder durable, and close it."""

    def open(self, source: str, file: WaitingFile) -> EventFile:
        """A sealed file; `SegmentsLost` if it is missing or not what was sealed."""

    def discard(self, source: str, batch: int) -> int:
        """Delete the files that a batch prepared; how many."""

    def remove(self, source: str, file: WaitingFile) -> None:
        """Delete a sealed file whose transaction was ended, once the batch that ended it
        is acknowledged: an earlier end may be abandoned and the file needed again.
        Repeating it changes nothing."""
