"""Paths of the lake: files of this machine, or objects of a store under the words of `pathlib`.

Each word becomes a request of `obstore`, which is the client that delta-rs has inside, and is
counted. What is durable is said in `storage`.

A folder is a prefix of keys and nothing by itself: there is none to make, and an empty one is
gone; the empty objects that Hadoop marks folders with are passed over, for no file of the lake is
empty. An object is there whole or not at all, and a reader sees it from the answer on (S3 is
consistent since 2020, Google's and Azure's stores always were). Nothing is listed where a key is
known. Errors: FileNotFoundError as `pathlib` has it; all others are obstore's own, which
`storage.lake_errors` knows.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from obstore import ObjectMeta
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


AGENT: Final = "lockstep-lake"
DELTA_AGENT: Final = "lockstep-delta-rs"
"""How our client, and delta-rs, name themselves to a store, for its log of accesses."""


class ByteSink(Protocol):
    """What takes bytes one after the other."""

    def write(self, data: bytes | memoryview, /) -> int | None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """What a store tells of an object: bytes, and seconds since 1970 of its last writing."""

    st_size: int
    st_mtime: float


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, or what a store calls so. `url` has no `/` at its end; `options` are those that
    it was opened with, which delta-rs takes as well; `count`: of what the paths in it ask."""

    url: str
    store: ObjectStore
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    count: RequestCount = field(default_factory=RequestCount, compare=False)


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """A key, or a prefix of keys, of a bucket; printed as its URL."""

    bucket: Bucket
    key: str = ""

    def __str__(self) -> str:
        return f"{self.bucket.url}/{self.key}" if self.key else self.bucket.url

    def __truediv__(self, below: str) -> ObjectPath:
        return ObjectPath(self.bucket, f"{self.key}/{below}" if self.key else below)

    def named(self, url: str) -> ObjectPath:
        """The object of this bucket that a URL names."""
        return ObjectPath(self.bucket, url.removeprefix(f"{self.bucket.url}/"))

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> ObjectPath:
        return ObjectPath(self.bucket, self.key.rpartition("/")[0])

    @property
    def options(self) -> dict[str, str]:
        """What delta-rs is opened with: commits are conditional writes."""
        return {"conditional_put": "etag", "user_agent": DELTA_AGENT, **self.bucket.options}

    def absolute(self) -> ObjectPath:
        return self

    def as_uri(self) -> str:
        return str(self)

    def with_name(self, name: str) -> ObjectPath:
        return self.parent / name

    def with_suffix(self, suffix: str) -> ObjectPath:
        return self.parent / (self.name.rpartition(".")[0] + suffix)

    def relative_to(self, folder: ObjectPath) -> str:
        """The key below a folder."""
        return self.key.removeprefix(folder.key).lstrip("/")

    def stat(self) -> ObjectFacts:
        import obstore

        self.bucket.count.add()
        told = obstore.head(self.bucket.store, self.key)
        return ObjectFacts(told["size"], told["last_modified"].timestamp())

    def is_file(self) -> bool:
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def exists(self) -> bool:
        """Whether there is such an object, or one below it."""
        return self.is_file() or self.is_dir()

    def is_dir(self) -> bool:
        """Whether there is an object below it; nothing is below a bucket that is not there."""
        return next(self.rglob(), None) is not None

    def read_bytes(self) -> bytes:
        import obstore

        self.bucket.count.add()
        return bytes(obstore.get(self.bucket.store, self.key).bytes())

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    def open(self) -> io.BufferedReader:
        """Its content, read where it is asked for."""
        size = self.stat().st_size
        reader = ObjectReader(self.bucket.store, self.key, size, self.bucket.count)
        return io.BufferedReader(reader)

    def create(self) -> ByteSink:
        """Takes the content of an object, which is there once this is closed."""
        return ObjectWriter(self.bucket.store, self.key, self.bucket.count)

    def write_bytes(self, content: bytes) -> None:
        """The object is this from the answer on."""
        import obstore

        self.bucket.count.add()
        obstore.put(self.bucket.store, self.key, content, use_multipart=False)

    def create_once(self, content: bytes) -> bool:
        """Whether this made the object: False where there was one, which stays. `BaseError` of the
        client where the store says that there is one, and there is none."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        self.bucket.count.add()
        try:
            obstore.put(self.bucket.store, self.key, content, mode="create", use_multipart=False)
        except AlreadyExistsError:
            if not self.is_file():  # the store said 409 for another request, and there was none
                raise
            return False
        return True

    def unlink(self, missing_ok: bool = False) -> None:
        """Deleting what is not there is no error of a store's; `missing_ok` is always so."""
        import obstore

        self.bucket.count.add()
        obstore.delete(self.bucket.store, self.key)

    def replace(self, target: ObjectPath) -> None:
        """A copy, then a deletion: who is killed between the two leaves both."""
        import obstore

        self.bucket.count.add(2)
        obstore.rename(self.bucket.store, self.key, target.key)

    def unlink_below(self, names: Iterable[str]) -> None:
        """Delete the objects of these names below; of those that are not there nothing is said."""
        self._delete([(self / name).key for name in names])

    def rmtree(self) -> None:
        """Delete everything below."""
        self._delete([path.key for path in self.rglob()])

    def remove_table(self) -> None:
        """Delete a Delta table: what readers begin with, its checkpoints, before its commits,
        oldest first, so that what is left in between is no table rather than an older one."""
        log = [path.key for path in (self / "_delta_log").rglob()]
        self._delete([key for key in log if "checkpoint" in key])
        self._delete([key for key in log if "checkpoint" not in key])
        self.rmtree()

    def _delete(self, keys: list[str]) -> None:
        import obstore

        if keys:
            self.bucket.count.add_pages(len(keys))
            obstore.delete(self.bucket.store, keys)

    def iterdir(self) -> Iterator[ObjectPath]:
        """What is directly below, folders first."""
        import obstore

        told = obstore.list_with_delimiter(self.bucket.store, self.key or None)
        self.bucket.count.add_pages(len(told["objects"]) + len(told["common_prefixes"]))
        for prefix in told["common_prefixes"]:
            yield ObjectPath(self.bucket, prefix.rstrip("/"))
        for found in filter(_is_file, told["objects"]):
            yield ObjectPath(self.bucket, found["path"])

    def glob(self, pattern: str) -> Iterator[ObjectPath]:
        """Objects below whose key fits; each `*` stands for one name or a part of it."""
        first, *rest = pattern.split("/")
        if rest and "*" not in first:
            yield from (self / first).glob("/".join(rest))
            return
        for path in self.rglob():
            names = path.relative_to(self).split("/")
            if len(names) == 1 + len(rest) and all(map(fnmatchcase, names, (first, *rest))):
                yield path

    def from_name(self, name: str) -> Iterator[ObjectPath]:
        """Everything below whose key comes behind that of `name` here, in the order of keys."""
        return self.rglob(f"{self.key}/{name}")

    def rglob(self, behind: str | None = None) -> Iterator[ObjectPath]:
        """Everything below, at any depth, in the order of keys, or what comes behind a key."""
        for found in self._below(behind):
            yield ObjectPath(self.bucket, found["path"])

    def facts_below(self) -> Iterator[tuple[str, ObjectFacts]]:
        """The key below this one, and the facts, of everything below."""
        for found in self._below():
            facts = ObjectFacts(found["size"], found["last_modified"].timestamp())
            yield ObjectPath(self.bucket, found["path"]).relative_to(self), facts

    def _below(self, behind: str | None = None) -> Iterator[ObjectMeta]:
        import obstore

        prefix = f"{self.key}/" if self.key else None
        self.bucket.count.add()
        for number, page in enumerate(
            obstore.list(self.bucket.store, prefix, offset=behind, chunk_size=PAGE)
        ):
            self.bucket.count.add(number > 0)
            yield from filter(_is_file, page)


def _is_file(found: ObjectMeta) -> bool:
    """Whether an object is no mark of a folder, which Hadoop makes of nothing and leaves."""
    return found["size"] > 0


LakePath: TypeAlias = Path | ObjectPath
"""A file or a folder of the lake."""

_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def is_url(text: str) -> bool:
    """Whether that names an object store rather than a folder."""
    return _URL.match(text) is not None


def lake_path(text: str, folder: Path, options: Mapping[str, str]) -> LakePath:
    """Where the lake is: a URL, or a folder, relative to another; `options` as for
    `object_path`."""
    if is_url(text):
        return object_path(text, options)
    return folder / Path(text).expanduser()


def object_path(url: str, options: Mapping[str, str]) -> ObjectPath:
    """The prefix that a URL names. `options`: names and values of the `object_store` crate
    (`endpoint`, `region`, `access_key_id`, …). ValueError for what cannot be a store's."""
    from obstore.exceptions import BaseError
    from obstore.store import from_url

    parts = urlsplit(url)
    root = f"{parts.scheme}://{parts.netloc}"
    client = {"user_agent": AGENT, "allow_http": options.get("allow_http") == "true"}
    told = {key: value for key, value in options.items() if key != "allow_http"}
    try:
        store = from_url(root, config=told, client_options=client)  # type: ignore[call-overload]
    except BaseError as error:
        raise ValueError(str(error).splitlines()[0].rpartition("error: ")[2]) from error
    return ObjectPath(Bucket(root, store, MappingProxyType(dict(options))), parts.path.strip("/"))
