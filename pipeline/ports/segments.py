"""Files that a capture writes. Segments are Parquet files of decoded row changes, which
a changelog (the Delta table with all changes of a source table) lists later. Event
files hold raw row events that do not fit into memory or wait for an XA COMMIT."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from lockstep.pipeline.model.batch import WaitingFile
from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.values.segment import SegmentFile


class SegmentWriter(Protocol):
    """A segment that is being written; a new file begins at a certain size. Nothing is
    durable before `close`.

    Files may be written in the background after `write` has returned; a later call
    raises errors of that work.
    """

    def write(self, changes: pa.Table) -> None:
        """Write row images. Every call but the last has enough of them for a row group.
        Images that lack columns have `layout.present_name` as their last column, and go
        to files with an ending of their own (`segment.FILE_ENDINGS`)."""

    def end_file(self) -> int:
        """End the current file, so that later rows go to new files, and return the
        number of files."""

    def drop(self, file_count: int) -> None:
        """Delete all files after the first `file_count`, a number that `end_file`
        returned."""

    def close(self) -> tuple[SegmentFile, ...]:
        """Finish the files and make them and their folder durable (fsync)."""


class SegmentStore(Protocol):
    """Parquet files in the changelog's folders, not yet part of any Delta table.

    `folder` is the path of a changelog (`TableState.changelog`) or of a system table
    (`_transactions`, `_ddl`). A file's name has the batch's id, so that an abandoned
    batch's files are found without a list. It also has a part that is unique to the
    process that wrote the file.
    """

    def open(
        self,
        folder: str,
        *,
        batch: int,
        schema_version: int,
        schema: pa.Schema,
        has_updated: bool = False,
    ) -> SegmentWriter:
        """Begin a segment. `schema`: the columns of every row. `has_updated`: the
        column `layout.updated_field`, which lists what an update changed, is one of
        them, and the files' names say so."""

    def open_chunk(self, folder: str, *, load: int, chunk: int, schema: pa.Schema) -> SegmentWriter:
        """Begin a chunk of rows that are read from the source; delete the files of an
        earlier try."""

    def damage_sentences(self, folder: str, files: Iterable[SegmentFile]) -> list[str]:
        """Return one sentence for each file that differs from its record: it is
        missing, or has another size or checksum."""

    def pieces(
        self, folder: str, files: Iterable[SegmentFile], columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """Yield the files' row images in order, with `columns` (None: all). Each piece
        is so small that several copies of it fit into memory."""

    def unpacked_bytes(self, folder: str, files: Iterable[SegmentFile]) -> int:
        """Estimate, without reading the files, how many bytes of memory their values
        take."""

    def delete_batch(self, source: str, batch: int) -> int:
        """Delete the files of a batch in the source's changelogs and system tables, and
        return their number. If this process wrote files of the batch, delete only
        these, otherwise all."""

    def abort_uploads(self, source: str) -> None:
        """Abort the unfinished uploads of killed runs anywhere below the source's
        folder. Only for the holder of the source, while nothing is written there."""

    def delete_load(self, folder: str, load: int) -> None:
        """Delete every file of a load."""

    def move_files(self, origin: str, target: str, files: Iterable[SegmentFile]) -> None:
        """Move files durably from the folder `origin` to the folder `target`, each
        atomically; a file of the same name is replaced. Names in `origin` lack the
        revision. A file that is missing there was moved by an earlier try."""

    def delete_folder(self, folder: str) -> None:
        """Delete the folder and everything below it; a missing folder is no error. Only
        for folders with no file that the ledger records."""

    def delete_batches(
        self,
        folder: str,
        through: int,
        kept_names: Collection[str] = (),
        require_held: RequireHeld = no_check,
    ) -> int:
        """Delete all files of batches up to `through`, also unrecorded ones, and all
        files of other programs, except `kept_names`. Return the number of deleted
        files. `require_held` is called after the folder was listed: files of a run that
        takes over later are not in that list."""

    def delete_files(self, folder: str, files: Iterable[SegmentFile]) -> None:
        """Delete files that no table lists any more. A missing file is no error."""


class EventFile(Protocol):
    """A file of row events (`pipeline.binlog.transactions.spill`), which is read at any
    offset."""

    def read(self, offset: int, count: int) -> bytes:
        """Return `count` bytes from the offset `offset`; raise `SegmentsLost` if they
        are missing."""

    def close(self) -> None:
        """Close the file; a scratch file is deleted. Closing it again has no effect."""


class NewEventFile(EventFile, Protocol):
    """A file of row events that is being written, and may be read meanwhile."""

    def write(self, data: bytes | memoryview) -> None:
        """Append the data."""


class Spool(Protocol):
    """Encrypted files of row events. Methods raise `LakeUnavailable` if the disk is
    full."""

    def create_scratch_file(self) -> NewEventFile:
        """Return a new file that is deleted with this process."""

    def create_prepared_file(self, source: str, batch: int, number: int) -> NewEventFile:
        """Return a new file for the batch's prepared transaction of that number."""

    def seal(self, file: NewEventFile) -> WaitingFile:
        """Make a prepared file and its folder durable, and close it."""

    def open(self, source: str, file: WaitingFile) -> EventFile:
        """Open a sealed file; raise `SegmentsLost` if it is missing or was changed."""

    def delete_batch(self, source: str, batch: int) -> int:
        """Delete the files of a batch's prepared transactions, and return their number."""

    def delete_file(self, source: str, file: WaitingFile) -> None:
        """Delete the sealed file of a transaction that was committed or rolled back.
        Call it only after the batch with its COMMIT or ROLLBACK is acknowledged: until
        then the batch may be abandoned, and the next one needs the file. A missing file
        is no error."""
