"""The structure of a table, read from a TABLE_MAP event.

Format: `Table_map_event` in `libs/mysql/binlog/event/rows_event.h` of MySQL's source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from lockstep.pipeline.binlog.arrays.cells import JSON, OLD_TEMPORAL_CODES, Layout, layout
from lockstep.pipeline.binlog.stream.control import LogWriter
from lockstep.pipeline.binlog.stream.framing import HEADER_BYTES, Reader
from lockstep.pipeline.binlog.values.charsets import text_decoder
from lockstep.pipeline.schema.collations import BINARY_COLLATION_NUMBER, charset_by_number
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column, TableName, TableStructure

_ENUM, _SET = 247, 248
_STRING_CODES: Final = frozenset({15, 242, 252, 253, 254})  # with BLOB and VECTOR
_STRING, _GEOMETRY = 254, 255
_BARE_DOUBLES_BEFORE: Final = 80000
"""MySQL prints whole doubles in JSON documents without ".0" before this version."""

_TYPES_BY_CODE: Final = {
    1: ("tinyint", 0),
    2: ("smallint", 0),
    3: ("int", 0),
    4: ("float", 1),
    5: ("double", 1),
    7: ("timestamp", 0),
    8: ("bigint", 0),
    9: ("mediumint", 0),
    10: ("date", 0),
    11: ("time", 0),
    12: ("datetime", 0),
    13: ("year", 0),
    15: ("varchar", 2),
    16: ("bit", 2),
    17: ("timestamp", 1),
    18: ("datetime", 1),
    19: ("time", 1),
    242: ("vector", 1),
    JSON: ("json", 1),
    246: ("decimal", 2),
    _ENUM: ("enum", 2),
    _SET: ("set", 2),
    252: ("text", 1),
    253: ("varchar", 2),
    _STRING: ("char", 2),
    _GEOMETRY: ("geometry", 1),
}
"""Type code → the type's name, and the number of its metadata bytes."""

_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _COLUMN_NAME = 1, 2, 3, 4
_SET_VALUES, _ENUM_VALUES, _SIMPLE_KEY, _PREFIX_KEY = 5, 6, 8, 9
_ENUM_DEFAULT_CHARSET, _ENUM_COLUMN_CHARSET = 10, 11

_NUMERIC_CODES: Final = frozenset({1, 2, 3, 4, 5, 8, 9, 246})
_YEAR_CODE: Final = 13
_LAST_WITHOUT_YEARS, _FIRST_WITH_YEARS = 80015, 80029
"""The metadata of MySQL 8.0.15 has no sign for a YEAR; that of 8.0.29 and of MariaDB
has one (unsigned). We do not know the first version that writes it."""

_BYTE_STRINGS: Final = {"char": "binary", "varchar": "varbinary", "text": "blob"}
"""Types of strings → their types if they have the binary character set."""


class OptionalField(Enum):
    """The fields of a table map's optional metadata, each with the types that it may
    have in the map."""

    NAMES = frozenset({_COLUMN_NAME})
    SIGNS = frozenset({_SIGNEDNESS})
    CHARSETS = frozenset({_DEFAULT_CHARSET, _COLUMN_CHARSET})
    MEMBER_CHARSETS = frozenset({_ENUM_DEFAULT_CHARSET, _ENUM_COLUMN_CHARSET})
    MEMBERS = frozenset({_ENUM_VALUES, _SET_VALUES})


@dataclass(frozen=True, slots=True)
class TableMap:
    """A TABLE_MAP, which gives a table an id. `raw`: the whole event without checksum.
    `writer`: the server that wrote it."""

    table_id: int
    table: TableName
    raw: bytes
    writer: LogWriter = field(default_factory=LogWriter)


@dataclass(frozen=True, slots=True)
class Outline:
    """The structure of a table as far as its TABLE_MAP describes it. `optional_fields`:
    the optional fields that the map has. Without them, names are "", signs and
    character sets are the defaults, and there are no members."""

    table: TableName
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    optional_fields: frozenset[OptionalField]


def read_table_map(raw: bytes, writer: LogWriter | None = None) -> TableMap:
    """Read the id and the name from a whole TABLE_MAP event without checksum.
    `read_structure` reads the rest when that is needed. If `writer` is None, the map
    counts as one of a recent MySQL."""
    table_id, table, _ = _read_head(raw)
    return TableMap(table_id, table, raw, writer or LogWriter())


def read_layouts(table_map: TableMap) -> tuple[Layout, ...]:
    """Return the layouts of a table map's columns.

    Raise TableError for an unknown column type, and for MariaDB's old temporal types,
    because the log does not have their width.
    """
    _, _, reader = _read_head(table_map.raw)
    layouts, writer = _layouts(reader), table_map.writer
    if writer.is_mariadb and any(layout.code in OLD_TEMPORAL_CODES for layout in layouts):
        raise TableError(
            "the table has temporal columns in the format before MariaDB 10.1.2",
            hint="rebuild the table with mysql56_temporal_format=ON (ALTER TABLE … FORCE)",
        )
    if writer.version is None or not writer.is_mysql_between(0, _BARE_DOUBLES_BEFORE - 1):
        return tuple(layouts)
    return tuple(replace(layout, bare_doubles=layout.code == JSON) for layout in layouts)


def _layouts(reader: Reader) -> list[Layout]:
    codes = reader.take(reader.length_encoded())
    metadata = Reader(reader.length_encoded_bytes(), "a TABLE_MAP event")
    layouts = []
    for code in codes:
        if code not in _TYPES_BY_CODE:
            raise TableError(
                f"a column has the type number {code}, which this version does not read",
                hint="change its type (without COMPRESSED, if it has that), or exclude the table",
            )
        _, size = _TYPES_BY_CODE[code]
        layouts.append(layout(code, metadata.take(size)))
    return layouts


def read_outlines(table_map: TableMap) -> tuple[Outline, ...]:
    """Return the outlines that a table map may describe. There are two if it is unknown
    whether the writer logs a sign for a YEAR (`_year_sign_readings`), and the signs can
    be read both ways.

    Raise TableError for an unknown column type, and for a map that contradicts itself.
    """
    _, table, reader = _read_head(table_map.raw)
    layouts = _layouts(reader)
    nulls = reader.take((len(layouts) + 7) // 8)
    string_codes = _STRING_CODES | {_GEOMETRY} if table_map.writer.is_mariadb else _STRING_CODES
    fields: dict[int, bytes] = {}
    while reader.bytes_left:
        field_type = reader.integer(1)
        fields[field_type] = reader.length_encoded_bytes()
    readings = [
        _OptionalMetadata(layouts, str(table), fields, string_codes, signs_years=signs_years)
        for signs_years in _year_sign_readings(table_map.writer)
    ]
    consistent = [reading for reading in readings if reading.has_fitting_signs]
    if not consistent:
        raise TableError(
            "the table map has signs that do not fit the table's columns",
            hint="exclude the table, and report this log to us",
        )
    outlines = (_outline(table, reading, nulls) for reading in consistent)
    return tuple(dict.fromkeys(outlines))


def _outline(table: TableName, optional: _OptionalMetadata, nulls: bytes) -> Outline:
    typed_columns = optional.columns()
    has_names = optional.has(OptionalField.NAMES)
    names = optional.names() if has_names else [""] * len(typed_columns)
    columns = tuple(
        replace(column, name=name, nullable=bool(nulls[index >> 3] >> (index & 7) & 1))
        for index, (column, name) in enumerate(zip(typed_columns, names, strict=True))
    )
    optional_fields = frozenset(field for field in OptionalField if optional.has(field))
    key = tuple(columns[index].name for index in optional.primary_key()) if has_names else ()
    return Outline(table, columns, key, optional_fields)


def read_structure(table_map: TableMap) -> TableStructure:
    """Return the table's structure.

    Raise TableError if the map is not enough: it has no names (MINIMAL metadata), an
    unknown column type, or signs that can be read in two ways.
    """
    outline, *alternatives = read_outlines(table_map)
    if OptionalField.NAMES not in outline.optional_fields:
        raise TableError(
            "the log has no column names of the table (binlog_row_metadata=MINIMAL)",
            hint="start where the table's structure is known, or set binlog_row_metadata=FULL "
            "on the source",
        )
    if alternatives:
        raise TableError(
            "the log does not say which columns of the table are unsigned, because it has a YEAR "
            "column and only some versions of MySQL 8.0 write a sign for it",
            hint="start where the table's structure is known",
        )
    return TableStructure(outline.table, outline.columns, outline.primary_key)


def _read_head(raw: bytes) -> tuple[int, TableName, Reader]:
    reader = Reader(raw[HEADER_BYTES:], "a TABLE_MAP event")
    table_id = reader.integer(6)
    reader.take(2)
    database = reader.take(reader.integer(1)).decode("utf-8", "surrogateescape")
    reader.take(1)
    name = reader.take(reader.integer(1)).decode("utf-8", "surrogateescape")
    reader.take(1)
    return table_id, TableName(database, name), reader


def _column(layout: Layout) -> Column:
    """Return a column with the type and width that its layout gives."""
    column = Column(name="", type=_TYPES_BY_CODE[layout.code][0])
    match layout.code:
        case 246:  # DECIMAL
            return replace(column, precision=layout.precision, scale=layout.scale)
        case 17 | 18 | 19:  # TIMESTAMP2, DATETIME2, TIME2
            return replace(column, length=layout.scale)
        case 15 | 16 | 253 | 254:  # VARCHAR, BIT, VAR_STRING, STRING
            return replace(column, length=layout.width)
        case 242 | 245 | 247 | 248 | 252 | 255:  # VECTOR, JSON, ENUM, SET, BLOB, GEOMETRY
            return replace(column, length=abs(layout.size))
        case _:
            return column


def _year_sign_readings(writer: LogWriter) -> tuple[bool, ...]:
    """Return (True,) if `writer` writes a sign for a YEAR, (False,) if not, and both
    values if that is unknown."""
    if writer.is_mysql_between(_LAST_WITHOUT_YEARS + 1, _FIRST_WITH_YEARS - 1):
        return True, False
    return (not writer.is_mysql_between(0, _LAST_WITHOUT_YEARS),)


class _OptionalMetadata:
    """The optional metadata of one table map (`binlog_row_metadata`), applied to its
    columns.

    A field has entries for some columns only. Signedness: numeric columns except BIT,
    and YEAR columns except in early versions of MySQL 8.0. Character sets: string
    columns and VECTOR; on MariaDB also GEOMETRY. Members: ENUM columns, and in another
    field SET columns."""

    def __init__(
        self,
        layouts: Sequence[Layout],
        table: str,
        fields: dict[int, bytes],
        string_codes: frozenset[int],
        *,
        signs_years: bool,
    ) -> None:
        self._codes = [layout.code for layout in layouts]
        self._columns = [_column(layout) for layout in layouts]
        self._numeric_codes = _NUMERIC_CODES | {_YEAR_CODE} if signs_years else _NUMERIC_CODES
        self._string_codes = string_codes
        self._source = f"the TABLE_MAP of {table}"
        self._fields = fields

    def has(self, field: OptionalField) -> bool:
        return any(field_type in self._fields for field_type in field.value)

    @property
    def has_fitting_signs(self) -> bool:
        """True if there is exactly one sign for each numeric column and each YEAR is
        unsigned, or if the map has no signs."""
        if _SIGNEDNESS not in self._fields:
            return True
        numeric = self._indexes_of(self._numeric_codes)
        signs = list(self._bits(_SIGNEDNESS))
        return (
            len(self._fields[_SIGNEDNESS]) == (len(numeric) + 7) // 8
            and not any(signs[len(numeric) :])
            and all(
                sign
                for index, sign in zip(numeric, signs, strict=False)
                if self._codes[index] == _YEAR_CODE
            )
        )

    def names(self) -> list[str]:
        """Return the columns' names. To be called only if the map has
        `OptionalField.NAMES`."""
        reader = Reader(self._fields[_COLUMN_NAME], self._source)
        try:
            names = [reader.length_encoded_bytes().decode("utf-8") for _ in self._codes]
        except UnicodeDecodeError as error:
            raise _metadata_error("a name that is not UTF-8") from error
        if "" in names or len(set(names)) < len(names):
            raise _metadata_error("a column name that is empty or used twice")
        return names

    def primary_key(self) -> list[int]:
        """Return the column indexes of the primary key, in its order; empty if there is
        none. A key of prefixes counts as a key of whole columns, because values with
        different prefixes are different."""
        if _SIMPLE_KEY in self._fields:
            key = list(self._packed_integers(_SIMPLE_KEY))
        elif _PREFIX_KEY in self._fields:
            key = list(self._packed_integers(_PREFIX_KEY))[::2]
        else:
            return []
        if len(set(key)) < len(key) or any(index >= len(self._codes) for index in key):
            raise _metadata_error("a primary key with columns that it does not have")
        return key

    def columns(self) -> list[Column]:
        """Return the columns with their types, signs, character sets and members."""
        columns = list(self._columns)
        signs = zip(self._indexes_of(self._numeric_codes), self._bits(_SIGNEDNESS), strict=False)
        for index, unsigned in signs:
            columns[index] = replace(columns[index], unsigned=unsigned)
        for index in self._indexes_of({_YEAR_CODE}):
            columns[index] = replace(columns[index], unsigned=True)
        for index, collation in self._collations(
            self._indexes_of(self._string_codes), _DEFAULT_CHARSET, _COLUMN_CHARSET
        ):
            columns[index] = _with_charset(columns[index], collation)
        for index, collation in self._collations(
            self._indexes_of({_ENUM, _SET}), _ENUM_DEFAULT_CHARSET, _ENUM_COLUMN_CHARSET
        ):
            columns[index] = replace(columns[index], charset=charset_by_number(collation))
        for code, field_type in ((_ENUM, _ENUM_VALUES), (_SET, _SET_VALUES)):
            for index, members in zip(
                self._indexes_of({code}), self._members(field_type), strict=False
            ):
                columns[index] = _with_members(columns[index], members)
        return columns

    def _indexes_of(self, codes: frozenset[int] | set[int]) -> list[int]:
        return [index for index, code in enumerate(self._codes) if code in codes]

    def _bits(self, field_type: int) -> Iterator[bool]:
        for byte in self._fields.get(field_type, b""):
            for shift in range(7, -1, -1):
                yield bool(byte >> shift & 1)

    def _packed_integers(self, field_type: int) -> Iterator[int]:
        reader = Reader(self._fields.get(field_type, b""), self._source)
        while reader.bytes_left:
            yield reader.length_encoded()

    def _collations(
        self, indexes: list[int], default_field: int, each_field: int
    ) -> list[tuple[int, int]]:
        """Return (column index, collation id) pairs, either from one number for each
        column (field `each_field`), or from a default and its exceptions (field
        `default_field`)."""
        if default_field in self._fields:
            numbers = list(self._packed_integers(default_field))
            if not numbers:
                raise _metadata_error("an empty field for the default character set")
            exceptions = dict(zip(numbers[1::2], numbers[2::2], strict=False))
            return [(i, exceptions.get(slot, numbers[0])) for slot, i in enumerate(indexes)]
        return list(zip(indexes, self._packed_integers(each_field), strict=False))

    def _members(self, field_type: int) -> Iterator[list[bytes]]:
        reader = Reader(self._fields.get(field_type, b""), self._source)
        while reader.bytes_left:
            yield [reader.length_encoded_bytes() for _ in range(reader.length_encoded())]


def _metadata_error(fault: str) -> TableError:
    return TableError(
        f"the log describes the table with {fault}",
        hint="exclude the table, and report this log to us",
    )


def _with_charset(column: Column, collation: int) -> Column:
    if column.type not in _BYTE_STRINGS:
        return column
    if collation == BINARY_COLLATION_NUMBER:
        return replace(column, type=_BYTE_STRINGS[column.type], charset="binary")
    return replace(column, charset=charset_by_number(collation))


def _with_members(column: Column, members: list[bytes]) -> Column:
    # The names of members are always text, even if the column's character set is
    # binary.
    charset = column.charset or "binary"
    decode = text_decoder("utf8mb4" if charset == "binary" else charset)
    try:
        return replace(column, members=tuple(decode(member) for member in members))
    except UnicodeDecodeError as error:
        raise TableError(
            f"the members of an ENUM or SET are not valid in {column.charset}",
            hint="exclude the table, and report this log to us",
        ) from error
