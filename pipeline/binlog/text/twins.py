"""What a column stores that means the same text as something else that it may store.

Text of the lake is Unicode. Character sets have several codes for one character, an ENUM's
members may be called alike, and its '' may be a member or the value that is none of them: values
that differ in these alone are different to MySQL and one text in the lake. So a key may hold of
each text one form only: a character's own code is the one that a server chooses when it converts
the character into the set, a member's own number its first. Then every value of a key comes back
byte for byte when its text is encoded again, and keys that differ stay different.

Source: `CONVERT(… USING …)` on MySQL 9.7 and MariaDB 10.11, which agree; the tests put every
character that has several codes to both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import product
from typing import Final

from pipeline.binlog.text.charset_tables import MULTI_BYTE, NOTHING
from pipeline.binlog.text.charsets import any_of, single_byte, text_decoder
from pipeline.errors import TableError
from pipeline.schema.types import TEXT_TYPES
from pipeline.table import Column

UNKNOWN: Final = "\ufffd"
"""What the tables of two sets say of codes that have no character."""

WITH_UNKNOWN: Final = frozenset({"big5", "tis620"})

_LARGEST: Final = {"big5": UNKNOWN, "sjis": "\\", "tis620": UNKNOWN}
"""Characters whose own code is the largest; elsewhere it is the smallest …"""

_SELECTED: Final = (b"\xed", b"\xee")
"""… but for cp932's second copy of IBM's characters, the selection of NEC."""

_SEVERAL: Final[Mapping[str, int]] = {
    "armscii8": 1,
    "big5": 2,
    "cp932": 2,
    "eucjpms": 3,
    "sjis": 2,
    "tis620": 1,
    "ujis": 3,
}
"""The sets that have such codes, with the bytes of their longest code."""

SETS_WITH_TWINS: Final = frozenset(_SEVERAL)

_UTF8: Final = frozenset({"utf8mb3", "utf8mb4"})


def has_twins(charset: str) -> bool:
    return charset in _SEVERAL


@cache
def is_whole(charset: str) -> bool:
    """Whether every value that a server stores is text, and comes back."""
    table = None if charset in _UTF8 else single_byte(charset)
    whole = charset in _UTF8 or (table is not None and NOTHING not in table)
    return whole and not has_twins(charset)


@cache
def twins(charset: str) -> frozenset[bytes]:
    """Codes whose character has another code as its own."""
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
        for character, several in codes.items()
        for code in several
        if code != _own(charset, character, several)
    )


def _own(charset: str, character: str, several: Iterable[bytes]) -> bytes:
    if _LARGEST.get(charset) == character:
        return max(several)
    return min(
        several,
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
def comes_back(charset: str) -> Callable[[bytes], bool]:
    """Whether a value of the set, which must be text, has every character in its own code."""
    others = twins(charset)
    if not others:
        return lambda _: True
    perhaps = re.compile(any_of(others))
    if single_byte(charset) is not None:
        return lambda data: perhaps.search(data) is None
    character = re.compile(b"(?:" + MULTI_BYTE[charset].character + b")|.", re.DOTALL)

    def back(data: bytes) -> bool:
        return perhaps.search(data) is None or others.isdisjoint(character.findall(data))

    return back


def is_own_number(column: Column, number: int) -> bool:
    """Whether an ENUM's or SET's text stands for that number alone, or for it before others:
    members may be called alike, and one may be '' like the value that is none of them; a SET
    that begins with it prints as without it."""
    members = column.members
    if column.type == "enum":
        name = members[number - 1] if number else ""
        return number == (members.index(name) + 1 if name in members else 0)
    bits = [bit for bit in range(len(members)) if number >> bit & 1]
    silent = bool(bits) and members[bits[0]] == ""
    return not silent and all(members.index(members[bit]) == bit for bit in bits)


def may_stray(column: Column) -> bool:
    """Whether the column can hold values that do not come back."""
    if column.type in TEXT_TYPES:
        return has_twins(column.charset or "")
    return "" in column.members or len(set(column.members)) < len(column.members)


def astray(column: Column, where: str) -> TableError:
    name = "`" + column.name.replace("`", "``") + "`"
    if column.type in TEXT_TYPES:
        several = f"{column.charset} has more than one code for some characters"
        back = f"CONVERT(CONVERT({name} USING utf8mb4) USING {column.charset})"
        hint = f"write those values again in the source (UPDATE … SET {name} = {back})"
    else:
        several = f"its {column.type.upper()} has more than one value for some texts"
        hint = "give those rows another member in the source"
    return TableError(
        f"key column {column.name!r} holds, in {where}, a value whose text also stands for another "
        f"value: {several}; two different rows would become one",
        hint=f"{hint}, or exclude the table",
    )
