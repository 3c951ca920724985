"""Texts of default values that mean the same value on every server and in every session.

These are integers and decimals that fit, strings of printable ASCII that fit, members that no
collation takes for another, and moments that exist, with their column's digits. For all other
literals servers round, truncate, pad and convert by rules that differ between products and
sessions, so no value is derived. `tests/hostile/test_literals.py` compares this with servers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Final

from lockstep.pipeline.schema.collations import SINGLE_BYTE, UTF8, WIDE
from lockstep.pipeline.schema.model import (
    CHARACTER_STRINGS,
    INTEGER_BITS,
    ColumnSchema,
    LiteralDefault,
    WrittenDefault,
)

_TEXT_ROOM: Final = 255 // 4
"""Number of characters that fit in every TEXT."""

HAVE_ASCII: Final = SINGLE_BYTE | UTF8 | {"ascii", "gbk", "gb2312", "gb18030", "euckr", "big5"}
"""Character sets in which the printable characters of ASCII are their own bytes."""

_INTEGER: Final = re.compile(r"[+-]?\d{1,65}")
_DECIMAL: Final = re.compile(r"([+-]?)(\d{0,65})(?:\.(\d{0,30}))?")
_YEAR: Final = re.compile(r"\d{4}")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?)?")
_TIME: Final = re.compile(r"(-?)(\d\d|[1-9]\d\d):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?")
_PRINTABLE: Final = re.compile(r"[ -~]*")
_LAST_HOUR: Final = 838
_YEARS: Final = range(1901, 2156)
_ALIKE: Final = str.maketrans("jyuw", "iivv")
"""Letters that some collation takes for one another: I, J and Y; U, V and W."""


def plain_text(column: ColumnSchema, text: str) -> str | None:
    """Return what SELECT prints for a value given as this text; None if a server may convert it in
    another way, or refuse it."""
    kind = column.type
    if kind in INTEGER_BITS:
        return _integer(column, text)
    if kind == "decimal":
        return _decimal(column, text)
    if kind == "year":
        return text if _YEAR.fullmatch(text) and int(text) in _YEARS else None
    if kind == "date":
        return text if _DATE.fullmatch(text) and (_exists(text) or _is_zero(text)) else None
    if kind == "datetime":
        return plain_moment(column, text)
    if kind == "time":
        return _time(column, text)
    if kind in CHARACTER_STRINGS:
        return _string(column, text)
    if kind in ("enum", "set"):
        return _members(column, text)
    return None


def with_plain_default(column: ColumnSchema) -> ColumnSchema:
    """Return a column whose default was printed by a server, with a known value only if its text is
    plain. Servers print FLOAT with six digits, bytes up to a NUL, a TIMESTAMP in some time zone,
    and ? for characters that information_schema cannot hold."""
    match column.default:
        case LiteralDefault(text):
            value = None if "?" in text else plain_text(column, text)
            default = WrittenDefault(text) if value is None else LiteralDefault(value)
            return replace(column, default=default)
    return column


def plain_moment(column: ColumnSchema, text: str) -> str | None:
    """Return the text of a DATETIME, or of a TIMESTAMP in the session's time zone, with all digits
    of the column; None if it is not plain."""
    match, digits = _MOMENT.fullmatch(text), column.length or 0
    if match is None or len(match[3] or "") > digits:
        return None
    clock = match[2] or "00:00:00"
    if not (_exists(f"{match[1]} {clock}") or (_is_zero(match[1]) and _is_zero(clock))):
        return None
    return f"{match[1]} {clock}{_fraction(match[3], digits)}"


def _integer(column: ColumnSchema, text: str) -> str | None:
    if not _INTEGER.fullmatch(text):
        return None
    number, bits = int(text), INTEGER_BITS[column.type]
    low, high = (0, 1 << bits) if column.unsigned else (-1 << bits - 1, 1 << bits - 1)
    return str(number) if low <= number < high else None


def _decimal(column: ColumnSchema, text: str) -> str | None:
    match, scale = _DECIMAL.fullmatch(text), column.scale or 0
    if match is None or not (match[2] or match[3]):
        return None
    whole, fraction = match[2].lstrip("0"), match[3] or ""
    if len(fraction) > scale or len(whole) > (column.precision or 0) - scale:
        return None
    number = Decimal(f"{whole or '0'}.{fraction.ljust(scale, '0')}" if scale else whole or "0")
    sign = "-" if match[1] == "-" and number else ""
    return None if sign and column.unsigned else f"{sign}{number:f}"


def _time(column: ColumnSchema, text: str) -> str | None:
    match, digits = _TIME.fullmatch(text), column.length or 0
    if match is None or len(match[5] or "") > digits or int(match[2]) >= _LAST_HOUR:
        return None
    if match[1] and _is_zero(text[1:]):
        return None
    return f"{match[1]}{match[2]}:{match[3]}:{match[4]}{_fraction(match[5], digits)}"


def _string(column: ColumnSchema, text: str) -> str | None:
    room = _TEXT_ROOM if column.length is None else column.length
    if column.charset not in HAVE_ASCII | WIDE or not is_ascii(text) or len(text) > room:
        return None
    return None if column.type == "char" and text.endswith(" ") else text


def is_ascii(text: str) -> bool:
    """Return whether a text consists of printable ASCII characters."""
    return _PRINTABLE.fullmatch(text) is not None


def _members(column: ColumnSchema, text: str) -> str | None:
    """Return the members that the text names, in the order of the definition; None if a collation
    may take one of them for another member."""
    if column.charset not in HAVE_ASCII:
        return None
    if not all(map(is_ascii, (text, *column.members))):
        return None
    if column.type == "set" and not text:
        return text
    named = [text] if column.type == "enum" else text.split(",")
    skeletons = [_skeleton(member) for member in column.members]
    for name in named:
        if name not in column.members or skeletons.count(_skeleton(name)) > 1:
            return None
    return ",".join(member for member in column.members if member in named)


def _skeleton(member: str) -> str:
    return member.lower().translate(_ALIKE)


def _exists(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_zero(text: str) -> bool:
    return not text.strip("0-:.")


def _fraction(text: str | None, digits: int) -> str:
    return "." + (text or "").ljust(digits, "0") if digits else ""
