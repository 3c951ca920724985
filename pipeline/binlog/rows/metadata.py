"""The optional metadata of a TABLE_MAP (`binlog_row_metadata`), laid over its columns.

Belongs here: its fields, and the slot rules by which they find their columns. Does not: the
event's other parts (`table_map`).

Format: `Table_map_event` in `libs/mysql/binlog/event/rows_event.h`. What the slots
count: signedness goes over numeric columns (BIT does not count, YEAR does but for the first
versions of MySQL 8.0), character sets over string columns (VECTOR takes a slot, GEOMETRY on
MariaDB alone), members over ENUM and SET by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from pipeline.binlog.stream.description import LogWriter
from pipeline.binlog.stream.event_reader import Reader
from pipeline.binlog.text.charsets import text_decoder
from pipeline.errors import TableError
from pipeline.schema.collations import BINARY, character_set
from pipeline.table import Column

_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _COLUMN_NAME = 1, 2, 3, 4
_SET_VALUES, _ENUM_VALUES, _SIMPLE_KEY, _PREFIX_KEY = 5, 6, 8, 9
_ENUM_DEFAULT_CHARSET, _ENUM_COLUMN_CHARSET = 10, 11

_NUMERIC: Final = frozenset({1, 2, 3, 4, 5, 8, 9, 246})
_YEAR: Final = 13
_LAST_WITHOUT_YEARS, _FIRST_WITH_YEARS = 80015, 80029
"""MySQL 8.0.15 writes no sign for a YEAR, and 8.0.29 writes one (it is unsigned), as MariaDB does.
Which version was the first is not known."""

ENUM, SET = 247, 248
_BYTE_STRINGS: Final = {"char": "binary", "varchar": "varbinary", "text": "blob"}

METADATA_HINT = (
    "nothing is known of the table at this place: start where its structure is known, or \
with binlog_row_metadata=FULL on the source"
)


class OptionalField(Enum):
    """What a table map may say besides types: each part with its fields."""

    NAMES = frozenset({_COLUMN_NAME})
    SIGNS = frozenset({_SIGNEDNESS})
    CHARSETS = frozenset({_DEFAULT_CHARSET, _COLUMN_CHARSET})
    MEMBER_CHARSETS = frozenset({_ENUM_DEFAULT_CHARSET, _ENUM_COLUMN_CHARSET})
    MEMBERS = frozenset({_ENUM_VALUES, _SET_VALUES})


@dataclass(frozen=True, slots=True)
class Slot:
    """A column's type code (ENUM and SET told apart from STRING) and what it is so far."""

    code: int
    column: Column


def years_counted(writer: LogWriter) -> tuple[bool, ...]:
    """Return whether `writer` writes a sign for a YEAR; both answers where that is not known."""
    if writer.between(_LAST_WITHOUT_YEARS + 1, _FIRST_WITH_YEARS - 1):
        return True, False
    return (not writer.between(0, _LAST_WITHOUT_YEARS),)


def optional_fields(reader: Reader) -> Iterator[tuple[int, bytes]]:
    while reader.left:
        kind = reader.integer(1)
        yield kind, reader.packed_text()


class OptionalMetadata:
    """The optional metadata of one table map, laid over its columns."""

    def __init__(
        self,
        slots: list[Slot],
        table: str,
        fields: dict[int, bytes],
        strings: frozenset[int],
        *,
        years: bool = True,
    ) -> None:
        self.slots = slots
        self._numbers = _NUMERIC | {_YEAR} if years else _NUMERIC
        self._strings = strings
        self._what = f"the TABLE_MAP of {table}"
        self._fields = fields

    def has(self, part: OptionalField) -> bool:
        """Whether the log says so much of the table."""
        return any(kind in self._fields for kind in part.value)

    @property
    def signs_fit(self) -> bool:
        """Return whether there is a sign for each number and none else, and each YEAR is
        unsigned; also if there are no signs at all."""
        if _SIGNEDNESS not in self._fields:
            return True
        numbers = self._where(self._numbers)
        signs = list(self._bits(_SIGNEDNESS))
        return (
            len(self._fields[_SIGNEDNESS]) == (len(numbers) + 7) // 8
            and not any(signs[len(numbers) :])
            and all(
                sign
                for index, sign in zip(numbers, signs, strict=False)
                if self.slots[index].code == _YEAR
            )
        )

    def names(self) -> list[str]:
        """The columns' names; only where the log has them (`Part.NAMES`)."""
        reader = Reader(self._fields[_COLUMN_NAME], self._what)
        try:
            names = [reader.packed_text().decode("utf-8") for _ in self.slots]
        except UnicodeDecodeError as error:
            raise _wrong("a name that is not UTF-8") from error
        if len({*names, ""}) <= len(names):
            raise _wrong("a name that two columns have, or none")
        return names

    def primary_key(self) -> list[int]:
        """Column indexes in key order, none without a key; whole columns also where the key
        has prefixes, because a value whose prefix is unique is unique itself."""
        if _SIMPLE_KEY in self._fields:
            key = list(self._packed(_SIMPLE_KEY))
        elif _PREFIX_KEY in self._fields:
            key = list(self._packed(_PREFIX_KEY))[::2]
        else:
            return []
        if len(set(key)) < len(key) or any(index >= len(self.slots) for index in key):
            raise _wrong("a key of columns that it does not have")
        return key

    def columns(self) -> list[Column]:
        columns = [slot.column for slot in self.slots]
        signs = zip(self._where(self._numbers), self._bits(_SIGNEDNESS), strict=False)
        for index, unsigned in signs:
            columns[index] = replace(columns[index], unsigned=unsigned)
        for index in self._where({_YEAR}):
            columns[index] = replace(columns[index], unsigned=True)
        for index, collation in self._collations(
            self._where(self._strings), _DEFAULT_CHARSET, _COLUMN_CHARSET
        ):
            columns[index] = _with_charset(columns[index], collation)
        for index, collation in self._collations(
            self._where({ENUM, SET}), _ENUM_DEFAULT_CHARSET, _ENUM_COLUMN_CHARSET
        ):
            columns[index] = replace(columns[index], charset=character_set(collation))
        for code, field in ((ENUM, _ENUM_VALUES), (SET, _SET_VALUES)):
            for index, members in zip(self._where({code}), self._members(field), strict=False):
                columns[index] = _with_members(columns[index], members)
        return columns

    def _where(self, codes: frozenset[int] | set[int]) -> list[int]:
        return [index for index, slot in enumerate(self.slots) if slot.code in codes]

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
