"""Bytes become text by the server's rule, or are refused with their place.

The bytes are what MySQL 9.7 gives for `hex(convert(text using charset))`; all other
codes are put to live servers in tests/mysql/test_charsets.py.
"""

from __future__ import annotations

import pytest

from pipeline.binlog.text.charset_tables import MULTI_BYTE, SINGLE_BYTE
from pipeline.binlog.text.charsets import CHARACTER_SETS, single_byte, text_decoder
from pipeline.errors import TableError
from pipeline.schema.collations import character_set

SAMPLES = {
    "armscii8": ("Հայերեն", "d0b3dbbbf1bbdd"),
    "ascii": ("plain", "706c61696e"),
    "big5": ("中文恒", "a4a4a4e5f9da"),
    "cp1250": ("Žluťoučký", "8e6c759d6f75e86bfd"),
    "cp1251": ("Привет", "cff0e8e2e5f2"),
    "cp1256": ("سلام", "d3e1c7e3"),
    "cp1257": ("Ąžuolas", "c0fe756f6c6173"),
    "cp850": ("Grüße ±", "477281e16520f1"),
    "cp852": ("Łódź", "9da264ab"),
    "cp866": ("Привет ⁿ", "8fe0a8a2a5e220fc"),
    "cp932": ("日本語①", "93fa967b8cea8740"),
    "dec8": ("Œuvre Ÿ", "d77576726520dd"),
    "eucjpms": ("日本語①\uff5e\ufa11", "c6fccbdcb8ecada1a1c18ff4bd"),
    "euckr": ("한국어 똠", "c7d1b1b9beee208c63"),
    "gb18030": ("中文€𠀀ḿ", "d6d0cec4a2e395328236a8bc"),
    "gb2312": ("中文", "d6d0cec4"),
    "gbk": ("中文囍", "d6d0cec487d6"),
    "geostd8": ("ქართული №", "d8c0d2c8d6cbc920fd"),
    "greek": ("Ελληνικά", "c5ebebe7ede9eadc"),
    "hebrew": ("שלום", "f9ece5ed"),
    "hp8": ("Grüße", "4772cfde65"),
    "keybcs2": ("Žluťoučký", "926c759f6f75876b98"),
    "koi8r": ("Привет", "f0d2c9d7c5d4"),
    "koi8u": ("Київ •", "ebc9a7d72095"),
    "latin1": ("Grüße €\x81", "4772fcdf65208081"),
    "latin2": ("Łódź", "a3f364bc"),
    "latin5": ("İstanbul", "dd7374616e62756c"),
    "latin7": ("Ąžuolas", "c0fe756f6c6173"),
    "macce": ("Žluťoučký", "eb6c75e96f758b6bf9"),
    "macroman": ("Grüße €", "47729fa76520db"),
    "sjis": ("日本語\\ｱ", "93fa967b8cea815fb1"),
    "swe7": ("Göteborg Å", "477c7465626f7267205d"),
    "tis620": ("ไทย\ufffd", "e4b7c2a0"),
    "ucs2": ("日本語é", "65e5672c8a9e00e9"),
    "ujis": ("日本語\\丂\ue000", "c6fccbdcb8eca1c08fb0a1f5a1"),
    "utf16": ("日本語😀", "65e5672c8a9ed83dde00"),
    "utf16le": ("日本語😀", "e5652c679e8a3dd800de"),
    "utf32": ("日本語😀", "000065e50000672c00008a9e0001f600"),
    "utf8mb3": ("日本語é", "e697a5e69cace8aa9ec3a9"),
    "utf8mb4": ("日本語😀", "e697a5e69cace8aa9ef09f9880"),
}

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


def test_every_character_set_has_a_sample() -> None:
    """No set is left out, and `binary` is none."""
    assert set(SAMPLES) == CHARACTER_SETS


@pytest.mark.parametrize("charset", SAMPLES)
def test_samples_are_read(charset: str) -> None:
    """Text of the set's language, with a code that Python reads otherwise where there is one."""
    text, data = SAMPLES[charset]
    assert text == text_decoder(charset)(bytes.fromhex(data))


@pytest.mark.parametrize(("charset", "data", "start", "end"), MEANINGLESS)
def test_bytes_without_meaning_are_refused(charset: str, data: str, start: int, end: int) -> None:
    """The error names the character set, the value and the place in it."""
    value = bytes.fromhex(data)
    with pytest.raises(UnicodeDecodeError) as refused:
        text_decoder(charset)(value)
    error = refused.value
    assert (charset, value, start, end) == (error.encoding, error.object, error.start, error.end)


def test_a_table_per_single_byte_set() -> None:
    """256 characters for each single-byte set, none for the others."""
    lengths = {name: len(single_byte(name) or "") for name in CHARACTER_SETS}
    wanted = dict.fromkeys(CHARACTER_SETS, 0) | dict.fromkeys(SINGLE_BYTE, 256)
    assert wanted == lengths


@pytest.mark.parametrize("charset", SINGLE_BYTE)
def test_the_decoder_agrees_with_the_table(charset: str) -> None:
    """A byte decodes to the table's character; where that is U+FFFF it is refused."""
    decode = text_decoder(charset)
    read = []
    for byte in range(256):
        try:
            read.append(decode(bytes([byte])))
        except UnicodeDecodeError:
            read.append("\uffff")
    assert single_byte(charset) == "".join(read)


@pytest.mark.parametrize("charset", ["big5", "cp932", "eucjpms", "gb18030", "sjis", "ujis"])
def test_changed_and_plain_characters_mix(charset: str) -> None:
    """What stands beside a changed character is still read by Python's table."""
    plain, changed = "一\x00a一", SAMPLES[charset]
    around = plain.encode(MULTI_BYTE[charset].codec)
    data = around + bytes.fromhex(changed[1]) + around
    assert plain + changed[0] + plain == text_decoder(charset)(data)


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
