"""Defaults of columns, and members of ENUM and SET, from literals in statements and
from the texts that a server prints.

A constant whose value cannot be derived is kept as written: its value matters only once
a row gets it. Servers round, truncate, pad and convert most literals by rules that
differ between products and sessions. So a value is derived only from a plain text: one
with the same value on every server and in every session. These texts are plain:
integers, decimals and strings of printable ASCII that fit the column; members that no
collation treats as equal to another; dates and times that exist, with at most the
column's fractional digits. `tests/hostile/test_literals.py` compares this with servers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from lockstep.pipeline.schema.collations import (
    SINGLE_BYTE_CHARSETS,
    UTF8_CHARSETS,
    WIDE_CHARSETS,
    charset_of,
)
from lockstep.pipeline.schema.context import EMPTY_STRING_IS_NULL, StatementContext, fixed_zone
from lockstep.pipeline.schema.effects import CannotFollow
from lockstep.pipeline.schema.model import (
    BLOB_FAMILY,
    CHARACTER_STRINGS,
    INTEGER_BITS,
    LOB_SIZES,
    ColumnSchema,
    Default,
    ExpressionDefault,
    ValueDefault,
    WrittenDefault,
)
from lockstep.pipeline.schema.statements.changes import Constant, WrittenExpression

_TYPES_WITHOUT_CONSTANT: Final = frozenset(LOB_SIZES)
"""Types without constant defaults in MySQL. Outside of strict mode, MySQL ignores
DEFAULT '' of such a column."""

_MOMENT_KINDS: Final = ("date", "time", "timestamp")
"""Kinds of literals, such as DATE '2024-02-29'."""

_MOMENT_TYPES: Final = ("date", "time", "datetime", "timestamp")
"""Types of columns."""

_NUMBER_TEXT: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
_INTEGER_TEXT: Final = re.compile(r"\d+")
_PORTABLE_INTEGER: Final = re.compile(r"0|-?[1-9]\d{0,17}")
"""Numbers that every server stores in a column of characters as they are written."""

_EXACT_DIGITS: Final = 15
"""Number of decimal digits that a DOUBLE represents exactly."""

_TIMESTAMP_BOUNDS: Final = (datetime(1970, 1, 2, tzinfo=UTC), datetime(2038, 1, 18, tzinfo=UTC))
"""Bounds within which a TIMESTAMP is valid in every time zone."""


def resolve_default(
    written: Constant | WrittenExpression | None, column: ColumnSchema, context: StatementContext
) -> Default | None:
    """Return the value of the column's DEFAULT; None if it is NULL or absent."""
    match written:
        case None | Constant("null"):
            return None
        case WrittenExpression(text):
            return ExpressionDefault(text)
    if not context.facts.is_mariadb and column.type in _TYPES_WITHOUT_CONSTANT:
        return None
    is_empty_string = written.kind == "string" and not written.text
    if is_empty_string and context.facts.is_mariadb and context.has_mode(EMPTY_STRING_IS_NULL):
        return None
    value = _constant_value(written, column, context)
    return WrittenDefault(written.as_sql) if value is None else ValueDefault(value)


def zero_default(digits: int) -> str:
    """Return the implicit default of a TIMESTAMP with this number of fractional
    digits."""
    return "0000-00-00 00:00:00" + ("." + "0" * digits if digits else "")


def _constant_value(
    written: Constant, column: ColumnSchema, context: StatementContext
) -> str | None:
    """Return the value of a constant in a column; None if only the server knows it."""
    if column.type in ("binary", "varbinary") or column.type in BLOB_FAMILY:
        return _byte_value(written, column, context)
    if column.type == "bit":
        return _bit_value(written, column)
    if written.kind in ("hex", "bits"):
        return None
    if written.kind in _MOMENT_KINDS and column.type not in _MOMENT_TYPES:
        return None
    if written.kind != "number" and not _is_read_as_ascii(written, context):
        return _utf8_value(written, column, context)
    if column.type in ("float", "double"):
        return _float_value(written.text, column)
    if column.type == "timestamp":
        return _utc_timestamp(written, column, context)
    if written.kind == "number" and column.type in CHARACTER_STRINGS:
        is_portable = _PORTABLE_INTEGER.fullmatch(written.text)
        return plain_value(column, written.text) if is_portable else None
    is_numeric = column.type in ("decimal", "year") or column.type.endswith("int")
    if written.kind == "number" and not is_numeric:
        return None
    return plain_value(column, written.text)


def _is_read_as_ascii(written: Constant, context: StatementContext) -> bool:
    """Return whether a string consists of printable ASCII characters, and the client's,
    the connection's and the literal's character set all encode these as ASCII."""
    charsets = {context.client_charset, charset_of(context.connection_collation)}
    if written.charset is not None:
        charsets.add(written.charset)
    return is_printable_ascii(written.text) and charsets <= ASCII_CHARSETS


def _utf8_value(written: Constant, column: ColumnSchema, context: StatementContext) -> str | None:
    """Return a string if every character set from the client to the column is a UTF-8
    set that has all characters of the string; else None."""
    if column.type not in CHARACTER_STRINGS or column.length is None:
        return None
    connection = charset_of(context.connection_collation)
    text = written.text
    charsets = {context.client_charset, connection, column.charset, written.charset or connection}
    if not charsets <= UTF8_CHARSETS or len(text) > column.length or not text.isprintable():
        return None
    if column.type == "char" and text != text.rstrip():
        return None
    return text if charsets == {"utf8mb4"} or is_in_basic_plane(text) else None


def is_in_basic_plane(text: str) -> bool:
    """Return whether a text has no character beyond U+FFFF."""
    return max(text, default="") <= "\uffff"


def _float_value(text: str, column: ColumnSchema) -> str | None:
    """Return the value of a FLOAT or DOUBLE; None for FLOAT(M,D), which the server
    rounds."""
    digits = text.strip("+-.0").replace(".", "")
    if column.scale is not None or not _NUMBER_TEXT.fullmatch(text) or len(digits) > _EXACT_DIGITS:
        return None
    if text.startswith("-") and (column.unsigned or not digits):
        return None
    return repr(float(text))


def _utc_timestamp(
    written: Constant, column: ColumnSchema, context: StatementContext
) -> str | None:
    """Return a TIMESTAMP in UTC; None if it depends on a time zone that is not a fixed
    offset."""
    zone = fixed_zone(context.time_zone)
    moment = None if written.kind == "number" else plain_moment(column, written.text)
    if moment is None or moment == zero_default(column.length or 0):
        return moment
    if zone is None or moment.startswith("0000"):
        return None
    seconds_text, _, fraction = moment.partition(".")
    instant = datetime.fromisoformat(seconds_text).replace(tzinfo=zone)
    if not _TIMESTAMP_BOUNDS[0] <= instant <= _TIMESTAMP_BOUNDS[1]:
        return None
    utc = instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    return f"{utc}.{fraction}" if fraction else utc


def _byte_value(written: Constant, column: ColumnSchema, context: StatementContext) -> str | None:
    is_exact = written.kind in ("hex", "bits") or _is_read_as_ascii(written, context)
    if written.kind in ("number", *_MOMENT_KINDS) or written.charset is not None or not is_exact:
        return None
    data = _literal_bytes(written)
    if column.length is None or len(data) > column.length:
        return None
    if column.type == "binary":
        data = data.ljust(column.length, b"\0")
    return "0x" + data.hex().upper()


def _bit_value(written: Constant, column: ColumnSchema) -> str | None:
    if written.kind == "bits":
        number = int(written.text or "0", 2)
    elif written.kind == "number" and _INTEGER_TEXT.fullmatch(written.text):
        number = int(written.text)
    else:
        return None
    return f"b'{number:b}'" if number >> (column.length or 1) == 0 else None


_UNICODE_CODECS: Final = {
    **dict.fromkeys(("utf8mb4", "utf8mb3"), "utf-8"),
    **dict.fromkeys(("ucs2", "utf16"), "utf-16-be"),
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}
_BASIC_PLANE_CHARSETS: Final = frozenset({"utf8mb3", "ucs2"})
"""Character sets without characters beyond U+FFFF."""

_SUBSET_CODECS: Final = {
    "latin1": "latin-1",
    "latin2": "iso8859-2",
    "euckr": "euc-kr",
    "ujis": "euc-jp",
}
"""Character set of MySQL → a codec of another name, all of whose characters the set
has."""

_SINGLE_BYTE_CODECS: Final = {"latin1": "cp1252", "ascii": "ascii"}
"""Character set → the codec that decodes its bytes. MySQL's latin1 is cp1252 with five
more characters."""

_UNDECODED_BYTES: Final = re.compile("[\udc00-\udcff]")
"""Surrogates stand for bytes of the statement that could not be decoded."""


def literal_text(constant: Constant, charset: str | None) -> str:
    """Return the characters of a literal in a column of this character set. Raise
    CannotFollow if only the server can decode the literal's bytes."""
    if constant.kind not in ("hex", "bits"):
        if _UNDECODED_BYTES.search(constant.text):
            raise CannotFollow("a literal has bytes that are invalid in the client's character set")
        if not _contains_text(charset, constant.text):
            raise CannotFollow(f"a literal has characters that {charset} may not have")
        return constant.text
    data = _literal_bytes(constant)
    codec = _UNICODE_CODECS.get(charset or "", "ascii")
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        raise CannotFollow(f"a literal in hexadecimal digits is not valid in {charset}") from None


def _contains_text(charset: str | None, text: str) -> bool:
    """Return whether a character set certainly has all characters of the text. MariaDB
    replaces missing characters by ?."""
    if charset is None or text.isascii() or charset in _UNICODE_CODECS or charset == "binary":
        return charset not in _BASIC_PLANE_CHARSETS or is_in_basic_plane(text)
    try:
        text.encode(_SUBSET_CODECS.get(charset, charset))
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def reinterpret_text(text: str, charset: str, other: str) -> str:
    """Encode a text in one character set, and return the bytes decoded by another;
    `binary` is decoded as UTF-8. Raise UnicodeError if no Python codec equals one of
    the sets."""
    return text.encode(_exact_codec(charset)).decode(
        "utf-8" if other == "binary" else _exact_codec(other)
    )


def _exact_codec(charset: str) -> str:
    codec = _UNICODE_CODECS.get(charset, _SINGLE_BYTE_CODECS.get(charset))
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


# -- plain texts ------------------------------------------------


_TINYTEXT_CHARACTERS: Final = 255 // 4
"""Number of characters that fit even in a TINYTEXT."""

ASCII_CHARSETS: Final = (
    SINGLE_BYTE_CHARSETS | UTF8_CHARSETS | {"ascii", "gbk", "gb2312", "gb18030", "euckr", "big5"}
)
"""Character sets that encode the printable characters of ASCII as ASCII does."""

_SIGNED_INTEGER_TEXT: Final = re.compile(r"[+-]?\d{1,65}")
_DECIMAL_TEXT: Final = re.compile(r"([+-]?)(\d{0,65})(?:\.(\d{0,30}))?")
_YEAR_TEXT: Final = re.compile(r"\d{4}")
_DATE_TEXT: Final = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT_TEXT: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?)?")
_TIME_TEXT: Final = re.compile(r"(-?)(\d\d|[1-9]\d\d):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?")
_PRINTABLE: Final = re.compile(r"[ -~]*")
_LIMIT_HOUR: Final = 838
"""The hour of the largest TIME, 838:59:59, at which fractions are cut off."""

_YEAR_RANGE: Final = range(1901, 2156)
_SIMILAR_LETTERS: Final = str.maketrans("jyuw", "iivv")
"""Letters that some collation treats as equal: I, J and Y; U, V and W."""


def plain_value(column: ColumnSchema, text: str) -> str | None:
    """Return the text that SELECT prints after this text was stored in the column; None
    if some server may store another value, or refuse the text."""
    if column.type in INTEGER_BITS:
        return _plain_integer(column, text)
    if column.type == "decimal":
        return _plain_decimal(column, text)
    if column.type == "year":
        return text if _YEAR_TEXT.fullmatch(text) and int(text) in _YEAR_RANGE else None
    if column.type == "date":
        is_plain = _DATE_TEXT.fullmatch(text) and (_is_valid_moment(text) or _is_zero(text))
        return text if is_plain else None
    if column.type == "datetime":
        return plain_moment(column, text)
    if column.type == "time":
        return _plain_time(column, text)
    if column.type in CHARACTER_STRINGS:
        return _plain_string(column, text)
    if column.type in ("enum", "set"):
        return _plain_members(column, text)
    return None


def with_plain_default(column: ColumnSchema) -> ColumnSchema:
    """Return a column with a default that a server printed. The default's value counts
    as known only if its text is plain: servers print FLOAT with six digits, bytes up to
    a NUL, a TIMESTAMP in some time zone, and ? for characters that information_schema
    cannot hold."""
    if not isinstance(column.default, ValueDefault):
        return column
    text = column.default.text
    value = None if "?" in text else plain_value(column, text)
    return replace(column, default=WrittenDefault(text) if value is None else ValueDefault(value))


def plain_moment(column: ColumnSchema, text: str) -> str | None:
    """Return the text of a DATETIME, or of a TIMESTAMP in the session's time zone, with
    all fractional digits of the column; None if the text is not plain."""
    match = _MOMENT_TEXT.fullmatch(text)
    digits = column.length or 0
    if match is None or len(match[3] or "") > digits:
        return None
    clock = match[2] or "00:00:00"
    if not (_is_valid_moment(f"{match[1]} {clock}") or (_is_zero(match[1]) and _is_zero(clock))):
        return None
    return f"{match[1]} {clock}{_padded_fraction(match[3], digits)}"


def _plain_integer(column: ColumnSchema, text: str) -> str | None:
    if not _SIGNED_INTEGER_TEXT.fullmatch(text):
        return None
    number = int(text)
    half = 1 << (INTEGER_BITS[column.type] - 1)
    low, high = (0, 2 * half) if column.unsigned else (-half, half)
    return str(number) if low <= number < high else None


def _plain_decimal(column: ColumnSchema, text: str) -> str | None:
    match = _DECIMAL_TEXT.fullmatch(text)
    scale = column.scale or 0
    if match is None or not (match[2] or match[3]):
        return None
    integer_digits, fraction = match[2].lstrip("0"), match[3] or ""
    if len(fraction) > scale or len(integer_digits) > (column.precision or 0) - scale:
        return None
    number = Decimal(f"{integer_digits or '0'}.{fraction.ljust(scale, '0')}")
    sign = "-" if match[1] == "-" and number else ""
    return None if sign and column.unsigned else f"{sign}{number:f}"


def _plain_time(column: ColumnSchema, text: str) -> str | None:
    match = _TIME_TEXT.fullmatch(text)
    digits = column.length or 0
    if match is None or len(match[5] or "") > digits or int(match[2]) >= _LIMIT_HOUR:
        return None
    if match[1] and _is_zero(text[1:]):
        return None
    return f"{match[1]}{match[2]}:{match[3]}:{match[4]}{_padded_fraction(match[5], digits)}"


def _plain_string(column: ColumnSchema, text: str) -> str | None:
    max_length = _TINYTEXT_CHARACTERS if column.length is None else column.length
    if (
        column.charset not in ASCII_CHARSETS | WIDE_CHARSETS
        or not is_printable_ascii(text)
        or len(text) > max_length
    ):
        return None
    return None if column.type == "char" and text.endswith(" ") else text


def is_printable_ascii(text: str) -> bool:
    """Return whether a text consists of printable ASCII characters."""
    return _PRINTABLE.fullmatch(text) is not None


def _plain_members(column: ColumnSchema, text: str) -> str | None:
    """Return the members that the text names, in the order of the definition; None if a
    collation may treat one of them as equal to another member."""
    if column.charset not in ASCII_CHARSETS:
        return None
    if not all(map(is_printable_ascii, (text, *column.members))):
        return None
    if column.type == "set" and not text:
        return text
    member_names = [text] if column.type == "enum" else text.split(",")
    skeletons = [_skeleton(member) for member in column.members]
    for name in member_names:
        if name not in column.members or skeletons.count(_skeleton(name)) > 1:
            return None
    return ",".join(member for member in column.members if member in member_names)


def _skeleton(member: str) -> str:
    """Return a text that is the same for two ASCII members if some collation treats
    them as equal."""
    return member.lower().translate(_SIMILAR_LETTERS)


def _is_valid_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_zero(text: str) -> bool:
    return not text.strip("0-:.")


def _padded_fraction(text: str | None, digits: int) -> str:
    return "." + (text or "").ljust(digits, "0") if digits else ""
