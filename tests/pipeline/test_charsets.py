"""Bytes become text by the server's rule, or are refused with their place; and which codes and
members are canonical.

The bytes are what MySQL 9.7 gives for `hex(convert(text using charset))`; every code of every set
is compared with live servers in tests/mysql/test_charsets.py.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.binlog.arrays.cells import Cells, Layout
from lockstep.pipeline.binlog.values.charset_tables import MULTI_BYTE
from lockstep.pipeline.binlog.values.charsets import (
    CHARACTER_SETS,
    canonical_check,
    is_ambiguous,
    is_canonical_number,
    noncanonical_codes,
    single_byte_characters,
    text_decoder,
)
from lockstep.pipeline.binlog.values.strings import texts
from lockstep.pipeline.schema.collations import charset_by_number
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column
from tests.chance import by_chance

CHANGED = {
    "big5": ("中文恒", "a4a4a4e5f9da"),
    "cp932": ("日本語①", "93fa967b8cea8740"),
    "eucjpms": ("日本語①\uff5e\ufa11", "c6fccbdcb8ecada1a1c18ff4bd"),
    "gb18030": ("中文€𠀀ḿ", "d6d0cec4a2e395328236a8bc"),
    "sjis": ("日本語\\ｱ", "93fa967b8cea815fb1"),
    "ujis": ("日本語\\丂\ue000", "c6fccbdcb8eca1c08fb0a1f5a1"),
}

"""Text with characters that Python reads otherwise, by set."""

# Character set, bytes, and where in them the first bytes without meaning are.
MEANINGLESS = [
    ("ascii", "6180", 1, 2),
    ("cp1256", "61c0", 1, 2),
    ("swe7", "7f", 0, 1),
    ("cp932", "93fa80", 2, 3),
    ("sjis", "93fa815f8740", 4, 6),
    ("big5", "a4a4c7fd", 2, 4),
    ("eucjpms", "ada1c6", 2, 3),
    ("ujis", "c6fcada1", 2, 4),
    ("gb18030", "d6d0e3329a36", 2, 6),
    ("utf8mb3", "61f09f9880", 1, 5),
    ("utf8mb4", "61eda080", 1, 2),
    ("ucs2", "0061d83dde00", 2, 6),
    ("ucs2", "0061d800", 2, 4),
    ("utf8mb3", "61f09f9880ff", 1, 5),
    ("utf8mb3", "61fff09f9880", 1, 2),
    ("ucs2", "0061d83dde00d800", 2, 6),
    ("utf16", "0061de00d83d", 2, 4),
    ("utf32", "000000610000d800", 4, 8),
]


@pytest.mark.parametrize(("charset", "data", "start", "end"), MEANINGLESS)
def test_bytes_without_meaning_are_refused(charset: str, data: str, start: int, end: int) -> None:
    """The error names the value and the place in it."""
    value = bytes.fromhex(data)
    with pytest.raises(UnicodeDecodeError) as refused:
        text_decoder(charset)(value)
    error = refused.value
    assert (value, start, end) == (error.object, error.start, error.end)


@pytest.mark.parametrize("charset", CHANGED)
def test_changed_and_plain_characters_mix(charset: str) -> None:
    """What stands beside a changed character is still read by Python's table."""
    plain, (changed, data) = "一\x00a一", CHANGED[charset]
    around = plain.encode(MULTI_BYTE[charset].codec)
    whole = around + bytes.fromhex(data) + around
    assert plain + changed + plain == text_decoder(charset)(whole)


@pytest.mark.parametrize("charset", ["binary", "utf7", "collation 9999", ""])
def test_an_unknown_set_is_the_table_s_error(charset: str) -> None:
    """The error names the set and what to do."""
    with pytest.raises(TableError) as refused:
        text_decoder(charset)
    message = f"a column has the character set {charset}, which this version does not read"
    hint = "exclude the table, or convert the column to utf8mb4"
    assert (message, hint) == (refused.value.reason, refused.value.hint)


@pytest.mark.parametrize("collation", [255 + 69, 3328, 4096])
def test_numbers_that_nobody_gave_away(collation: int) -> None:
    """What the others mean is asked of servers (`tests/schema/test_collations.py`)."""
    assert f"collation {collation}" == charset_by_number(collation)


SEVERAL = sorted(charset for charset in CHARACTER_SETS if is_ambiguous(charset))
CODES = [bytes([byte]) for byte in range(256)] + [
    bytes(pair) for pair in product(range(0x80, 0x100), range(0x30, 0x100))
]
LONG = [b"\x8f" + bytes(pair) for pair in product(range(0xA0, 0x100), repeat=2)]
LONGER = {"eucjpms", "ujis"}
CODES_OF = {one: CODES + (LONG if one in LONGER else []) for one in SEVERAL}
UNICODE = {"utf8mb3", "utf8mb4", "ucs2", "utf16", "utf16le", "utf32"}


@cache
def text(charset: str, code: bytes) -> str | None:
    try:
        return text_decoder(charset)(code)
    except UnicodeDecodeError:
        return None


def test_the_other_sets_have_a_code_for_each_character() -> None:
    """Nothing is asked of their values."""
    for charset in CHARACTER_SETS - UNICODE - {*SEVERAL}:
        codes = CODES[:256] if single_byte_characters(charset) else CODES
        found = [it for code in codes if (it := text(charset, code)) is not None and len(it) == 1]
        assert len(found) == len(set(found)) > 100, charset


def test_codes_of_four_bytes_are_of_characters_without_another() -> None:
    """gb18030 has all of Unicode: every character's code is read as that character."""
    read = text_decoder("gb18030")
    swapped = {"\u1e3f": b"\xa8\xbc", "\ue7c7": b"\x81\x35\xf4\x37"}
    for point in (*range(0x80, 0xD800, 7), *range(0xE000, 0x110000, 97)):
        code = swapped.get(chr(point)) or chr(point).encode(MULTI_BYTE["gb18030"].codec)
        assert read(code) == chr(point)


def test_of_values_with_one_text_one_comes_back() -> None:
    """Whatever codes stand side by side, and whatever their halves are: of a set with codes of
    three bytes and of one without, drawn anew each time."""
    chance = by_chance()
    for several in (LONGER, set(SEVERAL) - LONGER):
        _require_one_of_each(chance.choice(sorted(several)), chance)


@pytest.mark.soak
@pytest.mark.parametrize("charset", SEVERAL)
def test_of_all_values_with_one_text_one_comes_back(charset: str) -> None:
    """The same of every set."""
    _require_one_of_each(charset, Random(charset))


def _require_one_of_each(charset: str, chance: Random) -> None:
    back = canonical_check(charset)
    texts: dict[str, set[bytes]] = {}
    for number in range(1200):
        if number % 300 == 0:
            some = {
                text(charset, one) for one in chance.sample(sorted(noncanonical_codes(charset)), 1)
            }
            some |= {text(charset, one) for one in chance.sample(CODES, 5)}
            codes = [one for one in CODES_OF[charset] if text(charset, one) in some - {None}]
        value = b"".join(chance.choices(codes, k=chance.randint(1, 3)))
        if (read := text(charset, value)) is not None:
            texts.setdefault(read, set()).add(value)
    assert max(map(len, texts.values())) > 1
    assert {sum(map(back, several)) for several in texts.values()} <= {0, 1}


def test_characters_of_two_bytes_are_not_mistaken_for_their_halves() -> None:
    """The end of one character and the beginning of the next are no code."""
    assert canonical_check("cp932")(b"\x81\xed\x40")
    assert not canonical_check("cp932")(b"\x81\x40\xed\x40")
    assert canonical_check("sjis")(b"\x95\x5c")
    assert not canonical_check("sjis")(b"\x95\x5c\x5c")


@given(st.lists(st.sampled_from(["", "a", "b"]), min_size=1, max_size=4), st.booleans())
def test_one_number_for_each_text(members: list[str], enum: bool) -> None:
    """Of members that are called alike the first; of '' the member, where it is one."""
    column = Column("k", "enum" if enum else "set", members=tuple(members))
    texts: dict[str, int] = {}
    for number in range(len(members) + 1 if enum else 1 << len(members)):
        if enum:
            shown = members[number - 1] if number else ""
        else:
            shown = ",".join(m for bit, m in enumerate(members) if number >> bit & 1)
            shown = shown.lstrip(",")
        if is_canonical_number(column, number):
            assert texts.setdefault(shown, number) == number


@pytest.mark.parametrize("text", ["abcde" * 12, "é", "a€", "€" * 50])
def test_a_converted_text_keeps_no_more_memory_than_it_has_bytes(text: str) -> None:
    """Many batches of rows are in memory at once, so their buffers have no room to spare."""
    stored, count = text.encode("cp1252"), 50_000
    data = np.frombuffer((bytes([len(stored)]) + stored) * count, np.uint8)
    places = (np.arange(count) * (len(stored) + 1)).astype(np.int32)
    before = pa.total_allocated_bytes()
    column = Column("c", "varchar", length=255, charset="latin1")
    array = texts(column, Cells(data, places, Layout(15, -1, 255), has_nulls=False))
    assert pa.total_allocated_bytes() - before <= 1.01 * array.nbytes
    assert array.equals(pa.array([text] * count))
