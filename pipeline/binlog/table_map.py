"""TABLE_MAP events → table structures.

Belongs here: the event's fixed part, its per-type metadata and its optional metadata
(`binlog_row_metadata=FULL`), and the slot rules by which optional metadata finds its
columns. Does not: values of rows.

Format: `Table_map_event` in `libs/mysql/binlog/event/rows_event.h`. What the slots
count: signedness goes over numeric columns (YEAR counts, BIT does not), character sets
over string columns (VECTOR takes a slot, GEOMETRY on MariaDB alone), members over ENUM and
SET by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from pipeline.binlog.cells import Layout, layout
from pipeline.binlog.charsets import text_decoder
from pipeline.binlog.collations import BINARY, character_set
from pipeline.binlog.reading import Reader
from pipeline.errors import TableError
from pipeline.table import Column, TableName, TableStructure

_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _COLUMN_NAME = 1, 2, 3, 4
_SET_VALUES, _ENUM_VALUES, _SIMPLE_KEY, _PREFIX_KEY = 5, 6, 8, 9
_ENUM_DEFAULT_CHARSET, _ENUM_COLUMN_CHARSET = 10, 11

_NUMERIC: Final = frozenset({1, 2, 3, 4, 5, 8, 9, 13, 246})
_STRINGS: Final = frozenset({15, 242, 252, 253, 254})
_ENUM, _SET, _STRING, _GEOMETRY = 247, 248, 254, 255
_OLD_TEMPORAL: Final = frozenset({7, 11, 12})
_NAMES: Final = {
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "float",
    5: "double",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
    15: "varchar",
    16: "bit",
    17: "timestamp",
    18: "datetime",
    19: "time",
    242: "vector",
    245: "json",
    246: "decimal",
    _ENUM: "enum",
    _SET: "set",
    252: "text",
    253: "varchar",
    _STRING: "char",
    _GEOMETRY: "geometry",
}
_BYTE_STRINGS: Final = {"char": "binary", "varchar": "varbinary", "text": "blob"}
TYPE_NAMES: Final = frozenset(_NAMES.values())
"""Base types as a table map tells them, before its character sets make bytes of strings."""

_METADATA_BYTES: Final = {
    4: 1,
    5: 1,
    15: 2,
    16: 2,
    17: 1,
    18: 1,
    19: 1,
    242: 1,
    245: 1,
    246: 2,
    _ENUM: 2,
    _SET: 2,
    252: 1,
    253: 2,
    _STRING: 2,
    255: 1,
}

_METADATA_HINT = "set binlog_row_metadata=FULL on the source; rows logged before that cannot be \
read by this version, so start behind them"


@dataclass(frozen=True, slots=True)
class TableMap:
    """What a TABLE_MAP says before its optional part: whose rows follow under this id."""

    table_id: int
    table: TableName
    raw: bytes


def read_table_map(raw: bytes) -> TableMap:
    """A whole TABLE_MAP event without checksum → its identity only; `read_structure` reads
    the rest where it is wanted."""
    table_id, table, _ = _head(raw)
    return TableMap(table_id, table, raw)


def read_layouts(raw: bytes, flavour: str = "mysql") -> tuple[Layout, ...]:
    """A whole TABLE_MAP event without checksum → where its columns' cells lie.

    TableError for a column type this version has never heard of, and for MariaDB's old
    temporal types, whose width the log does not tell.
    """
    _, _, reader = _head(raw)
    codes = reader.take(reader.packed())
    metadata = Reader(reader.packed_text(), "a TABLE_MAP event")
    layouts = tuple(layout(code, _metadata(code, metadata)) for code in codes)
    if flavour == "mariadb" and any(one.code in _OLD_TEMPORAL for one in layouts):
        raise TableError(
            "it has temporal columns in the format before MariaDB 10.1.2",
            hint="rebuild the table with mysql56_temporal_format=ON (ALTER TABLE … FORCE)",
        )
    return layouts


def _metadata(code: int, metadata: Reader) -> bytes:
    if code not in _NAMES:
        raise TableError(
            f"a column has the type number {code}, which this version does not know",
            hint="exclude the table",
        )
    return metadata.take(_METADATA_BYTES.get(code, 0))


def read_structure(raw: bytes, flavour: str = "mysql") -> TableStructure:
    """A whole TABLE_MAP event without checksum → the table's structure.

    TableError where the event does not say all: no names (MINIMAL metadata), no primary
    key, or a column type this version has never heard of.
    """
    _, table, reader = _head(raw)
    count = reader.packed()
    codes = reader.take(count)
    metadata = Reader(reader.packed_text(), f"the TABLE_MAP of {table}")
    slots = [_slot(code, metadata) for code in codes]
    nulls = reader.take((count + 7) // 8)
    strings = _STRINGS | {_GEOMETRY} if flavour == "mariadb" else _STRINGS
    optional = _Optional(slots, str(table), dict(_fields(reader)), strings)
    columns = tuple(
        replace(
            column,
            name=name,
            nullable=bool(nulls[index >> 3] >> (index & 7) & 1),
        )
        for index, (column, name) in enumerate(
            zip(optional.columns(), optional.names(), strict=True)
        )
    )
    key = tuple(columns[index].name for index in optional.primary_key())
    return TableStructure(table, columns, key)


def _head(raw: bytes) -> tuple[int, TableName, Reader]:
    reader = Reader(raw[19:], "a TABLE_MAP event")
    table_id = reader.integer(6)
    reader.take(2)
    database = reader.take(reader.integer(1)).decode("utf-8", "surrogateescape")
    reader.take(1)
    name = reader.take(reader.integer(1)).decode("utf-8", "surrogateescape")
    reader.take(1)
    return table_id, TableName(database, name), reader


@dataclass(frozen=True, slots=True)
class _Slot:
    """A column's type code (ENUM and SET told apart from STRING) and what it is so far."""

    code: int
    column: Column


def _slot(code: int, metadata: Reader) -> _Slot:
    data = _metadata(code, metadata)
    if code == _STRING and data[0] in (_ENUM, _SET):
        code = data[0]
    column = Column(name="", type=_NAMES[code])
    match code:
        case 15 | 253:
            column = replace(column, length=int.from_bytes(data, "little"))
        case 254:
            # The length's upper bits hide, inverted, in the type byte (Field_string).
            column = replace(column, length=((data[0] & 0x30) ^ 0x30) << 4 | data[1])
        case 246:
            column = replace(column, precision=data[0], scale=data[1])
        case 17 | 18 | 19 | 252 | 242 | 245 | 255:
            column = replace(column, length=data[0])
        case 247 | 248:
            column = replace(column, length=data[1])
        case 16:
            column = replace(column, length=data[1] * 8 + data[0])
        case _:
            pass
    return _Slot(code, column)


def _fields(reader: Reader) -> Iterator[tuple[int, bytes]]:
    while reader.left:
        kind = reader.integer(1)
        yield kind, reader.packed_text()


class _Optional:
    """The optional metadata of one table map, laid over its columns."""

    def __init__(
        self, slots: list[_Slot], table: str, fields: dict[int, bytes], strings: frozenset[int]
    ) -> None:
        self._slots = slots
        self._strings = strings
        self._what = f"the TABLE_MAP of {table}"
        self._fields = fields

    def names(self) -> list[str]:
        data = self._fields.get(_COLUMN_NAME)
        if data is None:
            raise TableError(
                "its log has no column names (binlog_row_metadata=MINIMAL)", hint=_METADATA_HINT
            )
        reader = Reader(data, self._what)
        try:
            names = [reader.packed_text().decode("utf-8") for _ in self._slots]
        except UnicodeDecodeError as error:
            raise _wrong("a name that is no UTF-8") from error
        if len({*names, ""}) <= len(names):
            raise _wrong("a name that two columns have, or none")
        return names

    def primary_key(self) -> list[int]:
        """Column indexes in key order; whole columns also where the key has prefixes,
        because a value whose prefix is unique is unique itself."""
        if _SIMPLE_KEY in self._fields:
            key = list(self._packed(_SIMPLE_KEY))
        elif _PREFIX_KEY in self._fields:
            key = list(self._packed(_PREFIX_KEY))[::2]
        else:
            raise TableError(
                "it has no PRIMARY KEY", hint="add a PRIMARY KEY to the table, or exclude it"
            )
        if len(set(key)) < len(key) or any(index >= len(self._slots) for index in key):
            raise _wrong("a key of columns that it does not have")
        return key

    def columns(self) -> list[Column]:
        columns = [slot.column for slot in self._slots]
        for index, unsigned in zip(self._where(_NUMERIC), self._bits(_SIGNEDNESS), strict=False):
            columns[index] = replace(columns[index], unsigned=unsigned)
        for index, collation in self._collations(
            self._where(self._strings), _DEFAULT_CHARSET, _COLUMN_CHARSET
        ):
            columns[index] = _with_charset(columns[index], collation)
        for index, collation in self._collations(
            self._where({_ENUM, _SET}), _ENUM_DEFAULT_CHARSET, _ENUM_COLUMN_CHARSET
        ):
            columns[index] = replace(columns[index], charset=character_set(collation))
        for code, field in ((_ENUM, _ENUM_VALUES), (_SET, _SET_VALUES)):
            for index, members in zip(self._where({code}), self._members(field), strict=False):
                columns[index] = _with_members(columns[index], members)
        return columns

    def _where(self, codes: frozenset[int] | set[int]) -> list[int]:
        return [index for index, slot in enumerate(self._slots) if slot.code in codes]

    def _bits(self, kind: int) -> Iterator[bool]:
        for byte in self._fields.get(kind, b""):
            for shift in range(7, -1, -1):
                yield bool(byte >> shift & 1)

    def _packed(self, kind: int) -> Iterator[int]:
        reader = Reader(self._fields.get(kind, b""), self._what)
        while reader.left:
            yield reader.packed()

    def _collations(self, indexes: list[int], default: int, each: int) -> list[tuple[int, int]]:
        """(column, collation): either one per slot, or a default and its exceptions."""
        if default in self._fields:
            numbers = list(self._packed(default))
            if not numbers:
                raise _wrong("no default character set where one should be")
            exceptions = dict(zip(numbers[1::2], numbers[2::2], strict=False))
            return [(i, exceptions.get(slot, numbers[0])) for slot, i in enumerate(indexes)]
        return list(zip(indexes, self._packed(each), strict=False))

    def _members(self, field: int) -> Iterator[list[bytes]]:
        reader = Reader(self._fields.get(field, b""), self._what)
        while reader.left:
            yield [reader.packed_text() for _ in range(reader.packed())]


def _wrong(what: str) -> TableError:
    return TableError(
        f"its log describes it with {what}",
        hint="exclude the table, and report this log to us",
    )


def _with_charset(column: Column, collation: int) -> Column:
    if column.type not in _BYTE_STRINGS:
        return column
    if collation == BINARY:
        return replace(column, type=_BYTE_STRINGS[column.type], charset="binary")
    return replace(column, charset=character_set(collation))


def _with_members(column: Column, members: list[bytes]) -> Column:
    # Names of members are text in any case; a set called binary leaves them as they came.
    charset = column.charset if column.charset not in (None, "binary") else "utf8mb4"
    decode: Callable[[bytes], str] = text_decoder(charset or "utf8mb4")
    try:
        return replace(column, members=tuple(decode(member) for member in members))
    except UnicodeDecodeError as error:
        raise TableError(
            f"a column's members are no {column.charset} text",
            hint="report this log to us; exclude the table meanwhile",
        ) from error
