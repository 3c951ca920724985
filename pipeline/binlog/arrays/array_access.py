"""Loads, stores and copies at any byte of an array, for compiled code, and CRC32.

These operations are slow or impossible by numba's own indexing: unaligned integers of
either byte order, and memcpy. No function checks bounds: its caller does.

Loads of every width return a signed 64-bit integer, because numba turns a sum of signed
and unsigned integers into a float. Only `i64` and `b64` can return a negative one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.binlog.arrays.compiled import intrinsic, kernel_part

Bytes = npt.NDArray[np.uint8]


def _load(bits: int, *, big_endian: bool = False) -> Callable[[Bytes, int], int]:
    return cast("Callable[[Bytes, int], int]", intrinsic("load", bits, big_endian=big_endian))


def _store(bits: int) -> Callable[[Bytes, int, int], None]:
    return cast("Callable[[Bytes, int, int], None]", intrinsic("store", bits))


u8, u16, u32, i64 = _load(8), _load(16), _load(32), _load(64)
"""`u16(array, at)`: the little-endian integer of 16 bits at byte `at`."""

b16, b32, b64 = (_load(bits, big_endian=True) for bits in (16, 32, 64))
"""`b16(array, at)`: the big-endian integer of 16 bits at byte `at`."""

put8, put16, put32, put64 = _store(8), _store(16), _store(32), _store(64)
"""`put16(array, at, value)`: store the value's low 16 bits at byte `at`, little-endian."""

copy = cast("Callable[[Bytes, int, Bytes, int, int], None]", intrinsic("copy"))
"""`copy(target, at, source, begin, count)`: copy `source[begin : begin + count]` to
`target[at:]`; the two must not overlap."""


@kernel_part
def u24(array: Bytes, at: int) -> int:
    return u16(array, at) | u8(array, at + 2) << 16


@kernel_part
def b24(array: Bytes, at: int) -> int:
    return b16(array, at) << 8 | u8(array, at + 2)


@kernel_part
def b40(array: Bytes, at: int) -> int:
    return b32(array, at) << 8 | u8(array, at + 4)


@kernel_part
def equal_bytes(array: Bytes, at: int, other: Bytes, other_at: int, count: int) -> bool:
    """Return whether `count` bytes of two arrays are equal."""
    offset = 0
    while offset + 8 <= count:
        if i64(array, at + offset) != i64(other, other_at + offset):
            return False
        offset += 8
    while offset < count:
        if u8(array, at + offset) != u8(other, other_at + offset):
            return False
        offset += 1
    return True


def _crc_tables() -> npt.NDArray[np.uint32]:
    """Return the tables with which one step of CRC-32 (IEEE 802.3, reflected) takes 16
    bytes ("slicing by 16"). `tables[n, byte]` is the CRC of `byte` and `n` zero bytes
    after it."""
    tables = np.zeros((16, 256), np.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0xEDB88320 if value & 1 else 0)
        tables[0, byte] = value
    for step in range(1, 16):
        former = tables[step - 1]
        tables[step] = (former >> 8) ^ tables[0, former & 0xFF]
    return tables


CRC_TABLES: Final = _crc_tables()


@kernel_part
def crc32(array: Bytes, at: int, count: int) -> int:
    """Return the CRC-32 of `count` bytes, as `zlib.crc32` does."""
    crc = 0xFFFFFFFF
    end = at + count
    while at + 16 <= end:
        low = i64(array, at) ^ crc
        high = i64(array, at + 8)
        crc = 0
        for byte in range(8):
            crc ^= int(CRC_TABLES[15 - byte, (low >> (8 * byte)) & 0xFF])
            crc ^= int(CRC_TABLES[7 - byte, (high >> (8 * byte)) & 0xFF])
        at += 16
    while at < end:
        crc = (crc >> 8) ^ int(CRC_TABLES[0, (crc ^ u8(array, at)) & 0xFF])
        at += 1
    return crc ^ 0xFFFFFFFF
