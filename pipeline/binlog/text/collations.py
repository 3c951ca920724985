"""Collation numbers → character set names, as MySQL 8.0 to 9.x and MariaDB number them.

One table serves both: no number means two character sets. MySQL alone has 76 and the
UCA 9.0.0 collations (255 to 323); MariaDB alone has the Croatian and Myanmar ones from
576 on, a bit for NOPAD in the numbers below 2048, and UCA 14.0.0 from there.

Source: `information_schema.collations` of MySQL 9.7, the ids in
`information_schema.collation_character_set_applicability` of MariaDB 10.11, and
`strings/ctype-uca1400.h` of MariaDB for the layout of its numbers. Tests compare this
table with live servers.
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
    "ucs2": (35, 90, range(128, 152), 159, range(640, 643)),
    "ujis": (12, 91),
    "utf16": (54, 55, range(101, 125), range(672, 675)),
    "utf16le": (56, 62),
    "utf32": (60, 61, range(160, 184), range(736, 739)),
    "utf8mb3": (33, 76, 83, range(192, 216), 223, range(576, 579)),
    "utf8mb4": (45, 46, range(224, 248), range(255, 324), range(608, 611)),
}

BINARY: Final = 63

_BY_NUMBER: Final[dict[int, str]] = {
    number: name
    for name, groups in _NUMBERS.items()
    for group in groups
    for number in (group if isinstance(group, range) else (group,))
}


_NOPAD: Final = 0x400
_UCA_1400: Final = 0x800
_UCA_1400_SETS: Final = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")


def character_set(collation: int) -> str:
    """The character set of a collation; `collation N` for a number not known here."""
    known = _uca_1400(collation) if collation >= _UCA_1400 else _BY_NUMBER.get(collation & ~_NOPAD)
    return known or f"collation {collation}"


def _uca_1400(collation: int) -> str | None:
    """The character set is in the bits from 8 on; language and strength are below."""
    place = (collation - _UCA_1400) >> 8
    return _UCA_1400_SETS[place] if place < len(_UCA_1400_SETS) else None
