"""The names and numbers of character sets and collations in MySQL and MariaDB.

Source: `information_schema.collations` and `character_sets` of MySQL 9.7, and
`collation_character_set_applicability` of MariaDB 10.11. MariaDB's numbers from 1024 on
are composed: below 2048, the bit 1024 means NOPAD; from 2048 on, the number contains
the parts of a UCA 14.0.0 collation (`strings/ctype-uca1400.h`). Tests compare this
table with live servers.
"""

from __future__ import annotations

from typing import Final

from lockstep.pipeline.values.errors import TableError

_CHARSETS: Final = {
    "armscii8": (1, "general_ci", "32:general_ci 64:bin"),
    "ascii": (1, "general_ci", "11:general_ci 65:bin"),
    "big5": (2, "chinese_ci", "1:chinese_ci 84:bin"),
    "binary": (1, "", "63:"),
    "cp1250": (1, "general_ci", "26:general_ci 34:czech_cs 44:croatian_ci 66:bin 99:polish_ci"),
    "cp1251": (
        1,
        "general_ci",
        "14:bulgarian_ci 23:ukrainian_ci 50:bin 51:general_ci 52:general_cs",
    ),
    "cp1256": (1, "general_ci", "57:general_ci 67:bin"),
    "cp1257": (1, "general_ci", "29:lithuanian_ci 58:bin 59:general_ci"),
    "cp850": (1, "general_ci", "4:general_ci 80:bin"),
    "cp852": (1, "general_ci", "40:general_ci 81:bin"),
    "cp866": (1, "general_ci", "36:general_ci 68:bin"),
    "cp932": (2, "japanese_ci", "95:japanese_ci 96:bin"),
    "dec8": (1, "swedish_ci", "3:swedish_ci 69:bin"),
    "eucjpms": (3, "japanese_ci", "97:japanese_ci 98:bin"),
    "euckr": (2, "korean_ci", "19:korean_ci 85:bin"),
    "gb18030": (4, "chinese_ci", "248:chinese_ci 249:bin 250:unicode_520_ci"),
    "gb2312": (2, "chinese_ci", "24:chinese_ci 86:bin"),
    "gbk": (2, "chinese_ci", "28:chinese_ci 87:bin"),
    "geostd8": (1, "general_ci", "92:general_ci 93:bin"),
    "greek": (1, "general_ci", "25:general_ci 70:bin"),
    "hebrew": (1, "general_ci", "16:general_ci 71:bin"),
    "hp8": (1, "english_ci", "6:english_ci 72:bin"),
    "keybcs2": (1, "general_ci", "37:general_ci 73:bin"),
    "koi8r": (1, "general_ci", "7:general_ci 74:bin"),
    "koi8u": (1, "general_ci", "22:general_ci 75:bin"),
    "latin1": (
        1,
        "swedish_ci",
        "5:german1_ci 8:swedish_ci 15:danish_ci 31:german2_ci 47:bin 48:general_ci "
        "49:general_cs 94:spanish_ci",
    ),
    "latin2": (1, "general_ci", "2:czech_cs 9:general_ci 21:hungarian_ci 27:croatian_ci 77:bin"),
    "latin5": (1, "turkish_ci", "30:turkish_ci 78:bin"),
    "latin7": (1, "general_ci", "20:estonian_cs 41:general_ci 42:general_cs 79:bin"),
    "macce": (1, "general_ci", "38:general_ci 43:bin"),
    "macroman": (1, "general_ci", "39:general_ci 53:bin"),
    "sjis": (2, "japanese_ci", "13:japanese_ci 88:bin"),
    "swe7": (1, "swedish_ci", "10:swedish_ci 82:bin"),
    "tis620": (1, "thai_ci", "18:thai_ci 89:bin"),
    "ucs2": (
        2,
        "general_ci",
        "35:general_ci 90:bin 159:general_mysql500_ci 640:croatian_ci "
        "641:myanmar_ci 642:thai_520_w2",
    ),
    "ujis": (3, "japanese_ci", "12:japanese_ci 91:bin"),
    "utf16": (
        4,
        "general_ci",
        "54:general_ci 55:bin 672:croatian_ci 673:myanmar_ci 674:thai_520_w2",
    ),
    "utf16le": (4, "general_ci", "56:general_ci 62:bin"),
    "utf32": (
        4,
        "general_ci",
        "60:general_ci 61:bin 736:croatian_ci 737:myanmar_ci 738:thai_520_w2",
    ),
    "utf8mb3": (
        3,
        "general_ci",
        "33:general_ci 76:tolower_ci 83:bin 223:general_mysql500_ci 576:croatian_ci "
        "577:myanmar_ci 578:thai_520_w2",
    ),
    "utf8mb4": (
        4,
        "general_ci",
        "45:general_ci 46:bin 255:0900_ai_ci 256:de_pb_0900_ai_ci 257:is_0900_ai_ci "
        "258:lv_0900_ai_ci 259:ro_0900_ai_ci 260:sl_0900_ai_ci 261:pl_0900_ai_ci "
        "262:et_0900_ai_ci 263:es_0900_ai_ci 264:sv_0900_ai_ci 265:tr_0900_ai_ci "
        "266:cs_0900_ai_ci 267:da_0900_ai_ci 268:lt_0900_ai_ci 269:sk_0900_ai_ci "
        "270:es_trad_0900_ai_ci 271:la_0900_ai_ci 273:eo_0900_ai_ci "
        "274:hu_0900_ai_ci 275:hr_0900_ai_ci 277:vi_0900_ai_ci 278:0900_as_cs "
        "279:de_pb_0900_as_cs 280:is_0900_as_cs 281:lv_0900_as_cs 282:ro_0900_as_cs "
        "283:sl_0900_as_cs 284:pl_0900_as_cs 285:et_0900_as_cs 286:es_0900_as_cs "
        "287:sv_0900_as_cs 288:tr_0900_as_cs 289:cs_0900_as_cs 290:da_0900_as_cs "
        "291:lt_0900_as_cs 292:sk_0900_as_cs 293:es_trad_0900_as_cs "
        "294:la_0900_as_cs 296:eo_0900_as_cs 297:hu_0900_as_cs 298:hr_0900_as_cs "
        "300:vi_0900_as_cs 303:ja_0900_as_cs 304:ja_0900_as_cs_ks 305:0900_as_ci "
        "306:ru_0900_ai_ci 307:ru_0900_as_cs 308:zh_0900_as_cs 309:0900_bin "
        "310:nb_0900_ai_ci 311:nb_0900_as_cs 312:nn_0900_ai_ci 313:nn_0900_as_cs "
        "314:sr_latn_0900_ai_ci 315:sr_latn_0900_as_cs 316:bs_0900_ai_ci "
        "317:bs_0900_as_cs 318:bg_0900_ai_ci 319:bg_0900_as_cs 320:gl_0900_ai_ci "
        "321:gl_0900_as_cs 322:mn_cyrl_0900_ai_ci 323:mn_cyrl_0900_as_cs "
        "608:croatian_ci 609:myanmar_ci 610:thai_520_w2",
    ),
}
"""Character set → number of bytes of its widest character, its default collation, and
the numbers and names of its collations. Collation names lack their prefix, the name of
the set; the collations of `_UNICODE_COLLATIONS` are left out."""

_UNICODE_COLLATIONS: Final = (
    "unicode icelandic latvian romanian slovenian polish estonian spanish swedish turkish czech "
    "danish lithuanian slovak spanish2 roman persian esperanto hungarian sinhala german2 croatian "
    "unicode_520 vietnamese"
)
_FIRST_NUMBERS: Final = {"ucs2": 128, "utf16": 101, "utf32": 160, "utf8mb3": 192, "utf8mb4": 224}
"""Character set → number of its collation `unicode_ci`. The next numbers belong to the
other names in `_UNICODE_COLLATIONS`, in their order."""

_NOPAD_BIT: Final = 0x400
_FIRST_UCA_1400_NUMBER: Final = 0x800
_UCA_1400_CHARSETS: Final = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
_UCA_1400_LANGUAGES: Final = {
    **dict(enumerate(["", *_UNICODE_COLLATIONS.split()[1:21]])),
    23: "vietnamese",
    24: "croatian",
}
_UCA_1400_STRENGTHS: Final = ("ai_ci", "ai_cs", "as_ci", "as_cs")

UTF8_CHARSETS: Final = frozenset({"utf8mb4", "utf8mb3"})
UTF8_COMPATIBLE_CHARSETS: Final = UTF8_CHARSETS | {"ascii"}
"""Character sets whose bytes are valid UTF-8."""

WIDE_CHARSETS: Final = frozenset({"ucs2", "utf16", "utf16le", "utf32"})
"""Character sets that do not encode ASCII characters as the same single bytes."""

SINGLE_BYTE_CHARSETS: Final = frozenset(
    {"latin1", "latin2", "latin5", "latin7", "greek", "hebrew", "cp1250", "cp1251", "cp1256"}
    | {"cp1257", "cp850", "cp852", "cp866", "koi8r", "koi8u"}
)
"""Character sets with one byte per character. Each of them contains ASCII, but no
character beyond U+FFFF."""

BINARY_COLLATION_NUMBER: Final = 63
"""Number of the collation `binary`."""


def _collation_names() -> dict[int, str]:
    names = {}
    for charset, (_, _, collations) in _CHARSETS.items():
        for pair in collations.split():
            number, _, suffix = pair.partition(":")
            names[int(number)] = f"{charset}_{suffix}" if suffix else charset
    for charset, first in _FIRST_NUMBERS.items():
        names |= {
            number: f"{charset}_{name}_ci"
            for number, name in enumerate(_UNICODE_COLLATIONS.split(), first)
        }
    return names


_NAMES_BY_NUMBER: Final = _collation_names()
_RENAMED_BY_MARIADB: Final = {
    number: name.replace("croatian", "croatian_mysql561")
    for number, name in _NAMES_BY_NUMBER.items()
    if number in (122, 149, 181, 213, 245)
}
"""MariaDB calls MySQL's `croatian` collations `croatian_mysql561`, and has other
collations of that name."""


def canonical_charset(name: str) -> str | None:
    """Return a character set's canonical name, in lower case; None for an unknown
    set."""
    folded = name.lower()
    folded = "utf8mb3" if folded == "utf8" else folded
    return folded if folded in _CHARSETS else None


def canonical_collation(name: str, charset: str | None) -> str | None:
    """Return a collation's canonical name, in lower case; None if its character set is
    unknown. `charset`: the character set of a name like `uca1400_…`, which MariaDB
    accepts without a set."""
    folded = name.lower()
    if folded.startswith("utf8_"):
        folded = "utf8mb3" + folded[4:]
    if folded.startswith("uca1400_") and charset is not None:
        folded = f"{charset}_{folded}"
    return folded if charset_of(folded) is not None else None


def charset_of(collation: str) -> str | None:
    """Return the character set of a collation with a canonical name; None for an
    unknown set."""
    charset = collation.partition("_")[0]
    return charset if charset in _CHARSETS else None


def collation_name(number: int, flavour: str = "mysql") -> str | None:
    """Return the name of the collation with this number; None for an unknown number."""
    if number >= _FIRST_UCA_1400_NUMBER:
        return _uca_1400_name(number)
    base = number & ~_NOPAD_BIT
    name = _NAMES_BY_NUMBER.get(base)
    if flavour == "mariadb":
        name = _RENAMED_BY_MARIADB.get(base, name)
    if name is None or not number & _NOPAD_BIT:
        return name
    head, _, tail = name.rpartition("_")
    return f"{head}_nopad_{tail}"


def charset_by_number(number: int) -> str:
    """Return the character set of the collation with this number; `collation N` for an
    unknown number."""
    name = collation_name(number)
    charset = None if name is None else charset_of(name)
    return charset or f"collation {number}"


def _uca_1400_name(number: int) -> str | None:
    charset_index, remainder = divmod(number - _FIRST_UCA_1400_NUMBER, 256)
    language, strength = divmod(remainder, 8)
    if charset_index >= len(_UCA_1400_CHARSETS) or language not in _UCA_1400_LANGUAGES:
        return None
    nopad, strength = divmod(strength, 4)
    parts = (
        _UCA_1400_CHARSETS[charset_index],
        "uca1400",
        _UCA_1400_LANGUAGES[language],
        "nopad" if nopad else "",
        _UCA_1400_STRENGTHS[strength],
    )
    return "_".join(part for part in parts if part)


def default_collation(charset: str, utf8mb4_default: str) -> str:
    """Return the collation of a definition that names a character set without COLLATE.
    `utf8mb4_default`: the default collation of utf8mb4, which depends on the server and
    the session (MySQL's `default_collation_for_utf8mb4`)."""
    if charset == "utf8mb4":
        return utf8mb4_default
    suffix = _CHARSETS[charset][1]
    return f"{charset}_{suffix}" if suffix else charset


def binary_collation(charset: str) -> str:
    return charset if charset == "binary" else f"{charset}_bin"


def max_character_bytes(charset: str) -> int:
    """Return the number of bytes of a character set's widest character. Raise
    TableError for an unknown set."""
    if charset not in _CHARSETS:
        raise unsupported_charset_error(charset)
    return _CHARSETS[charset][0]


def unsupported_charset_error(charset: str) -> TableError:
    return TableError(
        f"a column has the character set {charset}, which this version does not read",
        hint="exclude the table, or convert the column to utf8mb4",
    )
