"""Bytes in a MySQL or MariaDB character set → text, and the values of a column that become the same
text.

The text is that of the server's `CONVERT(column USING utf8mb4)`. If that has `?` because a code has
no character, the bytes cannot be decoded. Nor can lone surrogates, which MySQL converts to nothing
and MariaDB, from utf8mb3, utf8mb4, ucs2 and utf32, to surrogates: no Unicode text may contain them.
`ucs2` and `utf8mb3` end at U+FFFF; a surrogate pair is a character in `utf16` and `utf16le` only.

Some character sets have several codes for one character; two members of an ENUM may have the same
name; and its '' may be a member or the value stored for an invalid one. Values that differ only so
are different for MySQL, but one text in the lake: they are ambiguous. A key may therefore only have
canonical values: the canonical code of a character is the one that a server chooses when it
converts the character into the set (`CONVERT(… USING …)` on MySQL 9.7 and MariaDB 10.11, which
agree), the canonical number of a member name is the first. Then a key's text, encoded again, gives
the same bytes, and different keys stay different. The tests compare every character that has
several codes with both servers.
"""

from __future__ import annotations

import codecs
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import groupby, product
from typing import Final

from lockstep.pipeline.binlog.values.charset_tables import (
    MULTI_BYTE,
    NOTHING,
    SINGLE_BYTE,
    CodeTable,
)
from lockstep.pipeline.schema.types import TEXT_TYPES
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column

Decoder = Callable[[bytes], str]

_BEYOND_UCS2: Final = "a character beyond U+FFFF"
_NO_CHARACTER: Final = "no character has this code"

# Size of a set's cache of characters: more than a text uses, far below the million codes of some.
_CACHED: Final = 1 << 14

# The character by which a mapping tells codecs.charmap_decode that a byte is undefined.
_REFUSED: Final = "\ufffe"


@cache
def text_decoder(charset: str) -> Decoder:
    """Return the function that decodes bytes of `charset`, a name as of MySQL 8.0.30 and later.

    The function raises UnicodeDecodeError, whose range is the first invalid bytes. TableError for
    an unknown name, and for `binary`.
    """
    table = single_byte(charset)
    if table is not None:
        mapping = table.replace(NOTHING, _REFUSED)
        return lambda data: codecs.charmap_decode(data, "strict", mapping)[0]
    if charset in _CUT_OFF:
        return _CUT_OFF[charset]
    code_table = MULTI_BYTE[charset]

    def plain(data: bytes) -> str:
        return data.decode(code_table.codec)

    return _changed(code_table, plain) if code_table.changes else plain


@cache
def single_byte(charset: str) -> str | None:
    """Return a single-byte set as 256 characters, indexed by byte; None for a multi-byte set.

    U+FFFF marks an undefined byte. TableError for an unknown name.
    """
    if charset not in CHARACTER_SETS:
        raise TableError(
            f"a column has the character set {charset}, which this version does not read",
            hint="exclude the table, or convert the column to utf8mb4",
        )
    code_table = SINGLE_BYTE.get(charset)
    if code_table is None:
        return None
    all_bytes = bytes(range(256))
    characters = list(all_bytes.decode(code_table.codec, "replace").replace("\ufffd", NOTHING))
    for code, character in _each(code_table.changes):
        characters[code[0]] = character
    return "".join(characters)


def _utf8mb3(data: bytes) -> str:
    text = data.decode("utf-8")
    # In valid UTF-8, these bytes are the first of a character of four bytes, and nothing else.
    rest = data.translate(None, _FOUR_BYTES)
    if len(rest) == len(data):
        return text
    at = next(index for index, byte in enumerate(data) if byte in _FOUR_BYTES)
    raise UnicodeDecodeError("utf8mb3", data, at, at + 4, _BEYOND_UCS2)


def _ucs2(data: bytes) -> str:
    text = data.decode("utf-16-be")
    if len(text) * 2 == len(data):
        return text
    at = 2 * next(index for index, character in enumerate(text) if character > "\uffff")
    raise UnicodeDecodeError("ucs2", data, at, at + 4, _BEYOND_UCS2)


_FOUR_BYTES: Final = b"\xf0\xf1\xf2\xf3\xf4"
_CUT_OFF: Final[dict[str, Decoder]] = {"ucs2": _ucs2, "utf8mb3": _utf8mb3}

CHARACTER_SETS: Final = frozenset({*SINGLE_BYTE, *MULTI_BYTE, *_CUT_OFF})
"""Every character set of MySQL 9.7 and MariaDB 10.11 except `binary`, which is not text."""


def _changed(table: CodeTable, plain: Decoder) -> Decoder:
    """Return a decoder that uses Python's codec for a whole value, and decodes it character by
    character only if it may have one of the table's changes."""
    changes = dict(_each(table.changes))
    # The changed codes that Python's codec refuses are noticed by its error.
    misread = re.compile(any_of(code for code in changes if _reads(plain, code)))
    each = _one_by_one(re.compile(b"(?:" + table.character + b")|.", re.DOTALL), changes, plain)

    def decode(data: bytes) -> str:
        if misread.search(data) is not None:
            return each(data)
        try:
            return plain(data)
        except UnicodeDecodeError:
            return each(data)

    return decode


def _reads(plain: Decoder, code: bytes) -> bool:
    try:
        plain(code)
    except UnicodeDecodeError:
        return False
    return True


def _one_by_one(
    character: re.Pattern[bytes], changes: Mapping[bytes, str], plain: Decoder
) -> Decoder:
    @lru_cache(_CACHED)
    def read(code: bytes) -> str:
        character_read = changes.get(code) or plain(code)
        if character_read == NOTHING:
            raise UnicodeDecodeError("", code, 0, len(code), _NO_CHARACTER)
        return character_read

    def decode(data: bytes) -> str:
        try:
            return "".join(map(read, character.findall(data)))
        except UnicodeDecodeError as error:
            raise _placed(error, data, character.finditer(data)) from None

    return decode


def _placed(
    error: UnicodeDecodeError, data: bytes, characters: Iterator[re.Match[bytes]]
) -> UnicodeDecodeError:
    """Return the error of a single character as an error of the whole value, at the first character
    that equals it."""
    start, end = next(match.span() for match in characters if match[0] == error.object)
    return UnicodeDecodeError(error.encoding, data, start, end, error.reason)


def _each(changes: Mapping[bytes, str]) -> Iterator[tuple[bytes, str]]:
    for first, characters in changes.items():
        for last, character in enumerate(characters, start=first[-1]):
            yield first[:-1] + bytes([last]), character


def any_of(codes: Iterable[bytes]) -> bytes:
    """Return a pattern for any of the codes. It also matches across two characters."""
    groups = groupby(sorted(codes), key=lambda code: code[:-1])
    return b"|".join(
        re.escape(prefix) + b"[" + b"".join(re.escape(code[-1:]) for code in group) + b"]"
        for prefix, group in groups
    )


UNKNOWN: Final = "\ufffd"
"""The character that the tables of two sets give for codes without a character."""

WITH_UNKNOWN: Final = frozenset({"big5", "tis620"})

_LARGEST: Final = {"big5": UNKNOWN, "sjis": "\\", "tis620": UNKNOWN}
"""The characters whose canonical code is the largest. For all others it is the smallest …"""

_SELECTED: Final = (b"\xed", b"\xee")
"""… except that in cp932, NEC's selection of IBM's characters is never canonical."""

_SEVERAL: Final[Mapping[str, int]] = {
    "armscii8": 1,
    "big5": 2,
    "cp932": 2,
    "eucjpms": 3,
    "sjis": 2,
    "tis620": 1,
    "ujis": 3,
}
"""The sets that have several codes for a character, with the bytes of their longest code."""

AMBIGUOUS_SETS: Final = frozenset(_SEVERAL)

_UTF8: Final = frozenset({"utf8mb3", "utf8mb4"})


def is_ambiguous(charset: str) -> bool:
    return charset in _SEVERAL


@cache
def is_unambiguous(charset: str) -> bool:
    """Return whether every value that a server stores in this set is valid and unambiguous."""
    table = None if charset in _UTF8 else single_byte(charset)
    whole = charset in _UTF8 or (table is not None and NOTHING not in table)
    return whole and not is_ambiguous(charset)


@cache
def twins(charset: str) -> frozenset[bytes]:
    """Return the codes that are not canonical."""
    read, codes = text_decoder(charset), defaultdict[str, list[bytes]](list)
    for code in _codes(charset):
        try:
            text = read(code)
        except UnicodeDecodeError:
            continue
        if len(text) == 1:
            codes[text].append(code)
    return frozenset(
        code
        for character, codes_of in codes.items()
        for code in codes_of
        if code != _canonical_code(charset, character, codes_of)
    )


def _canonical_code(charset: str, character: str, codes: Iterable[bytes]) -> bytes:
    if _LARGEST.get(charset) == character:
        return max(codes)
    return min(
        codes,
        key=lambda code: (charset == "cp932" and code.startswith(_SELECTED), len(code), code),
    )


def _codes(charset: str) -> Iterable[bytes]:
    high, trail = range(0x80, 0x100), range(0x40, 0x100)
    yield from (bytes([byte]) for byte in range(0x100))
    if _SEVERAL.get(charset, 1) > 1:
        yield from map(bytes, product(high, trail))
    if _SEVERAL.get(charset, 1) > 2:
        yield from map(bytes, product([0x8F], high, high))


@cache
def is_canonical(charset: str) -> Callable[[bytes], bool]:
    """Return a function that returns whether a valid value has only canonical codes."""
    ambiguous = twins(charset)
    if not ambiguous:
        return lambda _: True
    candidate = re.compile(any_of(ambiguous))
    if single_byte(charset) is not None:
        return lambda data: candidate.search(data) is None
    character = re.compile(b"(?:" + MULTI_BYTE[charset].character + b")|.", re.DOTALL)

    def canonical(data: bytes) -> bool:
        # A match may span two characters, so it does not prove that such a code is there.
        return candidate.search(data) is None or ambiguous.isdisjoint(character.findall(data))

    return canonical


def is_canonical_number(column: Column, number: int) -> bool:
    """Return whether this is the first of the numbers of an ENUM or SET that have the same text.
    Names may be used twice, and a member '' is printed like the value of an invalid ENUM, or not
    at all if it is the first in a SET."""
    members = column.members
    if column.type == "enum":
        name = members[number - 1] if number else ""
        return number == (members.index(name) + 1 if name in members else 0)
    bits = [bit for bit in range(len(members)) if number >> bit & 1]
    invisible_first = bool(bits) and members[bits[0]] == ""
    return not invisible_first and all(members.index(members[bit]) == bit for bit in bits)


def may_be_ambiguous(column: Column) -> bool:
    """Return whether the column can have ambiguous values."""
    if column.type in TEXT_TYPES:
        return is_ambiguous(column.charset or "")
    return "" in column.members or len(set(column.members)) < len(column.members)


def ambiguous_key(column: Column, where: str) -> TableError:
    """Return the error for a key column with an ambiguous value at a place, named in words."""
    name = "`" + column.name.replace("`", "``") + "`"
    if column.type in TEXT_TYPES:
        reason = f"{column.charset} has more than one code for some characters"
        canonical = f"CONVERT(CONVERT({name} USING utf8mb4) USING {column.charset})"
        hint = f"write those values again in the source (UPDATE … SET {name} = {canonical})"
    else:
        reason = f"its {column.type.upper()} has more than one value for some texts"
        hint = "give those rows another member in the source"
    return TableError(
        f"key column {column.name!r} has, in {where}, a value whose text another value has too: "
        f"{reason}; two different rows would become one",
        hint=f"{hint}, or exclude the table",
    )
