"""Results of the binary protocol, made from the format's description: kinds of columns, the
bytes of a value, rows, packets; and the batches that are read of them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import strategies as st

from lockstep.pipeline.ports.source import Received
from lockstep.pipeline.resultset.column_arrays import ResultBatches
from lockstep.pipeline.resultset.packets import ColumnDefinition
from lockstep.pipeline.values.table import Column

WHOLE: Final = 0xFFFFFF
EOF: Final = b"\xfe\x03\x00\x02\x00"
"""Three warnings."""

OK: Final = b"\xfe\x00\x00\x02\x00\x03\x00"
"""As it ends a result where a client deprecates EOF packets."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A column, how a result defines it, values of it, the bytes of a value as a cell, and what
    is read of it if that is not the value itself."""

    column: Column
    definition: ColumnDefinition
    values: st.SearchStrategy[Any]
    cell: Callable[[Any], bytes]
    read: Callable[[Any], Any] = lambda value: value


def counted(data: bytes) -> bytes:
    """The bytes behind their length-encoded length."""
    count = len(data)
    if count < 251:
        return bytes([count]) + data
    if count < 1 << 16:
        return b"\xfc" + struct.pack("<H", count) + data
    if count < 1 << 24:
        return b"\xfd" + struct.pack("<I", count)[:3] + data
    return b"\xfe" + struct.pack("<Q", count) + data


def moment(value: datetime | None) -> bytes:
    """A DATETIME's cell, without what is zero behind; None is the zero date."""
    if value is None:
        return b"\0"
    day = struct.pack("<HBB", value.year, value.month, value.day)
    clock = bytes([value.hour, value.minute, value.second])
    if value.microsecond:
        return bytes([11]) + day + clock + struct.pack("<I", value.microsecond)
    return bytes([7]) + day + clock if any(clock) else bytes([4]) + day


def duration(micros: int) -> bytes:
    """A TIME's cell, of so many microseconds."""
    if micros == 0:
        return b"\0"
    seconds, fraction = divmod(abs(micros), 1_000_000)
    days, second = divmod(seconds, 86_400)
    clock = bytes([second // 3600, second // 60 % 60, second % 60])
    whole = bytes([micros < 0]) + struct.pack("<I", days) + clock
    return bytes([12]) + whole + struct.pack("<I", fraction) if fraction else bytes([8]) + whole


def printed(micros: int, digits: int) -> str:
    """A TIME as MySQL prints it."""
    seconds, fraction = divmod(abs(micros), 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    tail = f".{fraction:06}"[: digits + 1] if digits else ""
    return ("-" if micros < 0 else "") + clock + tail


def _integer(kind: str, code: int, form: str, bits: int, *, unsigned: bool) -> Kind:
    least, most = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    shape = struct.Struct("<" + (form.upper() if unsigned else form))
    wide = unsigned and bits == 64
    return Kind(
        Column("", kind, unsigned=unsigned),
        ColumnDefinition(code, unsigned, 20),
        st.one_of(st.integers(least, most), st.sampled_from([least, most])),
        shape.pack,
        Decimal if wide else int,
    )


def _decimal(precision: int, scale: int) -> Kind:
    most = 10**precision - 1
    return Kind(
        Column("", "decimal", precision=precision, scale=scale),
        ColumnDefinition(246, False, precision + 2),
        st.one_of(st.integers(-most, most), st.sampled_from([0, most, -most])),
        lambda number: counted(_digits(number, scale).encode()),
        lambda number: (
            Decimal(_digits(number, scale)) if precision <= 38 else _digits(number, scale)
        ),
    )


def _digits(number: int, scale: int) -> str:
    text = str(abs(number)).rjust(scale + 1, "0")
    whole = f"{text[:-scale]}.{text[-scale:]}" if scale else text
    return f"-{whole}" if number < 0 else whole


def _text(kind: str, values: st.SearchStrategy[str]) -> Kind:
    made = Column("", kind, charset="utf8mb4")
    return Kind(made, ColumnDefinition(253, False, 80), values, lambda text: counted(text.encode()))


_MOST_SECONDS: Final = 838 * 3600 + 59 * 60 + 59
_NAIVE: Final = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)).map(
    lambda value: value.replace(fold=0)
)


def _time(digits: int) -> Kind:
    units = st.integers(-_MOST_SECONDS * 10**digits, _MOST_SECONDS * 10**digits)
    return Kind(
        Column("", "time", length=digits),
        ColumnDefinition(11, False, 10 + digits),
        units.map(lambda units: units * 10 ** (6 - digits)),
        duration,
        lambda micros: printed(micros, digits),
    )


KINDS: Final[tuple[Kind, ...]] = (
    *(
        _integer(kind, code, form, bits, unsigned=unsigned)
        for kind, code, form, bits in (
            ("tinyint", 1, "b", 8),
            ("smallint", 2, "h", 16),
            ("int", 3, "i", 32),
            ("bigint", 8, "q", 64),
        )
        for unsigned in (False, True)
    ),
    Kind(
        Column("", "mediumint"),
        ColumnDefinition(9, False, 9),
        st.integers(-(2**23), 2**23 - 1),
        struct.Struct("<i").pack,
    ),
    Kind(
        Column("", "float"),
        ColumnDefinition(4, False, 12),
        st.floats(width=32, allow_nan=False),
        struct.Struct("<f").pack,
    ),
    Kind(
        Column("", "double"),
        ColumnDefinition(5, False, 22),
        st.floats(allow_nan=False),
        struct.Struct("<d").pack,
    ),
    *(
        _decimal(*parts)
        for parts in ((1, 0), (12, 2), (18, 18), (18, 0), (19, 2), (38, 0), (38, 38))
    ),
    _decimal(65, 30),
    Kind(
        Column("", "bit", length=1),
        ColumnDefinition(8, True, 2),
        st.booleans(),
        struct.Struct("<Q").pack,
    ),
    Kind(
        Column("", "bit", length=63),
        ColumnDefinition(8, True, 21),
        st.integers(0, 2**63 - 1),
        struct.Struct("<Q").pack,
    ),
    Kind(
        Column("", "bit", length=64),
        ColumnDefinition(8, True, 21),
        st.integers(0, 2**64 - 1),
        struct.Struct("<Q").pack,
        Decimal,
    ),
    Kind(
        Column("", "year"),
        ColumnDefinition(13, True, 4),
        st.one_of(st.just(0), st.integers(1901, 2155)),
        struct.Struct("<H").pack,
    ),
    Kind(
        Column("", "year"),
        ColumnDefinition(13, True, 2),
        st.integers(1970, 2069),
        lambda year: struct.pack("<H", year % 100),
    ),
    Kind(
        Column("", "date"),
        ColumnDefinition(10, False, 10),
        st.one_of(st.dates(date(1, 1, 1)), st.just(date(2024, 2, 29))),
        lambda day: bytes([4]) + struct.pack("<HBB", day.year, day.month, day.day),
    ),
    Kind(Column("", "datetime", length=6), ColumnDefinition(12, False, 26), _NAIVE, moment),
    Kind(
        Column("", "datetime", length=0),
        ColumnDefinition(12, False, 19),
        st.dates().map(lambda day: datetime(day.year, day.month, day.day)),
        moment,
    ),
    Kind(
        Column("", "timestamp", length=6),
        ColumnDefinition(7, False, 26),
        _NAIVE,
        moment,
        lambda value: value.replace(tzinfo=ZoneInfo("UTC")),
    ),
    *map(_time, (0, 1, 6)),
    _text("varchar", st.text(max_size=40)),
    _text("text", st.integers(0, 70_000).map(lambda count: "ü" * (count // 2))),
    _text("json", st.just('{"a": [1, "ü"]}')),
    _text("enum", st.sampled_from(["", "a", "ü"])),
    _text("set", st.sampled_from(["", "a", "a,b"])),
    Kind(
        Column("", "varbinary", length=40),
        ColumnDefinition(253, False, 40),
        st.binary(max_size=300),
        counted,
    ),
    Kind(
        Column("", "geometry"),
        ColumnDefinition(255, False, 1 << 32 - 1),
        st.one_of(st.just(b""), st.binary(min_size=4, max_size=40)),
        lambda rest: counted(b"\0" * 4 + b"\1" + rest if rest else b""),
        lambda rest: b"\1" + rest if rest else b"",
    ),
    Kind(
        Column("", "vector"),
        ColumnDefinition(242, False, 400),
        st.lists(st.floats(width=32, allow_nan=False), max_size=9),
        lambda floats: counted(struct.pack(f"<{len(floats)}f", *floats)),
    ),
)
"""One of each way to read, at the least."""


def row(cells: Sequence[bytes | None]) -> bytes:
    """A row's payload; None is NULL."""
    bitmap = bytearray((len(cells) + 9) // 8)
    for number, cell in enumerate(cells, start=2):
        if cell is None:
            bitmap[number >> 3] |= 1 << (number & 7)
    return b"\0" + bytes(bitmap) + b"".join(cell for cell in cells if cell is not None)


def packets(payloads: Sequence[bytes], first: int = 0) -> bytes:
    """Numbered packets; a payload of 16 MiB and more is continued, also by an empty packet."""
    made = bytearray()
    number = first
    for payload in payloads:
        at = 0
        while True:
            part = payload[at : at + WHOLE]
            made += struct.pack("<I", len(part) | number << 24) + part
            number = number + 1 & 0xFF
            at += len(part)
            if len(part) < WHOLE:
                break
    return bytes(made)


def pieces(data: bytes, borders: Sequence[int] = ()) -> Iterator[Received]:
    """The bytes, cut at these places; each piece in memory that is spoiled once it was read."""
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in borders)})
    for begin, end in pairwise(places):
        memory = np.frombuffer(data[begin:end], np.uint8).copy()
        yield Received(memory, 0, end - begin)
        memory[:] = 0xEE


def batches(
    kinds: Sequence[Kind], data: bytes, borders: Sequence[int] = (), **options: Any
) -> ResultBatches:
    columns = [replace(kind.column, name=f"c{number}") for number, kind in enumerate(kinds)]
    definitions = [kind.definition for kind in kinds]
    options = {"sequence": 0, **options}
    return ResultBatches(columns, definitions, pieces(data, borders), **options)


def values(found: ResultBatches) -> list[list[Any]]:
    return [list(row.values()) for batch in found for row in batch.to_pylist()]
