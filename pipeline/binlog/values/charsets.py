"""Decoding of text in MySQL's and MariaDB's character sets, and the different values of
a column that become the same text.

The text is the result of the server's `CONVERT(column USING utf8mb4)`. Two kinds of
bytes are refused instead: codes without a character, for which the server returns `?`;
and lone surrogates, which no Unicode text may contain (MySQL drops them; MariaDB keeps
them, from utf8mb3, utf8mb4, ucs2 and utf32). `ucs2` and `utf8mb3` end at U+FFFF. A
surrogate pair is a character only in `utf16` and `utf16le`.

Some values are different for MySQL, but become one text in the lake, because a
character set has several codes for a character, because two members of an ENUM have the
same name, or because the '' of an ENUM is a member and also stands for an invalid
value. Such values are called ambiguous, and one of them is canonical: the code that a
server chooses when it converts the character into the set (`CONVERT(… USING …)`; MySQL
9.7 and MariaDB 10.11 agree), or the first number with the name. A key may have
canonical values only. Then a key's text, encoded again, gives the same bytes, so
different keys stay different. The tests compare every character that has several codes
with both servers.
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
    NO_CHARACTER,
    SINGLE_BYTE,
    CodeTable,
)
from lockstep.pipeline.schema.collations import UTF8_CHARSETS, unsupported_charset_error
from lockstep.pipeline.schema.types import TEXT_TYPES
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column, quoted

Decoder = Callable[[bytes], str]

_BEYOND_UCS2_REASON: Final = "a character beyond U+FFFF"
_NO_CHARACTER_REASON: Final = "no character has this code"

# Characters of a set that are cached: more than a text uses, but far fewer than some
# sets have.
_CACHED_CHARACTERS: Final = 1 << 14

# codecs.charmap_decode refuses a byte that a mapping gives this character.
_REFUSED_CHARACTER: Final = "\ufffe"


@cache
def text_decoder(charset: str) -> Decoder:
    """Return the function that decodes bytes of `charset`, a name that MySQL has used
    since 8.0.30.

    The function raises UnicodeDecodeError with the range of the first invalid bytes.
    Raise TableError for an unknown name, and for `binary`.
    """
    table = single_byte_characters(charset)
    if table is not None:
        mapping = table.replace(NO_CHARACTER, _REFUSED_CHARACTER)
        return lambda data: codecs.charmap_decode(data, "strict", mapping)[0]
    if charset in _BASIC_PLANE_DECODERS:
        return _BASIC_PLANE_DECODERS[charset]
    code_table = MULTI_BYTE[charset]

    def decode_plain(data: bytes) -> str:
        return data.decode(code_table.codec)

    return _with_changes(code_table, decode_plain) if code_table.changes else decode_plain


@cache
def single_byte_characters(charset: str) -> str | None:
    """Return a single-byte set as 256 characters, indexed by byte, with U+FFFF for an
    undefined byte; None for a multi-byte set. Raise TableError for an unknown name."""
    if charset not in CHARACTER_SETS:
        raise unsupported_charset_error(charset)
    code_table = SINGLE_BYTE.get(charset)
    if code_table is None:
        return None
    all_bytes = bytes(range(256))
    characters = list(all_bytes.decode(code_table.codec, "replace").replace("\ufffd", NO_CHARACTER))
    for code, character in _changed_codes(code_table.changes):
        characters[code[0]] = character
    return "".join(characters)


def _decode_utf8mb3(data: bytes) -> str:
    text, valid, error = _decode_valid(data, "utf-8")
    # In valid UTF-8, these bytes occur only as the first of a character's four bytes.
    if len(valid.translate(None, _FOUR_BYTE_LEADS)) < len(valid):
        at = next(index for index, byte in enumerate(valid) if byte in _FOUR_BYTE_LEADS)
        raise UnicodeDecodeError("utf8mb3", data, at, at + 4, _BEYOND_UCS2_REASON)
    if error is not None:
        raise error
    return text


def _decode_ucs2(data: bytes) -> str:
    text, valid, error = _decode_valid(data, "utf-16-be")
    if len(text) * 2 < len(valid):
        at = 2 * next(index for index, character in enumerate(text) if character > "\uffff")
        raise UnicodeDecodeError("ucs2", data, at, at + 4, _BEYOND_UCS2_REASON)
    if error is not None:
        raise error
    return text


def _decode_valid(data: bytes, codec: str) -> tuple[str, bytes, UnicodeDecodeError | None]:
    """Return the text before the first bytes that the codec refuses, the bytes of this
    text, and the codec's error; if there are none, the whole text, and None."""
    try:
        return data.decode(codec), data, None
    except UnicodeDecodeError as error:
        valid = data[: error.start]
        return valid.decode(codec), valid, error


_FOUR_BYTE_LEADS: Final = b"\xf0\xf1\xf2\xf3\xf4"
_BASIC_PLANE_DECODERS: Final[dict[str, Decoder]] = {
    "ucs2": _decode_ucs2,
    "utf8mb3": _decode_utf8mb3,
}

CHARACTER_SETS: Final = frozenset({*SINGLE_BYTE, *MULTI_BYTE, *_BASIC_PLANE_DECODERS})
"""Every character set of MySQL 9.7 and MariaDB 10.11 except `binary`, which is not
text."""


def _with_changes(table: CodeTable, decode_plain: Decoder) -> Decoder:
    """Return a decoder that uses Python's codec for a whole value. Only a value that
    may have one of the table's changes is decoded character by character, which is
    slow."""
    changes, pattern = dict(_changed_codes(table.changes)), _character_pattern(table)
    # Changed codes that Python's codec refuses need no pattern: the codec raises an
    # error.
    misread = re.compile(
        any_code_pattern(code for code in changes if _can_decode(decode_plain, code))
    )

    @lru_cache(_CACHED_CHARACTERS)
    def decode_character(code: bytes) -> str:
        character = changes.get(code) or decode_plain(code)
        if character == NO_CHARACTER:
            raise UnicodeDecodeError("", code, 0, len(code), _NO_CHARACTER_REASON)
        return character

    def decode_each(data: bytes) -> str:
        try:
            return "".join(map(decode_character, pattern.findall(data)))
        except UnicodeDecodeError as error:
            spans = (match.span() for match in pattern.finditer(data) if match[0] == error.object)
            raise UnicodeDecodeError(error.encoding, data, *next(spans), error.reason) from None

    def decode(data: bytes) -> str:
        if misread.search(data) is not None:
            return decode_each(data)
        try:
            return decode_plain(data)
        except UnicodeDecodeError:
            return decode_each(data)

    return decode


def _character_pattern(table: CodeTable) -> re.Pattern[bytes]:
    """Return a pattern that splits a value into characters; invalid bytes count as
    characters."""
    return re.compile(b"(?:" + table.long_code_pattern + b")|.", re.DOTALL)


def _can_decode(decode_plain: Decoder, code: bytes) -> bool:
    """Return whether Python's codec decodes the code."""
    try:
        decode_plain(code)
    except UnicodeDecodeError:
        return False
    return True


def _changed_codes(changes: Mapping[bytes, str]) -> Iterator[tuple[bytes, str]]:
    """Yield each changed code and its character (`CodeTable.changes`)."""
    for first, characters in changes.items():
        for last, character in enumerate(characters, start=first[-1]):
            yield first[:-1] + bytes([last]), character


def any_code_pattern(codes: Iterable[bytes]) -> bytes:
    """Return a pattern for any of the codes. A match may also span two characters."""
    groups = groupby(sorted(codes), key=lambda code: code[:-1])
    return b"|".join(
        re.escape(prefix) + b"[" + b"".join(re.escape(code[-1:]) for code in group) + b"]"
        for prefix, group in groups
    )


REPLACEMENT: Final = "\ufffd"
"""The character that the server's tables of two sets have for codes without a
character."""

CHARSETS_WITH_REPLACEMENT: Final = frozenset({"big5", "tis620"})

_LARGEST_IS_CANONICAL: Final = {"big5": REPLACEMENT, "sjis": "\\", "tis620": REPLACEMENT}
"""The characters whose canonical code is the largest; for all others it is the
smallest."""

_NEC_SELECTED_LEADS: Final = (b"\xed", b"\xee")
"""First bytes of NEC's selection of IBM's characters in cp932, whose codes are never
canonical."""

_MAX_CODE_BYTES: Final[Mapping[str, int]] = {
    "armscii8": 1,
    "big5": 2,
    "cp932": 2,
    "eucjpms": 3,
    "sjis": 2,
    "tis620": 1,
    "ujis": 3,
}
"""Sets that have several codes for a character → the bytes of their longest code."""


def is_ambiguous(charset: str) -> bool:
    """Return whether the set has several codes for some character."""
    return charset in _MAX_CODE_BYTES


@cache
def is_reversible(charset: str) -> bool:
    """Return whether every value that a server stores in this set is valid and
    unambiguous."""
    if charset in UTF8_CHARSETS:
        return True
    table = single_byte_characters(charset)
    return table is not None and NO_CHARACTER not in table and not is_ambiguous(charset)


@cache
def noncanonical_codes(charset: str) -> frozenset[bytes]:
    """Return the set's codes that are not canonical: each has a canonical twin, the
    code that the server chooses for the same character."""
    decode = text_decoder(charset)
    codes: defaultdict[str, list[bytes]] = defaultdict(list)
    for code in _possible_codes(charset):
        try:
            text = decode(code)
        except UnicodeDecodeError:
            continue
        if len(text) == 1:
            codes[text].append(code)
    return frozenset(
        code
        for character, same_codes in codes.items()
        for code in same_codes
        if code != _canonical_code(charset, character, same_codes)
    )


def _canonical_code(charset: str, character: str, codes: Iterable[bytes]) -> bytes:
    if _LARGEST_IS_CANONICAL.get(charset) == character:
        return max(codes)
    return min(
        codes,
        key=lambda code: (
            charset == "cp932" and code.startswith(_NEC_SELECTED_LEADS),
            len(code),
            code,
        ),
    )


def _possible_codes(charset: str) -> Iterable[bytes]:
    """Yield all codes that a set with ambiguous characters may have."""
    high, trail = range(0x80, 0x100), range(0x40, 0x100)
    yield from (bytes([byte]) for byte in range(0x100))
    if _MAX_CODE_BYTES.get(charset, 1) > 1:
        yield from map(bytes, product(high, trail))
    if _MAX_CODE_BYTES.get(charset, 1) > 2:
        yield from map(bytes, product([0x8F], high, high))


@cache
def canonical_check(charset: str) -> Callable[[bytes], bool]:
    """Return the function that says whether all codes of a valid value are
    canonical."""
    noncanonical = noncanonical_codes(charset)
    if not noncanonical:
        return lambda _: True
    candidate = re.compile(any_code_pattern(noncanonical))
    if single_byte_characters(charset) is not None:
        return lambda data: candidate.search(data) is None
    pattern = _character_pattern(MULTI_BYTE[charset])

    def has_canonical_codes(data: bytes) -> bool:
        # A match may begin within a character, so the whole characters decide whether
        # the value has a code that is not canonical.
        return candidate.search(data) is None or noncanonical.isdisjoint(pattern.findall(data))

    return has_canonical_codes


def is_canonical_number(column: Column, number: int) -> bool:
    """Return whether `number` is the first number of an ENUM or SET with its text.
    Several numbers have the same text if a name is used twice, or if a member is '': an
    ENUM also has '' for an invalid value, and a '' at the beginning of a SET's text is
    invisible."""
    members = column.members
    if column.type == "enum":
        name = members[number - 1] if number else ""
        return number == (members.index(name) + 1 if name in members else 0)
    bits = [bit for bit in range(len(members)) if number >> bit & 1]
    is_first_invisible = bool(bits) and members[bits[0]] == ""
    return not is_first_invisible and all(members.index(members[bit]) == bit for bit in bits)


def may_be_ambiguous(column: Column) -> bool:
    """Return whether the column may have ambiguous values."""
    if column.type in TEXT_TYPES:
        return is_ambiguous(column.charset or "")
    return "" in column.members or len(set(column.members)) < len(column.members)


def ambiguous_key(column: Column, place: str) -> TableError:
    """Return the error for a key column with an ambiguous value. `place`: where the
    value is, in words."""
    name = quoted(column.name)
    if column.type in TEXT_TYPES:
        reason = f"{column.charset} has more than one code for some characters"
        canonical = f"CONVERT(CONVERT({name} USING utf8mb4) USING {column.charset})"
        hint = f"write those values again in the source (UPDATE … SET {name} = {canonical})"
    else:
        reason = f"its {column.type.upper()} has more than one value for some texts"
        hint = "give those rows another member in the source"
    return TableError(
        f"key column {column.name!r} has a value in {place} that has the same text as another "
        f"value: {reason}; two different rows would become one",
        hint=f"{hint}, or exclude the table",
    )
