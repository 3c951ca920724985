"""Paths of the lake: files of this machine, or objects of a store with the methods of
`pathlib`.

Each method makes requests through `obstore`, which uses the same Rust client as
delta-rs, and counts them. `storage` says when a file or an object is durable.

In a store, a folder is a prefix of keys: it need not be created, and does not exist
without objects. Hadoop marks folders with empty objects, which are skipped, because no
file of the lake is empty. An object exists whole or not at all, and readers see it as
soon as the store has answered (S3 is consistent since 2020, Google's and Azure's stores
always were). Objects are listed only if their keys are unknown. A missing object is a
FileNotFoundError, as in `pathlib`; all other errors are obstore's own, which
`storage.lake_errors` translates.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias
from urllib.parse import urlsplit

from lockstep.pipeline.ports.lease_check import RequireHeld

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore


S3_SCHEMES: Final = ("s3", "s3a")
"""A lake's URL has the scheme `s3`; Spark uses Hadoop's client S3A, under both schemes.
Only S3's protocol was tested. For other protocols, Spark is not set up
(`spark.settings.store_settings`) and no snippets for readers are shown."""

LAKE_SCHEMES: Final = ("s3", "gs", "abfss")
"""The schemes that a lake's URL may have. obstore and delta-rs know all of them. For
`gs` and `abfss`, Hadoop's connectors must be named under `[spark]`. Neither of these
two was tried."""

HADOOP_SCHEMES: Final = tuple(dict.fromkeys((*S3_SCHEMES, *LAKE_SCHEMES)))
"""The schemes under which Spark may write to a lake: Delta's log store is ours for each
of them (`spark.log_store`), so that a late write is refused in every store."""

_PART_BYTES: Final = 10 << 20
"""Size in bytes of the parts into which a larger upload is split."""

_PARTS_AT_ONCE: Final = 4
"""Number of parts that are uploaded at the same time. With the part that is being
filled, a file takes 50 MiB of memory."""

_LEAST_READ_BYTES: Final = 1 << 20
"""Smallest number of bytes of an object that are requested at once."""

_PAGE_KEYS: Final = 1000
"""Number of keys that a store lists, or deletes, in one request."""

USER_AGENT: Final = "lockstep-lake"
DELTA_USER_AGENT: Final = "lockstep-delta-rs"
"""User agents of our client and of delta-rs, for a store's access log."""


@dataclass(slots=True)
class RequestCounter:
    """Counts the requests of all threads of this process. A request that the client
    repeats by itself counts once."""

    total: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, number: int = 1) -> None:
        with self._lock:
            self.total += number

    def add_pages(self, key_count: int) -> None:
        """Count the requests for a listing or deletion of `key_count` keys: at least
        one."""
        self.add(max(1, -(-key_count // _PAGE_KEYS)))


class ObjectReader(io.RawIOBase):
    """A raw Python stream of an object, which requests the ranges that are read."""

    def __init__(self, store: ObjectStore, key: str, size: int, requests: RequestCounter) -> None:
        self._store, self._key, self._size = store, key, size
        self._requests = requests
        self._offset = 0
        self._buffer, self._buffer_start = memoryview(b""), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        wanted_bytes = min(len(buffer), self._size - self._offset)
        if wanted_bytes <= 0:
            return 0
        buffer_offset = self._offset - self._buffer_start
        if not 0 <= buffer_offset < len(self._buffer):
            self._fill_buffer(wanted_bytes)
            buffer_offset = 0
        content = self._buffer[buffer_offset : buffer_offset + wanted_bytes]
        buffer[: len(content)] = content
        self._offset += len(content)
        return len(content)

    def _fill_buffer(self, wanted_bytes: int) -> None:
        import obstore

        self._requests.add()
        end = min(self._size, self._offset + max(wanted_bytes, _LEAST_READ_BYTES))
        content = obstore.get_range(self._store, self._key, start=self._offset, end=end)
        self._buffer, self._buffer_start = memoryview(content), self._offset

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._size}[whence]
        self._offset = max(0, begin + offset)
        return self._offset

    def tell(self) -> int:
        return self._offset


class ObjectWriter:
    """An upload of an object, which exists once the upload is closed. A small object
    takes one request, a larger one two (to begin and to complete) and one per part."""

    def __init__(self, store: ObjectStore, key: str, requests: RequestCounter) -> None:
        import obstore

        self._sink = obstore.open_writer(
            store, key, buffer_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE
        )
        self._requests = requests
        self._written_bytes = 0

    def write(self, data: bytes | memoryview, /) -> int | None:
        self._written_bytes += len(data)
        return self._sink.write(data)

    def close(self) -> None:
        part_count = -(-self._written_bytes // _PART_BYTES)
        self._requests.add(1 if self._written_bytes < _PART_BYTES else part_count + 2)
        self._sink.close()


class ByteSink(Protocol):
    """A file or an upload that is written from beginning to end."""

    def write(self, data: bytes | memoryview, /) -> int | None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """An object's size in bytes, and its last modification in seconds since 1970."""

    st_size: int
    st_mtime: float


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, or a store's equivalent of one. `url`: without `/` at its end.
    `options`: the options with which it was opened, which delta-rs gets, too.
    `requests`: counts the requests that are made through its paths."""

    url: str
    store: ObjectStore
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    requests: RequestCounter = field(default_factory=RequestCounter, compare=False)


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """A key, or a prefix of keys, of a bucket; printed as its URL."""

    bucket: Bucket
    key: str = ""

    def __str__(self) -> str:
        return f"{self.bucket.url}/{self.key}" if self.key else self.bucket.url

    def __truediv__(self, below: str) -> ObjectPath:
        return ObjectPath(self.bucket, f"{self.key}/{below}" if self.key else below)

    def at_url(self, url: str) -> ObjectPath:
        """Return the object of this bucket that a URL names."""
        return ObjectPath(self.bucket, url.removeprefix(f"{self.bucket.url}/"))

    @property
    def has_s3_protocol(self) -> bool:
        """True if the store has S3's protocol, for which Spark is set up."""
        return urlsplit(self.bucket.url).scheme in S3_SCHEMES

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> ObjectPath:
        return ObjectPath(self.bucket, self.key.rpartition("/")[0])

    @property
    def delta_options(self) -> dict[str, str]:
        """The options for delta-rs, with which it commits by conditional writes."""
        return {"conditional_put": "etag", "user_agent": DELTA_USER_AGENT, **self.bucket.options}

    def absolute(self) -> ObjectPath:
        return self

    def as_uri(self) -> str:
        return str(self)

    def with_name(self, name: str) -> ObjectPath:
        return self.parent / name

    def with_suffix(self, suffix: str) -> ObjectPath:
        return self.parent / (self.name.rpartition(".")[0] + suffix)

    def relative_to(self, folder: ObjectPath) -> str:
        """Return the key below a folder."""
        return self.key.removeprefix(folder.key).lstrip("/")

    def stat(self) -> ObjectFacts:
        import obstore
        from obstore.exceptions import BaseError

        self.bucket.requests.add()
        try:
            facts = obstore.head(self.bucket.store, self.key)
        except BaseError:
            # The answer to HEAD has no body that says why; that to GET has one.
            self.bucket.requests.add()
            with suppress(FileNotFoundError):
                obstore.get_range(self.bucket.store, self.key, start=0, end=1)
            raise
        return ObjectFacts(facts["size"], facts["last_modified"].timestamp())

    def is_file(self) -> bool:
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def exists(self) -> bool:
        """Return whether this object exists, or an object below it."""
        return self.is_file() or self.is_dir()

    def is_dir(self) -> bool:
        """Return whether an object exists below this prefix; False if the bucket does
        not exist."""
        return next(self.rglob(), None) is not None

    def read_bytes(self) -> bytes:
        import obstore

        self.bucket.requests.add()
        return bytes(obstore.get(self.bucket.store, self.key).bytes())

    def has_content(self, content: bytes) -> bool:
        """Return whether the object exists with this content."""
        try:
            return self.read_bytes() == content
        except FileNotFoundError:
            return False

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    def open(self) -> io.BufferedReader:
        """Return a reader of the content, which requests only the ranges that are read."""
        size = self.stat().st_size
        reader = ObjectReader(self.bucket.store, self.key, size, self.bucket.requests)
        return io.BufferedReader(reader)

    def create(self) -> ByteSink:
        """Begin an upload of the object, which exists once the result is closed."""
        return ObjectWriter(self.bucket.store, self.key, self.bucket.requests)

    def write_bytes(self, content: bytes) -> None:
        """Write or overwrite the object in one request."""
        import obstore

        self.bucket.requests.add()
        obstore.put(self.bucket.store, self.key, content, use_multipart=False)

    def create_once(self, content: bytes) -> bool:
        """Create the object and return True; if it exists, return False and leave it
        unchanged. Raise obstore's `BaseError` if the store answers that the object
        exists although it does not."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        self.bucket.requests.add()
        try:
            obstore.put(self.bucket.store, self.key, content, mode="create", use_multipart=False)
        except AlreadyExistsError:
            if not self.is_file():
                raise  # a concurrent creation led to this answer, and then failed
            return False
        return True

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete the object. `missing_ok` has no effect, because stores do not report
        that an object was missing."""
        import obstore

        self.bucket.requests.add()
        obstore.delete(self.bucket.store, self.key)

    def replace(self, target: ObjectPath) -> None:
        """Rename the object by a copy and a deletion. If the process is killed in
        between, both objects remain."""
        import obstore

        self.bucket.requests.add(2)
        obstore.rename(self.bucket.store, self.key, target.key)

    def unlink_below(self, names: Iterable[str]) -> None:
        """Delete the objects with these names below this prefix; a missing object is no
        error."""
        self._delete([(self / name).key for name in names])

    def rmtree(self) -> None:
        """Delete all objects below this prefix."""
        self._delete([path.key for path in self.rglob()])

    def remove_table(self, require_held: RequireHeld) -> None:
        """Call `require_held`, then delete the Delta table that was here before the
        call, not one that another process created since. The checkpoints are deleted
        first, because readers begin with them; then the commits, oldest first. So an
        interrupted deletion leaves no table rather than an older version of it."""
        log_prefix = f"{self.key}/_delta_log/"
        keys = [path.key for path in self.rglob()]
        log = [key for key in keys if key.startswith(log_prefix)]
        commits = [ObjectPath(self.bucket, key) for key in log if key.endswith(".json")]
        newest = commits[-1].read_bytes() if commits else b""
        require_held()
        # A new table here has files of rows with other names, but commits with the same
        # names.
        if not commits or commits[-1].has_content(newest):
            self._delete([key for key in log if "checkpoint" in key])
            self._delete([key for key in log if "checkpoint" not in key])
        self._delete([key for key in keys if not key.startswith(log_prefix)])

    def _delete(self, keys: list[str]) -> None:
        import obstore

        if keys:
            self.bucket.requests.add_pages(len(keys))
            obstore.delete(self.bucket.store, keys)

    def iterdir(self) -> Iterator[ObjectPath]:
        """Yield the folders and objects directly below this prefix, folders first."""
        import obstore

        listing = obstore.list_with_delimiter(self.bucket.store, self.key or None)
        self.bucket.requests.add_pages(len(listing["objects"]) + len(listing["common_prefixes"]))
        for prefix in listing["common_prefixes"]:
            yield ObjectPath(self.bucket, prefix.rstrip("/"))
        for meta in listing["objects"]:
            if meta["size"]:
                yield ObjectPath(self.bucket, meta["path"])

    def glob(self, pattern: str) -> Iterator[ObjectPath]:
        """Yield the objects below this prefix whose key there matches. `*` stands for a
        name or a part of one, without `/`."""
        parts = pattern.split("/")
        if len(parts) > 1 and "*" not in parts[0]:
            yield from (self / parts[0]).glob("/".join(parts[1:]))
            return
        for path in self.rglob():
            names = path.relative_to(self).split("/")
            if len(names) == len(parts) and all(map(fnmatchcase, names, parts)):
                yield path

    def rglob(self, after: str | None = None) -> Iterator[ObjectPath]:
        """Yield the objects below this prefix, at any depth, in order of their keys.
        `after`: only objects with a key greater than that of `self / after`."""
        for meta in self._listed_objects(after):
            yield ObjectPath(self.bucket, meta["path"])

    def facts_below(self) -> Iterator[tuple[str, ObjectFacts]]:
        """Yield for each object below this prefix its key there, its size and its time."""
        for meta in self._listed_objects():
            facts = ObjectFacts(meta["size"], meta["last_modified"].timestamp())
            yield ObjectPath(self.bucket, meta["path"]).relative_to(self), facts

    def _listed_objects(self, after: str | None = None) -> Iterator[ObjectMeta]:
        import obstore

        prefix = f"{self.key}/" if self.key else None
        offset = None if after is None else (self / after).key
        pages = obstore.list(self.bucket.store, prefix, offset=offset, chunk_size=_PAGE_KEYS)
        self.bucket.requests.add()  # also if there is no page
        for index, page in enumerate(pages):
            if index:
                self.bucket.requests.add()
            yield from (meta for meta in page if meta["size"])


LakePath: TypeAlias = Path | ObjectPath
"""A file or a folder of the lake."""

_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


_DECODED_PART: Final = re.compile(r"%[0-9A-Fa-f]{2}|\\")
"""Matches a part of a folder's path that delta-rs decodes where it reads rows."""

_AMBIGUOUS_PART: Final = re.compile(r"[^A-Za-z0-9_.!$&'()+,;=:@/-]|//+|(?<![^/])\.{1,2}(?![^/])")
"""Matches a part of a prefix that clients turn into different keys. delta-rs decodes
`%20`, and does not find deletion vectors if it encodes a character, such as a space, in
the URL of a table. `?` and `#` end a URL's path. Names that are empty, `.` or `..` are
refused."""


def is_url(text: str) -> bool:
    """Return whether a path names an object store rather than a folder."""
    return _URL.match(text) is not None


def lake_path(text: str, folder: Path, options: Mapping[str, str]) -> LakePath:
    """Return the lake's path for a text from the settings: a URL, or a path relative to
    `folder`. `options`: as for `object_path`. Raise `ValueError` as `object_path` does,
    and for a folder whose files delta-rs would look for elsewhere."""
    if is_url(text):
        return object_path(text, options)
    path = folder / Path(text).expanduser()
    decoded_part = _DECODED_PART.search(str(path.absolute()))
    if decoded_part is not None:
        raise ValueError(
            f"{path} has '{decoded_part[0]}', which delta-rs reads as another character"
        )
    return path


def object_path(url: str, options: Mapping[str, str]) -> ObjectPath:
    """Return the prefix that a URL names. `options`: options of the Rust crate
    `object_store` (`endpoint`, `region`, `access_key_id`, …). Raise `ValueError` for a
    URL or an option that it does not accept or with which it would panic, and for a
    prefix that our client and delta-rs would turn into different keys."""
    from obstore.exceptions import BaseError
    from obstore.store import from_url

    parts = urlsplit(url)
    root = f"{parts.scheme}://{parts.netloc}"
    prefix = url[len(root) :].strip("/")
    ambiguous_part = _AMBIGUOUS_PART.search(prefix)
    if ambiguous_part is not None:
        raise ValueError(
            f"the prefix '{prefix}' has '{ambiguous_part[0]}', which clients of stores do not "
            "write alike; letters from a to z, digits and -_.= are safe"
        )
    _require_usable(options)
    client_options = {"user_agent": USER_AGENT, "allow_http": options.get("allow_http") == "true"}
    config = {key: value for key, value in options.items() if key != "allow_http"}
    try:
        store = from_url(root, config=config, client_options=client_options)  # type: ignore[call-overload]
    except BaseError as error:
        raise ValueError(str(error).splitlines()[0].rpartition("error: ")[2]) from error
    return ObjectPath(Bucket(root, store, MappingProxyType(dict(options))), parts.path.strip("/"))


_ENDPOINT: Final = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[^ ?#]*)?"
)


def _require_usable(options: Mapping[str, str]) -> None:
    """Raise `ValueError` for an option with which `object_store` panics, or says only
    that the store does not answer."""
    for name, value in options.items():
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"{name} has a character that no request can have, such as a newline")
    endpoint = options.get("endpoint")
    if endpoint is None:
        return
    if not _ENDPOINT.fullmatch(endpoint):
        raise ValueError("endpoint is not an address such as http://minio.example.com:9000")
    if endpoint.startswith("http:") and options.get("allow_http") != "true":
        raise ValueError(f'{endpoint} has no TLS, which only allow_http = "true" allows')
