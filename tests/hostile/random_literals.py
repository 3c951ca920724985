"""Types, literals and sessions that chance makes, for `test_literals`.

Belongs here: every kind of literal behind DEFAULT, for its own type and for others, plain and
odd; the sessions that it may be written in. Not every pair is one that a server takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final


@dataclass(frozen=True, slots=True)
class Session:
    """What `set names`, `sql_mode` and `time_zone` are; `connection`: a collation that literals
    are converted to; `letters`: characters beyond ASCII that the client can write."""

    names: str
    codec: str
    letters: str
    sql_mode: str = ""
    zone: str = "+00:00"
    connection: str | None = None

    @property
    def statements(self) -> tuple[str, ...]:
        connection = (f"set collation_connection = {self.connection}",) if self.connection else ()
        return (
            f"set sql_mode = '{self.sql_mode}', time_zone = '{self.zone}'",
            f"set names {self.names}",
            *connection,
        )


_STRICT: Final = "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO"
SESSIONS: Final = (
    Session("utf8mb4", "utf-8", "éÅßŁжя日\U0001f600", _STRICT),
    Session("utf8mb4", "utf-8", "éÅßŁжя日\U0001f600", "", "+05:30"),
    Session("utf8mb4", "utf-8", "éÅж日", "", "SYSTEM", "latin1_swedish_ci"),
    Session("utf8mb4", "utf-8", "éÅж日", "", "-11:00", "ucs2_general_ci"),
    Session("utf8mb3", "utf-8", "éÅßж日", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"),
    Session("latin1", "cp1252", "éÅß€", "NO_ZERO_DATE", "-03:00"),
    Session("cp1251", "cp1251", "жяЁ", "PAD_CHAR_TO_FULL_LENGTH,REAL_AS_FLOAT", "+02:00"),
    Session("gbk", "gbk", "中文俓", ""),
    Session("cp932", "cp932", "日ソ表", ""),
    Session("big5", "big5", "中功", _STRICT),
    Session("binary", "utf-8", "é日", ""),
)
MYSQL: Final = (Session("utf8mb4", "utf-8", "éж", "TIME_TRUNCATE_FRACTIONAL", "+09:00"),)
MARIADB: Final = (
    Session("utf8mb4", "utf-8", "éж", "TIME_ROUND_FRACTIONAL", "+09:00"),
    Session("utf8mb4", "utf-8", "éж", "EMPTY_STRING_IS_NULL"),
)

_SETS: Final = ("utf8mb4", "utf8mb3", "latin1", "ucs2", "cp1251", "gbk", "ascii", "sjis", "swe7")
_COLLATED: Final = ("utf8mb4_swedish_ci", "utf8mb4_roman_ci", "utf8mb4_bin", "latin1_german2_ci")
_MEMBERS: Final = ("a", "B", "v", "W", "u", "J", "y", "ss", "e", "x-y", "3", "ab c")


def pair(chance: Random, session: Session) -> tuple[str, str]:
    """A type with its attributes, and a literal."""
    family, kind = _kind(chance)
    if family == "member" and session.names == "binary":
        family, kind = "text", _text_kind(chance)  # members that the server reads otherwise
    literals = _LITERALS[family if chance.random() < 0.85 else chance.choice(list(_LITERALS))]
    nullable = chance.choice(("", "", " not null"))
    return kind + nullable, literals(chance, session, kind)


# -- types --------------------------------------------------------------------------------


def _kind(chance: Random) -> tuple[str, str]:
    family = chance.choice(
        (
            *("int", "decimal", "float", "date", "date", "time", "year", "text", "text"),
            *("member", "bytes", "bit"),
        )
    )
    return family, _KINDS[family](chance)


def _text_kind(chance: Random) -> str:
    size = chance.choice((1, 3, 5, 9, 20, 40))
    kind = chance.choice((f"char({size})", f"varchar({size})"))
    return f"{kind} {_charset(chance)}"


def _member_kind(chance: Random) -> str:
    members = chance.sample(_MEMBERS, chance.randint(1, 6))
    listed = ",".join(f"'{member}'" for member in members)
    return f"{chance.choice(('enum', 'set'))}({listed}) {_charset(chance)}"


def _charset(chance: Random) -> str:
    if chance.random() < 0.3:
        return f"collate {chance.choice(_COLLATED)}"
    return f"character set {chance.choice(_SETS)}"


def _decimal_kind(chance: Random) -> str:
    digits = chance.choice((1, 5, 10, 19, 38, 50))
    scale = chance.randint(0, min(digits, 9))
    pointed = f"decimal({digits}.{scale})"
    return chance.choice((f"decimal({digits},{scale})", "decimal", pointed)) + _sign(chance)


def _sign(chance: Random) -> str:
    return chance.choice(("", "", "", " unsigned", " zerofill"))


def _moment_kind(chance: Random) -> str:
    digits = chance.randint(0, 6)
    return chance.choice(("date", f"datetime({digits})", f"timestamp({digits})", "datetime"))


_KINDS: Final[dict[str, Callable[[Random], str]]] = {
    "int": lambda chance: (
        chance.choice(("tinyint", "smallint", "mediumint", "int", "bigint", "int(5)"))
        + chance.choice(("", "", " unsigned"))
    ),
    "decimal": _decimal_kind,
    "float": lambda chance: chance.choice(
        ("float", "double", "float(7,2)", "double(9,3)", "real", "float(7.4)")
    ),
    "date": _moment_kind,
    "time": lambda chance: f"time({chance.randint(0, 6)})",
    "year": lambda chance: "year",
    "text": _text_kind,
    "member": _member_kind,
    "bytes": lambda chance: f"{chance.choice(('binary', 'varbinary'))}({chance.randint(1, 9)})",
    "bit": lambda chance: f"bit({chance.choice((1, 5, 8, 33, 64))})",
}


# -- literals -----------------------------------------------------------------------------


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _either(chance: Random, text: str) -> str:
    """As a number, or as a string, or as one with something around it."""
    around = chance.choice(("{}", "{}", "{}", "{}", " {}", "{} ", "+{}", "{}.", "0{}", "{}x"))
    return chance.choice((text, _quoted(text), _quoted(around.format(text))))


def _integer(chance: Random, _: Session, __: str) -> str:
    bits = chance.choice((3, 7, 8, 15, 16, 23, 24, 31, 32, 63, 64))
    number = chance.choice((chance.randrange(1 << bits), (1 << bits) - 1, 1 << bits))
    text = f"{chance.choice(('', '', '-'))}{number}"
    odd = ("true", "false", "1e3", "2.5", "-2.5", "2.5e0", "3.5e0", ".5", "010", "x'41'", "0x0a")
    return _either(chance, text) if chance.random() < 0.7 else chance.choice((*odd, "b'101'"))


def _decimal(chance: Random, _: Session, __: str) -> str:
    whole, fraction = chance.choice((0, 1, 9, 12345, 10**9)), chance.randrange(10**6)
    digits = f"{fraction:06}"[: chance.randint(1, 6)]
    text = f"{chance.choice(('', '', '-'))}{whole}.{digits}"
    odd = ("1e2", "'1.5e-3'", ".5", "5.", "0x1f", "-0.0", "'-0'", "1.0049999999999999", "0.5e0")
    return _either(chance, text) if chance.random() < 0.75 else chance.choice(odd)


def _float(chance: Random, session: Session, kind: str) -> str:
    odd = (
        *("1.1", "16777217", "'1e-40'", "3.4e38", "-0.0", "'-0'", "0.12345678901234567", "1e300"),
        *("1.0000001", "123456789.125", "'0.1'", ".1e1"),
    )
    return chance.choice(odd) if chance.random() < 0.5 else _decimal(chance, session, kind)


def _day(chance: Random) -> str:
    year = chance.choice((1, 1000, 1969, 1970, 1999, 2000, 2024, 2037, 2038, 9999))
    month, day = chance.choice((1, 2, 6, 12)), chance.choice((1, 9, 28, 29, 30, 31))
    others = ("{}-{}-{}", "{}/{}/{}", "{:04}{:02}{:02}", "{:04}.{:02}.{}")
    return chance.choice(("{:04}-{:02}-{:02}",) * 5 + others).format(year, month, day)


def _clock(chance: Random) -> str:
    hour, minute, second = (chance.choice(some) for some in ((0, 1, 12, 23), (0, 59), (0, 9, 59)))
    clock = f"{hour:02}:{minute:02}:{second:02}"
    fraction = chance.choice(
        ("", "", "", ".5", ".499", ".4999999", ".999999", ".9999996", ".1", ".")
    )
    return clock + fraction


def _moment(chance: Random, _: Session, __: str) -> str:
    text, form = f"{_day(chance)} {_clock(chance)}", chance.random()
    if form < 0.3:
        return _quoted(_day(chance))
    if form < 0.65:
        return _quoted(text)
    if form < 0.75:
        word = chance.choice(("date", "timestamp"))
        return f"{word} {_quoted(_day(chance) if word == 'date' else text)}"
    odd = (
        *("'0000-00-00'", "'0000-00-00 00:00:00'", "'2020-00-10'", "'2020-02-30'", "0", "'0'"),
        *("20200102", "20200102030405", "'20200102030405.7'", "'20-1-2'", "'70-01-02 03:04:05'"),
        *("'2020-01-02:'", "'2020-01-02T03:04:05'", "'2020-01-02 03:04:05+02:00'", "691231"),
        *("' 2020-01-02 '", "'2020-01-02 03:04'", "20200102030405.7", "'2020-01-02  03:04:05'"),
        *("'2020-12-31 23:59:59.9999999'", "'9999-12-31 23:59:59.5'", "'2020-01-02 24:00:00'"),
    )
    return chance.choice(odd)


def _time(chance: Random, _: Session, __: str) -> str:
    clock, form = _clock(chance), chance.random()
    if form < 0.5:
        return _quoted(chance.choice(("", "", "-")) + clock)
    if form < 0.6:
        return _quoted(f"{chance.choice((100, 837, 838, 839))}{clock[2:]}")
    odd = (
        *("' 01:01 '", "'0000-00-00 01:00:00.000'", "'1:2:3'", "'10:11'", "'1 10:11:12'", "101112"),
        *("'101112'", "101112.75", "'838:59:59.9'", "'-00:00:00'", "'-00:00:00.4'", "'2:3'", "7"),
        *("time '10:11:12.6'", "timestamp '2020-01-01 10:11:12.5'", "'2020-01-01 10:11:12'"),
        *("'34 22:59:59'", "'001:02:03'", "'10:11:12.9999999'", "-101112", "'12:'", "'23:59:60'"),
    )
    return chance.choice(odd)


def _year(chance: Random, _: Session, __: str) -> str:
    odd = (
        *("'0'", "'00'", "'000'", "'0000'", "0", "00", "0000", "70", "'70'", "69", "'69'", "1"),
        *("2020.6", "'2020.6'", "2156", "1900", "'2020-05-05'", "20e2", "0x14", "true", "'1'"),
    )
    plain = _either(chance, str(chance.randint(1899, 2157)))
    return chance.choice(odd) if chance.random() < 0.6 else plain


def _text(chance: Random, session: Session, _: str) -> str:
    letters = chance.choices("abcXYZ 019,-_%\\\"'~", k=chance.randint(0, 9))
    if chance.random() < 0.4:
        letters += chance.choices(session.letters, k=chance.randint(1, 2))
        chance.shuffle(letters)
    text = _quoted("".join(letters))
    form = chance.random()
    if form < 0.6:
        return text
    odd = (
        *("5", "-7", "010", "1.50", "1e3", "true", "0x41", "x'c3a9'", "b'1000001'", "'a' 'b'"),
        *("''", "_latin1 x'E9'", "_utf8mb4 x'C3A9'", "_binary 'ab'", "date '2020-1-2'", "N'abc'"),
        *("'a  '", "_latin1'abc'", f"_latin1{text}", f"_utf8mb4{text}", f"N{text}", "' a'"),
        *(
            "'a\\0b'",
            "0",
            "_cp1251 x'E6'",
            "time '1:2:3'",
            "'123456789012345678901234567890'",
            "00",
            "-0",
        ),
    )
    return chance.choice(odd)


def _member(chance: Random, session: Session, kind: str) -> str:
    members = kind[kind.find("(") + 1 : kind.rfind(")")].replace("'", "").split(",")
    form = chance.random()
    if form < 0.35:
        return _quoted(chance.choice(members))
    if form < 0.5:
        return _quoted(",".join(chance.choices(members, k=chance.randint(1, 4))))
    if form < 0.75:
        change = chance.choice((str.upper, str.lower, lambda one: one + " ", lambda one: " " + one))
        return _quoted(change(chance.choice(members)))
    odd = (
        *("1", "'1'", "3", "''", "0", "'V'", "'w'", "'I'", "'i'", "'\\u00e9'", "'ß'", "x'61'"),
        "'a,'",
    )
    return chance.choice((*odd, _quoted(chance.choice(session.letters))))


def _bytes(chance: Random, session: Session, kind: str) -> str:
    size = chance.randint(0, 9)
    digits = "".join(chance.choices("0123456789abcdef", k=size))
    even = digits + "0" * (size % 2)
    forms = (
        f"x'{even}'",
        f"0x{digits or '0'}",
        f"b'{chance.randrange(1 << 17):b}'",
        "'\udcff\udc80a'",
    )
    return chance.choice(forms) if chance.random() < 0.6 else _text(chance, session, kind)


def _bits(chance: Random, _: Session, __: str) -> str:
    number = chance.randrange(1 << chance.choice((1, 5, 8, 33, 64)))
    forms = (f"b'{number:b}'", f"0b{number:b}", str(number), f"0x{number:x}", f"'{number}'", "'a'")
    return chance.choice((*forms, "true", "b''", "1.4", "-1"))


_LITERALS: Final[dict[str, Callable[[Random, Session, str], str]]] = {
    "int": _integer,
    "decimal": _decimal,
    "float": _float,
    "date": _moment,
    "time": _time,
    "year": _year,
    "text": _text,
    "member": _member,
    "bytes": _bytes,
    "bit": _bits,
}
