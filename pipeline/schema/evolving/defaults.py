"""Members of ENUM and SET, and defaults of columns, from the literals of a statement.

A constant whose value no rule tells is kept as it is written: its value matters only once a row
gets it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from lockstep.pipeline.schema.collations import UTF8, charset_of
from lockstep.pipeline.schema.context import EMPTY_STRING_IS_NULL, StatementContext, fixed_zone
from lockstep.pipeline.schema.evolving.effects import CannotFollow
from lockstep.pipeline.schema.model import (
    BLOBS,
    CHARACTER_STRINGS,
    LARGE,
    ColumnSchema,
    Default,
    ExpressionDefault,
    LiteralDefault,
    WrittenDefault,
)
from lockstep.pipeline.schema.plain import HAVE_ASCII, is_ascii, plain_moment, plain_text
from lockstep.pipeline.schema.statements.changes import Computed, Constant

_WITHOUT: Final = frozenset(LARGE)
"""Types without constant defaults in MySQL, which ignores '' outside of strict mode."""

_MOMENTS: Final = ("date", "time", "timestamp")
_BASIC_PLANE: Final = "\uffff"
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
_WHOLE: Final = re.compile(r"\d+")
_AS_TEXT: Final = re.compile(r"0|-?[1-9]\d{0,17}")
_EXACT_DIGITS: Final = 15
"""Number of decimal digits that a DOUBLE represents exactly."""

_STAMPS: Final = (datetime(1970, 1, 2, tzinfo=UTC), datetime(2038, 1, 18, tzinfo=UTC))
"""Bounds within which a TIMESTAMP is valid in every time zone."""


def resolve_default(
    written: Constant | Computed | None, column: ColumnSchema, context: StatementContext
) -> Default | None:
    """Return the value of the column's DEFAULT; None if it is NULL or absent."""
    match written:
        case None | Constant("null"):
            return None
        case Computed(text):
            return ExpressionDefault(text)
    if not context.facts.mariadb and column.type in _WITHOUT:
        return None
    empty = written == Constant("string", "", written.charset)
    if empty and context.facts.mariadb and context.has_mode(EMPTY_STRING_IS_NULL):
        return None
    value = _value(written, column, context)
    return WrittenDefault(written.as_sql) if value is None else LiteralDefault(value)


def zero_moment(digits: int) -> str:
    """Return the implicit default of a TIMESTAMP with that many fractional digits."""
    return "0000-00-00 00:00:00" + ("." + "0" * digits if digits else "")


def _value(written: Constant, column: ColumnSchema, context: StatementContext) -> str | None:
    """Return the value of a constant in a column; None if only the server knows it."""
    if column.type in ("binary", "varbinary") or column.type in BLOBS:
        return _bytes(written, column, context)
    if column.type == "bit":
        return _bits(written, column)
    if written.kind in ("hex", "bits"):
        return None
    if written.kind in _MOMENTS and column.type not in (*_MOMENTS, "datetime"):
        return None
    if written.kind != "number" and not _is_read_as_ascii(written, context):
        return _utf8(written, column, context)
    if column.type in ("float", "double"):
        return _rounded(written.text, column)
    if column.type == "timestamp":
        return _instant(written, column, context)
    if written.kind == "number" and column.type in CHARACTER_STRINGS:
        return plain_text(column, written.text) if _AS_TEXT.fullmatch(written.text) else None
    numeric = column.type in ("decimal", "year") or column.type.endswith("int")
    if written.kind == "number" and not numeric:
        return None
    return plain_text(column, written.text)


def _is_read_as_ascii(written: Constant, context: StatementContext) -> bool:
    """Return whether a string is printable ASCII in every character set on its way."""
    sets = {context.client_charset, charset_of(context.connection_collation)}
    sets |= set() if written.charset is None else {written.charset}
    return is_ascii(written.text) and sets <= HAVE_ASCII


def _utf8(written: Constant, column: ColumnSchema, context: StatementContext) -> str | None:
    """Return a string that stays UTF-8 on all its way into the column; else None."""
    if column.type not in CHARACTER_STRINGS or column.length is None:
        return None
    connection, text = charset_of(context.connection_collation), written.text
    sets = {context.client_charset, connection, column.charset, written.charset or connection}
    if not sets <= UTF8 or len(text) > column.length or not text.isprintable():
        return None
    if column.type == "char" and text != text.rstrip():
        return None
    return text if sets == {"utf8mb4"} or max(text, default="") <= _BASIC_PLANE else None


def _rounded(text: str, column: ColumnSchema) -> str | None:
    """Return the value of a FLOAT or DOUBLE; None for FLOAT(M,D), which the server rounds."""
    digits = text.strip("+-.0").replace(".", "")
    if column.scale is not None or not _NUMBER.fullmatch(text) or len(digits) > _EXACT_DIGITS:
        return None
    if text.startswith("-") and (column.unsigned or not digits):
        return None
    return repr(float(text))


def _instant(written: Constant, column: ColumnSchema, context: StatementContext) -> str | None:
    """Return a TIMESTAMP in UTC; None if it depends on a time zone that is not a fixed offset."""
    zone = fixed_zone(context.time_zone)
    moment = None if written.kind == "number" else plain_moment(column, written.text)
    if moment is None or moment == zero_moment(column.length or 0):
        return moment
    if zone is None or moment.startswith("0000"):
        return None
    whole, _, fraction = moment.partition(".")
    instant = datetime.fromisoformat(whole).replace(tzinfo=zone)
    if not _STAMPS[0] <= instant <= _STAMPS[1]:
        return None
    utc = instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    return f"{utc}.{fraction}" if fraction else utc


def _bytes(written: Constant, column: ColumnSchema, context: StatementContext) -> str | None:
    exact = written.kind in ("hex", "bits") or _is_read_as_ascii(written, context)
    if written.kind in ("number", *_MOMENTS) or written.charset is not None or not exact:
        return None
    data = _literal_bytes(written)
    if column.length is None or len(data) > column.length:
        return None
    if column.type == "binary":
        data = data.ljust(column.length, b"\0")
    return "0x" + data.hex().upper()


def _bits(written: Constant, column: ColumnSchema) -> str | None:
    if written.kind == "bits":
        number = int(written.text or "0", 2)
    elif written.kind == "number" and _WHOLE.fullmatch(written.text):
        number = int(written.text)
    else:
        return None
    return f"b'{number:b}'" if number >> (column.length or 1) == 0 else None


_CODECS: Final = {
    **dict.fromkeys(("utf8mb4", "utf8mb3"), "utf-8"),
    **dict.fromkeys(("ucs2", "utf16"), "utf-16-be"),
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}
_NARROW: Final = frozenset({"utf8mb3", "ucs2"})
"""Sets without characters beyond U+FFFF."""

_ALMOST: Final = {"latin1": "latin-1", "latin2": "iso8859-2", "euckr": "euc-kr", "ujis": "euc-jp"}
"""Codecs with another name than MySQL's set, and with no character that the set lacks."""

_CP1252: Final = {"latin1": "cp1252", "ascii": "ascii"}
"""MySQL's latin1 is cp1252 with five more characters."""

_UNDECODED: Final = re.compile("[\udc00-\udcff]")
"""Bytes of the statement that could not be decoded."""


def as_text(constant: Constant, charset: str | None) -> str:
    """Return a literal's characters in a column of that character set. Raise CannotFollow for bytes
    that only the server could decode."""
    if constant.kind not in ("hex", "bits"):
        if _UNDECODED.search(constant.text):
            raise CannotFollow("a literal has bytes that are not text in its session")
        if not _contains(charset, constant.text):
            raise CannotFollow(f"a literal has characters that {charset} may not have")
        return constant.text
    data = _literal_bytes(constant)
    codec = _CODECS.get(charset or "", "ascii")
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        raise CannotFollow(f"a literal in hexadecimal digits is not valid in {charset}") from None


def _contains(charset: str | None, text: str) -> bool:
    """Return whether a set certainly has all these characters; MariaDB replaces others by ?."""
    if charset is None or text.isascii() or charset in _CODECS or charset == "binary":
        return charset not in _NARROW or text.isascii() or max(text) <= "\uffff"
    try:
        text.encode(_ALMOST.get(charset, charset))
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def reinterpreted(text: str, charset: str, other: str) -> str:
    """Return the characters that a text's bytes in one set are in another; bytes in the set
    `binary` are read as UTF-8. Raise UnicodeError if they are unknown."""
    return text.encode(_codec(charset)).decode("utf-8" if other == "binary" else _codec(other))


def _codec(charset: str) -> str:
    codec = _CODECS.get(charset, _CP1252.get(charset))
    if codec is None:
        raise UnicodeError(f"no codec is the same as {charset}")
    return codec


def _literal_bytes(constant: Constant) -> bytes:
    """Return the bytes of x'…', of b'…', or of an ASCII string."""
    match constant.kind:
        case "hex":
            return bytes.fromhex("0" * (len(constant.text) % 2) + constant.text)
        case "bits":
            size = (len(constant.text) + 7) // 8
            return int(constant.text or "0", 2).to_bytes(size, "big")
    return constant.text.encode()
