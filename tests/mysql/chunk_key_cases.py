"""Key columns of every type that a table may be cut by, with values at their extremes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

ALL = ("mysql", "mariadb", "mariadb11")
OWN = ("mariadb", "mariadb11")


@dataclass(frozen=True, slots=True)
class Case:
    """A key column's `definition` and literals of `values` that are different keys."""

    definition: str
    values: tuple[str, ...]
    servers: tuple[str, ...] = field(default=ALL)

    @property
    def type(self) -> str:
        return self.definition.replace("(", " ").split()[0]


def case(definition: str, *values: str, servers: tuple[str, ...] = ALL) -> Case:
    return Case(definition, values, servers)


def texts(*values: str) -> tuple[str, ...]:
    return tuple(f"_utf8mb4 x'{value.encode().hex()}'" for value in values)


NINES = "9" * 65
NUMBERS = (
    case("tinyint", "-128", "-1", "0", "1", "127"),
    case("tinyint unsigned", "0", "1", "127", "128", "255"),
    case("smallint", "-32768", "-1", "0", "32767"),
    case("mediumint unsigned zerofill", "0", "1", "16777215"),
    case("int", "-2147483648", "-1", "0", "2147483647"),
    case("bigint", "-9223372036854775808", "-1", "0", "9223372036854775807"),
    case(
        "bigint unsigned",
        *("0", "1", "9223372036854775807", "9223372036854775808", "18446744073709551615"),
    ),
    case("bigint(99) unsigned zerofill", "0", "10", "9223372036854775808", "18446744073709551615"),
    case("decimal(65,0)", f"-{NINES}", "-1", "0", "1", NINES[1:], NINES),
    case("decimal(65,30)", f"-{NINES[:35]}", "-0." + "0" * 29 + "1", "0", "0.1", NINES[:35]),
    case("decimal(5,5)", "-0.99999", "-0.00001", "0", "0.00001", "0.99999"),
    case("decimal(10,2) zerofill", "0", "0.01", "99999999.99"),
    case(
        "float",
        *("-3.4028234e38", "-1.17549435e-38", "-1e-45", "0", "1e-45", "0.1", "0.3"),
        *("16777217", "123456.789", "3.4028234e38"),
    ),
    case("float(7,2)", "-99999.99", "0.1", "0.11", "12345.67", "99999.99"),
    case(
        "double",
        *("-1.7976931348623157e308", "-5e-324", "0", "5e-324", "2.2250738585072014e-308"),
        *("0.1", "0.3", "0.30000000000000004", "123456789012345678", "1.7976931348623157e308"),
    ),
    case("double(9,3)", "-999999.999", "0.1", "0.101", "999999.999"),
    case("bit(1)", "0", "1"),
    case("bit(64)", "0", "1", "9223372036854775807", "9223372036854775808", f"{2**64 - 1}"),
    case("year", "0", "1901", "1970", "2000", "2155"),
)
MOMENTS = (
    case("date", "'0001-01-01'", "'1000-01-01'", "'2024-02-29'", "'9999-12-31'"),
    case(
        "datetime(6)",
        *("'0001-01-01'", "'0001-01-01 00:00:00.000001'", "'0031-12-31'"),
        *("'2024-02-29 23:59:59.999999'", "'2024-03-01'", "'9999-12-31 23:59:59.999999'"),
    ),
    case("datetime", "'0001-01-01'", "'2024-02-29 23:59:59'", "'9999-12-31 23:59:59'"),
    case(
        "timestamp(6)",
        *("'1970-01-01 00:00:01'", "'1970-01-01 00:00:01.000001'"),
        *("'2024-03-31 01:30:00'", "'2038-01-19 03:14:07.499999'"),
    ),
    case(
        "time(6)",
        *("'-838:59:59'", "'-01:00:00.5'", "'-01:00:00.4'", "'-00:00:00.000001'", "'00:00:00'"),
        *("'00:00:00.000001'", "'24:00:01'", "'838:59:59'"),
    ),
    case("time", "'-838:59:59'", "'-00:00:01'", "'00:00:00'", "'99:59:59'", "'838:59:59'"),
)
BYTES = (
    case("binary(16)", "x'00'", "x'20'", "x'2000ff'", "x'ff'", f"x'{'ff' * 16}'", "x'5c27'"),
    case("varbinary(16)", "x''", "x'00'", "x'0000'", "x'20'", "x'2000'", "x'2020'", "x'ff27'"),
)
NAMED = (
    case("inet6", "'::'", "'::1'", "'::ffff:1.2.3.4'", f"'{':'.join(['ffff'] * 8)}'", servers=OWN),
    case("inet4", "'0.0.0.0'", "'9.0.0.10'", "'10.0.0.9'", "'255.255.255.255'", servers=OWN),
    case(
        "uuid",
        "'00000000-0000-0000-0000-000000000000'",
        "'6ccd780c-baba-1026-9564-5b8c656024db'",
        "'0ccd780c-baba-1027-8564-5b8c656024db'",
        "'7ccd780c-baba-4026-9564-5b8c656024db'",
        "'123e4567-e89b-72d3-0456-426655440000'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        servers=OWN,
    ),
)
SPACED = texts("", "a", "a\t", "a\x01", "ab", "b", "b c", "~", "'", "\\")
"""Characters before the space sort before its end, where spaces fill up."""

FOLDED = texts("", "a", "A", "á", "ä", "ae", "æ", "ß", "ss", "e\u0301", "é", "ch", "cz", "z", "ñ")
WIDE = texts("日本", "にほん", "ニホン", "ﾆﾎﾝ", "中文", "表", "жЯ", "ё", "€", "ÿ", "😀", "😁")
COLLATIONS = {
    "utf8mb4_general_ci": ALL,
    "utf8mb4_bin": ALL,
    "utf8mb4_0900_ai_ci": ("mysql",),
    "utf8mb4_0900_as_cs": ("mysql",),
    "utf8mb4_0900_bin": ("mysql",),
    "utf8mb4_de_pb_0900_ai_ci": ("mysql",),
    "utf8mb4_ja_0900_as_cs_ks": ("mysql",),
    "utf8mb4_unicode_520_nopad_ci": OWN,
    "utf8mb4_uca1400_ai_ci": OWN,
    "utf8mb4_uca1400_nopad_as_cs": OWN,
    "utf8mb3_unicode_ci": ALL,
    "utf8mb3_nopad_bin": OWN,
    "latin1_swedish_ci": ALL,
    "latin1_german2_ci": ALL,
    "latin1_bin": ALL,
    "latin2_czech_cs": ALL,
    "cp932_japanese_ci": ALL,
    "cp932_bin": ALL,
    "sjis_bin": ALL,
    "eucjpms_japanese_ci": ALL,
    "gbk_chinese_ci": ALL,
    "gbk_bin": ALL,
    "gb18030_chinese_ci": ("mysql",),
    "big5_chinese_ci": ALL,
    "euckr_korean_ci": ALL,
    "tis620_thai_ci": ALL,
    "utf16_unicode_ci": ALL,
    "utf16le_general_ci": ALL,
    "utf32_bin": ALL,
    "ucs2_general_ci": ALL,
}
CHARS = (
    *("utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_0900_ai_ci", "utf8mb4_uca1400_ai_ci"),
    *("latin1_swedish_ci", "gbk_chinese_ci", "utf16_unicode_ci"),
)
"""Of these a CHAR too, which is stored without the spaces at its end. The soak has all of both."""

TEXTS = tuple(
    case(f"{kind}(10) collate {collation}", *SPACED, *FOLDED, *WIDE, servers=servers)
    for collation, servers in COLLATIONS.items()
    for kind in (("char", "varchar") if collation in CHARS else ("varchar",))
)
UUIDS = (
    case(
        "char(36) character set ascii",
        "'00000000-0000-0000-0000-000000000000'",
        "'7CCD780c-baba-4026-9564-5b8c656024db'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
    ),
)


def tried(group: Iterable[Case], flavour: str) -> list[Case]:
    """What a server is asked for: every case that it has, and the newer MariaDB what MySQL has not,
    which orders and compares the rest as the older one does."""
    own = (one for one in group if flavour in one.servers)
    return [one for one in own if flavour != "mariadb11" or one.servers == OWN]


CASES = (*NUMBERS, *MOMENTS, *BYTES, *NAMED, *TEXTS, *UUIDS)

NOT_CUT = (
    case("enum('z','a','m')", "1", "2", "3"),
    case("set('z','a','m')", "0", "1", "2", "7"),
    case("char(10) collate utf8mb4_nopad_bin", *SPACED, servers=OWN),
)
