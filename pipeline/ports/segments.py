"""Decoded rows in durable Parquet files, before any table shows them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from pipeline.ports.held import Held, unasked
from pipeline.segment import SegmentFile


class SegmentWriter(Protocol):
    """One segment being written; files roll over by size. Not durable before `close`.

    Writing may go on after `write` returned; what goes wrong then is raised by a later call.
    """

    def write(self, changes: pa.Table) -> None:
        """Row images enough for a row group, or all there are. Those that leave columns out
        have `layout.present_name` as a last column, and go to files that end with `PARTIAL`."""

    def cut(self) -> int:
        """End the file at hand: what follows goes to files of its own. How many there are."""

    def drop(self, files: int) -> None:
        """Delete what was written behind the first so many files, as `cut` counted them."""

    def close(self) -> tuple[SegmentFile, ...]:
        """Finish the files and make them and their folder durable (fsync)."""


class SegmentStore(Protocol):
    """Parquet files in the changelog's folders, not yet part of any Delta table.

    `folder` is a `TableState.changelog`, or one of the source's own tables. File names carry
    the batch id, so that an abandoned batch's files are found without a list of them.
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
        """`schema`: what every row has. `updated`: `layout.updated_field` is part of it, and
        the files' names say so."""

    def open_chunk(self, folder: str, *, load: int, chunk: int, schema: pa.Schema) -> SegmentWriter:
        """Rows of a table that is being loaded. What an earlier try left of the chunk is gone."""

    def damaged(self, folder: str, files: Iterable[SegmentFile]) -> list[str]:
        """What is wrong with files that should be there (missing, other size, other
        checksum), a sentence each; empty when all are intact."""

    def pieces(
        self, folder: str, files: Iterable[SegmentFile], columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """The files' row images in order, `columns` of them or all; as many at a time as fit into
        memory several times over."""

    def unpacked(self, folder: str, files: Iterable[SegmentFile]) -> int:
        """Bytes of the files' values before compression, without reading them."""

    def discard(self, source: str, batch: int) -> int:
        """Delete every file of a batch below the source's changelogs and in its own tables;
        how many."""

    def give_up_uploads(self, source: str) -> None:
        """Give up what a run that was killed left on its way to a store, anywhere below the
        source's folder: for whoever holds the source, while nothing is written there."""

    def discard_load(self, folder: str, load: int) -> int:
        """Delete every file of a load; how many."""

    def bring(self, origin: str, folder: str, files: Iterable[SegmentFile]) -> None:
        """Move files to `folder`, durably, each at once and over one of its name. In `origin`
        each has the name that it was `revision.written_as`; one that is not there any more was
        brought before."""

    def clear(self, folder: str) -> None:
        """Delete the folder with all that is in and below it; none there is no error. For a
        place where files wait that nothing tells of."""

    def purge(
        self, folder: str, through: int, kept: Collection[str] = (), held: Held = unasked
    ) -> int:
        """Delete the files of batches up to that one, whoever knows them, but for those `kept`;
        how many. They are listed before `held` is asked, so that what whoever takes over brings
        there stays."""

    def remove(self, folder: str, files: Iterable[SegmentFile]) -> None:
        """Delete files that no table shows and nobody reads again. Repeating it changes
        nothing."""
