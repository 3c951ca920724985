"""Literal defaults → the text information_schema of MySQL shows for them.

Belongs here: how a constant is stored in a column of its type. A form that is not known
here stays as it was written. Expressions are kept as text elsewhere.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import Final

from pipeline.schema.evolving.effects import CannotFollow
from pipeline.schema.statements.written import Constant

_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
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

_MOMENT: Final = re.compile(
    r"\s*(\d{1,4})\D(\d{1,2})\D(\d{1,2})(?:[T\s]+(\d{1,2})\D(\d{1,2})(?:\D(\d{1,2})(?:\.(\d*))?)?)?\s*"
)
_DIGITS: Final = re.compile(r"(\d{4}|\d{2})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d))?(?:\.(\d*))?")
_UNDECODED: Final = re.compile("[\udc80-\udcff]")
"""Bytes that were no characters in the statement (`surrogateescape`)."""

_TIME: Final = re.compile(r"(-?)(?:(\d+) )?(\d{1,3}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?")
_PIVOT: Final = 70
"""Years of two digits from here on are 19xx (MySQL manual, "2-Digit Years in Dates")."""


def stored_text(
    constant: Constant,
    kind: str,
    *,
    length: int | None,
    scale: int | None,
    members: tuple[str, ...] = (),
    charset: str | None = None,
) -> str:
    """A constant that is not NULL as a column of type `kind` holds it."""
    if kind in _INTEGERS:
        return _whole(_as_number(constant))
    if kind == "decimal":
        return _fixed(_as_number(constant), scale or 0)
    if kind in ("float", "double"):
        return _as_number(constant)
    if kind == "bit":
        return _bits(constant)
    if kind in ("date", "datetime", "timestamp"):
        return _moment(constant.text, kind, length or 0)
    if kind == "time":
        return _time(constant.text, length or 0)
    if kind == "year":
        return _year(_as_number(constant))
    if kind in ("enum", "set"):
        return _member(as_text(constant, charset), kind, members)
    if kind in _BYTES:
        return _bytes(constant, length if kind == "binary" else None)
    text = as_text(constant, charset)
    return text.rstrip(" ") if kind == "char" else text


def as_text(constant: Constant, charset: str | None) -> str:
    """A literal's characters in a column of that character set. CannotFollow for bytes
    that only the server could read as characters."""
    if constant.kind not in ("hex", "bits"):
        if _UNDECODED.search(constant.text):
            raise CannotFollow("a literal has bytes that are no text of its session")
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


def as_bytes(text: str, charset: str, length: int | None = None) -> str:
    """A default of characters, once its column is one of bytes; padded to that length."""
    codec = _CODECS.get(charset, "ascii")
    try:
        return _bytes(Constant("hex", text.encode(codec).hex()), length)
    except UnicodeEncodeError:
        raise CannotFollow(f"what a default in {charset} is in bytes is not known") from None


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
    """The bytes of x'…' and b'…', and of a string in a session that speaks UTF-8."""
    match constant.kind:
        case "hex":
            return bytes.fromhex("0" * (len(constant.text) % 2) + constant.text)
        case "bits":
            size = (len(constant.text) + 7) // 8
            return int(constant.text or "0", 2).to_bytes(size, "big")
    return constant.text.encode("utf-8", "surrogateescape")


def _as_number(constant: Constant) -> str:
    match constant.kind:
        case "hex":
            return str(int(constant.text or "0", 16))
        case "bits":
            return str(int(constant.text or "0", 2))
    return constant.text.strip()


def _whole(text: str) -> str:
    return _fixed(text, 0)


def _fixed(text: str, scale: int) -> str:
    try:
        with localcontext(prec=100):
            number = Decimal(text).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    except InvalidOperation:
        raise CannotFollow(f"what number the default {text!r} is, is not known") from None
    return f"{number:f}".replace("-0", "0", 1) if not number else f"{number:f}"


def _bits(constant: Constant) -> str:
    if constant.kind == "string":
        number = int.from_bytes(literal_bytes(constant), "big")
    else:
        try:
            number = int(_as_number(constant))
        except ValueError:
            return constant.text
    return f"b'{number:b}'"


def _moment(text: str, kind: str, digits: int) -> str:
    found = _MOMENT.fullmatch(text) or _DIGITS.fullmatch(text)
    if found is None:
        if text != "0":
            raise CannotFollow(f"what {kind} the default {text!r} is, is not known")
        return _zero(kind, digits)
    year, month, day, *clock, fraction = (part or "0" for part in found.groups())
    if (len(year) <= 2 and found.re is _DIGITS) or len(year) == 2:
        year = f"{2000 + int(year) if int(year) < _PIVOT else 1900 + int(year)}"
    shown = f"{int(year):04}-{int(month):02}-{int(day):02}"
    if kind == "date":
        return shown
    return f"{shown} {':'.join(f'{int(part):02}' for part in clock)}{_fraction(fraction, digits)}"


def _zero(kind: str, digits: int) -> str:
    clock = "" if kind == "date" else " 00:00:00" + _fraction("0", digits)
    return "0000-00-00" + clock


def zero_moment(digits: int) -> str:
    """The default of a TIMESTAMP that has none, where the old rules are in force."""
    return _zero("timestamp", digits)


def _fraction(text: str, digits: int) -> str:
    return "." + (text + "0" * digits)[:digits] if digits else ""


def _time(text: str, digits: int) -> str:
    found = _TIME.fullmatch(text)
    if found is None:
        number = re.fullmatch(r"(-?)(\d+)", text)
        if number is None:
            raise CannotFollow(f"what time the default {text!r} is, is not known")
        padded = number[2].rjust(6, "0")
        parts = number[1], padded[:-4], padded[-4:-2], padded[-2:], "0"
    else:
        hours = int(found[2] or 0) * 24 + int(found[3])
        parts = found[1], str(hours), found[4], found[5] or "0", found[6] or "0"
    sign, hour, minute, second, fraction = parts
    shown = f"{int(hour):02}:{int(minute):02}:{int(second):02}"
    return f"{sign}{shown}{_fraction(fraction, digits)}"


def _year(text: str) -> str:
    if not text.isdigit():
        raise CannotFollow(f"what year the default {text!r} is, is not known")
    year = int(text)
    if year and len(text) <= 2:
        year += 2000 if year < _PIVOT else 1900
    return f"{year:04}"


def _member(text: str, kind: str, members: tuple[str, ...]) -> str:
    by_fold = {member.casefold(): member for member in reversed(members)}
    if kind == "enum":
        return by_fold.get(text.rstrip(" ").casefold(), text)
    wanted = {by_fold.get(part.rstrip(" ").casefold(), part) for part in text.split(",")}
    return ",".join(member for member in members if member in wanted)


def _bytes(constant: Constant, length: int | None) -> str:
    data = literal_bytes(constant)
    data = data.ljust(length or 0, b"\0")
    return "0x" + data.hex().upper() if data else ""
