"""Texts of default values that say themselves which value they are.

Not here: statements and their sessions (`pipeline.schema.evolving.defaults`), what the
lake holds (`fills`).

What is not listed here is not derived: a server rounds, cuts, pads and converts literals by
rules that differ between products and sessions. So: integers and decimals that fit, strings of
printable ASCII that fit, members that no collation takes for another, moments that exist, in
their column's own digits. `tests/hostile/test_literals.py` holds this against servers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Final

from pipeline.schema.collations import SINGLE_BYTE, UTF8, WIDE
from pipeline.schema.model import INTEGER_BITS, TEXTS, ColumnSchema, LiteralDefault, WrittenDefault

_TEXTS: Final = frozenset({"char", "varchar", *TEXTS})
_TEXT_ROOM: Final = 255 // 4
"""Characters that every TEXT has room for."""

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
"""Letters that some collation takes for one: I and J and Y, U and V and W."""


def plain_text(column: ColumnSchema, text: str) -> str | None:
    """What SELECT prints of the column's value for that text; None where a server may make
    something else of it, or refuse it."""
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
    if kind in _TEXTS:
        return _string(column, text)
    if kind in ("enum", "set"):
        return _members(column, text)
    return None


def believed(column: ColumnSchema) -> ColumnSchema:
    """A column whose default's text was printed by a server, or converted by one: a value only
    where the text is plain. FLOAT is printed with six digits, bytes up to a NUL, a TIMESTAMP in
    some zone, and ? stands for characters that information_schema has not."""
    match column.default:
        case LiteralDefault(text):
            value = None if "?" in text else plain_text(column, text)
            known = WrittenDefault(text) if value is None else LiteralDefault(value)
            return replace(column, default=known)
    return column


def plain_moment(column: ColumnSchema, text: str) -> str | None:
    """A DATETIME's text, or a TIMESTAMP's in the session's zone, with all the column's digits."""
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
    """Whether a text is printable ASCII and nothing else."""
    return _PRINTABLE.fullmatch(text) is not None


def _members(column: ColumnSchema, text: str) -> str | None:
    """Members that the text names letter by letter, in the order of the definition."""
    if column.charset not in HAVE_ASCII:
        return None
    if not all(map(is_ascii, (text, *column.members))):
        return None
    if column.type == "set" and not text:
        return text
    named = [text] if column.type == "enum" else text.split(",")
    known = [_skeleton(member) for member in column.members]
    if any(one not in column.members or known.count(_skeleton(one)) > 1 for one in named):
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
