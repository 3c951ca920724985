"""Where the files of a replay wait, before anything tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.ports.segments import SegmentStore, SegmentWriter
from pipeline.segment import SegmentFile


def scratch_path(source: str) -> str:
    """No database has a folder of that name: see `changes.layout`."""
    return f"{source}/_replays"


@dataclass(frozen=True, slots=True)
class ScratchStore:
    """`pipeline.ports.SegmentStore` below the scratch folder of a source."""

    store: SegmentStore
    source: str

    def path(self, folder: str) -> str:
        return f"{scratch_path(self.source)}/{folder.removeprefix(f'{self.source}/')}"

    def open(
        self,
        folder: str,
        *,
        batch: int,
        schema_version: int,
        schema: pa.Schema,
        updated: bool = False,
    ) -> SegmentWriter:
        return self.store.open(
            self.path(folder),
            batch=batch,
            schema_version=schema_version,
            schema=schema,
            updated=updated,
        )

    def open_chunk(self, folder: str, *, load: int, chunk: int, schema: pa.Schema) -> SegmentWriter:
        return self.store.open_chunk(self.path(folder), load=load, chunk=chunk, schema=schema)

    def damaged(self, folder: str, files: Iterable[SegmentFile]) -> list[str]:
        return self.store.damaged(self.path(folder), files)

    def pieces(
        self, folder: str, files: Iterable[SegmentFile], columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        return self.store.pieces(self.path(folder), files, columns)

    def unpacked(self, folder: str, files: Iterable[SegmentFile]) -> int:
        return self.store.unpacked(self.path(folder), files)

    def discard(self, source: str, batch: int) -> int:
        """Nothing is recorded of a replay's files, so none is discarded by its batch."""
        return 0

    def give_up_uploads(self, source: str) -> None:
        self.store.give_up_uploads(source)

    def discard_load(self, folder: str, load: int) -> int:
        return self.store.discard_load(self.path(folder), load)

    def bring(self, origin: str, folder: str, files: Iterable[SegmentFile]) -> None:
        self.store.bring(self.path(origin), folder, files)

    def clear(self, folder: str) -> None:
        self.store.clear(self.path(folder))

    def remove(self, folder: str, files: Iterable[SegmentFile]) -> None:
        self.store.remove(self.path(folder), files)
