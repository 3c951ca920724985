"""One document of MySQL's binary JSON → its text, in plain Python.

Belongs here: every kind of value, as the reference that the compiled code is tested against.
Does not: speed.

Sources: sql-common/json_binary.h and .cc for the form, `wrapper_to_string` and
`double_quote` in sql-common/json_dom.cc for the text, `my_gcvt` in strings/dtoa.cc for
doubles, `bin2decimal` in strings/decimal.cc for decimals, `TIME_from_longlong_*_packed` in
mysys/my_time.cc for moments.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from lockstep.pipeline.binlog.values.digits import MAX_HOURS
from lockstep.pipeline.binlog.values.json import (
    DATE,
    DATETIME,
    DECIMAL,
    DOUBLE,
    INT16,
    INT32,
    INT64,
    LARGE_ARRAY,
    LARGE_OBJECT,
    LITERAL,
    MAX_DEPTH,
    MAX_LENGTH_BYTES,
    MAX_PRECISION,
    MAX_SCALE,
    MONTHS,
    OPAQUE,
    SMALL_OBJECT,
    STRING,
    TEXT_EXTRA,
    TEXT_FACTOR,
    TIME,
    TIMESTAMP,
    UINT16,
    UINT32,
    UINT64,
)
from lockstep.pipeline.values.errors import DamagedEvent

_SCALARS: Final = {
    INT16: "<h",
    UINT16: "<H",
    INT32: "<i",
    UINT32: "<I",
    INT64: "<q",
    UINT64: "<Q",
    DOUBLE: "<d",
}
_LITERALS: Final = (b"null", b"true", b"false")
_INLINED: Final = {2: (LITERAL, INT16, UINT16), 4: (LITERAL, INT16, UINT16, INT32, UINT32)}

_BASE64_LINE: Final = 76
_DECIMAL_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)

_ESCAPED: Final = re.compile(rb'[\x00-\x1f"\\]')
_SHORT: Final = {8: b"b", 9: b"t", 10: b"n", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}


def document_text(document: bytes) -> bytes:
    """What SELECT prints for a document, in the document's own (utf8mb4) bytes.

    No bytes at all are the JSON null. DamagedEvent for bytes that are no document.
    """
    if not document:
        return b"null"
    text = bytearray()
    most = TEXT_FACTOR * len(document) + TEXT_EXTRA
    try:
        for piece in _value(document[0], document[1:], 0):
            text += piece
            if len(text) > most:
                raise _damaged()
    except (struct.error, IndexError) as error:
        raise _damaged() from error
    return bytes(text)


def _damaged() -> DamagedEvent:
    return DamagedEvent(
        "a value is not a valid document",
        hint="nothing was recorded; run again, and if that fails, read the log with mysqlbinlog",
    )


def _value(kind: int, data: bytes, depth: int) -> Iterator[bytes]:
    """The text of the value of this type that begins with `data`."""
    if kind <= LARGE_ARRAY:
        if depth == MAX_DEPTH:
            raise _damaged()
        keys = kind in (SMALL_OBJECT, LARGE_OBJECT)
        yield from _container(data, depth, keys, 4 if kind in (LARGE_OBJECT, LARGE_ARRAY) else 2)
    elif kind == LITERAL:
        yield _LITERALS[data[0]]
    elif kind == DOUBLE:
        yield _double(struct.unpack_from("<d", data)[0])
    elif kind in _SCALARS:
        yield str(struct.unpack_from(_SCALARS[kind], data)[0]).encode()
    elif kind == STRING:
        yield _quoted(_counted(data))
    elif kind == OPAQUE:
        yield _opaque(data[0], _counted(data[1:]))
    else:
        raise _damaged()


def _container(data: bytes, depth: int, keys: bool, width: int) -> Iterator[bytes]:
    """An object (with keys) or array whose numbers have `width` bytes."""
    count, size = _number(data, 0, width), _number(data, width, width)
    values = 2 * width + (count * (width + 2) if keys else 0)
    body = values + count * (width + 1)
    if not body <= size <= len(data):
        raise _damaged()
    data = data[:size]
    yield b"{" if keys else b"["
    for index in range(count):
        if index:
            yield b", "
        if keys:
            entry = 2 * width + index * (width + 2)
            at, length = _number(data, entry, width), _number(data, entry + width, 2)
            if at < body or at + length > size:
                raise _damaged()
            yield _quoted(data[at : at + length]) + b": "
        entry = values + index * (width + 1)
        kind = data[entry]
        if kind in _INLINED[width]:
            yield from _value(kind, data[entry + 1 : entry + 1 + width], depth + 1)
            continue
        at = _number(data, entry + 1, width)
        if not body <= at <= size:
            raise _damaged()
        yield from _value(kind, data[at:], depth + 1)
    yield b"}" if keys else b"]"


def _number(data: bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise _damaged()
    return int.from_bytes(data[at : at + width], "little")


def _counted(data: bytes) -> bytes:
    """Bytes behind their number: seven bits a byte, the lowest first, the last one < 128."""
    length = 0
    for index, byte in enumerate(data[:MAX_LENGTH_BYTES]):
        length |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if index + 1 + length > len(data):
                raise _damaged()
            return data[index + 1 : index + 1 + length]
    raise _damaged()


def _quoted(text: bytes) -> bytes:
    return b'"' + _ESCAPED.sub(_escape, text) + b'"'


def _escape(found: re.Match[bytes]) -> bytes:
    byte = found[0][0]
    return b"\\" + (_SHORT.get(byte) or b"u%04x" % byte)


def _double(value: float) -> bytes:
    if not math.isfinite(value):
        raise _damaged()
    sign, digits, power = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(power, int)
    text = "".join(map(str, digits))
    power = power if value else 0
    whole = len(text) + power
    if whole < -14 or (whole > 15 and power >= 0):
        text = text[0] + ("." + text[1:] if text[1:] else "") + f"e{whole - 1}"
    elif whole <= 0:
        text = "0." + "0" * -whole + text
    elif power >= 0:
        text += "0" * power + ".0"
    else:
        text = text[:whole] + "." + text[whole:]
    return (("-" if sign else "") + text).encode()


def _opaque(kind: int, data: bytes) -> bytes:
    if kind == DECIMAL:
        return _decimal(data)
    if kind in (DATE, TIME, DATETIME, TIMESTAMP):
        return b'"' + _moment(kind, data) + b'"'
    code = base64.b64encode(data)
    lines = [code[at : at + _BASE64_LINE] for at in range(0, len(code), _BASE64_LINE)]
    return _quoted(b"base64:type%d:" % kind + b"\n".join(lines))


def _decimal(data: bytes) -> bytes:
    """Precision, scale, and the number as a column stores it (`decimal2bin`)."""
    precision, scale = data[0], data[1]
    whole = precision - scale
    if precision > MAX_PRECISION or scale > MAX_SCALE or whole < 0 or precision == 0:
        raise _damaged()
    groups = [whole % 9, *[9] * (whole // 9)], [*[9] * (scale // 9), scale % 9]
    sizes = [_DECIMAL_BYTES[digits] for part in groups for digits in part]
    if len(data) != 2 + sum(sizes):
        raise _damaged()
    positive = bool(data[2] & 0x80)
    stored = bytes([data[2] ^ 0x80]) + data[3:]
    stored = stored if positive else bytes(byte ^ 0xFF for byte in stored)
    texts, at = [], 0
    for digits, size in zip((d for part in groups for d in part), sizes, strict=True):
        number = int.from_bytes(stored[at : at + size], "big")
        if number >= 10**digits:
            raise _damaged()
        texts.append(f"{number:0{digits}}" if digits else "")
        at += size
    text = "".join(texts)
    fraction = "." + text[whole:] if scale else ""
    return (("" if positive else "-") + (text[:whole].lstrip("0") or "0") + fraction).encode()


def _moment(kind: int, data: bytes) -> bytes:
    """Eight bytes that hold a date, a time or both; microseconds are the lowest 24 bits."""
    if len(data) != 8:
        raise _damaged()
    (packed,) = struct.unpack("<q", data)
    seconds, micros = divmod(abs(packed), 1 << 24)
    if kind == TIME:
        sign = b"-" if packed < 0 else b""
        return sign + _clock(seconds, micros, MAX_HOURS)
    year, month = divmod(seconds >> 22, MONTHS)
    if packed < 0 or year > 9999:
        raise _damaged()
    date = b"%04d-%02d-%02d" % (year, month, seconds >> 17 & 0x1F)
    clock = _clock(seconds & 0x1FFFF, micros, 23)
    return date if kind == DATE else date + b" " + clock


def _clock(seconds: int, micros: int, most_hours: int) -> bytes:
    hour, minute, second = seconds >> 12, seconds >> 6 & 0x3F, seconds & 0x3F
    if hour > most_hours or minute > 59 or second > 59 or micros > 999_999:
        raise _damaged()
    return b"%02d:%02d:%02d.%06d" % (hour, minute, second, micros)
