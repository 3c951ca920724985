"""A statement's literals → members of ENUM and SET, and what a column has by default.

Not here: the rules (`pipeline.schema.plain`), what rows get (`pipeline.schema.fills`).

A constant that no rule tells is kept as it is written: nothing hangs on it until a row takes it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from pipeline.schema.collations import UTF8, charset_of
from pipeline.schema.context import EMPTY_IS_NULL, StatementContext, fixed_zone
from pipeline.schema.evolving.effects import CannotFollow
from pipeline.schema.model import (
    BLOBS,
    LARGE,
    TEXTS,
    ColumnSchema,
    Default,
    ExpressionDefault,
    LiteralDefault,
    WrittenDefault,
)
from pipeline.schema.plain import HAVE_ASCII, is_ascii, plain_moment, plain_text
from pipeline.schema.statements.changes import Computed, Constant

_TEXTS: Final = frozenset({"char", "varchar", *TEXTS})
_WITHOUT: Final = frozenset(LARGE)
"""Types that take no constant on MySQL; '' is passed outside of strict mode, and ignored."""

_MOMENTS: Final = ("date", "time", "timestamp")
_BASIC_PLANE: Final = "\uffff"
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
_WHOLE: Final = re.compile(r"\d+")
_AS_TEXT: Final = re.compile(r"0|-?[1-9]\d{0,17}")
_EXACT_DIGITS: Final = 15
"""So many decimal digits every DOUBLE keeps apart."""

_STAMPS: Final = (datetime(1970, 1, 2, tzinfo=UTC), datetime(2038, 1, 18, tzinfo=UTC))
"""Well within what a TIMESTAMP holds, in any zone."""


def resolve_default(
    written: Constant | Computed | None, column: ColumnSchema, context: StatementContext
) -> Default | None:
    """What DEFAULT comes to; None for NULL and for none."""
    match written:
        case None | Constant("null"):
            return None
        case Computed(text):
            return ExpressionDefault(text)
    if not context.facts.mariadb and column.type in _WITHOUT:
        return None
    empty = written == Constant("string", "", written.charset)
    if empty and context.facts.mariadb and context.mode(EMPTY_IS_NULL):
        return None
    value = _value(written, column, context)
    return WrittenDefault(written.as_sql) if value is None else LiteralDefault(value)


def zero_moment(digits: int) -> str:
    """The default of a TIMESTAMP that has none, where the old rules are in force."""
    return "0000-00-00 00:00:00" + ("." + "0" * digits if digits else "")


def _value(written: Constant, column: ColumnSchema, context: StatementContext) -> str | None:
    if column.type in ("binary", "varbinary") or column.type in BLOBS:
        return _bytes(written, column, context)
    if column.type == "bit":
        return _bits(written, column)
    if written.kind in ("hex", "bits"):
        return None
    if written.kind in _MOMENTS and column.type not in (*_MOMENTS, "datetime"):
        return None
    if written.kind != "number" and not _is_heard(written, context):
        return _utf8(written, column, context)
    if column.type in ("float", "double"):
        return _rounded(written.text, column)
    if column.type == "timestamp":
        return _instant(written, column, context)
    if written.kind == "number" and column.type in _TEXTS:
        return plain_text(column, written.text) if _AS_TEXT.fullmatch(written.text) else None
    numeric = column.type in ("decimal", "year") or column.type.endswith("int")
    if written.kind == "number" and not numeric:
        return None
    return plain_text(column, written.text)


def _is_heard(written: Constant, context: StatementContext) -> bool:
    """Whether the server takes a string for the printable ASCII that it is."""
    spoken = {context.client_charset, charset_of(context.connection_collation)}
    spoken |= set() if written.charset is None else {written.charset}
    return is_ascii(written.text) and spoken <= HAVE_ASCII


def _utf8(written: Constant, column: ColumnSchema, context: StatementContext) -> str | None:
    """A string that is UTF-8 all the way into its column."""
    if column.type not in _TEXTS or column.length is None:
        return None
    connection, text = charset_of(context.connection_collation), written.text
    sets = {context.client_charset, connection, column.charset, written.charset or connection}
    if not sets <= UTF8 or len(text) > column.length or not text.isprintable():
        return None
    if column.type == "char" and text != text.rstrip():
        return None
    return text if sets == {"utf8mb4"} or max(text, default="") <= _BASIC_PLANE else None


def _rounded(text: str, column: ColumnSchema) -> str | None:
    """A FLOAT or DOUBLE; with digits behind the point it is the server that rounds."""
    digits = text.strip("+-.0").replace(".", "")
    if column.scale is not None or not _NUMBER.fullmatch(text) or len(digits) > _EXACT_DIGITS:
        return None
    if text.startswith("-") and (column.unsigned or not digits):
        return None
    return repr(float(text))


def _instant(written: Constant, column: ColumnSchema, context: StatementContext) -> str | None:
    zone, text = fixed_zone(context.time_zone), written.text
    found = None if written.kind == "number" else plain_moment(column, text)
    if found is None or found == zero_moment(column.length or 0):
        return found
    if zone is None or found.startswith("0000"):
        return None
    whole, _, fraction = found.partition(".")
    instant = datetime.fromisoformat(whole).replace(tzinfo=zone)
    if not _STAMPS[0] <= instant <= _STAMPS[1]:
        return None
    shown = instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    return f"{shown}.{fraction}" if fraction else shown


def _bytes(written: Constant, column: ColumnSchema, context: StatementContext) -> str | None:
    heard = written.kind in ("hex", "bits") or _is_heard(written, context)
    if written.kind in ("number", *_MOMENTS) or written.charset is not None or not heard:
        return None
    data = literal_bytes(written)
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
"""Codecs that have no character that MySQL's set lacks, where the names differ."""

_CP1252: Final = {"latin1": "cp1252", "ascii": "ascii"}
"""MySQL's latin1 has five more characters."""

_UNDECODED: Final = re.compile("[\udc00-\udcff]")
"""Bytes that were no characters in the statement."""


def as_text(constant: Constant, charset: str | None) -> str:
    """A literal's characters in a column of that character set. CannotFollow for bytes
    that only the server could read as characters."""
    if constant.kind not in ("hex", "bits"):
        if _UNDECODED.search(constant.text):
            raise CannotFollow("a literal has bytes that are not text in its session")
        if not holds(charset, constant.text):
            raise CannotFollow(f"a literal has characters that {charset} may not have")
        return constant.text
    data = literal_bytes(constant)
    codec = _CODECS.get(charset or "", "ascii")
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        raise CannotFollow(f"bytes in hex stand for text in {charset}") from None


def holds(charset: str | None, text: str) -> bool:
    """Whether a set surely has all these characters; MariaDB puts ? for others."""
    if charset is None or text.isascii() or charset in _CODECS or charset == "binary":
        return charset not in _NARROW or text.isascii() or max(text) <= "\uffff"
    try:
        text.encode(_ALMOST.get(charset, charset))
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def read_anew(text: str, charset: str, other: str) -> str:
    """The characters that the bytes of these are in another set; bytes alone are kept as the
    text that they are in UTF-8. UnicodeError where that is not known."""
    return text.encode(_codec(charset)).decode("utf-8" if other == "binary" else _codec(other))


def _codec(charset: str) -> str:
    codec = _CODECS.get(charset, _CP1252.get(charset))
    if codec is None:
        raise UnicodeError(f"no codec is the same as {charset}")
    return codec


def literal_bytes(constant: Constant) -> bytes:
    """The bytes of x'…' and b'…', and of a string of ASCII."""
    match constant.kind:
        case "hex":
            return bytes.fromhex("0" * (len(constant.text) % 2) + constant.text)
        case "bits":
            size = (len(constant.text) + 7) // 8
            return int(constant.text or "0", 2).to_bytes(size, "big")
    return constant.text.encode()
