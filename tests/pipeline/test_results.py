"""Results in the binary protocol → Arrow, by values of every type, cut anywhere; and what is no
result."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.pipeline.binlog.rows.rows import DECODED_BY
from lockstep.pipeline.resultset.column_arrays import READ_BY, mismatched_column
from lockstep.pipeline.resultset.packets import MAX_ROW_BYTES, Definition, ErrorPacket, read_ending
from lockstep.pipeline.values.errors import SourceUnavailable
from lockstep.pipeline.values.table import Column
from tests.pipeline.results_made import EOF, KINDS, OK, packets, row
from tests.pipeline.results_read import batches, values

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
    most_rows = data.draw(st.integers(1, 13))
    found = batches(
        kinds,
        sent,
        borders,
        sequence=first,
        most_rows=most_rows,
        most_bytes=data.draw(st.sampled_from([1, 100, 1 << 20])),
    )
    expected = [
        [None if v is None else kind.read(v) for kind, v in zip(kinds, each, strict=True)]
        for each in rows
    ]
    read = []
    for batch in found:
        batch.validate(full=True)
        assert 0 < batch.num_rows <= most_rows
        read += [list(one.values()) for one in batch.to_pylist()]
    assert shown(read) == shown(expected)
    assert found.ending is not None
    assert found.ending.warnings == 3


def test_a_border_at_every_place() -> None:
    """Within a packet's head, behind it, between two."""
    sent = packets([row([INT.cell(n), TEXT.cell("ü" * n)]) for n in range(4)] + [EOF])
    for border in range(len(sent)):
        found = batches([INT, TEXT], sent, [border])
        assert values(found) == [[n, "ü" * n] for n in range(4)]


@pytest.mark.parametrize("size", [0xFFFFF8, 0xFFFFF9, 0xFFFFFA, 0xFFFFFF, 2 * 0xFFFFFF - 11])
def test_rows_of_several_packets(size: int) -> None:
    """A row that fills a packet of 16 MiB to the last byte is followed by an empty one. Its
    memory is given back."""
    large = b"x" * size
    sent = packets([row([BLOB.cell(value)]) for value in (b"a", large, b"b")] + [EOF])
    found = batches([BLOB], sent, range(0, len(sent), 1 << 20), most_bytes=1 << 20)
    assert [len(value) for (value,) in values(found)] == [1, size, 1]
    assert len(found._rows.data) <= 2 << 20


def test_batches_are_bounded() -> None:
    """By rows, by bytes (the row that crosses the bound included), and by cells where a table
    is wide."""
    ten = packets([row([BLOB.cell(b"x" * 1000)]) for _ in range(10)] + [EOF])
    assert [b.num_rows for b in batches([BLOB], ten, most_rows=4)] == [4, 4, 2]
    assert [b.num_rows for b in batches([BLOB], ten, most_bytes=3500)] == [4, 4, 2]
    wide = packets([row([None] * 4096)] * 1500 + [EOF])
    assert [b.num_rows for b in batches([INT] * 4096, wide)] == [1024, 476]


def test_an_error_comes_behind_the_rows_before_it() -> None:
    """Those that filled a batch; the server's error is handed on as it is."""
    number, said = struct.pack("<H", 3024), "Query execution was interrupted"
    for state, text in ((b"#HY000", said.encode()), (b"", said.encode()), (b"", b"")):
        error = b"\xff" + number + state + text
        sent = packets([row([INT.cell(n)]) for n in range(3)] + [error])
        read = iter(batches([INT], sent, most_rows=2))
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
    assert READ_BY.keys() == DECODED_BY.keys()


def test_columns_that_are_defined_otherwise() -> None:
    """Another type, another sign: the table is not built as it was."""
    columns = [Column("a", "int"), Column("b", "varchar")]
    good = [Definition(3, False, 11), Definition(253, False, 40)]
    assert mismatched_column(columns, good) is None
    assert mismatched_column(columns, [Definition(3, True, 11), good[1]]) is columns[0]
    assert mismatched_column(columns, [Definition(8, False, 20), good[1]]) is columns[0]
    assert mismatched_column(columns, [good[0], Definition(3, False, 11)]) is columns[1]


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
    assert read_ending(payload).warnings == warnings
