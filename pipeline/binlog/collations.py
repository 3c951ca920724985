"""Collation numbers → character set names, as MySQL 8.0 to 9.x numbers them.

Source: `information_schema.collations`; a test compares this table with a live server.
"""

from __future__ import annotations

from typing import Final

_NUMBERS: Final[dict[str, tuple[int | range, ...]]] = {
    "armscii8": (32, 64),
    "ascii": (11, 65),
    "big5": (1, 84),
    "binary": (63,),
    "cp1250": (26, 34, 44, 66, 99),
    "cp1251": (14, 23, 50, 51, 52),
    "cp1256": (57, 67),
    "cp1257": (29, 58, 59),
    "cp850": (4, 80),
    "cp852": (40, 81),
    "cp866": (36, 68),
    "cp932": (95, 96),
    "dec8": (3, 69),
    "eucjpms": (97, 98),
    "euckr": (19, 85),
    "gb18030": (range(248, 251),),
    "gb2312": (24, 86),
    "gbk": (28, 87),
    "geostd8": (92, 93),
    "greek": (25, 70),
    "hebrew": (16, 71),
    "hp8": (6, 72),
    "keybcs2": (37, 73),
    "koi8r": (7, 74),
    "koi8u": (22, 75),
    "latin1": (5, 8, 15, 31, 47, 48, 49, 94),
    "latin2": (2, 9, 21, 27, 77),
    "latin5": (30, 78),
    "latin7": (20, 41, 42, 79),
    "macce": (38, 43),
    "macroman": (39, 53),
    "sjis": (13, 88),
    "swe7": (10, 82),
    "tis620": (18, 89),
    "ucs2": (35, 90, range(128, 152), 159),
    "ujis": (12, 91),
    "utf16": (54, 55, range(101, 125)),
    "utf16le": (56, 62),
    "utf32": (60, 61, range(160, 184)),
    "utf8mb3": (33, 76, 83, range(192, 216), 223),
    "utf8mb4": (45, 46, range(224, 248), range(255, 324)),
}

BINARY: Final = 63

_BY_NUMBER: Final[dict[int, str]] = {
    number: name
    for name, groups in _NUMBERS.items()
    for group in groups
    for number in (group if isinstance(group, range) else (group,))
}


def character_set(collation: int) -> str:
    """The character set of a collation; `collation N` for a number not known here."""
    return _BY_NUMBER.get(collation, f"collation {collation}")
