"""MySQL's tables of character codes, as differences from the codecs of Python's
standard library.

Source: `CONVERT(… USING utf8mb4)` on MySQL 9.7 and MariaDB 10.11, which agree; the
tests compare every code below with both. In MySQL's source the tables are
`share/charsets/*.xml` and `strings/ctype-*.cc`.

Characters beyond ASCII are written as escapes, because an editor that normalises text
would replace some of them (compatibility ideographs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

NO_CHARACTER: Final = "\uffff"
"""Marks a code without a character; no table assigns U+FFFF itself."""


@dataclass(frozen=True, slots=True)
class CodeTable:
    """A Python codec, and the differences of MySQL's table from it.

    `changes`: a code → the characters of this code and of the codes after it, which
    count up in the last byte. `long_code_pattern`: a regular expression for a code of
    two or more bytes, only for multi-byte tables with changes.
    """

    codec: str
    changes: Mapping[bytes, str] = field(default_factory=dict)
    long_code_pattern: bytes = b""


_ARMENIAN: Final = (
    "\u2741\xa7\u0589)(\xbb\xab\u2014.\u055d,-\u055f\u2026\u055c\u055b\u055e"
    + "".join(chr(capital) + chr(capital + 0x30) for capital in range(0x531, 0x557))
    + "\u2019'"
)

_GEORGIAN: Final = (
    "\u10d0\u10d1\u10d2\u10d3\u10d4\u10d5\u10d6\u10f1\u10d7\u10d8\u10d9\u10da\u10db\u10dc"
    "\u10f2\u10dd\u10de\u10df\u10e0\u10e1\u10e2\u10f3\u10e3\u10e4\u10e5\u10e6\u10e7\u10e8"
    "\u10e9\u10ea\u10eb\u10ec\u10ed\u10ee\u10f4\u10ef\u10f0\u10f5"
)

SINGLE_BYTE: Final[dict[str, CodeTable]] = {
    "armscii8": CodeTable("latin-1", {b"\xa1": _ARMENIAN}),
    "ascii": CodeTable("ascii"),
    "cp1250": CodeTable("cp1250"),
    "cp1251": CodeTable("cp1251"),
    # MySQL's table lacks the eight letters that Windows 98 added for Urdu.
    "cp1256": CodeTable(
        "cp1256",
        dict.fromkeys([b"\x8a", b"\x8f", b"\x98", b"\x9a", b"\x9f", b"\xaa"], NO_CHARACTER)
        | dict.fromkeys([b"\xc0", b"\xff"], NO_CHARACTER),
    ),
    "cp1257": CodeTable("cp1257"),
    "cp850": CodeTable("cp850"),
    "cp852": CodeTable("cp852"),
    "cp866": CodeTable("cp866", {b"\xfc": "\u207f\xb2"}),
    "dec8": CodeTable(
        "latin-1",
        dict.fromkeys([b"\xa4", b"\xa6", b"\xb4", b"\xb8", b"\xbe", b"\xd0", b"\xf0"], NO_CHARACTER)
        | {
            b"\xa8": "\xa4",
            b"\xac": NO_CHARACTER * 4,
            b"\xd7": "\u0152",
            b"\xdd": "\u0178" + NO_CHARACTER,
            b"\xf7": "\u0153",
            b"\xfd": "\xff" + NO_CHARACTER * 2,
        },
    ),
    "geostd8": CodeTable(
        "cp1255",
        {
            b"\x83": NO_CHARACTER,
            b"\x88": NO_CHARACTER,
            b"\x98": NO_CHARACTER * 2,
            b"\xa4": "\xa4",
            b"\xaa": "\xaa",
            b"\xba": "\xba",
            b"\xc0": _GEORGIAN + NO_CHARACTER * 23 + "\u2116" + NO_CHARACTER * 2,
        },
    ),
    # ISO 8859-7 of 1987, without the signs that 2003 added.
    "greek": CodeTable(
        "iso8859-7", {b"\xa1": "\u02bd\u02bc", b"\xa4": NO_CHARACTER * 2, b"\xaa": NO_CHARACTER}
    ),
    "hebrew": CodeTable("iso8859-8", {b"\xaf": "\u203e"}),
    "hp8": CodeTable("hp-roman8"),
    "keybcs2": CodeTable(
        "cp437",
        {
            b"\x80": "\u010c",
            b"\x83": "\u010f",
            b"\x85": "\u010e\u0164\u010d\u011b\u011a\u0139\xcd\u013e\u013a",
            b"\x8f": "\xc1",
            b"\x91": "\u017e\u017d",
            b"\x95": "\xd3\u016f\xda",
            b"\x98": "\xfd",
            b"\x9b": "\u0160\u013d\xdd\u0158\u0165",
            b"\xa4": "\u0148\u0147\u016e\xd4\u0161\u0159\u0155\u0154",
        },
    ),
    "koi8r": CodeTable("koi8-r"),
    "koi8u": CodeTable("koi8-u", {b"\x95": "\u2022"}),
    # "latin1 is the same as the Windows cp1252 character set", MySQL manual, "West
    # European Character Sets": it keeps the five empty points as C1 controls.
    "latin1": CodeTable(
        "cp1252",
        {b"\x81": "\x81", b"\x8d": "\x8d", b"\x8f": "\x8f\x90", b"\x9d": "\x9d"},
    ),
    "latin2": CodeTable("iso8859-2"),
    "latin5": CodeTable("iso8859-9"),
    "latin7": CodeTable("iso8859-13"),
    "macce": CodeTable("mac-latin2"),
    "macroman": CodeTable("mac-roman"),
    "swe7": CodeTable(
        "ascii",
        {
            b"\x40": "\xc9",
            b"\x5b": "\xc4\xd6\xc5\xdc",
            b"\x60": "\xe9",
            b"\x7b": "\xe4\xf6\xe5\xfc" + NO_CHARACTER,
        },
    ),
    # Here and in big5 the server's own table has U+FFFD.
    "tis620": CodeTable(
        "tis-620", {b"\xa0": "\ufffd", b"\xdb": "\ufffd" * 4, b"\xfc": "\ufffd" * 4}
    ),
}


def _row_13(first: int, end: int) -> str:
    """Return a part of NEC's row 13, which Python's cp932 has at these codes."""
    return "".join(bytes([0x87, last]).decode("cp932") for last in range(first, end))


_NEC_ROW_13: Final[dict[bytes, str]] = {
    b"\xad\xa1": _row_13(0x40, 0x5E),
    b"\xad\xc0": _row_13(0x5F, 0x76),
    b"\xad\xdf": _row_13(0x7E, 0x7F) + _row_13(0x80, 0x9D),
}

_IBM_EXTENSIONS: Final[dict[bytes, str]] = {
    b"\x8f\xf3\xf3": "\u2170\u2171\u2172\u2173\u2174\u2175\u2176\u2177\u2178\u2179\u2160\u2161",
    b"\x8f\xf4\xa1": (
        "\u2162\u2163\u2164\u2165\u2166\u2167\u2168\u2169\uff07\uff02\u3231\u2116\u2121\u70bb"
        "\u4efc\u50f4\u51ec\u5307\u5324\ufa0e\u548a\u5759\ufa0f\ufa10\u589e\u5bec\u5cf5\u5d53"
        "\ufa11\u5fb7\u6085\u6120\u654e\u663b\u6665\ufa12\uf929\u6801\ufa13\ufa14\u6a6b\u6ae2"
        "\u6df8\u6df2\u7028\ufa15\ufa16\u7501\u7682\u769e\ufa17\u7930\ufa18\ufa19\ufa1a\ufa1b"
        "\u7ae7\ufa1c\ufa1d\u7da0\u7dd6\ufa1e\u8362\ufa1f\u85b0\ufa20\ufa21\u8807\ufa22\u8b7f"
        "\u8cf4\u8d76\ufa23\ufa24\ufa25\u90de\ufa26\u9115\ufa27\ufa28\u9592\uf9dc\ufa29\u973b"
        "\u974d\u9751\ufa2a\ufa2b\ufa2c\u999e\u9ad9\u9b72\ufa2d\u9ed1"
    ),
}

# Cells 1 to 94 of the rows 85 to 94, in both planes: the private use area from U+E000.
_USER_DEFINED: Final[dict[bytes, str]] = {
    plane + bytes([row, 0xA1]): "".join(map(chr, range(first, first + 94)))
    for plane, start in ((b"", 0xE000), (b"\x8f", 0xE3AC))
    for row, first in zip(range(0xF5, 0xFF), range(start, start + 940, 94), strict=True)
}

# The signs that Microsoft's table of JIS X 0208 and 0212 maps to fullwidth forms.
_MICROSOFT_SIGNS: Final[dict[bytes, str]] = {
    b"\xa1\xc1": "\uff5e\u2225",
    b"\xa1\xdd": "\uff0d",
    b"\xa1\xf1": "\uffe0\uffe1",
    b"\xa2\xcc": "\uffe2",
    b"\x8f\xa2\xb7": "\uff5e",
    b"\x8f\xa2\xc3": "\uffe4",
}

_EUC: Final = rb"\x8f[\xa1-\xfe]{2}|[\x8e\xa1-\xfe][\xa1-\xfe]"
_SHIFTED: Final = rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]"

MULTI_BYTE: Final[dict[str, CodeTable]] = {
    "big5": CodeTable(
        "big5",
        dict.fromkeys([b"\xa1\x5a", b"\xa1\xc3", b"\xa1\xc5", b"\xa1\xfe", b"\xa2\x40"], "\ufffd")
        | dict.fromkeys([b"\xa2\xcc", b"\xa2\xce"], "\ufffd")
        | {b"\xf9\xd6": "\u7881\u92b9\u88cf\u58bb\u6052\u7ca7\u5afa"},
        rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    ),
    # Python assigns private-use characters to bytes that are neither lead bytes nor
    # katakana.
    "cp932": CodeTable(
        "cp932", {b"\x80": NO_CHARACTER, b"\xa0": NO_CHARACTER, b"\xfd": NO_CHARACTER * 3}, _SHIFTED
    ),
    "eucjpms": CodeTable(
        "euc-jp", _MICROSOFT_SIGNS | _NEC_ROW_13 | _IBM_EXTENSIONS | _USER_DEFINED, _EUC
    ),
    "euckr": CodeTable("cp949"),
    # GB 18030 of 2005 swapped the characters of these two codes; Python's table is of
    # 2000.
    "gb18030": CodeTable(
        "gb18030",
        {b"\xa8\xbc": "\u1e3f", b"\x81\x35\xf4\x37": "\ue7c7"},
        rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[\x30-\x39][\x81-\xfe][\x30-\x39])",
    ),
    "gb2312": CodeTable("gb2312"),
    "gbk": CodeTable("gbk"),
    "sjis": CodeTable("shift-jis", {b"\x81\x5f": "\\"}, _SHIFTED),
    "ujis": CodeTable("euc-jp", _USER_DEFINED | {b"\xa1\xc0": "\\"}, _EUC),
    "utf16": CodeTable("utf-16-be"),
    "utf16le": CodeTable("utf-16-le"),
    "utf32": CodeTable("utf-32-be"),
    "utf8mb4": CodeTable("utf-8"),
}
"""`ucs2` and `utf8mb3` are missing: `charsets` reads them by other sets' codecs, up to
U+FFFF."""
