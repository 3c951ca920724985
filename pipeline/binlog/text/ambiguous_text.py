"""Ambiguous values: different values of a column that become the same text in the lake.

Text in the lake is Unicode. Some character sets have several codes for one character; two members
of an ENUM may have the same name; and its '' may be a member or the value stored for an invalid
one. Values that differ only so are different for MySQL, but one text in the lake. A key may
therefore only have canonical values: the canonical code of a character is the one that a server
chooses when it converts the character into the set, the canonical number of a member name is the
first. Then a key's text, encoded again, gives the same bytes, and different keys stay different.

Source: `CONVERT(… USING …)` on MySQL 9.7 and MariaDB 10.11, which agree; the tests compare every
character that has several codes with both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import product
from typing import Final

from lockstep.pipeline.binlog.text.charset_tables import MULTI_BYTE, NOTHING
from lockstep.pipeline.binlog.text.charsets import any_of, single_byte, text_decoder
from lockstep.pipeline.schema.types import TEXT_TYPES
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column

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
