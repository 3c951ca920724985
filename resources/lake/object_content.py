"""What is read from an object and written to one, piece by piece, each request counted.

Belongs here: the count of a store's requests, and the two that make many. Does not: requests that
are one (`paths`), which client else asks (`requests`).
"""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PART_BYTES: Final = 10 << 20
"""An upload that grows beyond this goes in parts of this size."""

PARTS_AT_ONCE: Final = 4
"""Parts under way: with the one that is filled, 50 MiB of memory a file."""

READ_BYTES: Final = 1 << 20
"""Asked for at a time where less is wanted."""

PAGE: Final = 1000
"""Keys that a store lists, or deletes, in one request."""


@dataclass(slots=True)
class RequestCount:
    """Requests that this process made, any thread. One that the client repeats counts once."""

    made: int = 0
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, requests: int = 1) -> None:
        with self._turn:
            self.made += requests

    def add_pages(self, keys: int) -> None:
        """For so many keys; of none, too, a store has to be asked."""
        self.add(max(1, -(-keys // PAGE)))


class ObjectReader(io.RawIOBase):
    """An object as Python's readers take it, read where it is asked for."""

    def __init__(self, store: ObjectStore, key: str, size: int, count: RequestCount) -> None:
        self._store, self._key, self._size, self._count = store, key, size, count
        self._at = 0
        self._held, self._begins = memoryview(b""), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0
        skipped = self._at - self._begins
        if not 0 <= skipped < len(self._held):
            self._fetch(wanted)
            skipped = 0
        found = self._held[skipped : skipped + wanted]
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)

    def _fetch(self, wanted: int) -> None:
        import obstore

        self._count.add()
        end = min(self._size, self._at + max(wanted, READ_BYTES))
        content = obstore.get_range(self._store, self._key, start=self._at, end=end)
        self._held, self._begins = memoryview(content), self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, begin + offset)
        return self._at

    def tell(self) -> int:
        return self._at


class ObjectWriter:
    """Takes the content of an object, which is there once this is closed: in one request, or in
    parts, which are begun and put together by one each."""

    def __init__(self, store: ObjectStore, key: str, count: RequestCount) -> None:
        import obstore

        self._sink = obstore.open_writer(
            store, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
        )
        self._count, self._written = count, 0

    def write(self, data: bytes | memoryview, /) -> int | None:
        self._written += len(data)
        return self._sink.write(data)

    def close(self) -> None:
        parts = -(-self._written // PART_BYTES)
        self._count.add(1 if self._written < PART_BYTES else parts + 2)
        self._sink.close()
