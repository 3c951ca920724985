"""What a table map means by its writer: signs beside a YEAR, and columns that indexes hide; and
which columns an update gave another value: row events made by chance, against a comparison row by
row."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.pipeline.binlog.arrays.cells import layout
from lockstep.pipeline.binlog.rows.maps import TableMaps, split_portions
from lockstep.pipeline.binlog.rows.rows import TableDecoder
from lockstep.pipeline.binlog.rows.table_map import (
    OptionalField,
    Outline,
    TableMap,
    read_layouts,
    read_outlines,
    read_structure,
    read_table_map,
)
from lockstep.pipeline.binlog.stream.control import LogWriter
from lockstep.pipeline.binlog.stream.framing import HEADER, EventType
from lockstep.pipeline.binlog.stream.ring import AT, EVENT_COLUMNS, SIZE, TYPE, Block
from lockstep.pipeline.run.dump.table_map_check import checked_hidden_columns
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion, VersionOrigin
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    ExpressionColumn,
    KeyPart,
    KeySchema,
    TableSchema,
)
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.row_images import CHANGE_TYPES, unpack_bits
from lockstep.pipeline.values.segment import ChangeType
from lockstep.pipeline.values.table import Column, TableName, TableStructure
from tests.pipeline.dialects_made import map_of

INT, YEAR = 3, 13
Signs = list[tuple[int, bool]]
"""Columns: the type, and whether it is unsigned; a YEAR is."""

COLUMNS = st.lists(
    st.tuples(st.just(INT), st.booleans()) | st.just((YEAR, True)), min_size=1, max_size=20
)


def _raw(types: bytes) -> bytes:
    return bytes(HEADER.size) + map_of(types)


def _name(number: int) -> str:
    return chr(ord("a") + number)


def mapped(columns: Signs, version: int | None, *, years: bool, flavour: str = "mysql") -> TableMap:
    """A table map with signs and names, in which a YEAR has a sign or none."""
    bits = "".join("01"[unsigned] for kind, unsigned in columns if years or kind != YEAR)
    signs = bytes(int(bits[at : at + 8].ljust(8, "0"), 2) for at in range(0, len(bits), 8))
    names = b"".join(bytes([1]) + _name(at).encode() for at in range(len(columns)))
    optional = (bytes([1, len(signs)]) + signs if signs else b"") + bytes([4, len(names)]) + names
    raw = _raw(bytes(kind for kind, _ in columns)) + optional
    writer = LogWriter("mariadb" if flavour == "mariadb" else "mysql", version)
    return TableMap(1, TableName("shop", "t"), raw, writer)


def signs(outline: Outline) -> list[bool]:
    return [column.unsigned for column in outline.columns]


@given(COLUMNS)
def test_a_known_version_is_read_as_it_writes(columns: Signs) -> None:
    """MySQL 8.0.15 writes no sign for a YEAR, MySQL 8.0.29, 9.7 and MariaDB write one."""
    expected = [[unsigned for _, unsigned in columns]]
    for version, years in ((80011, False), (80015, False), (80029, True), (90704, True)):
        assert expected == [*map(signs, read_outlines(mapped(columns, version, years=years)))]
    found = read_outlines(mapped(columns, 101118, years=True, flavour="mariadb"))
    assert expected == [*map(signs, found)]


@given(COLUMNS, st.booleans(), st.sampled_from((80016, 80028, None)))
def test_an_unknown_version_is_read_in_each_way_that_fits(
    columns: Signs, years: bool, version: int | None
) -> None:
    """What the log means is one of the ways; where it is not the only one, the log alone does not
    tell the structure."""
    table_map = mapped(columns, version, years=years)
    outlines = read_outlines(table_map)
    assert [unsigned for _, unsigned in columns] in [*map(signs, outlines)]
    if len(outlines) == 1:
        assert read_structure(table_map).columns == outlines[0].columns
    else:
        with pytest.raises(TableError, match="which columns of the table are unsigned"):
            read_structure(table_map)


@given(COLUMNS)
def test_signs_that_no_version_writes(columns: Signs) -> None:
    """A map with a sign too many is refused, whoever wrote it."""
    more = [*columns, *[(INT, False)] * 8, (INT, True)]
    table_map = mapped(more, 90704, years=True)
    fewer = mapped(columns, 90704, years=True)
    start = len(_raw(bytes(kind for kind, _ in columns)))
    begin = len(_raw(bytes(kind for kind, _ in more)))
    raw = fewer.raw[:start] + table_map.raw[begin:][: 2 + (len(more) + 7) // 8]
    with pytest.raises(TableError, match="signs that do not fit"):
        read_outlines(replace(fewer, raw=raw))


def test_the_same_bytes_of_two_versions() -> None:
    """They are two maps: after an upgrade they mean something else."""
    maps, raw = TableMaps(lambda _: True), mapped([(INT, True)], None, years=True).raw
    numbers = []
    for version in (80015, 90704, 80015):
        maps.begin_file(LogWriter("mysql", version))
        numbers.append(maps.add(read_table_map(raw, maps.writer)))
    assert numbers == [0, 1, 0]
    assert [known.writer.version for known in maps.table_maps] == [80015, 90704]


# -- columns that functional indexes hide ---------------------------------------------------------

PLACED, LATER, NEWEST = LogWriter("mysql", 80015), LogWriter("mysql", 80016), LogWriter()
HERE = Coordinates(LogFile("binlog", 1), 4)
TYPES = {INT: "int", 8: "bigint"}


def version_of(visible: list[int], hidden: list[int]) -> SchemaVersion:
    """A table with these types, and an index of one expression for each hidden column."""
    keys = tuple(
        KeySchema(f"k{place}", "index", (KeyPart(None, expression="x"),)) for place in hidden
    )
    schema = TableSchema(
        TableName("shop", "t"),
        tuple(ColumnSchema(_name(at), TYPES[kind]) for at, kind in enumerate(visible)),
        keys,
        expression_columns=tuple(ExpressionColumn(place) for place in hidden),
    )
    return SchemaVersion(
        schema.name, 1, HERE, Knowledge.KNOWN, VersionOrigin.BASELINE, schema=schema
    )


@given(st.lists(st.tuples(st.sampled_from((INT, 8)), st.booleans()), min_size=1, max_size=9))
def test_hidden_columns_are_never_guessed(columns: list[tuple[int, bool]]) -> None:
    """Without names they are found where the history has them; where it does not know their
    places, they are found only if there is one way."""
    visible = [kind for kind, hides in columns if not hides]
    hidden = [place for place, (_, hides) in enumerate(columns) if hides]
    version = version_of(visible, hidden)
    table_map = TableMap(1, version.table, _raw(bytes(kind for kind, _ in columns)), PLACED)
    assert checked_hidden_columns(version, table_map) == tuple(hidden)
    assert version.schema is not None
    forgotten = replace(version, schema=replace(version.schema, expression_columns=()))
    try:
        assert checked_hidden_columns(forgotten, table_map) == tuple(hidden)
    except TableError as error:
        assert "does not say which" in str(error)
    for other in (version, forgotten) if hidden else ():
        with pytest.raises(TableError, match="does not say which"):
            checked_hidden_columns(other, replace(table_map, writer=LATER))


def test_hidden_columns_that_are_not_in_the_log() -> None:
    """Later versions leave them out, and columns that are too many there are none of them."""
    version = version_of([INT, 8], [2])
    assert (
        checked_hidden_columns(version, TableMap(1, version.table, _raw(bytes([INT, 8])), NEWEST))
        == ()
    )
    assert (
        checked_hidden_columns(version, TableMap(1, version.table, _raw(bytes([INT, 8])), LATER))
        == ()
    )
    with pytest.raises(TableError, match="columns: 3, 2"):
        checked_hidden_columns(
            version, TableMap(1, version.table, _raw(bytes([INT, 8, 8])), NEWEST)
        )
    with pytest.raises(TableError, match="columns: 2, 2 and 1 hidden"):
        checked_hidden_columns(version, TableMap(1, version.table, _raw(bytes([INT, 8])), PLACED))


def test_what_a_map_says() -> None:
    """A map with names and signs says so."""
    (outline,) = read_outlines(mapped([(INT, True)], 80015, years=False))
    assert outline.optional_fields == {OptionalField.NAMES, OptionalField.SIGNS}


@pytest.mark.parametrize(("version", "bare"), [(50722, True), (80015, False), (None, False)])
def test_only_5_7_prints_whole_doubles_bare(version: int | None, bare: bool) -> None:
    """Where a file names a version in another form, its JSON is read as of today's servers."""
    names = b"\x04shop\0\x01t\0"
    body = (1).to_bytes(6, "little") + b"\1\0" + names + b"\x01\xf5\x01\x04\x00"
    mapped = read_table_map(bytes(19) + body, LogWriter(version=version))
    assert [layout.bare_doubles for layout in read_layouts(mapped)] == [bare]


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


@given(st.lists(st.integers(0, 4), max_size=8), st.integers(1, 200))
def test_events_of_several_portions_keep_their_indexes(counts: list[int], most_bytes: int) -> None:
    """However few bytes a portion may have: each has what fits, or one event that is larger."""
    body = struct.pack("<IHHH", 1, 0, 1, 2) + bytes([WIDTH]) + _bits([True] * WIDTH)
    rows = [[struct.pack("<i", n), *[None] * (WIDTH - 1)] for n in range(4)]
    block = _block(
        [
            (
                EventType.WRITE_ROWS,
                body + b"".join(_image(row, [True] * WIDTH) for row in rows[:count]),
            )
            for count in counts
        ]
    )
    decoder = TableDecoder(STRUCTURE, LAYOUTS, arrow_schema(STRUCTURE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lockstep.pipeline.binlog.rows.maps.MAX_STRING_BYTES", most_bytes)
        portions = [(first, part.events[:, SIZE].tolist()) for first, part in split_portions(block)]
        found = [
            (event, row["i"])
            for images in decoder.decode(block)
            for event, row in zip(images.event.to_pylist(), images.columns.to_pylist(), strict=True)
        ]
    assert found == [(event, n) for event, count in enumerate(counts) for n in range(count)]
    assert all(len(sizes) == 1 or sum(sizes) <= most_bytes for _, sizes in portions)
    for (first, sizes), (next_first, next_sizes) in pairwise(portions):
        assert next_first == first + len(sizes)
        assert sum(sizes) + next_sizes[0] > most_bytes


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
