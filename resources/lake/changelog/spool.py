"""The spool: encrypted files of row events that do not fit into memory, or whose
transaction has not ended yet. `pipeline.binlog.transactions.spill` writes their
content.

There are two kinds of files. A scratch file has no name, so the operating system
deletes it when the process ends, even if it is killed. A prepared file holds the row
events of a prepared XA transaction. Its path is
`<lake>/<source>/_prepared/batch-<batch, 12 digits>-<number, 5 digits>.events`; no
database has this folder, because the names of their folders never begin with `_`
(`pipeline.mirror.layout`). If the lake is in an object store, a prepared file is first
written to a scratch file and uploaded when it is sealed; before it is read, it is
copied to a scratch file.

The content is encrypted with AES-256-GCM, under a random key for each file. The key of
a scratch file is never stored. The key of a prepared file is in the ledger; if there is
a privacy key, it is wrapped (RFC 3394, AES key wrap) with a key that is derived from
the privacy key. A file is a sequence of pieces:

    length      4 bytes, little-endian, at most 1 MiB
    ciphertext  `length` bytes
    tag         16 bytes

The nonce is the piece's index, 12 bytes, little-endian; no index is used twice. The tag
also authenticates the file's name and whether the piece is the last one. Sealing a file
appends an empty last piece. This way, pieces that are missing, in another order, or
from another file are detected.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import struct
import tempfile
import weakref
from bisect import bisect_right
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from lockstep.pipeline.model.batch import WaitingFile
from lockstep.pipeline.ports.segments import EventFile
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.values.errors import ConfigurationError, SegmentsLost
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.storage import (
    close_durably,
    lake_errors,
    make_durable_folder,
    sync_folder,
)
from lockstep.resources.private import make_private

_PIECE_BYTES: Final = 1 << 20
"""Number of bytes that `write` collects before it encrypts them. A read or the seal
encrypts them earlier."""

_LENGTH: Final = struct.Struct("<I")
_TAG_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_KEY_BITS: Final = 256

_PREPARED_NAME = re.compile(r"batch-\d{12,}-([0-9a-f]{8}-)?\d{5,}\.events")
"""Names of prepared files. Lockstep 0.1 wrote no random digits into them."""


class FileSpool:
    """`pipeline.ports.Spool` in the lake.

    `scratch` is a local folder for files that need not survive the process. It is
    created with the first such file, and only this account can access it.
    `wrapping_key` is the key of 32 bytes with which the keys of prepared files are
    wrapped; with None they are not wrapped. Each spool has random digits, which are in
    its prepared files' names, for the reason that `segments.ParquetSegments` gives.
    """

    def __init__(self, lake: LakePath, scratch: Path, wrapping_key: bytes | None = None) -> None:
        self._lake = lake
        self._scratch = scratch
        self._wrapping_key = wrapping_key
        self._random_digits = secrets.token_hex(4)
        self._own_batches = set[int]()

    def with_privacy_key(self, key: PrivacyKey | None) -> FileSpool:
        """Return the same spool, which wraps the keys of prepared files with the
        privacy key. With None it does not wrap them."""
        wrapping_key = None if key is None else key.derive_key("keys of prepared files")
        return FileSpool(self._lake, self._scratch, wrapping_key)

    def create_scratch_file(self) -> DiskEventFile:
        return DiskEventFile(self._create_unnamed(), self._scratch)

    def _create_unnamed(self) -> int:
        """Create a scratch file and return its descriptor."""
        with lake_errors(self._scratch):
            make_private(self._scratch)
            with tempfile.TemporaryFile(dir=self._scratch, buffering=0) as file:
                return os.dup(file.fileno())

    def create_prepared_file(self, source: str, batch: int, number: int) -> DiskEventFile:
        self._own_batches.add(batch)
        folder = self._prepared_folder(source)
        path = folder / f"batch-{batch:012d}-{self._random_digits}-{number:05d}.events"
        with lake_errors(path):
            make_durable_folder(folder)
            if isinstance(path, ObjectPath):
                descriptor = self._create_unnamed()
            else:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        return DiskEventFile(descriptor, path, has_name=True)

    def seal(self, file: EventFile) -> WaitingFile:
        """Seal a file; `WaitingFile.path` is relative to the source's folder
        `_prepared`."""
        if not isinstance(file, DiskEventFile):
            raise TypeError(f"{file!r} is no file of this spool")
        waiting_file = file.seal()
        with lake_errors(file.path):
            sync_folder(file.path.parent)
        if self._wrapping_key is None:
            return waiting_file
        return replace(waiting_file, key=aes_key_wrap(self._wrapping_key, waiting_file.key))

    def open(self, source: str, file: WaitingFile) -> DiskEventFile:
        path, key = self._prepared_folder(source) / file.path, self._unwrapped_key(file)
        with lake_errors(path):
            try:
                if isinstance(path, ObjectPath):
                    descriptor = self._download(path)
                else:
                    descriptor = os.open(path, os.O_RDONLY)
            except FileNotFoundError as error:
                raise _lost_error(path, "is missing") from error
        event_file = DiskEventFile(descriptor, path, has_name=True, key=key)
        try:
            event_file.read_index(file)
        except BaseException:
            event_file.close()
            raise
        return event_file

    def _unwrapped_key(self, file: WaitingFile) -> bytes:
        """Return the key with which a file is encrypted. It is not wrapped if no
        privacy key was configured when the file was sealed."""
        if len(file.key) == _KEY_BITS // 8:
            return file.key
        try:
            if self._wrapping_key is not None:
                return aes_key_unwrap(self._wrapping_key, file.key)
        except InvalidUnwrap:
            pass
        raise ConfigurationError(
            f"A prepared XA transaction waits in {file.path}, whose key is wrapped by a "
            "privacy key other than the configured one.",
            hint="set the key under [privacy] with which the transaction was read; replace it "
            "once XA RECOVER lists nothing at the server and a later run has captured the log",
        )

    def _download(self, path: ObjectPath) -> int:
        """Copy an object to a scratch file and return its descriptor."""
        with path.open() as content:
            descriptor = self._create_unnamed()
            with open(descriptor, "wb", closefd=False) as scratch_file:
                shutil.copyfileobj(content, scratch_file, _PIECE_BYTES)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def discard(self, source: str, batch: int) -> int:
        digits = f"{self._random_digits}-" if batch in self._own_batches else ""
        folder = self._prepared_folder(source)
        with lake_errors(folder):
            paths: list[LakePath] = [*folder.glob(f"batch-{batch:012d}-{digits}*.events")]
            prepared_files = [path for path in paths if _PREPARED_NAME.fullmatch(path.name)]
            for path in prepared_files:
                path.unlink()
        return len(prepared_files)

    def remove(self, source: str, file: WaitingFile) -> None:
        path = self._prepared_folder(source) / file.path
        with lake_errors(path):
            path.unlink(missing_ok=True)

    def _prepared_folder(self, source: str) -> LakePath:
        return self._lake / source / "_prepared"


class _Piece(NamedTuple):
    """A piece of a file. `offset`, `length`: those of its plaintext in the content;
    `file_offset`: the offset of its ciphertext in the file."""

    offset: int
    length: int
    file_offset: int


class DiskEventFile:
    """`pipeline.ports.EventFile` over a descriptor, which is closed at the latest when
    this object is deleted. `path`: the path of a prepared file, or the folder of a
    scratch file. `size`: bytes written, including those that are not encrypted yet.
    `key`: given only to read a sealed file."""

    def __init__(
        self, descriptor: int, path: LakePath, *, has_name: bool = False, key: bytes | None = None
    ) -> None:
        self.path = path
        self.size = 0
        self._descriptor = descriptor
        self._release = weakref.finalize(self, os.close, descriptor)
        self._key = AESGCM.generate_key(_KEY_BITS) if key is None else key
        self._cipher = AESGCM(self._key)
        self._authenticated_name = path.name.encode() if has_name else b""
        self._digest = hashlib.sha256() if has_name and key is None else None
        self._unencrypted = bytearray()
        self._pieces: list[_Piece] = []
        self._file_bytes = 0
        self._decrypted_piece: tuple[int, bytes] = (-1, b"")

    def write(self, data: bytes | memoryview) -> None:
        if not len(data):  # an empty view cannot be cast
            return
        view = memoryview(data).cast("B")
        self.size += len(view)
        with lake_errors(self.path):
            if len(self._unencrypted) + len(view) < _PIECE_BYTES:
                self._unencrypted += view
                return
            self._flush()
            for start in range(0, len(view), _PIECE_BYTES):
                self._append(view[start : start + _PIECE_BYTES])

    def read(self, offset: int, count: int) -> bytes:
        if offset < 0 or count < 0 or offset + count > self.size:
            raise _lost_error(self.path, f"ends at byte {self.size}, before {offset} + {count}")
        end, slices = offset + count, list[bytes]()
        with lake_errors(self.path):
            if self._descriptor < 0:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            self._flush()
            index = bisect_right(self._pieces, offset, key=attrgetter("offset")) - 1
            while offset < end:
                start = self._pieces[index].offset
                slices.append(self._decrypt_piece(index)[offset - start : end - start])
                offset += len(slices[-1])
                index += 1
        return slices[0] if len(slices) == 1 else b"".join(slices)

    def close(self) -> None:
        """Close the file; closing it again has no effect."""
        self._release()
        self._descriptor = -1
        self._unencrypted.clear()
        self._decrypted_piece = (-1, b"")

    def seal(self) -> WaitingFile:
        """Make the content durable and close the file."""
        if self._digest is None:
            raise ValueError(f"{self.path} is not a prepared file being written")
        with lake_errors(self.path):
            self._flush()
            self._append(memoryview(b""), last=True)
            if isinstance(self.path, ObjectPath):
                self._upload(self.path)
            else:
                os.fsync(self._descriptor)
        self.close()
        return WaitingFile(self.path.name, self.size, self._digest.hexdigest(), self._key)

    def _upload(self, path: ObjectPath) -> None:
        sink = path.create()
        offset = 0
        while offset < self._file_bytes:
            offset += sink.write(os.pread(self._descriptor, _PIECE_BYTES, offset)) or 0
        close_durably(path, sink, self._file_bytes)

    def read_index(self, file: WaitingFile) -> None:
        """Find where the pieces of a sealed file begin. Raise `SegmentsLost` if the
        file differs from what was sealed."""
        with lake_errors(self.path):
            with open(self._descriptor, "rb", buffering=0, closefd=False) as content:
                if hashlib.file_digest(content, "sha256").hexdigest() != file.sha256:
                    raise _lost_error(self.path, "has another checksum than when it was written")
            end = os.fstat(self._descriptor).st_size
            while self._file_bytes < end:
                (length,) = _LENGTH.unpack(self._read_stored(self._file_bytes, _LENGTH.size))
                if length > _PIECE_BYTES:
                    break
                self._pieces.append(_Piece(self.size, length, self._file_bytes + _LENGTH.size))
                self._file_bytes += _LENGTH.size + length + _TAG_BYTES
                self.size += length
            if self._file_bytes != end or not self._pieces:
                raise _lost_error(self.path, "was cut off")
            self._decrypt_piece(len(self._pieces) - 1, last=True)
        if self.size != file.size:
            raise _lost_error(self.path, f"has {self.size} bytes instead of {file.size}")

    # -- pieces --------------------------------------------------------------------------------

    def _flush(self) -> None:
        if self._unencrypted:
            self._append(memoryview(bytes(self._unencrypted)))
            self._unencrypted.clear()

    def _append(self, data: memoryview, *, last: bool = False) -> None:
        """Encrypt and write the next piece."""
        nonce = _nonce(len(self._pieces))
        ciphertext = self._cipher.encrypt(nonce, data, self._associated_data(last=last))
        stored = _LENGTH.pack(len(data)) + ciphertext
        if self._digest is not None:
            self._digest.update(stored)
        # The index is taken before the piece is written: even if writing fails, its
        # nonce must never be used again.
        offset = self._pieces[-1].offset + self._pieces[-1].length if self._pieces else 0
        self._pieces.append(_Piece(offset, len(data), self._file_bytes + _LENGTH.size))
        self._file_bytes += len(stored)
        written = 0
        while written < len(stored):
            written += os.write(self._descriptor, memoryview(stored)[written:])

    def _decrypt_piece(self, index: int, *, last: bool = False) -> bytes:
        """Return the plaintext of a piece, and keep it for the reads that follow.
        `last`: the piece is the file's last one."""
        if self._decrypted_piece[0] != index:
            piece = self._pieces[index]
            ciphertext = self._read_stored(piece.file_offset, piece.length + _TAG_BYTES)
            try:
                data = self._cipher.decrypt(
                    _nonce(index), ciphertext, self._associated_data(last=last)
                )
            except InvalidTag as error:
                raise _lost_error(self.path, "is not what was written to it") from error
            self._decrypted_piece = (index, data)
        return self._decrypted_piece[1]

    def _associated_data(self, *, last: bool) -> bytes:
        """Return the data that a piece's tag authenticates besides the ciphertext."""
        return self._authenticated_name + bytes([last])

    def _read_stored(self, offset: int, count: int) -> bytes:
        content = os.pread(self._descriptor, count, offset)
        while len(content) < count:
            more = os.pread(self._descriptor, count - len(content), offset + len(content))
            if not more:
                raise _lost_error(self.path, "was cut off while it was read")
            content += more
        return content


def _nonce(index: int) -> bytes:
    return index.to_bytes(_NONCE_BYTES, "little")


def _lost_error(path: LakePath, description: str) -> SegmentsLost:
    return SegmentsLost(
        f"Row events that waited in a file are lost: {path} {description}",
        hint="restore the file from a copy of the lake, then run again; nothing was recorded",
    )
