"""Bytes become text by the server's rule, or are refused with their place.

The bytes are what MySQL 9.7 gives for `hex(convert(text using charset))`; every code of every set
is put to live servers in tests/mysql/test_charsets.py.
"""

from __future__ import annotations

import pytest

from lockstep.pipeline.binlog.values.charset_tables import MULTI_BYTE
from lockstep.pipeline.binlog.values.charsets import text_decoder
from lockstep.pipeline.schema.collations import character_set
from lockstep.pipeline.values.errors import TableError

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
    assert f"collation {collation}" == character_set(collation)
