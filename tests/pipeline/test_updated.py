"""Which columns an update gave another value: row events made by chance, against a comparison
row by row."""

from __future__ import annotations

import struct
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.pipeline.binlog.arrays.cells import layout
from lockstep.pipeline.binlog.rows.rows import TableDecoder
from lockstep.pipeline.binlog.stream.framing import HEADER, EventType
from lockstep.pipeline.binlog.stream.ring import AT, EVENT_COLUMNS, SIZE, TYPE, Block
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.values.row_images import CHANGE_TYPES, unpack_bits
from lockstep.pipeline.values.segment import ChangeType
from lockstep.pipeline.values.table import Column, TableName, TableStructure

Row: TypeAlias = list[bytes | None]
"""Each column's cell, its length before it; None where it is NULL."""

STRUCTURE = TableStructure(
    TableName("shop", "t"),
    (
        Column("i", "int"),
        Column("v", "varchar", length=9, charset="latin1"),
        Column("b", "blob", charset="binary"),
        Column("d", "decimal", precision=12, scale=3),
        *(Column(f"n{n}", "tinyint") for n in range(5)),
    ),
    (),
)
LAYOUTS = (
    layout(3, b""),
    layout(15, b"\x09\x00"),
    layout(252, b"\x02"),
    layout(246, b"\x0c\x03"),
    *(layout(1, b"") for _ in range(5)),
)
WIDTH = len(LAYOUTS)
_NUMBERS = st.sampled_from([struct.pack("<i", n) for n in (0, 1, -1, 1 << 24)])
_TEXTS = st.binary(max_size=3).map(lambda text: bytes([len(text)]) + text)
_BLOBS = st.binary(max_size=3).map(lambda data: struct.pack("<H", len(data)) + data)
_DECIMALS = st.sampled_from([bytes([0x80, 0, 0, 0, n, 0]) for n in (0, 1)])
_TINY = st.sampled_from([b"\x00", b"\x01"])
ROWS = st.tuples(
    *(st.none() | cell for cell in (_NUMBERS, _TEXTS, _BLOBS, _DECIMALS, *[_TINY] * 5))
).map(list)
PRESENT = st.lists(st.booleans(), min_size=WIDTH, max_size=WIDTH).filter(any)
EVENTS = st.lists(
    st.tuples(
        st.sampled_from([EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS]),
        PRESENT,
        PRESENT,
        st.lists(st.tuples(ROWS, ROWS, st.booleans()), max_size=4),
    ),
    max_size=6,
)


def _bits(flags: list[bool]) -> bytes:
    return np.packbits(np.array(flags, np.bool_), bitorder="little").tobytes()


def _image(row: Row, present: list[bool]) -> bytes:
    cells = [cell for cell, there in zip(row, present, strict=True) if there]
    return _bits([cell is None for cell in cells]) + b"".join(cell or b"" for cell in cells)


def _block(events: list[tuple[EventType, bytes]]) -> Block:
    index, data = np.zeros((len(events), EVENT_COLUMNS), np.int64), bytearray()
    for number, (kind, body) in enumerate(events):
        size = HEADER.size + len(body)
        index[number, [AT, SIZE, TYPE]] = len(data), size, kind
        data += HEADER.pack(0, kind, 7, size, 0, 0) + body
    return Block(np.frombuffer(bytes(data), np.uint8), index)


@settings(max_examples=25)
@given(EVENTS)
def test_an_update_tells_the_columns_it_changed(
    made: list[tuple[EventType, list[bool], list[bool], list[tuple[Row, Row, bool]]]],
) -> None:
    """Those whose bytes differ, NULL from a value too, and those that only the image after the
    update has; no other image tells anything."""
    events: list[tuple[EventType, bytes]] = []
    expected: list[list[bool] | None] = []
    for kind, before, after, rows in made:
        update = kind is EventType.UPDATE_ROWS
        body = struct.pack("<IHHH", 1, 0, 1, 2) + bytes([WIDTH]) + _bits(before)
        body += _bits(after) if update else b""
        for old, other, same in rows:
            body += _image(old, before)
            expected.append(None)
            if update:
                new = old if same else other
                body += _image(new, after)
                expected.append(
                    [
                        there and (not was or new[at] != old[at])
                        for at, (was, there) in enumerate(zip(before, after, strict=True))
                    ]
                )
        events.append((kind, body))
    decoder = TableDecoder(STRUCTURE, LAYOUTS, arrow_schema(STRUCTURE), reports_updates=True)
    found = []
    for images in decoder.decode(_block(events)):
        assert images.updated is not None
        changed = unpack_bits(images.updated, WIDTH).tolist()
        for told, flags in zip(images.updated.is_valid().to_pylist(), changed, strict=True):
            found.append(flags if told else None)
    assert found == expected


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_the_bytes_of_a_block_are_read_only(kind: type[bytes | bytearray]) -> None:
    """Else every loop is compiled twice: for bytes of the log, and for those of a payload."""
    data = np.frombuffer(kind(b"xyz"), np.uint8)
    block = Block(data, np.zeros((0, EVENT_COLUMNS), np.int64))
    assert (block.data.tobytes(), block.data.flags.writeable) == (b"xyz", False)
    assert data.flags.writeable is (kind is bytearray)


def test_nobody_is_told_who_did_not_ask() -> None:
    """Then nothing is compared either."""
    whole = [True] * WIDTH
    row: Row = [None] * WIDTH
    head = struct.pack("<IHHH", 1, 0, 1, 2) + bytes([WIDTH]) + _bits(whole) * 2
    block = _block([(EventType.UPDATE_ROWS, head + _image(row, whole) * 2)])
    (images,) = TableDecoder(STRUCTURE, LAYOUTS, arrow_schema(STRUCTURE)).decode(block)
    assert images.updated is None
    kinds = [CHANGE_TYPES[kind] for kind in images.change_type.to_pylist()]
    assert kinds == [ChangeType.UPDATE_PREIMAGE, ChangeType.UPDATE_POSTIMAGE]
