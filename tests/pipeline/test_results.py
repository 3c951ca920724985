"""Results in the binary protocol → Arrow, by values of every type, cut anywhere; cells on the edge
of their type, or beyond it; and what is no result."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.pipeline.resultset.column_arrays import DECODERS, mismatched_column
from lockstep.pipeline.resultset.packets import (
    MAX_ROW_BYTES,
    ColumnDefinition,
    ErrorPacket,
    read_warning_count,
)
from lockstep.pipeline.schema.types import FAMILIES
from lockstep.pipeline.values.errors import SourceUnavailable, TableError
from lockstep.pipeline.values.table import Column
from tests.pipeline.results_made import EOF, KINDS, OK, Kind, batches, counted, packets, row, values

INT = next(kind for kind in KINDS if kind.column == Column("", "int"))
TEXT = next(kind for kind in KINDS if kind.column.type == "varchar")
BLOB = next(kind for kind in KINDS if kind.column.type == "varbinary")


def shown(rows: Sequence[Sequence[Any]]) -> str:
    """Bits of floats and signs of zeros included."""
    return repr([list(row) for row in rows])


@settings(max_examples=75)
@given(st.data())
def test_what_was_written_is_read(data: st.DataObject) -> None:
    """Of all types, with NULLs, in pieces and batches of any size, from any packet's number."""
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=20))
    optional = [st.one_of(st.none(), kind.values) for kind in kinds]
    rows = data.draw(st.lists(st.tuples(*optional), max_size=12))
    cells = [
        [None if v is None else kind.cell(v) for kind, v in zip(kinds, each, strict=True)]
        for each in rows
    ]
    first = data.draw(st.integers(0, 255))
    sent = packets([*map(row, cells), data.draw(st.sampled_from([EOF, OK]))], first)
    borders = data.draw(st.lists(st.integers(0, len(sent)), max_size=30))
    max_rows = data.draw(st.integers(1, 13))
    found = batches(
        kinds,
        sent,
        borders,
        sequence=first,
        max_rows=max_rows,
        full_bytes=data.draw(st.sampled_from([1, 100, 1 << 20])),
    )
    expected = [
        [None if v is None else kind.read(v) for kind, v in zip(kinds, each, strict=True)]
        for each in rows
    ]
    read = []
    for batch in found:
        batch.validate(full=True)
        assert 0 < batch.num_rows <= max_rows
        read += [list(one.values()) for one in batch.to_pylist()]
    assert shown(read) == shown(expected)
    assert found.warning_count == 3


@pytest.mark.parametrize("size", [0xFFFFF8, 0xFFFFF9, 0xFFFFFA, 0xFFFFFF, 2 * 0xFFFFFF - 11])
def test_rows_of_several_packets(size: int) -> None:
    """A row that fills a packet of 16 MiB to the last byte is followed by an empty one. Its
    memory is given back."""
    large = b"x" * size
    sent = packets([row([BLOB.cell(value)]) for value in (b"a", large, b"b")] + [EOF])
    found = batches([BLOB], sent, range(0, len(sent), 1 << 20), full_bytes=1 << 20)
    assert [len(value) for (value,) in values(found)] == [1, size, 1]
    assert len(found._rows.data) <= 2 << 20


def test_batches_are_bounded() -> None:
    """By rows, by bytes (the row that crosses the bound included), and by cells where a table
    is wide."""
    ten = packets([row([BLOB.cell(b"x" * 1000)]) for _ in range(10)] + [EOF])
    assert [b.num_rows for b in batches([BLOB], ten, max_rows=4)] == [4, 4, 2]
    assert [b.num_rows for b in batches([BLOB], ten, full_bytes=3500)] == [4, 4, 2]
    wide = packets([row([None] * 4096)] * 1500 + [EOF])
    assert [b.num_rows for b in batches([INT] * 4096, wide)] == [1024, 476]


def test_an_error_comes_behind_the_rows_before_it() -> None:
    """Those that filled a batch; the server's error is handed on as it is."""
    number, said = struct.pack("<H", 3024), "Query execution was interrupted"
    for state, text in ((b"#HY000", said.encode()), (b"", said.encode()), (b"", b"")):
        error = b"\xff" + number + state + text
        sent = packets([row([INT.cell(n)]) for n in range(3)] + [error])
        read = iter(batches([INT], sent, max_rows=2))
        assert next(read).num_rows == 2
        with pytest.raises(ErrorPacket) as caught:
            next(read)
        assert (caught.value.number, caught.value.text) == (3024, text.decode())


GOOD = row([INT.cell(7), TEXT.cell("seven")])
BROKEN = {
    "no end": packets([GOOD]),
    "cut off in a head": packets([GOOD, EOF])[:-6],
    "another number": packets([GOOD, EOF], first=1),
    "an empty packet": packets([GOOD, b"", EOF]),
    "a packet of another kind": packets([GOOD, b"\x01\x00\x00", EOF]),
    "behind its end": packets([GOOD, EOF, GOOD]),
    "another result": packets([GOOD, b"\xfe\x00\x00\x0a\x00"]),
    "an error that is cut": packets([GOOD, b"\xff\x10"]),
    "an end that is cut": packets([GOOD, b"\xfe\x00\x00"]),
    "an end of lengths": packets([GOOD, b"\xfe\xfe\xfd"]),
    "no bitmap": packets([b"\x00", EOF]),
    "a cell cut": packets([GOOD[:-1], EOF]),
    "a row too long": packets([GOOD + b"x", EOF]),
    "a length cut": packets([GOOD[:6] + b"\xfc\x05", EOF]),
    "a length of NULL": packets([GOOD[:6] + b"\xfb", EOF]),
    "a length of an error": packets([GOOD[:6] + b"\xff" * 9, EOF]),
    "a length below zero": packets([GOOD[:6] + b"\xfe" + b"\xff" * 8, EOF]),
    "a length beyond 32 bits": packets([GOOD[:6] + b"\xfe\x05\0\0\0\1\0\0\0", EOF]),
}


@pytest.mark.parametrize("sent", BROKEN.values(), ids=BROKEN)
def test_what_is_no_result_is_a_lost_connection(sent: bytes) -> None:
    """Never rows that are not there, never an end that did not come."""
    with pytest.raises(SourceUnavailable, match="is malformed"):
        values(batches([INT, TEXT], sent))


def test_a_row_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond what a server can send, however it is cut into packets."""
    assert MAX_ROW_BYTES > 1 << 30
    monkeypatch.setattr("lockstep.pipeline.resultset.packets.MAX_ROW_BYTES", 1 << 24)
    sent = packets([row([BLOB.cell(b"x" * (1 << 25))]), EOF])
    with pytest.raises(SourceUnavailable, match="larger"):
        values(batches([BLOB], sent))


def test_every_type_of_the_log_is_read_from_rows_too() -> None:
    """The two tables name the same types, and each has codes."""
    assert DECODERS.keys() == FAMILIES.keys()


def test_columns_that_are_defined_otherwise() -> None:
    """Another type, another sign: the table is not built as it was."""
    columns = [Column("a", "int"), Column("b", "varchar")]
    good = [ColumnDefinition(3, False, 11), ColumnDefinition(253, False, 40)]
    assert mismatched_column(columns, good) is None
    assert mismatched_column(columns, [ColumnDefinition(3, True, 11), good[1]]) is columns[0]
    assert mismatched_column(columns, [ColumnDefinition(8, False, 20), good[1]]) is columns[0]
    assert mismatched_column(columns, [good[0], ColumnDefinition(3, False, 11)]) is columns[1]


@pytest.mark.parametrize(
    ("payload", "warnings"),
    [
        (b"\xfe\x05\x01\x02\x00", 261),
        (b"\xfe\x00\x00\x02\x00\x05\x01", 261),
        (b"\xfe\xfc\x00\x01\xfd\x00\x00\x01\x02\x00\x05\x01", 261),
        (b"\xfe\x00\x00\x02\x00\x00\x00and words", 0),
    ],
)
def test_the_last_packet_counts_warnings(payload: bytes, warnings: int) -> None:
    """Of either form."""
    assert read_warning_count(payload) == warnings


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
    kind = replace(KINDS[0], column=column, definition=ColumnDefinition(246, True, 42))
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
