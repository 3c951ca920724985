"""Cells of a result that are on the edge of their type, or beyond it."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from lockstep.pipeline.resultset.packets import Definition
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column
from tests.pipeline.results_made import EOF, KINDS, Kind, counted, packets, row
from tests.pipeline.results_read import batches, values

TEXT = next(kind for kind in KINDS if kind.column.type == "varchar")


def _date(year: int, month: int, day: int) -> bytes:
    return struct.pack("<BHBB", 4, year, month, day)


def _clock(hour: int, minute: int, second: int, micros: int = 0) -> bytes:
    return struct.pack("<BHBBBBBI", 11, 2024, 1, 1, hour, minute, second, micros)


def _time(days: int, hour: int, minute: int, second: int, micros: int = 0) -> bytes:
    return struct.pack("<BBIBBBI", 12, 0, days, hour, minute, second, micros)


def kind_of(name: str, **parts: Any) -> Kind:
    return next(
        kind
        for kind in KINDS
        if kind.column.type == name
        and all(getattr(kind.column, part) == value for part, value in parts.items())
    )


NO_VALUES = [
    *(("date", {}, _date(*day)) for day in ((2024, 2, 30), (2023, 2, 29), (1900, 2, 29))),
    *(("date", {}, _date(*day)) for day in ((2024, 4, 31), (2024, 13, 1), (10_000, 1, 1))),
    *(("date", {}, cell) for cell in (_clock(1, 1, 1), counted(b"\xe8\x07\2"), counted(b"\0"))),
    ("datetime", {}, struct.pack("<BHBB", 4, 2024, 2, 31)),
    *(("datetime", {}, _clock(*c)) for c in ((24, 0, 0), (0, 60, 0), (0, 0, 60), (0, 0, 0, 10**6))),
    ("timestamp", {}, counted(b"\0" * 5)),
    *(("time", {}, _time(*t)) for t in ((34, 23, 0, 0), (0, 0, 60, 0), (0, 0, 0, 60))),
    ("time", {}, _time(0, 0, 0, 0, 10**6)),
    ("time", {}, _time(2**32 - 1, 0, 0, 0)),
    ("time", {}, counted(b"\0" * 7)),
    *(
        ("decimal", {"precision": 12}, counted(t))
        for t in (b"", b"-", b"1", b"1.2", b".12", b"-.12")
    ),
    *(("decimal", {"precision": 12}, counted(t)) for t in (b"1.2e", b"1 .12", b"10000000000.00")),
    ("decimal", {"precision": 18, "scale": 0}, counted(b"9" * 19)),
    ("decimal", {"precision": 18, "scale": 0}, counted(b"1" + b"0" * 40)),
    *(("decimal", {"precision": 38, "scale": 0}, counted(t)) for t in (b"", b"1" * 39, b"1.1")),
    *(("decimal", {"precision": 38, "scale": 38}, counted(t)) for t in (b"1." + b"0" * 38, b"0.0")),
    *(("decimal", {"precision": 65}, counted(t)) for t in (b"", b".", b"1.2.3", b"1-2", b"NaN")),
    *(("geometry", {}, counted(g)) for g in (b"\0", b"\0" * 8, b"\0" * 4 + b"\2" + b"\0" * 8)),
    ("vector", {}, counted(b"\0" * 5)),
]


@pytest.mark.parametrize(("name", "parts", "cell"), NO_VALUES)
def test_what_is_no_value_of_its_type_is_said(
    name: str, parts: dict[str, Any], cell: bytes
) -> None:
    """Dates of no calendar, digits that are none, geometry without a head."""
    with pytest.raises(TableError, match=f"'c0' holds a value that is not a valid {name}"):
        values(batches([kind_of(name, **parts)], packets([row([cell]), EOF])))


def test_text_is_utf_8() -> None:
    """What a server converted to something else is never taken for text."""
    with pytest.raises(TableError, match="that is not UTF-8"):
        values(batches([TEXT], packets([row([counted(b"\xed\xa0\x80")]), EOF])))


def _read(kind: Kind, sent: bytes) -> list[list[Any]]:
    return values(batches([kind, kind_of("int")], sent))


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("date", b"\0"),
        ("date", _date(0, 1, 1)),
        ("datetime", b"\0"),
        ("datetime", struct.pack("<BHBBBBB", 7, 2024, 0, 1, 2, 3, 4)),
        ("timestamp", b"\0"),
        ("timestamp", _date(2024, 1, 0)),
    ],
)
def test_zero_and_partial_dates_are_null(name: str, cell: bytes) -> None:
    """As in the log's path, whatever stands before and behind them; year 0 makes a date
    partial."""
    some, another = _date(2024, 1, 1), _date(2024, 1, 2)
    like_a_date = struct.pack("<i", int.from_bytes(another[1:], "little"))
    sent = packets([row([c, like_a_date]) for c in (cell, some, cell, another, cell)] + [EOF])
    read = [None if value is None else value.day for value, _ in _read(kind_of(name), sent)]
    assert read == [None, 1, None, 2, None]


ZEROFILLED = [
    (12, 2, b"0000000000.50", "0.50"),
    (18, 0, b"000000000000000007", "7"),
    (38, 2, b"000000000000000000000000000000000000.50", "0.50"),
    (39, 2, b"0000000000000000000000000000000000000.50", "0.50"),
    (40, 0, b"0" * 40, "0"),
    (40, 0, b"0" * 39 + b"7", "7"),
]


@pytest.mark.parametrize(("precision", "scale", "sent", "expected"), ZEROFILLED)
def test_zeros_in_front_are_no_digits(
    precision: int, scale: int, sent: bytes, expected: str
) -> None:
    """Of ZEROFILL."""
    column = Column("", "decimal", precision=precision, scale=scale)
    kind = replace(KINDS[0], column=column, definition=Definition(246, True, 42))
    ((value,),) = values(batches([kind], packets([row([counted(sent)]), EOF])))
    assert str(value) == expected


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ("e6100000" + "00" + "00000001" + "00" * 16, "00" + "20000001" + "000010e6" + "00" * 16),
        ("e6100000" + "01" + "01000000" + "00" * 16, "01" + "01000020" + "e6100000" + "00" * 16),
        ("00000000" + "00" + "00000001" + "00" * 16, "00" + "00000001" + "00" * 16),
        ("", ""),
    ],
)
def test_ewkb_keeps_the_byte_order(stored: str, expected: str) -> None:
    """Type word and spatial reference are written in the order of the value itself."""
    cell = counted(bytes.fromhex(stored))
    ((value,),) = values(batches([kind_of("geometry")], packets([row([cell]), EOF])))
    assert value.hex() == expected
