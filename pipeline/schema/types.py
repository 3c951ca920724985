"""The types and names that columns have in the lake.

Each type of MySQL belongs to a family, and has one Arrow type, and so one Delta type.
The mapping follows the widths of the MySQL manual's chapter "Data Types"; Delta has no
unsigned integers and at most 38 decimal digits. A type that is not listed is never
guessed: a `TableError` stops the capture of the table.

Names that Delta or Spark refuse or reserve are spelled in another way; two names that
they treat as equal are refused. Not here: values, which `pipeline.binlog` and
`pipeline.resultset` make from bytes and texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column, TableStructure


class Family(Enum):
    """Column types that are read, converted and compared alike.

    A function that tells families apart matches on them and ends with `assert_never`,
    so mypy names it for a new family. `shape.shape` has lists instead: a family that
    they lack is refused a mask or a text.
    """

    INTEGER = auto()
    FLOATING = auto()
    DECIMAL = auto()
    BIT = auto()
    YEAR = auto()
    DATE = auto()
    TIME = auto()
    DATETIME = auto()
    TIMESTAMP = auto()
    TEXT = auto()
    """Types whose bytes are characters in the column's character set."""
    ENUM = auto()
    SET = auto()
    BYTES = auto()
    JSON = auto()
    GEOMETRY = auto()
    VECTOR = auto()


FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {
        **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), Family.INTEGER),
        **dict.fromkeys(("float", "double"), Family.FLOATING),
        "decimal": Family.DECIMAL,
        "bit": Family.BIT,
        "year": Family.YEAR,
        "date": Family.DATE,
        "time": Family.TIME,
        "datetime": Family.DATETIME,
        "timestamp": Family.TIMESTAMP,
        **dict.fromkeys(("char", "varchar", "text"), Family.TEXT),
        "enum": Family.ENUM,
        "set": Family.SET,
        **dict.fromkeys(("binary", "varbinary", "blob"), Family.BYTES),
        "json": Family.JSON,
        "geometry": Family.GEOMETRY,
        "vector": Family.VECTOR,
    }
)
"""Every type that a column of the log can have (`Column.type`), with its family. To add
one: CONTRIBUTING.md, "Add a column type"."""

TEXT_TYPES: Final = frozenset(name for name, family in FAMILIES.items() if family is Family.TEXT)

_INTEGER_TYPES: Final[Mapping[tuple[str, bool], pa.DataType]] = MappingProxyType(
    {
        ("tinyint", False): pa.int8(),
        ("tinyint", True): pa.int16(),
        ("smallint", False): pa.int16(),
        ("smallint", True): pa.int32(),
        ("mediumint", False): pa.int32(),
        ("mediumint", True): pa.int32(),
        ("int", False): pa.int32(),
        ("int", True): pa.int64(),
        ("bigint", False): pa.int64(),
        ("bigint", True): pa.decimal128(20, 0),
    }
)

MAX_DECIMAL_DIGITS: Final = 38
"""Limit of Spark and Delta; longer decimals become strings."""

_MAX_LONG_BITS: Final = 63
"""Widest BIT column whose values fit a signed integer of 64 bits."""

_BIT_DIGITS: Final = 20
"""Decimal digits of the largest number of 64 bits."""


def family_of(column: Column) -> Family:
    """Return the family of a column's type. Raise TableError for a type that is not
    listed."""
    family = FAMILIES.get(column.type)
    if family is None:
        raise TableError(
            f"column {column.name!r} has the type {column.type.upper()}, "
            "which this version does not read",
            hint="exclude the table, or change the type of the column",
        )
    return family


def arrow_type(column: Column) -> pa.DataType:
    """Return the Arrow type of a column's values. Raise TableError for a type that is
    not listed."""
    match family_of(column):
        case Family.INTEGER:
            return _INTEGER_TYPES[column.type, column.unsigned]
        case Family.FLOATING:
            return pa.float32() if column.type == "float" else pa.float64()
        case Family.DECIMAL:
            return _decimal_type(column)
        case Family.BIT:
            return _bit_type(column)
        case Family.YEAR:
            return pa.int16()
        case Family.DATE:
            return pa.date32()
        case Family.DATETIME:
            return pa.timestamp("us")
        case Family.TIMESTAMP:
            return pa.timestamp("us", tz="UTC")
        case Family.TIME:
            # The text that MySQL prints, with the column's fractional digits:
            # -838:59:59.000000.
            return pa.string()
        case Family.TEXT | Family.ENUM:
            return pa.string()
        case Family.SET:  # the members in the order of the definition, separated by commas
            return pa.string()
        case Family.JSON:  # what SELECT prints, byte for byte
            return pa.string()
        case Family.BYTES:
            return pa.binary()
        case Family.GEOMETRY:
            # EWKB: well-known binary with the spatial reference id, if there is one,
            # after the type word.
            return pa.binary()
        case Family.VECTOR:
            return pa.list_(pa.float32())
        case family:
            assert_never(family)


def _decimal_type(column: Column) -> pa.DataType:
    if column.precision is None or column.scale is None:
        raise ValueError(f"{column} has no precision")
    if column.precision > MAX_DECIMAL_DIGITS:
        return pa.string()
    return pa.decimal128(column.precision, column.scale)


def _bit_type(column: Column) -> pa.DataType:
    if column.length is None:
        raise ValueError(f"{column} has no width")
    if column.length == 1:
        return pa.bool_()
    return pa.int64() if column.length <= _MAX_LONG_BITS else pa.decimal128(_BIT_DIGITS, 0)


def arrow_schema(structure: TableStructure) -> pa.Schema:
    """Return the schema of the mirror (the Delta table with the current rows): the
    table's columns in their order, all nullable.

    A mirror with NOT NULL columns would have to be altered whenever the source drops
    NOT NULL. Raise TableError for a type that is not listed, for a VECTOR in the key,
    since Spark cannot join on it, and for two column names that Spark or Delta treat as
    equal.
    """
    refuse_equal_names(structure.names)
    schema = pa.schema([pa.field(column.name, arrow_type(column)) for column in structure.columns])
    for name in structure.primary_key:
        if pa.types.is_list(schema.field(name).type):
            raise TableError(
                f"key column {name!r} is a VECTOR, which cannot be a key in the lake",
                hint="give the table a PRIMARY KEY of another type, or exclude it",
            )
    return schema


_SQL_NAMES: dict[pa.DataType, str] = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
}


def sql_type(data_type: pa.DataType) -> str:
    """Return the name of the type in Spark's SQL: `bigint`, `decimal(10,2)`,
    `timestamp_ntz`."""
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if pa.types.is_timestamp(data_type):
        return "timestamp" if data_type.tz else "timestamp_ntz"
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return f"array<{sql_type(data_type.value_type)}>"
    return _SQL_NAMES.get(data_type, str(data_type))


# -- TIME as a number of microseconds --------------------------------------------------

# In the lake a TIME is the text that MySQL prints, from -838:59:59.000000 to
# 838:59:59.000000, with two or three digits for hours and the column's fractional
# digits.

_TIME_PARTS: Final = (
    r"^(?P<sign>-?)(?P<hours>\d{1,3}):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d)"
    r"(?:\.(?P<fraction>\d{1,6}))?$"
)


def times_to_microseconds(times: pa.Array) -> pa.Int64Array:
    """Return the microseconds of each text; NULL for NULL, and for a text that is no
    TIME."""
    parts = pc.extract_regex(times, _TIME_PARTS)
    names = ("hours", "minutes", "seconds")
    hours, minutes, seconds = (pc.struct_field(parts, name).cast(pa.int64()) for name in names)
    fraction = pc.utf8_rpad(pc.struct_field(parts, "fraction"), 6, "0").cast(pa.int64())
    total_seconds = pc.add(pc.multiply(pc.add(pc.multiply(hours, 60), minutes), 60), seconds)
    magnitude = pc.add(pc.multiply(total_seconds, 1_000_000), fraction)
    return pc.if_else(
        pc.equal(pc.struct_field(parts, "sign"), "-"), pc.negate(magnitude), magnitude
    )


# -- names -----------------------------------------------------------------------------


_REFUSED_CHARACTERS: Final = " ,;{}()\n\t="
"""Characters that Delta refuses in column names of a table without column mapping
(`SchemaUtils.checkFieldNames`)."""

READER_COLUMNS: Final = frozenset({"_tmp_metadata_row_index", "__delta_internal_is_row_deleted"})
"""Columns that Spark and Delta add when they read a file, even with column mapping
(`DeltaColumnMapping.DELTA_INTERNAL_COLUMNS`). No Delta table can have a column with
such a name."""

MERGE_COLUMNS: Final = frozenset(
    {
        "_row_id_",
        "_file_name_",
        "_source_row_present_",
        "_target_row_present_",
        "_row_dropped_",
        "_metadata",
        "deletionvectorid",
        "filepath",
        "rowindexcol",
    }
)
"""Comparable names (see `comparable_name`) of columns that Delta's MERGE adds to both
of its inputs and looks up by name (`MergeIntoCommandBase`,
`DeletionVectorBitmapGenerator`). A table with a column of such a name is written
without MERGE."""

_ESCAPABLE_CODES: Final = "|".join(
    f"{ord(character):02X}" for character in f"{_REFUSED_CHARACTERS}%_"
)
_TO_ESCAPE: Final = re.compile(f"[{_REFUSED_CHARACTERS}]|%(?={_ESCAPABLE_CODES})", re.IGNORECASE)
_ESCAPED_UNDERSCORE: Final = re.compile("%(?:25)*5F(.*)", re.IGNORECASE | re.DOTALL)
_ESCAPE: Final = re.compile(f"%({_ESCAPABLE_CODES})")


def comparable_name(name: str) -> str:
    """Return a text that is the same for two names if Spark or Delta treat them as
    equal.

    Spark compares names with Java's `equalsIgnoreCase`: by the lower case of each
    character's upper case. So these are equal: both small sigmas of Greek, the long s
    and s, the dotless i and i, the micro sign and the letter mu. Delta compares with
    `toLowerCase(Locale.ROOT)`, for which ß and its capital are equal. MySQL
    distinguishes all of these.
    """
    if name.isascii():
        return name.lower()
    lower = "".join(map(_folded_character, name.lower()))
    # The lower case of a capital I with a dot is an i and a combining dot to Delta, an
    # i to Spark.
    return lower.replace("i\u0307", "i")


def _folded_character(character: str) -> str:
    upper = character.upper()
    lower = (upper if len(upper) == 1 else character).lower()
    return lower if len(lower) == 1 else character


def is_refused(name: str) -> bool:
    """Return whether Delta refuses the name in a table without column mapping."""
    return not set(_REFUSED_CHARACTERS).isdisjoint(name)


def mirror_name(name: str) -> str:
    """Return the name of a source's column in a mirror with column mapping. A name in
    `READER_COLUMNS` is escaped, and so is a name that looks like an escaped one."""
    return f"%25{name[1:]}" if _is_escaped_reader_column(name) else _escaped_reader_column(name)


def source_name(name: str) -> str:
    """Return the source's name of a mirror's column: the inverse of `mirror_name`."""
    return chr(int(name[1:3], 16)) + name[3:] if _is_escaped_reader_column(name) else name


def _escaped_reader_column(name: str) -> str:
    return f"%5F{name[1:]}" if comparable_name(name) in READER_COLUMNS else name


def _is_escaped_reader_column(name: str) -> bool:
    match = _ESCAPED_UNDERSCORE.match(name)
    return match is not None and comparable_name(f"_{match[1]}") in READER_COLUMNS


def is_mergeable(names: Iterable[str]) -> bool:
    """Return whether Delta's MERGE can distinguish these columns from its own."""
    return not any(comparable_name(name) in MERGE_COLUMNS for name in names)


def escape_name(name: str) -> str:
    """Return the name of a source's column in a changelog (the Delta table with every
    change), and in a mirror without column mapping. `%XX` stands for each refused
    character, for a `%` that would be read as an escape, and for the first character of
    a name in `READER_COLUMNS`. If the comparable names of two names differ, so do those
    of their escaped names."""
    return _escaped_reader_column(_TO_ESCAPE.sub(lambda match: f"%{ord(match[0]):02X}", name))


def unescape_name(name: str) -> str:
    """Return the source's name of a column: the inverse of `escape_name`."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)


def refuse_equal_names(names: Iterable[str]) -> None:
    """Raise `TableError` if Delta or Spark treat two of the names as equal."""
    names_by_comparable: dict[str, str] = {}
    for name in names:
        earlier = names_by_comparable.setdefault(comparable_name(name), name)
        if earlier is not name:
            raise TableError(
                f"columns {earlier!r} and {name!r} have the same name for Delta and Spark, which "
                "ignore case",
                hint="rename one of them at the source, or exclude the table",
            )
