"""Durable Parquet files of decoded rows, before a changelog lists them, and files for row events
that do not fit into memory, or wait for a COMMIT."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from lockstep.pipeline.model.batch import WaitingFile
from lockstep.pipeline.ports.held import RequireHeld, no_check
from lockstep.pipeline.values.segment import SegmentFile


class SegmentWriter(Protocol):
    """A segment that is being written; files roll over by size. Nothing is durable before `close`.

    Writing may continue after `write` returned; a later call raises what goes wrong then.
    """

    def write(self, changes: pa.Table) -> None:
        """Write row images, enough for a row group or all that there are. Images that leave
        columns out have `layout.present_name` as their last column, and go to files with an ending
        of their own (`segment.ENDINGS`)."""

    def cut(self) -> int:
        """End the current file, so that later rows go to new files, and return the number of
        files."""

    def drop(self, files: int) -> None:
        """Delete what was written after the first `files` files, as `cut` counts them."""

    def close(self) -> tuple[SegmentFile, ...]:
        """Finish the files and make them and their folder durable (fsync)."""


class SegmentStore(Protocol):
    """Parquet files in the changelog's folders, not yet part of any Delta table.

    `folder` is a `TableState.changelog`, or one of the source's own tables. File names have the
    batch's id, so that an abandoned batch's files are found without a list of them.
    """

    def open(
        self,
        folder: str,
        *,
        batch: int,
        schema_version: int,
        schema: pa.Schema,
        updated: bool = False,
    ) -> SegmentWriter:
        """Begin a segment. `schema`: the columns of every row. `updated`: `layout.updated_field`
        is one of them, and the files' names say so."""

    def open_chunk(self, folder: str, *, load: int, chunk: int, schema: pa.Schema) -> SegmentWriter:
        """Begin a chunk of a table whose rows are being read; delete what an earlier try left of
        it."""

    def damaged(self, folder: str, files: Iterable[SegmentFile]) -> list[str]:
        """Return what is wrong with recorded files (missing, another size, another checksum), one
        sentence each; empty if all are intact."""

    def pieces(
        self, folder: str, files: Iterable[SegmentFile], columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """Yield the files' row images in order, with `columns` or all; each piece fits into memory
        several times over."""

    def unpacked(self, folder: str, files: Iterable[SegmentFile]) -> int:
        """Return the bytes of the files' values before compression, without reading them."""

    def discard(self, source: str, batch: int) -> int:
        """Delete every file of a batch below the source's changelogs and in its own tables, and
        return how many."""

    def give_up_uploads(self, source: str) -> None:
        """Abort the unfinished uploads of killed runs anywhere below the source's folder. Only for
        the holder of the source, while nothing is written there."""

    def discard_load(self, folder: str, load: int) -> int:
        """Delete every file of a load, and return how many."""

    def bring(self, origin: str, folder: str, files: Iterable[SegmentFile]) -> None:
        """Move files to `folder` durably, each atomically and over a file of its name. In `origin`
        each has its `unrevised_name`; one that is missing there was moved before."""

    def clear(self, folder: str) -> None:
        """Delete the folder and everything below it; a missing folder is no error. Only for places
        whose files are recorded nowhere."""

    def purge(
        self, folder: str, through: int, kept: Collection[str] = (), held: RequireHeld = no_check
    ) -> int:
        """Delete the files of batches up to `through`, recorded or not, but for those `kept`, and
        return how many. They are listed before `held` is called, so that files of a run that takes
        over stay."""

    def remove(self, folder: str, files: Iterable[SegmentFile]) -> None:
        """Delete files that no table lists and nobody reads again. Repeating it changes
        nothing."""


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
