"""What a table map means by its writer: signs beside a YEAR, and columns that indexes hide."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.binlog.rows.maps import TableMaps
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
from lockstep.pipeline.binlog.stream.framing import HEADER
from lockstep.pipeline.run.dump.table_map_check import checked_hidden_columns
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion, VersionOrigin
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    ExpressionColumn,
    KeyPart,
    KeySchema,
    TableSchema,
)
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import TableName
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
AT = Coordinates(LogFile("binlog", 1), 4)
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
    return SchemaVersion(schema.name, 1, AT, Knowledge.KNOWN, VersionOrigin.BASELINE, schema=schema)


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
