"""Encrypted files of row events. `pipeline.binlog.transactions.spill` writes their
content, and `spool` knows where they are and keeps their keys.

The content is encrypted with AES-256-GCM, under a random key for each file. A file is a
sequence of pieces:

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
import struct
import weakref
from bisect import bisect_right
from operator import attrgetter
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lockstep.pipeline.model.batch import WaitingFile
from lockstep.pipeline.values.errors import SegmentsLost
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.storage import close_durably, lake_errors

PIECE_BYTES: Final = 1 << 20
"""Number of bytes that `write` collects before it encrypts them. A read or the seal
encrypts them earlier."""

KEY_BYTES: Final = 32
_LENGTH: Final = struct.Struct("<I")
_TAG_BYTES: Final = 16
_NONCE_BYTES: Final = 12


class DiskEventFile:
    """`pipeline.ports.NewEventFile` over a descriptor. `path`: the path of a prepared
    file, or the folder of a scratch file."""

    def __init__(self, descriptor: int, path: LakePath, *, is_prepared: bool = False) -> None:
        self.path = path
        self._key = AESGCM.generate_key(8 * KEY_BYTES)
        name = path.name if is_prepared else ""
        self._pieces = _Pieces(descriptor, path, self._key, name)
        self._digest = hashlib.sha256() if is_prepared else None
        self._unencrypted = bytearray()

    def write(self, data: bytes | memoryview) -> None:
        if not len(data):  # an empty view cannot be cast
            return
        view = memoryview(data).cast("B")
        with lake_errors(self.path):
            if len(self._unencrypted) + len(view) < PIECE_BYTES:
                self._unencrypted += view
                return
            self._flush()
            for start in range(0, len(view), PIECE_BYTES):
                self._append(view[start : start + PIECE_BYTES])

    def read(self, offset: int, count: int) -> bytes:
        with lake_errors(self.path):
            self._flush()
            return self._pieces.read(offset, count)

    def close(self) -> None:
        self._pieces.close()
        self._unencrypted.clear()

    def seal(self) -> WaitingFile:
        """Make the content durable and close the file."""
        if self._digest is None:
            raise ValueError(f"{self.path} is not a prepared file being written")
        with lake_errors(self.path):
            self._flush()
            self._append(b"", last=True)
            self._pieces.make_durable()
        self.close()
        return WaitingFile(self.path.name, self._pieces.size, self._digest.hexdigest(), self._key)

    def _flush(self) -> None:
        if self._unencrypted:
            self._append(bytes(self._unencrypted))
            self._unencrypted.clear()

    def _append(self, data: bytes | memoryview, *, last: bool = False) -> None:
        stored = self._pieces.encrypt_next(data, last=last)
        if self._digest is not None:
            self._digest.update(stored)
        self._pieces.write(stored)


class SealedEventFile:
    """`pipeline.ports.EventFile` over the descriptor of a sealed file. Raises
    `SegmentsLost` if the file differs from what was sealed. `key`: the file's key,
    unwrapped."""

    def __init__(self, descriptor: int, path: LakePath, file: WaitingFile, key: bytes) -> None:
        self._path = path
        self._pieces = _Pieces(descriptor, path, key, path.name)
        try:
            with lake_errors(path):
                self._pieces.read_index(file)
        except BaseException:
            self.close()
            raise

    def read(self, offset: int, count: int) -> bytes:
        with lake_errors(self._path):
            return self._pieces.read(offset, count)

    def close(self) -> None:
        self._pieces.close()


class _Piece(NamedTuple):
    """A piece of a file. `offset`, `length`: those of its plaintext in the content;
    `file_offset`: the offset of its ciphertext in the file."""

    offset: int
    length: int
    file_offset: int


class _Pieces:
    """The pieces of a file over a descriptor, which is closed at the latest when this
    object is deleted. `name`: the file's name, which each tag authenticates. `size`:
    number of bytes of the content."""

    def __init__(self, descriptor: int, path: LakePath, key: bytes, name: str) -> None:
        self.size = 0
        self._descriptor = descriptor
        self._release = weakref.finalize(self, os.close, descriptor)
        self._path = path
        self._name = name.encode()
        self._cipher = AESGCM(key)
        self._pieces: list[_Piece] = []
        self._file_bytes = 0
        self._decrypted_piece: tuple[int, bytes] = (-1, b"")

    def encrypt_next(self, data: bytes | memoryview, *, last: bool) -> bytes:
        """Return the next piece as it is stored. Its nonce is never used again, even if
        `write` fails."""
        nonce = _nonce(len(self._pieces))
        ciphertext = self._cipher.encrypt(nonce, data, self._associated_data(last=last))
        self._add_to_index(len(data))
        return _LENGTH.pack(len(data)) + ciphertext

    def write(self, stored: bytes) -> None:
        written = 0
        while written < len(stored):
            written += os.write(self._descriptor, memoryview(stored)[written:])

    def read(self, offset: int, count: int) -> bytes:
        """Return `count` bytes of the content. Raise `SegmentsLost` if it ends before."""
        if self._descriptor < 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if offset < 0 or count < 0 or offset + count > self.size:
            raise lost_error(self._path, f"ends at byte {self.size}, before {offset} + {count}")
        end = offset + count
        slices: list[bytes] = []
        index = bisect_right(self._pieces, offset, key=attrgetter("offset")) - 1
        while offset < end:
            start = self._pieces[index].offset
            slices.append(self._decrypt_piece(index)[offset - start : end - start])
            offset += len(slices[-1])
            index += 1
        return slices[0] if len(slices) == 1 else b"".join(slices)

    def make_durable(self) -> None:
        """Make the file durable; upload it if its path is in an object store."""
        if not isinstance(self._path, ObjectPath):
            os.fsync(self._descriptor)
            return
        sink = self._path.create()
        offset = 0
        while offset < self._file_bytes:
            offset += sink.write(os.pread(self._descriptor, PIECE_BYTES, offset)) or 0
        close_durably(self._path, sink, self._file_bytes)

    def read_index(self, file: WaitingFile) -> None:
        """Find where the pieces of a sealed file begin. Raise `SegmentsLost` if the
        file differs from what was sealed."""
        with open(self._descriptor, "rb", buffering=0, closefd=False) as content:
            if hashlib.file_digest(content, "sha256").hexdigest() != file.sha256:
                raise lost_error(self._path, "has another checksum than when it was written")
        end = os.fstat(self._descriptor).st_size
        while self._file_bytes < end:
            (length,) = _LENGTH.unpack(self._read_stored(self._file_bytes, _LENGTH.size))
            if length > PIECE_BYTES:
                break
            self._add_to_index(length)
        if self._file_bytes != end or not self._pieces:
            raise lost_error(self._path, "was cut off")
        self._decrypt_piece(len(self._pieces) - 1, last=True)
        if self.size != file.size:
            raise lost_error(self._path, f"has {self.size} bytes instead of {file.size}")

    def close(self) -> None:
        """Close the descriptor; closing it again has no effect."""
        self._release()
        self._descriptor = -1
        self._decrypted_piece = (-1, b"")

    def _add_to_index(self, length: int) -> None:
        self._pieces.append(_Piece(self.size, length, self._file_bytes + _LENGTH.size))
        self._file_bytes += _LENGTH.size + length + _TAG_BYTES
        self.size += length

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
                raise lost_error(self._path, "is not what was written to it") from error
            self._decrypted_piece = (index, data)
        return self._decrypted_piece[1]

    def _associated_data(self, *, last: bool) -> bytes:
        """Return the data that a piece's tag authenticates besides the ciphertext."""
        return self._name + bytes([last])

    def _read_stored(self, offset: int, count: int) -> bytes:
        content = os.pread(self._descriptor, count, offset)
        while len(content) < count:
            more = os.pread(self._descriptor, count - len(content), offset + len(content))
            if not more:
                raise lost_error(self._path, "was cut off while it was read")
            content += more
        return content


def _nonce(index: int) -> bytes:
    return index.to_bytes(_NONCE_BYTES, "little")


def lost_error(path: LakePath, description: str) -> SegmentsLost:
    return SegmentsLost(
        f"Row events that waited in a file are lost: {path} {description}",
        hint="restore the file from a copy of the lake, then run again; nothing was recorded",
    )
